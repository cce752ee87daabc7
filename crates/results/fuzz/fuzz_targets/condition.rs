//! The grammars of conditions and gates never panic, and keep the text they accept.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_results::{compare::Gate, condition::Condition};

fuzz_target!(|text: &str| {
    if let Ok(condition) = text.parse::<Condition>() {
        assert_eq!(condition.to_string(), text);
        condition.describe(1.0);
    }
    if let Ok(gate) = text.parse::<Gate>() {
        assert_eq!(gate.to_string(), text);
        gate.describe(0.5);
    }
});
