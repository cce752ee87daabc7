//! Reading a result file never panics, and what is accepted can be rendered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_report::{page, table::{Column, Table}};
use netping_results::{compare::compare_runs, run::Run};

fuzz_target!(|json: &[u8]| {
    if let Ok(run) = Run::from_json(json) {
        let comparison = compare_runs(&run, &run, &[]);
        let rows: Vec<Vec<String>> = comparison.pairs.into_iter().map(|pair| vec![pair.name]).collect();
        Table::plain(&[Column::text("")], &rows);
        page::html(&[run]);
    }
});
