//! The server's counters by their Prometheus names, and when they are believed: anybody may have written
//! them.

use std::collections::BTreeMap;

/// Counters by their names, with their labels.
pub(super) type Counters = BTreeMap<String, f64>;

pub(super) const CPU: &str = "process_cpu_seconds_total";
pub(super) const SYSTEM: &str = "process_cpu_system_seconds_total";
pub(super) const RUN_DELAY: &str = "process_run_delay_seconds_total";
pub(super) const MEMORY: &str = "process_resident_memory_bytes";
pub(super) const VOLUNTARY: &str = "process_context_switches_total{kind=\"voluntary\"}";
pub(super) const INVOLUNTARY: &str = "process_context_switches_total{kind=\"involuntary\"}";
/// Not Prometheus names: only the system itself tells them.
pub(super) const INSTRUCTIONS: &str = "instructions";
pub(super) const SYSTEM_CALLS: &str = "system calls";
pub(super) const START: &str = "process_start_time_seconds";
pub(super) const REQUESTS: &str = "netping_requests_total";
pub(super) const CORES: &str = "netping_cores";
pub(super) const USABLE_CPUS: &str = "netping_cpus_usable";
/// The beginning of the names of those of each thread that serves.
pub(super) const WORKERS: &str = "netping_worker_cpu_seconds_total{";

/// The counters that are read, apart from netping's own, which begin with [`OWN`]. Other programs export
/// more, of which some are `NaN` by intent.
const READ: [&str; 7] = [
    CPU,
    SYSTEM,
    RUN_DELAY,
    MEMORY,
    VOLUNTARY,
    INVOLUNTARY,
    START,
];

const OWN: &str = "netping_";

/// Maximum of any counter: result files refuse numbers that are ten times as large, to which several may add up.
const GREATEST: f64 = 1e14;

/// The most CPUs that Linux can have: those of a server that does not tell.
const MOST_CPUS: f64 = 8192.0;

/// Error of a CPU time that is counted in ticks of 10 ms, and of clocks, in seconds.
const TICKS: f64 = 0.05;

/// The clocks of two machines may differ by this share.
const CLOCKS: f64 = 0.01;

/// Parses Prometheus' text format.
pub(super) fn parse(text: &str) -> Counters {
    let sample = |line: &str| {
        // Labels may hold spaces.
        let at = line
            .rfind('}')
            .map_or_else(|| line.find(' '), |brace| Some(brace + 1))?;
        let value = line[at..].split_ascii_whitespace().next()?.parse().ok()?;
        (!line.starts_with('#')).then(|| (line[..at].to_owned(), value))
    };
    text.lines().filter_map(sample).collect()
}

/// Returns the reason not to believe the counters, as a sentence.
fn disbelief(why: &str) -> String {
    format!("the server's counters are not believed: {why}")
}

/// Checks that counters are numbers that can be.
///
/// # Errors
/// A sentence about the first that is not.
pub(super) fn check(counters: &Counters) -> Result<(), String> {
    let is_read = |name: &str| name.starts_with(OWN) || READ.contains(&name);
    for (name, number) in counters.iter().filter(|(name, _)| is_read(name)) {
        if !(0.0..=GREATEST).contains(number) {
            return Err(disbelief(&format!("{name} is {number}")));
        }
    }
    Ok(())
}

/// Checks that one process can have had `before`, and then `after`, which were read at most so many
/// `seconds` apart.
///
/// # Errors
/// A sentence with the reason why not.
pub(super) fn check_change(
    before: &Counters,
    after: &Counters,
    seconds: f64,
) -> Result<(), String> {
    let cpus = after.get(USABLE_CPUS).copied();
    let most = cpus.unwrap_or(MOST_CPUS).min(MOST_CPUS) * seconds * (1.0 + CLOCKS) + TICKS;
    for name in [CPU, SYSTEM, REQUESTS] {
        let Some((before, after)) = before.get(name).zip(after.get(name)) else {
            continue;
        };
        if after < before {
            return Err(disbelief(&format!(
                "{name} fell from {before} to {after}, as if the server, or one of its processes, had ended or was \
                 restarted meanwhile"
            )));
        }
        if name != REQUESTS && after - before > most {
            let whose = match cpus {
                Some(cpus) => format!("the server's {cpus} CPUs"),
                None => format!("{MOST_CPUS} CPUs, the most of any machine,"),
            };
            return Err(disbelief(&format!(
                "{name} rose by {:.2} s in {seconds:.2} s, which is more than {whose} can have",
                after - before
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(all: &[(&str, f64)]) -> Counters {
        let owned = all
            .iter()
            .map(|(name, number)| ((*name).to_owned(), *number));
        owned.collect()
    }

    #[test]
    fn what_is_no_count_is_refused_by_its_name() {
        for name in READ
            .into_iter()
            .chain([REQUESTS, "netping_max_connections"])
        {
            for number in [f64::NAN, f64::INFINITY, -1.0, 1.1e14] {
                let error = check(&counters(&[(name, number)])).unwrap_err();
                let expected = format!("not believed: {name} is {number}");
                assert!(error.contains(&expected), "{error}");
            }
            check(&counters(&[(name, 0.0)])).unwrap();
            check(&counters(&[(name, 1e14)])).unwrap();
        }
        // Not read: a quantile without samples, and a limit that there is not.
        let foreign = [
            ("rpc_seconds{quantile=\"0.5\"}", f64::NAN),
            ("process_max_fds", -1.0),
        ];
        check(&counters(&foreign)).unwrap();
    }

    #[test]
    fn cpu_time_is_at_most_that_of_all_cpus() {
        let change = |name, gained: f64, cpus: &[(&str, f64)]| {
            let before = counters(&[(name, 3.0)]);
            let after = counters(&[&[(name, 3.0 + gained)], cpus].concat());
            check_change(&before, &after, 10.0)
        };
        let two = [(USABLE_CPUS, 2.0)];
        for name in [CPU, SYSTEM] {
            // 2 CPUs for 10 s, 1 % and 50 ms.
            change(name, 20.24, &two).unwrap();
            let error = change(name, 20.26, &two).unwrap_err();
            assert!(error.contains("more than the server's 2 CPUs"), "{error}");
            change(name, 20.3, &[]).unwrap();
            for cpus in [&[][..], &[(USABLE_CPUS, 1e6)]] {
                let error = change(name, 100_000.0, cpus).unwrap_err();
                assert!(error.contains("more than"), "{error}");
            }
        }
        change(REQUESTS, 100_000.0, &two).unwrap();
    }

    #[test]
    fn what_falls_is_not_of_one_process() {
        for name in [CPU, SYSTEM, REQUESTS] {
            let [low, high] = [2.0, 2.5].map(|number| counters(&[(name, number)]));
            let error = check_change(&high, &low, 10.0).unwrap_err();
            assert!(error.contains("fell from 2.5 to 2, as if"), "{error}");
            check_change(&low, &low, 10.0).unwrap();
        }
        // Threads that end take their waiting with them.
        let [low, high] = [2.0, 2.5].map(|number| counters(&[(RUN_DELAY, number)]));
        check_change(&high, &low, 10.0).unwrap();
    }
}
