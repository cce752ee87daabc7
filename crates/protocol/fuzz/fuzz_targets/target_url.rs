//! Any text as a target: no panic, and the URL of a parsed target names the same target.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_protocol::target::Target;

fuzz_target!(|text: &str| {
    if let Ok(target) = text.parse::<Target>() {
        let shown = target.to_string();
        assert_eq!(shown.parse::<Target>().as_ref(), Ok(&target), "{shown}");
    }
});
