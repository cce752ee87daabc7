//! The anatomy of round trips: a server's time is in the server's part, a busy client's in the wake-up.

use netping_benches::processes::{CLIENT, Said, Server, hogs, netping};
use serde_json::Value;

use crate::{Tell, Truth};

/// CPU time that the slower server spends on each request, in microseconds, and how exactly it is to be seen.
const WORK: f64 = 200.0;
const TOLERANCE: f64 = 5.0;

/// Pairs of windows whose difference is taken, in turn.
const PAIRS: usize = 9;

/// Checks what the parts say.
pub fn check(tell: Tell<'_>) {
    tell(servers_time());
    tell(clients_wake_up());
}

/// A server that works for 200 us on each request: the median of its part grows by as much, and no other part's does.
/// Both ends poll, since a core that waits longer also takes longer to wake up.
fn servers_time() -> Truth {
    let parts = ["send", "out", "server", "back", "wake"];
    let mut differences = vec![Vec::new(); parts.len()];
    for _ in 0..PAIRS {
        // One after the other, since a server that polls has its core to itself.
        let [fast, slow] = ["0s", "200us"].map(|work| {
            let flags = ["--workers", "1", "--busy-poll", "--work", work];
            let own = ["--busy-poll", "--message", "times"];
            round_trips(&Server::start("tokio", &flags), &own)
        });
        for (part, own) in parts.iter().zip(&mut differences) {
            let of = |said: &Said| median(said.step(), part);
            own.extend(of(&slow).zip(of(&fast)).map(|(slow, fast)| slow - fast));
        }
    }
    for own in &mut differences {
        own.sort_by(f64::total_cmp);
    }
    let middle = |own: &Vec<f64>| own.get(own.len() / 2).copied().unwrap_or(f64::NAN);
    let found: Vec<f64> = differences.iter().map(middle).collect();
    let expected = [0.0, 0.0, WORK, 0.0, 0.0];
    let is_right = |(found, expected): (&f64, f64)| (found - expected).abs() <= TOLERANCE;
    Truth {
        what: format!(
            "a server that works for 200 us: growth of {} at the median",
            parts.join(", ")
        ),
        expected: "0, 0, 200, 0, 0 us, within 5".to_owned(),
        passed: Some(found.iter().zip(expected).all(is_right)),
        found: found
            .iter()
            .map(|own| format!("{own:.1}"))
            .collect::<Vec<_>>()
            .join(", ")
            + " us",
    }
}

/// Another program on the client's core: the slowest requests spent most of their time waiting to wake up.
fn clients_wake_up() -> Truth {
    let server = Server::start("tokio", &["--workers", "1"]);
    let _hogs = hogs(CLIENT, 1);
    let said = round_trips(&server, &[]);
    let step = said.step();
    let mean = |part: &str| step["anatomy"]["slowest"]["mean_ns"][part].as_f64();
    let all: Option<Vec<f64>> = ["send", "away", "wake"].into_iter().map(mean).collect();
    let all = all.unwrap_or_else(|| vec![f64::NAN; 3]);
    let share = all[2] / all.iter().sum::<f64>();
    Truth {
        what: "a hog on the client's core: the wake-up's share of the slowest hundredth".to_owned(),
        expected: "more than half".to_owned(),
        found: format!("{:.0} %", share * 100.0),
        passed: Some(share > 0.5),
    }
}

fn round_trips(server: &Server, flags: &[&str]) -> Said {
    let [flag, metrics] = server.metrics();
    let fixed = [
        "latency",
        &server.url,
        "--anatomy",
        "-n",
        "5000",
        flag,
        metrics,
    ];
    netping(&[&fixed[..], flags].concat())
}

/// Returns the median of a part, in microseconds.
fn median(step: &Value, part: &str) -> Option<f64> {
    let time = &step["anatomy"]["parts"][part]["time"];
    Some(time["p50_ns"].as_f64()? / 1e3)
}
