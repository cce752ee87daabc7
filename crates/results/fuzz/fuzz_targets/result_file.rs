//! Reading a result file never panics, and what is accepted can be rendered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_report::{page, text, verdict};
use netping_results::{compare::compare_runs, run::Run};

fuzz_target!(|json: &[u8]| {
    if let Ok(run) = Run::from_json(json) {
        text::comparison(&compare_runs(&run, &run, &[]));
        verdict::describe(&run, |_| true);
        page::html(std::slice::from_ref(&run));
        text::tables(&run);
    }
});
