//! The fault matrix: what servers and the client promise under faults, and what came of it.
//!
//! `cargo run --release -p netping-benches --example faults` takes about two minutes and prints a
//! table. `--all` adds gRPC's other stacks and servers with TLS and with a pre-shared key; `--long` tries every
//! fault on all of them five times. `--only TEXT` tries the rows whose `FAULT, SERVER` contains the text. It exits
//! with 1 if a promise was not kept.
//!
//! Servers and clients are processes of their own: this program is also `netping` itself.

mod addresses;
mod client;
mod closings;
mod floods;
mod frames;
mod garbage;
mod grpc;
mod kinds;
mod limits;
mod lines;
mod memory;
mod outcome;
mod peer;
mod quic;
mod relay;
mod replay;
mod restarts;

use std::{env, path::Path, process::ExitCode, thread};

use netping_benches::processes::{self, Server, netping, plain, time_of_day};
use netping_report::table::{Column, Table};

use crate::{
    kinds::{Kind, kinds},
    outcome::{Outcome, tried},
};

/// The allocator of netping's programs: the memory of the servers is theirs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A fault: its name, the promise, whether a server can have it, and the trial.
struct Fault {
    what: &'static str,
    promised: &'static str,
    servers: fn(&Kind) -> bool,
    try_it: fn(&Kind) -> Outcome,
}

/// Servers on which a fault that does little but wait is tried at once.
const AT_ONCE: usize = 4;

const COLUMNS: [Column; 5] = [
    Column::text("fault"),
    Column::text("server"),
    Column::text("promised"),
    Column::text("came"),
    Column::text(""),
];

/// The rows to try.
struct Choice {
    /// All servers are tried.
    is_all: bool,
    is_long: bool,
    /// A part of the row's fault and server.
    only: String,
}

impl Choice {
    /// Returns the choice of the arguments; `None` for those of netping.
    fn of(args: &[String]) -> Option<Self> {
        let mut choice = Self {
            is_all: false,
            is_long: false,
            only: String::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--all" => choice.is_all = true,
                "--long" => (choice.is_all, choice.is_long) = (true, true),
                "--only" => choice.only.clone_from(args.next()?),
                _ => return None,
            }
        }
        Some(choice)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some(choice) = Choice::of(&args) else {
        return processes::main(&args);
    };
    let folder = env::temp_dir().join(format!("netping-faults-{}", std::process::id()));
    let certificates = folder.to_str().expect("a path of UTF-8").to_owned();
    for what in [&["certs"][..], &["certs", "--psk"]] {
        let made = plain(&[what, &["--out", &certificates]].concat());
        assert!(made.status.success(), "no keys in {certificates}");
    }
    let counts = check(&choice, &folder);
    // The folder is this program's own.
    let _ = std::fs::remove_dir_all(&folder);
    let [kept, broken, not_tried] = counts;
    println!("{kept} kept, {broken} BROKEN, {not_tried} not tried");
    // A text that chooses no row is a mistake.
    ExitCode::from(u8::from(broken > 0 || counts == [0; 3]))
}

/// Tries every fault on every server that can have it, and prints the table. Returns the numbers of promises
/// that were kept, that were not, and that were not tried.
fn check(choice: &Choice, certificates: &Path) -> [usize; 3] {
    let faults = [
        &closings::FAULTS[..],
        &garbage::FAULTS,
        &lines::FAULTS,
        &grpc::FAULTS,
        &floods::FAULTS,
        &quic::FAULTS,
        &addresses::FAULTS,
        &limits::FAULTS,
        &replay::FAULTS,
        &relay::FAULTS,
        &restarts::FAULTS,
        &client::FAULTS,
    ];
    let (mut rows, mut counts) = (Vec::new(), [0; 3]);
    for (number, faults) in faults.into_iter().enumerate() {
        // Those of the first kind do little but wait.
        let at_once = if number == 0 { AT_ONCE } else { 1 };
        for fault in faults {
            let mut kinds = kinds(choice.is_all, certificates);
            kinds.retain(|kind| {
                let row = format!("{}, {}", fault.what, kind.name);
                (fault.servers)(kind) && row.contains(&choice.only)
            });
            for (kind, outcome) in kinds.iter().zip(outcomes(fault, &kinds, choice, at_once)) {
                let Outcome { came, verdict } = outcome;
                counts[verdict as usize] += 1;
                let row = [fault.what, kind.name, fault.promised, &came, verdict.name()];
                rows.push(row.map(str::to_owned).to_vec());
            }
        }
    }
    println!("{}", Table::whole(&COLUMNS, &rows));
    counts
}

/// Tries a fault on each of these servers, on so many at once, and says what came.
fn outcomes(fault: &Fault, kinds: &[Kind], choice: &Choice, at_once: usize) -> Vec<Outcome> {
    let outcome = |kind: &Kind| {
        let begun = time_of_day();
        let outcome = tried(choice.is_long, || (fault.try_it)(kind));
        let took = time_of_day() - begun;
        let Outcome { came, verdict } = &outcome;
        let (what, name) = (fault.what, kind.name);
        eprintln!("{what}, {name}: {came} ({took:.1} s): {}", verdict.name());
        outcome
    };
    let outcome = &outcome;
    let groups = kinds.chunks(at_once).map(|group| {
        thread::scope(|scope| {
            let trials: Vec<_> = group
                .iter()
                .map(|kind| scope.spawn(move || outcome(kind)))
                .collect();
            trials
                .into_iter()
                .map(|trial| trial.join().expect("a trial catches its panics"))
                .collect::<Vec<_>>()
        })
    });
    groups.flatten().collect()
}

/// Returns true if an honest client is served without a failure.
fn serves(server: &Server, kind: &Kind) -> bool {
    let latency = ["latency", &server.url, "-n", "200", "--warmup", "0s"];
    let said = netping(&[&latency[..], &server.metrics(), &kind.client()].concat());
    said.output.status.code() == Some(0)
}

/// Says whether honest clients were served.
fn word(honest: bool) -> &'static str {
    if honest {
        "others served"
    } else {
        "others NOT served"
    }
}

/// Says which errors a server has counted, and how many of each.
fn counted(server: &Server) -> String {
    let errors = server.errors();
    let words = errors.iter().map(|(kind, count)| format!("{kind} {count}"));
    words.collect::<Vec<_>>().join(", ")
}
