//! The cost of a request to both sides beside its time: CPU time, context switches, system calls, packets.

use std::iter;

use netping_measure::path::PathFact;
use netping_results::{format::figures, run::Step, time_unit::time};

/// The least CPU time, in seconds, of which the kernel's part is told: it is counted by the clock's ticks, of which
/// there may be no more than 100 a second.
const ENOUGH: f64 = 0.5;

/// Events that are counted for each request.
const COUNTS: [&str; 3] = ["context switches", "system calls", "instructions"];

/// Returns what is known of it; `None` if nothing is.
pub(super) fn describe(step: &Step) -> Option<String> {
    let cost = &step.cost;
    let workers = cost.worker_cpu_seconds().unwrap_or_default();
    let requests = requests(workers, cost.client_cpu_us_per_request);
    let each = |counts: &[u64]| {
        let sum: f64 = counts.iter().map(|own| *own as f64).sum();
        requests
            .filter(|_| !counts.is_empty())
            .map(|requests| sum / requests)
    };
    let client = Side {
        name: "client",
        cpu_seconds: workers,
        cpu_us: cost.client_cpu_us_per_request,
        system_seconds: sum_of(&cost.client_worker_system_seconds),
        counts: [
            each(&cost.client_worker_context_switches),
            each(&cost.client_worker_system_calls),
            each(&cost.client_worker_instructions),
        ],
    };
    let server = cost.server.as_ref().map(|own| Side {
        name: "server",
        cpu_seconds: own.cpu_seconds,
        cpu_us: own.cpu_us_per_request,
        system_seconds: own.system_seconds,
        counts: [
            own.context_switches_per_request,
            own.system_calls_per_request,
            own.instructions_per_request,
        ],
    });
    let sides = [Some(client), server].into_iter().flatten();
    let mut parts: Vec<String> = sides.filter_map(|side| side.describe()).collect();
    parts.extend(packets(step));
    (!parts.is_empty()).then(|| format!("each request: {}", parts.join("; ")))
}

/// One side of a step.
struct Side {
    name: &'static str,
    cpu_seconds: f64,
    /// CPU time for each request.
    cpu_us: Option<f64>,
    system_seconds: Option<f64>,
    /// [`COUNTS`] for each request.
    counts: [Option<f64>; 3],
}

impl Side {
    fn describe(&self) -> Option<String> {
        let cpu = time(self.cpu_us? * 1e3);
        let system = self.system_seconds.filter(|_| self.cpu_seconds >= ENOUGH);
        let share = system.map(|system| (100.0 * system / self.cpu_seconds).min(100.0));
        let share = share.map_or_else(String::new, |own| format!(" ({own:.0}% in the kernel)"));
        let counts = COUNTS.iter().zip(self.counts);
        let counts = counts.filter_map(|(what, count)| Some(format!("{} {what}", figures(count?))));
        let cpu = format!("{} {cpu} of CPU time{share}", self.name);
        let parts: Vec<String> = iter::once(cpu).chain(counts).collect();
        Some(parts.join(", "))
    }
}

/// Returns the packets of each request in both directions.
fn packets(step: &Step) -> Option<String> {
    // Of those that were closed meanwhile, nothing is known.
    let path = step.path.as_ref().filter(|path| path.closed == 0)?;
    let requests = step.summary.accounting.handled() as f64;
    let each = |fact| Some(path.total(fact)? as f64 / requests).filter(|own| own.is_finite());
    let [sent, received] = [PathFact::SentPackets, PathFact::ReceivedPackets].map(each);
    Some(format!(
        "{} packets sent, {} received",
        figures(sent?),
        figures(received?)
    ))
}

/// Returns the requests that CPU times imply.
fn requests(cpu_seconds: f64, cpu_us_each: Option<f64>) -> Option<f64> {
    let each = cpu_us_each.filter(|each| *each > 0.0)?;
    Some(cpu_seconds * 1e6 / each).filter(|requests| *requests > 0.0)
}

fn sum_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netping_measure::{
        cost::ServerDemand,
        path::{PathAccount, PathReading},
    };
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn both_sides_and_the_packets_are_told_as_far_as_they_are_known() {
        let mut step = fixtures::step(1, |_| vec![1_000; 100]);
        step.cost.client_worker_cpu_seconds = vec![1.0, 1.0];
        step.cost.client_cpu_us_per_request = Some(20.0);
        let told = describe(&step).unwrap();
        assert_eq!(told, "each request: client 20.0 us of CPU time");
        step.cost.client_worker_system_seconds = vec![1.0, 0.5];
        step.cost.client_worker_context_switches = vec![70_000, 130_000];
        step.cost.server = Some(ServerDemand {
            cpu_seconds: 0.4,
            cpu_us_per_request: Some(40.0),
            system_seconds: Some(0.1),
            context_switches_per_request: Some(0.5),
            ..ServerDemand::default()
        });
        let reading = |sent| {
            let facts = [
                (PathFact::SentPackets, sent),
                (PathFact::ReceivedPackets, sent + 50),
            ];
            [(
                1,
                PathReading::of(facts.map(|(fact, count)| (fact, Some(count)))),
            )]
            .into()
        };
        step.path = PathAccount::between(&BTreeMap::new(), &reading(100));
        let told = describe(&step).unwrap();
        assert_eq!(
            told,
            "each request: client 20.0 us of CPU time (75% in the kernel), 2.00 context switches; \
             server 40.0 us of CPU time, 0.50 context switches; 1.00 packets sent, 1.50 received"
        );
        step.cost.client_worker_system_calls = vec![300_000];
        step.cost.client_worker_instructions = vec![1_234_500_000];
        if let Some(server) = &mut step.cost.server {
            server.system_calls_per_request = Some(2.5);
            server.instructions_per_request = Some(9_876.0);
        }
        let told = describe(&step).unwrap();
        for part in [
            "2.00 context switches, 3.00 system calls, 12,345 instructions; server",
            "0.50 context switches, 2.50 system calls, 9,876 instructions; 1.00 packets",
        ] {
            assert!(told.contains(part), "{told}");
        }
        // Of packets on a connection that was closed meanwhile, nothing is known.
        if let Some(path) = &mut step.path {
            path.closed = 1;
        }
        assert!(!describe(&step).unwrap().contains("packets"));
        step.cost.client_cpu_us_per_request = None;
        step.cost.server = None;
        step.path = None;
        assert_eq!(describe(&step), None);
    }
}
