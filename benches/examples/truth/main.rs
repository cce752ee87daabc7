//! A suite of ground truths: situations whose right answer is known, and what netping says of them.
//!
//! `cargo run --release -p netping-benches --example truth` runs all parts in about 45 minutes and
//! prints a table; with names of parts as arguments, those alone: `simulations`, `queues-50`,
//! `queues-80`, `queues-90`, `counters`, `stalls`, `streams`, `bursts`, `anatomy`, `refusals`, `warnings`, `conditions`, `ladders`. It
//! needs two cores, which it gives to client and server. With `--once` first, troubles and conditions are made once
//! each, and warnings beside the right one are no failure: for machines that others use.
//!
//! Commands are run as a user runs them: this program is also `netping` itself.

mod anatomy;
mod bursts;
mod conditions;
mod counters;
mod queues;
mod refusals;
mod simulations;
mod stalls;
mod streams;
mod warnings;

use std::{env, process::ExitCode};

use netping_benches::processes;
use netping_report::table::{Column, Table};

/// A truth that was checked.
struct Truth {
    /// The situation.
    what: String,
    /// The answer that is right.
    expected: String,
    /// The answer that was given.
    found: String,
    /// True if it was right; `None` if this machine cannot make the situation.
    passed: Option<bool>,
}

/// Takes a truth once it is checked.
type Tell<'a> = &'a mut dyn FnMut(Truth);

/// The number of times that troubles and conditions are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Once, on a machine that others use.
    Once,
    /// As often as a claim about them needs.
    Full,
}

/// A part: its name, and the function that checks its truths.
type Part = (&'static str, fn(Extent, Tell<'_>));

const PARTS: [Part; 13] = [
    ("simulations", |_, tell| simulations::check(tell)),
    ("queues-50", |_, tell| queues::check(0.5, tell)),
    ("queues-80", |_, tell| queues::check(0.8, tell)),
    ("queues-90", |_, tell| queues::check(0.9, tell)),
    ("counters", |_, tell| counters::check(tell)),
    ("stalls", |_, tell| stalls::check(tell)),
    ("streams", |_, tell| streams::check(tell)),
    ("bursts", |_, tell| bursts::check(tell)),
    ("anatomy", |_, tell| anatomy::check(tell)),
    ("refusals", |_, tell| refusals::check(tell)),
    ("warnings", warnings::check),
    ("conditions", conditions::check),
    ("ladders", conditions::check_ladders),
];

const COLUMNS: [Column; 5] = [
    Column::text("part"),
    Column::text("truth"),
    Column::text("right answer"),
    Column::text("answer"),
    Column::text(""),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let is_part = |name: &String| PARTS.iter().any(|(part, _)| part == name);
    let (extent, parts) = match &args[..] {
        [once, parts @ ..] if once == "--once" => (Extent::Once, parts),
        parts => (Extent::Full, parts),
    };
    if !parts.iter().all(is_part) {
        return processes::main(&args);
    }
    let mut rows = Vec::new();
    let mut failed = false;
    for (name, check) in PARTS {
        if !parts.is_empty() && !parts.iter().any(|part| part == name) {
            continue;
        }
        let begun = processes::time_of_day();
        check(extent, &mut |truth| {
            failed |= truth.passed == Some(false);
            let verdict = match truth.passed {
                Some(true) => "pass",
                Some(false) => "FAIL",
                None => "not tried",
            };
            eprintln!("{name}: {}: {}: {verdict}", truth.what, truth.found);
            let row = [truth.what, truth.expected, truth.found, verdict.to_owned()];
            rows.push([&[name.to_owned()], &row[..]].concat());
        });
        eprintln!("{name}: {:.0} s", processes::time_of_day() - begun);
    }
    println!("{}", Table::whole(&COLUMNS, &rows));
    ExitCode::from(u8::from(failed))
}
