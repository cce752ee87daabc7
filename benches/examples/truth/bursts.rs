//! Bursts beyond what callers can carry: the queue that they leave has a known length, and takes a known time.

use netping_benches::processes::{Server, netping};
use netping_results::{recovery::recoveries, run::Step};

use crate::{Tell, Truth};

/// Callers, and the server's delay: the first bound how many requests a second can be under way.
const CALLERS: &str = "4";
const DELAY: &str = "5ms";

/// The rate of bursts, in requests per second, and their length in seconds.
const BURST: f64 = 1500.0;
const LENGTH: f64 = 2.0;

/// Checks a burst whose queue is empty after some seconds, and one whose queue lasts beyond the next burst.
pub fn check(tell: Tell<'_>) {
    for base in [200.0, 700.0] {
        let server = Server::start("tokio", &["--workers", "1", "--delay", DELAY]);
        tell(after(&server, base));
    }
}

fn after(server: &Server, base: f64) -> Truth {
    let (rate, burst) = (base.to_string(), format!("{BURST}:{LENGTH}s"));
    let load = ["-c", CALLERS, "--rate", &rate, "--burst", &burst];
    let times = ["--every", "20s", "-d", "20s", "--warmup", "1s"];
    let said = netping(&[&["throughput", &server.url][..], &load, &times].concat());
    let step: Step = serde_json::from_value(said.step().clone()).expect("a step of a result file");
    // What they carried in the burst: all of them were busy.
    let carried = step.intervals[11].ok as f64;
    let queue = (BURST - carried) * LENGTH;
    let seconds = queue / (carried - base);
    let found = recoveries(&step).map(|own| own.each[0]);
    let (expected, passed) = if seconds > 8.0 {
        (
            "no recovery within 8 s".to_owned(),
            found.map(|own| own.after) == Some(None),
        )
    } else {
        // The second in which the queue ends is the last slow one, and may be the one before or after.
        let expected = seconds.ceil();
        let is_near = |after: u64| (after as f64 - expected).abs() <= 1.0;
        (
            format!("recovered after {expected} s, within 1"),
            found.and_then(|own| own.after).is_some_and(is_near),
        )
    };
    Truth {
        what: format!(
            "{base}/s, and {BURST}/s for {LENGTH} s, of which {CALLERS} callers carried {carried}/s: a queue of {queue}, \
             which takes {seconds:.1} s"
        ),
        expected,
        found: match found {
            None => "nothing".to_owned(),
            Some(own) => match own.after {
                None => format!("no recovery within {} s", own.watched),
                Some(after) => format!("recovered after {after} s"),
            },
        },
        passed: Some(passed),
    }
}
