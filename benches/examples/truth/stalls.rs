//! Stalls: a server that is stopped for a while, anywhere in the window.

use std::time::Duration;

use nix::sys::signal::Signal;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use netping_benches::processes::{Client, Server, time_of_day, wait};
use netping_results::run::Step;

use crate::{Tell, Truth};

/// Stalls of each kind of loop.
const RUNS: usize = 40;

/// The window, in seconds, and the warm-up before it.
const WINDOW: f64 = 2.5;
const WARMUP: f64 = 0.5;

/// The time from the client's start until its requests begin, in seconds, at least.
const CONNECT: f64 = 0.03;

/// Checks that the longest time and a warning show each stall.
pub fn check(tell: Tell<'_>) {
    let server = Server::start("tokio", &["--workers", "1"]);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for (name, rate) in [
        ("closed loop", None),
        ("open loop, 5,000 req/s", Some("5k")),
    ] {
        let lengths = [0.2, 0.5, 2.0];
        let seen: Vec<Seen> = (0..RUNS)
            .map(|run| stall(&server, rate, lengths[run % 3], run, &mut random))
            .collect();
        let count = |of: fn(&Seen) -> bool| seen.iter().filter(|seen| of(seen)).count();
        let (times, warned) = (count(|seen| seen.in_max), count(|seen| seen.warned));
        tell(Truth {
            what: format!("{name}: stalls of 0.2, 0.5 and 2 s at random times and both edges"),
            expected: format!("in max {RUNS} of {RUNS}, warned of {RUNS} of {RUNS}"),
            found: format!("in max {times} of {RUNS}, warned of {warned} of {RUNS}"),
            passed: Some(times == RUNS && warned == RUNS),
        });
    }
}

struct Seen {
    in_max: bool,
    warned: bool,
}

fn stall(
    server: &Server,
    rate: Option<&str>,
    length: f64,
    run: usize,
    random: &mut ChaCha8Rng,
) -> Seen {
    let uniform = f64::from(random.next_u32()) / 2f64.powi(32);
    // In the window; every fourth run just before its end, every fourth just after its start.
    let into_window = match run % 4 {
        0 => WINDOW - 0.1,
        1 => 0.05,
        _ => uniform * (WINDOW - 0.2),
    };
    let (window, warmup) = (format!("{WINDOW}s"), format!("{}ms", WARMUP * 1e3));
    let mut args = vec!["throughput", &server.url, "-c", "16", "-d", &window];
    args.extend(["--warmup", &warmup, "--server-metrics", "off"]);
    args.extend(rate.iter().flat_map(|rate| ["--rate", rate]));
    let client = Client::start(&args);
    wait(Duration::from_secs_f64(CONNECT + WARMUP + into_window));
    server.process.signal(Signal::SIGSTOP);
    let stopped = time_of_day();
    wait(Duration::from_secs_f64(length));
    server.process.signal(Signal::SIGCONT);
    let continued = time_of_day();
    let said = client.finish();
    let step: Step = serde_json::from_value(said.step().clone()).expect("a step of a result file");
    let start = step.window_started_at.expect("the window's start") as f64 / 1e9;
    let waited = match rate {
        // What was due in the window waited from then on.
        Some(_) => continued - stopped.max(start),
        // A client that began late had all of its requests under way when the window began: they do not count.
        None if stopped < start => 0.0,
        None => continued - stopped,
    };
    let seen = Seen {
        in_max: said.longest() >= waited * 0.9,
        warned: said.warnings().contains(&"STALLED"),
    };
    if !(seen.in_max && seen.warned) {
        eprintln!(
            "a stall of {length} s, {:.3} s into the window: max {:.3} s, {:?}",
            stopped - start,
            said.longest(),
            said.warnings()
        );
    }
    seen
}
