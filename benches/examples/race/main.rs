//! The race: netping's clients, servers and proxy against others of their kind, and against
//! themselves, in interleaved rounds. Prints Markdown.
//!
//! `cargo run --release -p netping-benches --example race` runs every row whose peers are installed
//! (Debian has h2load, iperf3, wrk, nginx and haproxy); with names of rows as arguments, those alone.
//! It needs two cores, which it gives to client and server, and a machine that does nothing else.
//!
//! Programs that no package has are looked for in `--peers FOLDER`:
//!
//! - `grpc-server ADDRESS` serves netping's `echopb.Echo` at the address.

mod bare;
mod bare_quic;
mod contest;
mod cost;
mod itself;
mod peers;
mod rows;

use std::{env, path::PathBuf, process::ExitCode};

use clap::Parser;
use netping_benches::processes;

use crate::{contest::Contest, rows::ROWS};

/// As in netping's own binaries: this program is also their client and servers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Races netping against other programs, and prints a table in Markdown.
#[derive(Debug, Clone, Parser)]
pub struct Race {
    /// Rows to run [default: all]
    rows: Vec<String>,
    /// Rounds of each row
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Folder of further peers
    #[arg(long)]
    peers: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if processes::is_own(&args) {
        return processes::main(&args);
    }
    if let Some(code) = itself::run(&args) {
        return code;
    }
    let race = Race::parse();
    let known = |name: &String| ROWS.iter().any(|row| row.name == name);
    if let Some(unknown) = race.rows.iter().find(|name| !known(name)) {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        eprintln!("there is no row {unknown}: there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    println!("| row | measure | result |\n|---|---|---|");
    for row in &ROWS {
        if !race.rows.is_empty() && !race.rows.iter().any(|name| name == row.name) {
            continue;
        }
        let found = match (row.set_up)(&race) {
            Some(contest) => run(contest, race.rounds),
            None => "not tried: no such peer here".to_owned(),
        };
        println!("| `{}` | {} | {found} |", row.name, row.what);
    }
    ExitCode::SUCCESS
}

/// Runs the sides of a contest in turn, one after the other first. What each measures first does not
/// count: many threads or connections take a second to come to rest.
fn run(mut contest: Contest, rounds: usize) -> String {
    let mut values = vec![Vec::new(); contest.sides.len()];
    for side in &mut contest.sides {
        side();
    }
    for round in 0..rounds {
        let mut order: Vec<_> = (0..contest.sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for side in order {
            values[side].push((contest.sides[side])());
        }
    }
    contest.describe(&values)
}
