//! The results of several clients of one run, added up.

mod cost;
mod error;
mod step;
mod window;

pub use error::MergeError;

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    mem,
};

use netping_measure::{statistics::precision::Precision, status::Status, times::Time};
use serde_json::json;

use self::{
    error::refuse_unlike,
    step::StepSum,
    window::{Common, window},
};
use crate::{
    run::{Environment, Part, PartStep, Run, SCHEMA_VERSION, Step, Tool, clock::behind},
    warning::Warnings,
};

/// The demands on results that are to be merged.
#[derive(Debug, Clone)]
pub struct MergeRules {
    /// The number of clients, if it is known.
    pub clients: Option<usize>,
    /// The number of clients of a shared load that may be missing.
    pub missing: usize,
    /// Least share of the longest window that all windows have in common, from 0 to 1.
    pub min_overlap: f64,
    /// Names of warnings about a client that are accepted although they invalidate.
    pub allowed: Vec<String>,
}

impl Default for MergeRules {
    fn default() -> Self {
        Self {
            clients: None,
            missing: 0,
            min_overlap: 0.99,
            allowed: Vec::new(),
        }
    }
}

/// A client's run, without what is in the sum already.
#[derive(Debug)]
struct Client {
    /// The name of its file.
    name: String,
    run: Run,
    /// A hash of the times of all replies; `None` if there were none.
    times: Option<u64>,
}

/// Adds up what several clients measured of one server at the same time. Their files have these names, and `load`
/// returns each of them, twice: many do not have to fit into memory together. `tool` and `command_line` are those of the
/// merging itself.
///
/// Counts and histograms are added, never averaged, and quantiles are those of the sum. The rate is the sum of those of
/// the windows, which must be nearly at one time: by the clock of the server where all offsets
/// from it are known, else by clocks that are taken to agree.
///
/// # Errors
/// Those of `load`, and within its result, [`MergeError`].
pub fn merge<E>(
    names: &[String],
    mut load: impl FnMut(usize) -> Result<Run, E>,
    rules: &MergeRules,
    tool: Tool,
    command_line: Vec<String>,
) -> Result<Result<Run, MergeError>, E> {
    let mut clients = Vec::new();
    let mut sums: Vec<StepSum> = Vec::new();
    let mut system: Option<BTreeMap<String, String>> = None;
    for (at, name) in names.iter().enumerate() {
        let mut run = load(at)?;
        let own = mem::take(&mut run.environment.system);
        match &mut system {
            None => system = Some(own),
            Some(common) => common.retain(|name, value| own.get(name) == Some(value)),
        }
        let times = hash_of_times(&run);
        sums.resize_with(sums.len().max(run.steps.len()), StepSum::default);
        for (sum, step) in sums.iter_mut().zip(&mut run.steps) {
            sum.take(step);
        }
        let name = name.clone();
        clients.push(Client { name, run, times });
    }
    let (mut merged, commons) = match merge_all(&clients, sums, rules, tool, command_line) {
        Ok(merged) => merged,
        Err(error) => return Ok(Err(error)),
    };
    merged.environment.system = system.unwrap_or_default();
    for (at, client) in clients.iter().enumerate() {
        let run = load(at)?;
        if hash_of_times(&run) != client.times || run.steps.len() != merged.steps.len() {
            return Ok(Err(MergeError::Changed(client.name.clone())));
        }
        let seconds = merged.steps.iter_mut().map(|step| &mut step.intervals);
        for ((seconds, common), step) in seconds.zip(&commons).zip(&run.steps) {
            common.add_seconds(at, step, seconds);
        }
    }
    for step in &mut merged.steps {
        let rates: Vec<f64> = step.intervals.iter().map(|own| own.ok as f64).collect();
        step.summary.precision = Precision::of_rates(&rates);
    }
    Ok(Ok(merged))
}

/// Adds up all but the seconds, and returns which of them each step's windows have in common.
fn merge_all(
    clients: &[Client],
    sums: Vec<StepSum>,
    rules: &MergeRules,
    tool: Tool,
    command_line: Vec<String>,
) -> Result<(Run, Vec<Common>), MergeError> {
    if let Some(expected) = rules.clients.filter(|expected| *expected != clients.len()) {
        return Err(MergeError::Missing {
            found: clients.len(),
            expected,
        });
    }
    let [Client { run: first, .. }, _, ..] = clients else {
        return Err(MergeError::TooFew);
    };
    if let Some(empty) = clients.iter().find(|own| own.run.steps.is_empty()) {
        return Err(MergeError::Empty(empty.name.clone()));
    }
    let program = |run: &Run| json!({ "tool": run.tool, "steps": run.steps.len() });
    let programs = clients.iter().map(|own| (&*own.name, program(&own.run)));
    refuse_unlike("", programs)?;
    for own in clients {
        if !own.run.parts.is_empty() {
            return Err(MergeError::Merged(own.name.clone()));
        }
    }
    refuse_same(clients)?;
    let behind = behind(clients.iter().map(|own| own.run.clock.as_ref()));
    let (mut steps, mut commons) = (Vec::new(), Vec::new());
    for (at, sum) in sums.into_iter().enumerate() {
        let parts: Vec<(&str, &Step, i64)> = clients
            .iter()
            .zip(&behind)
            .map(|(own, behind)| (own.name.as_str(), &own.run.steps[at], *behind))
            .collect();
        let (step, common) = step::merge(at + 1, &parts, sum, rules)?;
        steps.push(step);
        commons.push(common);
    }
    let runs = || clients.iter().map(|own| &own.run);
    // The sum has no balances, by which short windows are judged together.
    for (at, warning) in runs().flat_map(Warnings::of_balances) {
        if !steps[at].warnings.contains(&warning) {
            steps[at].warnings.push(warning);
        }
    }
    let parts = runs().zip(&behind);
    let parts = parts.map(|(run, behind)| part(run, *behind, &steps));
    let parts = parts.collect();
    let same_seed = runs().all(|run| run.order_seed == first.order_seed);
    let merged = Run {
        schema_version: SCHEMA_VERSION,
        status: Status::of_all(runs().map(|run| run.status)),
        tool,
        command_line,
        kind: first.kind,
        started_at: runs()
            .map(|run| &run.started_at)
            .min()
            .cloned()
            .unwrap_or_default(),
        environment: environment(clients),
        clock: None,
        order_seed: first.order_seed.filter(|_| same_seed),
        pairings: first.pairings.clone(),
        looks: first.looks,
        margin: first.margin,
        proof: None,
        replaced: None,
        allowed: Vec::new(),
        steps,
        parts,
    };
    Ok((merged, commons))
}

/// Rejects results that count the same requests twice.
fn refuse_same(clients: &[Client]) -> Result<(), MergeError> {
    for (at, second) in clients.iter().enumerate() {
        if let Some(first) = clients[..at].iter().find(|other| is_same(other, second)) {
            return Err(MergeError::Same {
                first: first.name.clone(),
                second: second.name.clone(),
            });
        }
    }
    Ok(())
}

/// Returns true for two files of one client: with the same times of every reply, or without any, begun on one host in
/// one second. Those of a shared load have numbers, of which none may come twice.
fn is_same(a: &Client, b: &Client) -> bool {
    if a.run.steps[0].settings.part.is_some() {
        return false;
    }
    if a.times.is_some() || b.times.is_some() {
        return a.times == b.times;
    }
    let begun = |client: &Client| {
        let run = &client.run;
        (run.environment.host.clone(), run.started_at.clone())
    };
    begun(a) == begun(b)
}

/// Returns a hash of the times of every reply; `None` if there were none.
fn hash_of_times(run: &Run) -> Option<u64> {
    let has_replies = run.steps.iter().any(|step| step.summary.accounting.ok > 0);
    let mut hasher = DefaultHasher::new();
    for step in &run.steps {
        for time in [Time::Service, Time::Response] {
            for value in step.histograms.times[time].iter() {
                value.hash(&mut hasher);
            }
            u64::MAX.hash(&mut hasher);
        }
    }
    has_replies.then(|| hasher.finish())
}

/// Describes a client's part in the merged steps; its clock is so many nanoseconds behind.
fn part(run: &Run, behind: i64, merged: &[Step]) -> Part {
    let step = |(step, merged): (&Step, &Step)| PartStep {
        requests: step.summary.scheduled,
        rate: step.summary.rate,
        window_started_at: step.window_started_at,
        window_seconds: step.summary.seconds,
        overlap: overlap(step, behind, merged),
        response_time: Some(step.summary.times[Time::Response].clone()),
    };
    Part {
        host: run.environment.host.clone(),
        cpus: Some(run.environment.cpus),
        started_at: run.started_at.clone(),
        command_line: run.command_line.clone(),
        clock: run.clock.clone(),
        steps: run.steps.iter().zip(merged).map(step).collect(),
    }
}

/// Returns the share of a client's window that lies in that of all.
fn overlap(step: &Step, behind: i64, merged: &Step) -> f64 {
    let Some(([start, end], all)) = window(step, behind).zip(window(merged, 0)) else {
        return 0.0;
    };
    let common = end.min(all[1]).saturating_sub(start.max(all[0]));
    common as f64 / (end - start).max(1) as f64
}

/// The clients' machines as one: names side by side, cores of hosts added; without the settings of their systems.
fn environment(clients: &[Client]) -> Environment {
    let all: Vec<&Environment> = clients.iter().map(|own| &own.run.environment).collect();
    let names = |of: fn(&Environment) -> &String| {
        let mut names: Vec<&str> = Vec::new();
        for name in all.iter().map(|environment| of(environment).as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    // Several clients may share a host.
    let mut cpus: BTreeMap<&str, usize> = BTreeMap::new();
    for own in &all {
        let most = cpus.entry(&own.host).or_default();
        *most = own.cpus.max(*most);
    }
    let open_files = all.iter().map(|own| own.open_files);
    Environment {
        host: names(|environment| &environment.host),
        kernel: names(|environment| &environment.kernel),
        cpu_model: names(|environment| &environment.cpu_model),
        cpus: cpus.into_values().fold(0, usize::saturating_add),
        open_files: open_files.min().unwrap_or(0),
        system: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use netping_measure::{
        cost::{Balance, RequestCounts, ServerDemand, SideUse},
        counts::Counts,
        distribution::Distribution,
        error_kind::ErrorKind,
        histogram::{histogram, record},
        path::{PathAccount, PathFact, PathReading, PathSecond},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::{
        burst::BurstSettings,
        fixtures::{STARTED_AT, run, step, tool},
        run::{ClockOffset, HostClock, PartSettings},
        warning::{ClientBound, Errors, ServerShared, SharedHost, TooFewSamples, Warning},
    };

    const SECOND: u64 = 1_000_000_000;

    /// A client's run of one step.
    fn client(host: &str, step: Step) -> (String, Run) {
        let mut run = run(vec![step]);
        run.environment.host = host.to_owned();
        (format!("{host}.json"), run)
    }

    /// Ten seconds with `each` replies of about `time` nanoseconds in each, begun `late`
    /// nanoseconds after the others.
    fn clients(late: u64) -> [(String, Run); 2] {
        let one = |host, each, time: u64, late| {
            let step = step(10, |second| {
                (0..each).map(|number| time + number + second).collect()
            });
            let mut step = Step {
                window_started_at: Some(STARTED_AT + late),
                ..step
            };
            step.summary.accounting.ended_by_server = each;
            client(host, step)
        };
        [one("a", 300, 10_000, 0), one("b", 100, 50_000, late)]
    }

    fn merged(clients: &[(String, Run)]) -> Result<Run, MergeError> {
        merged_by(clients, &MergeRules::default())
    }

    fn merged_by(clients: &[(String, Run)], rules: &MergeRules) -> Result<Run, MergeError> {
        let command_line = vec!["netping".to_owned(), "merge".to_owned()];
        let names: Vec<String> = clients.iter().map(|(name, _)| name.clone()).collect();
        let load = |at: usize| Ok::<_, Infallible>(clients[at].1.clone());
        let Ok(merged) = merge(&names, load, rules, tool(), command_line);
        merged
    }

    #[test]
    fn the_sum_has_the_settings_that_all_systems_have() {
        let mut both = clients(0);
        let settings = |governor: &str| {
            let all = [("governor", governor), ("swap", "off")];
            let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
            BTreeMap::from(all)
        };
        both[0].1.environment.system = settings("performance");
        both[1].1.environment.system = settings("powersave");
        let common = merged(&both).unwrap().environment.system;
        assert_eq!(
            common.into_iter().collect::<Vec<_>>(),
            [("swap".to_owned(), "off".to_owned())]
        );
        both[1].1.environment.system.clear();
        assert!(merged(&both).unwrap().environment.system.is_empty());
    }

    #[test]
    fn windows_overlap_by_the_servers_clock() {
        let [mut a, mut b] = clients(3 * SECOND);
        let clock = |offset_ns| {
            Some(HostClock {
                offset: Some(ClockOffset {
                    server: "tcp://h:1".to_owned(),
                    offset_ns,
                    round_trip_ns: 7,
                }),
                ..HostClock::default()
            })
        };
        assert!(matches!(
            merged(&[a.clone(), b.clone()]),
            Err(MergeError::Apart { overlap, .. }) if (0.699..0.701).contains(&overlap)
        ));
        // The second client's clock is 3 s ahead of the server's.
        let three = 3_000_000_000;
        (a.1.clock, b.1.clock) = (clock(500), clock(500 - three));
        let run = merged(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(run.steps[0].window_started_at, Some(STARTED_AT + 500));
        let parts: Vec<_> = run.parts.iter().map(|part| part.steps[0].overlap).collect();
        assert_eq!(parts, [1.0, 1.0]);
        assert_eq!(run.parts[1].clock, b.1.clock);
        // Not by the clocks of two servers.
        let mut other = clock(500 - three).unwrap();
        other.offset.as_mut().unwrap().server = "tcp://other:1".to_owned();
        b.1.clock = Some(other);
        assert!(matches!(
            merged(&[a.clone(), b.clone()]),
            Err(MergeError::Apart { .. })
        ));
        let rules = MergeRules {
            min_overlap: 0.7,
            ..MergeRules::default()
        };
        let run = merged_by(&[a, b], &rules).unwrap();
        let overlap = run.parts[0].steps[0].overlap;
        assert!((overlap - 0.7).abs() < 1e-9, "{overlap}");
    }

    #[test]
    fn clients_that_are_missing_limiting_or_of_another_version_are_rejected() {
        let [a, b] = clients(0);
        let rules = |clients, allowed: &[&str]| MergeRules {
            clients,
            allowed: allowed.iter().map(|name| (*name).to_owned()).collect(),
            ..MergeRules::default()
        };
        assert!(matches!(
            merged_by(&[a.clone(), b.clone()], &rules(Some(3), &[])),
            Err(MergeError::Missing {
                found: 2,
                expected: 3
            })
        ));
        let mut old = b.clone();
        old.1.tool.commit = Some("0123abc".to_owned());
        let error = merged(&[a.clone(), old]).unwrap_err().to_string();
        assert!(error.contains("0123abc in b.json"), "{error}");
        let mut bound = b;
        let busiest_worker = 0.97;
        bound.1.steps[0].warnings = vec![ClientBound { busiest_worker }.into()];
        let both = [a, bound];
        let error = merged(&both).unwrap_err().to_string();
        assert!(error.contains("--allow CLIENT_BOUND"), "{error}");
        assert!(merged_by(&both, &rules(Some(2), &["CLIENT_BOUND"])).is_ok());
    }

    #[test]
    fn counts_and_rates_are_added_and_the_parts_stay_listed() {
        let run = merged(&clients(0)).unwrap();
        let step = &run.steps[0];
        assert_eq!(
            (step.summary.scheduled, step.summary.accounting.ok),
            (4000, 4000)
        );
        assert_eq!(step.summary.accounting.ended_by_server, 400);
        assert!(
            (step.summary.rate - 400.0).abs() < 1e-9 && (step.summary.seconds - 10.0).abs() < 1e-9
        );
        assert_eq!(
            (
                step.settings.callers,
                step.settings.connections,
                step.settings.workers
            ),
            (16, 16, 4)
        );
        assert_eq!(step.summary.times[Time::Service].count, 4000);
        // Of a hundred requests 75 are a's: no mean of the clients' medians.
        assert!(step.summary.times[Time::Service].quantile(50.0).unwrap() < 10_400);
        // Ten seconds are too few.
        assert_eq!(step.summary.precision.rate_half_width, None);
        assert_eq!(
            (
                step.summary.times[Time::Response].p50_interval,
                step.intervals.len()
            ),
            (None, 10)
        );
        assert_eq!(step.cost.client_worker_cpu_seconds.len(), 4);
        assert_eq!(run.environment.host, "a, b");
        let cpus = clients(0)[0].1.environment.cpus;
        assert_eq!(run.environment.cpus, 2 * cpus);
        let on_one_host = clients(0).map(|(name, run)| {
            let mut run = run;
            run.environment.host = "a".to_owned();
            (name, run)
        });
        assert_eq!(merged(&on_one_host).unwrap().environment.cpus, cpus);
        let parts: Vec<_> = run
            .parts
            .iter()
            .map(|part| (part.host.as_str(), part.steps[0].requests))
            .collect();
        assert_eq!(parts, [("a", 3000), ("b", 1000)]);
        // It is a result file like any other.
        Run::from_json(run.to_json().unwrap().as_bytes()).unwrap();
        let again = merged(&[("m".to_owned(), run), clients(0)[0].clone()]);
        assert_eq!(again.unwrap_err(), MergeError::Merged("m".to_owned()));
    }

    /// A saturated server gives each second to whoever is there: halves to two, all of it to one.
    /// So the seconds that only one client saw must not be in the sum.
    #[test]
    fn windows_that_are_not_the_same_are_rejected() {
        let shifted = |shift: u64| {
            let other = Step {
                window_started_at: Some(STARTED_AT + shift),
                ..step(200, |_| vec![2000; 50])
            };
            let steady = step(200, |_| vec![1000; 100]);
            merged(&[client("a", steady), client("b", other)])
        };
        let step = &shifted(SECOND * 3 / 2).unwrap().steps[0];
        assert!((step.summary.rate - 150.0).abs() < 1e-9);
        assert!((step.summary.seconds - 198.5).abs() < 1e-9);
        // Of the first client's seconds, two begin before the second's first.
        let seconds = step.intervals.iter().map(|second| second.ok);
        assert_eq!(seconds.collect::<Vec<_>>(), [150; 198]);
        assert!(matches!(
            shifted(SECOND * 3),
            Err(MergeError::Apart { overlap, .. }) if (0.98..0.99).contains(&overlap)
        ));
    }

    #[test]
    fn clocks_that_differ_by_little_cost_no_second() {
        let run = merged(&clients(SECOND / 200)).unwrap();
        assert_eq!(
            run.steps[0]
                .intervals
                .iter()
                .map(|second| second.ok)
                .collect::<Vec<_>>(),
            [400; 10]
        );
    }

    #[test]
    fn results_that_do_not_belong_together_are_rejected() {
        let [a, b] = clients(0);
        assert_eq!(
            merged(std::slice::from_ref(&a)).unwrap_err(),
            MergeError::TooFew
        );
        // Two that measured nothing look alike.
        let nothing = |name: &str| {
            let run = Run {
                steps: Vec::new(),
                ..a.1.clone()
            };
            (name.to_owned(), run)
        };
        for others in [[a.clone(), nothing("c")], [nothing("c"), nothing("d")]] {
            let empty = MergeError::Empty("c".to_owned());
            assert_eq!(merged(&others).unwrap_err(), empty);
        }
        assert!(matches!(
            merged(&[a.clone(), b.clone(), a.clone()]),
            Err(MergeError::Same { .. })
        ));
        // The same times under another host's name.
        let copy = (
            "c.json".to_owned(),
            Run {
                environment: b.1.environment.clone(),
                ..a.1.clone()
            },
        );
        assert!(matches!(
            merged(&[a.clone(), copy]),
            Err(MergeError::Same { .. })
        ));
        let apart = merged(&clients(2 * SECOND)).unwrap_err();
        assert!(
            apart.to_string().contains(
                "the windows of a.json and b.json overlap by only 80.0% of the longest, and 99.0% are needed (--min-overlap): start"
            ),
            "{apart}"
        );
        // In step, but one ended early.
        let mut cut = clients(0);
        cut[1].1.steps[0].summary.seconds /= 2.0;
        cut[1].1.steps[0].status = Status::Partial;
        let cut = merged(&cut).unwrap_err().to_string();
        assert!(
            cut.contains("the windows of b.json and a.json overlap by only 50.0%")
                && cut.ends_with("the first was cut short, so measure again"),
            "{cut}"
        );
        let never = merged(&clients(60 * SECOND)).unwrap_err();
        assert!(
            matches!(never, MergeError::Apart { overlap: 0.0, .. }),
            "{never}"
        );

        let changed = |change: fn(&mut Step)| {
            let mut other = b.clone();
            change(&mut other.1.steps[0]);
            merged(&[a.clone(), other]).unwrap_err().to_string()
        };
        assert!(
            changed(|step| step.settings.payload_bytes = 9)
                .contains("payload_bytes is 4 in a.json, and 9 in b.json")
        );
        assert!(
            changed(|step| step.target = "tcp://x:1".to_owned())
                .contains("target is tcp://127.0.0.1:8004")
        );
        assert!(
            changed(|step| step.window_started_at = None)
                .contains("step 1 of b.json does not say when")
        );
        let mut more = b.clone();
        more.1.steps.push(b.1.steps[0].clone());
        let error = merged(&[a, more]).unwrap_err().to_string();
        assert!(
            error.contains("steps is 1 in a.json, and 2 in b.json"),
            "{error}"
        );
    }

    #[test]
    fn settings_of_each_client_may_differ() {
        let [a, mut b] = clients(0);
        b.1.steps[0].settings.workers = 30;
        b.1.steps[0].settings.warmup_seconds = 1.5;
        b.1.status = Status::Partial;
        b.1.steps[0].warnings = vec![SharedHost.into(), TooFewSamples { samples: 3 }.into()];
        let run = merged(&[a, b]).unwrap();
        assert_eq!(
            (run.status, run.steps[0].settings.workers),
            (Status::Partial, 32)
        );
        // Together they have samples enough.
        assert_eq!(run.steps[0].warnings, [SharedHost.into()]);
    }

    #[test]
    fn the_servers_cost_is_taken_once() {
        let server = |cpu_seconds| netping_measure::cost::ServerDemand {
            cpu_seconds,
            cpu_us_per_request: Some(1250.0),
            context_switches_per_request: None,
            resident_bytes: Some(7),
            ..Default::default()
        };
        let [mut a, mut b] = clients(0);
        a.1.steps[0].cost.server = Some(server(5.0));
        b.1.steps[0].cost.server = Some(server(5.1));
        let cost = merged(&[a.clone(), b.clone()]).unwrap().steps[0]
            .cost
            .server
            .clone()
            .unwrap();
        assert!((cost.cpu_seconds - 5.05).abs() < 1e-9, "{cost:?}");
        // 0.505 s of each second, over 400 requests.
        assert!((cost.cpu_us_per_request.unwrap() - 1262.5).abs() < 1e-6);
        // Two servers, or two readings of which one is wrong.
        b.1.steps[0].cost.server = Some(server(9.0));
        assert_eq!(merged(&[a, b]).unwrap().steps[0].cost.server, None);
    }

    #[test]
    fn targets_measured_together_have_no_cpu_time_per_request_that_is_all_of_theirs() {
        let mut clients = clients(0);
        let costs = |clients: &[(String, Run)]| {
            let cost = merged(clients).unwrap().steps[0].cost.clone();
            let own = cost.client_cpu_us_per_request.is_some();
            (own, cost.server_cpu_us_per_request().is_some())
        };
        let set = |clients: &mut [(String, Run)], together, each| {
            for (_, run) in clients {
                let step = &mut run.steps[0];
                step.settings.together = together;
                step.cost.client_worker_cpu_seconds = vec![1.0];
                step.cost.server = Some(netping_measure::cost::ServerDemand {
                    cpu_seconds: 5.0,
                    cpu_us_per_request: each,
                    ..Default::default()
                });
            }
        };
        // Of a client in step, whose server counts nothing, the sum knows it.
        set(&mut clients, None, None);
        assert_eq!(costs(&clients), (true, true));
        set(&mut clients, Some(2), Some(10.0));
        assert_eq!(costs(&clients), (false, true));
        set(&mut clients, Some(2), None);
        assert_eq!(costs(&clients), (false, false));
    }

    /// Lets two clients be those with these numbers, of so many that share a load of 16 callers.
    fn sharing(numbers: [usize; 2], of: usize) -> [(String, Run); 2] {
        let mut clients = clients(0);
        for ((_, run), number) in clients.iter_mut().zip(numbers) {
            run.steps[0].settings.part = Some(PartSettings {
                number,
                of,
                callers: 8 * of,
                connections: 8 * of,
                planned_rate: None,
            });
        }
        clients
    }

    #[test]
    fn clients_that_share_a_load_may_have_equal_times() {
        let mut clients = sharing([1, 2], 2);
        let times = clients[0].1.steps[0].histograms.clone();
        clients[1].1.steps[0].histograms = times;
        assert!(merged(&clients).is_ok());
    }

    #[test]
    fn clients_that_share_a_load_share_its_bursts() {
        let mut clients = sharing([1, 2], 2);
        for (_, run) in &mut clients {
            run.steps[0].settings.bursts = Some(BurstSettings {
                base_rate: 1000.0,
                rate: 9000.0,
                length: 2,
                every: 10,
            });
        }
        let step = &merged(&clients).unwrap().steps[0];
        let bursts = step.settings.bursts.unwrap();
        assert_eq!((bursts.base_rate, bursts.rate), (2000.0, 18_000.0));
        // A client with two of three connections has two thirds of a fixed assignment.
        let bursts = clients[1].1.steps[0].settings.bursts.as_mut().unwrap();
        (bursts.base_rate, bursts.rate) = (500.0, 4500.0);
        let step = &merged(&clients).unwrap().steps[0];
        let bursts = step.settings.bursts.unwrap();
        assert_eq!((bursts.base_rate, bursts.rate), (1500.0, 13_500.0));
        clients[1].1.steps[0].settings.bursts.as_mut().unwrap().rate = 5000.0;
        assert!(matches!(merged(&clients), Err(MergeError::Unlike { .. })));
    }

    #[test]
    fn failures_are_told_of_all_requests() {
        let mut clients = clients(0);
        let step = &mut clients[1].1.steps[0];
        step.summary
            .accounting
            .errors
            .insert(ErrorKind::Timeout, 100);
        let errors = Errors::of_summary(&step.summary).unwrap();
        assert!(errors.share > 0.09, "{errors:?}");
        step.warnings = vec![errors.into()];
        let step = &merged(&clients).unwrap().steps[0];
        let told = step.warnings.iter().filter(|own| own.name() == "ERRORS");
        let told: Vec<_> = told.cloned().collect();
        let of_all = Errors::of_summary(&step.summary).unwrap();
        assert!(of_all.share < 0.03, "{of_all:?}");
        assert_eq!(told, [of_all.into()]);
    }

    #[test]
    fn foreign_load_that_only_all_windows_of_a_client_show_is_kept() {
        let trials = |host, time: u64, steal_seconds| {
            let mut one = Step {
                window_started_at: Some(STARTED_AT),
                ..step(2, |_| vec![time; 100])
            };
            one.cost.balances = vec![Balance {
                cpus: vec![1],
                window_seconds: 0.15,
                total_seconds: 0.15,
                server: Some(SideUse {
                    cpu_seconds: 0.15 - steal_seconds,
                    waited_seconds: Some(0.0),
                }),
                steal_seconds,
                windows: 1,
                ..Balance::default()
            }];
            let mut own = client(host, one.clone());
            own.1.steps = (1..=3)
                .map(|trial| Step {
                    trial,
                    ..one.clone()
                })
                .collect();
            own.1.order_seed = Some(1);
            own
        };
        let found = |steal: f64| {
            let clients = [trials("a", 1000, 0.0), trials("b", 2000, steal)];
            let told = Warnings::of(&clients[1].1).invalidating();
            assert_eq!(
                Warnings::of(&merged(&clients).unwrap()).invalidating(),
                told
            );
            told
        };
        // No window has a part that exceeds its own error.
        assert_eq!(found(0.0111), [""; 0]);
        assert_eq!(found(0.0112), ["FOREIGN_LOAD"]);
    }

    #[test]
    fn a_shared_load_is_there_as_a_whole_or_the_sum_says_what_is_lost() {
        let whole = &merged(&sharing([2, 1], 2)).unwrap().steps[0];
        assert_eq!((whole.settings.part, whole.settings.callers), (None, 16));
        assert!(
            !whole
                .warnings
                .iter()
                .any(|own| own.name() == "PARTS_MISSING")
        );
        let same = merged(&sharing([1, 1], 2)).unwrap_err();
        let told = "a.json and b.json are both part 1: ";
        assert!(same.to_string().starts_with(told), "{same}");
        let told = "step 1: part 2 of 3 is missing, and with it 8 of 24 callers: ";
        let missing = merged(&sharing([3, 1], 3)).unwrap_err();
        assert!(missing.to_string().starts_with(told), "{missing}");
        let allowing = |missing| MergeRules {
            missing,
            ..MergeRules::default()
        };
        let two_of_four = sharing([1, 4], 4);
        let told = "step 1: parts 2, 3 of 4 are missing, and with them 16 of 32 callers: ";
        let missing = merged_by(&two_of_four, &allowing(1)).unwrap_err();
        assert!(missing.to_string().starts_with(told), "{missing}");
        let step = &merged_by(&two_of_four, &allowing(2)).unwrap().steps[0];
        assert!(
            step.warnings
                .iter()
                .any(|own| own.name() == "PARTS_MISSING")
        );
        // One that had all of the load is another.
        let [mut alone, other] = sharing([1, 2], 2);
        alone.1.steps[0].settings.part = None;
        assert!(matches!(
            merged(&[alone, other]),
            Err(MergeError::Unlike { .. })
        ));
    }

    #[test]
    fn one_client_reads_the_servers_counters_for_all_that_share_a_load() {
        let of = |server: u64, is_shared: bool| {
            let mut clients = sharing([1, 2], 2);
            for (_, run) in &mut clients {
                run.steps[0].settings.part.take_if(|_| !is_shared);
            }
            // Of the first client's 3,000 requests, a hundredth is not between the readings.
            let requests = RequestCounts {
                server,
                client: 2970,
                unsure: 10,
                has_other_clients: true,
            };
            clients[0].1.steps[0].cost.server = Some(ServerDemand {
                cpu_seconds: 5.0,
                requests: Some(requests),
                ..ServerDemand::default()
            });
            let step = merged(&clients).unwrap().steps.remove(0);
            let server = step.cost.server.unwrap();
            assert_eq!(server.cpu_us_per_request, Some(1250.0));
            let has = |name: &str| step.warnings.iter().any(|own| own.name() == name);
            (
                server.requests,
                has("SERVER_SHARED"),
                has("COUNTERS_DISAGREE"),
            )
        };
        let (requests, is_shared, disagrees) = of(3960, true);
        let requests = requests.unwrap();
        assert_eq!((requests.server, requests.client), (3960, 3960));
        assert!(requests.unsure < 60, "{requests:?}");
        assert!(!is_shared && !disagrees);
        assert!(of(4200, true).1);
        assert!(of(3700, true).2);
        // Without shares, the other client's readings are missing.
        assert_eq!(of(3960, false).0, None);
    }

    #[test]
    fn a_file_that_changes_meanwhile_is_refused() {
        let clients = clients(0);
        let names = clients.each_ref().map(|(name, _)| name.clone());
        let mut reads = 0;
        let load = |at: usize| {
            reads += 1;
            let mut run = clients[at].1.clone();
            if reads == 4 {
                run.steps[0] = clients[0].1.steps[0].clone();
            }
            Ok::<_, Infallible>(run)
        };
        let Ok(merged) = merge(&names, load, &MergeRules::default(), tool(), Vec::new());
        assert_eq!(
            merged.unwrap_err(),
            MergeError::Changed("b.json".to_owned())
        );
    }

    /// Of 4,000 requests, 3,000 are the first client's and 1,000 the second's.
    #[test]
    fn accounts_of_connections_are_added_where_all_clients_have_one() {
        let [mut a, mut b] = clients(0);
        let account = |sent| {
            let reading = PathReading::of([(PathFact::SentPackets, Some(sent))]);
            PathAccount::between(&BTreeMap::new(), &BTreeMap::from([(1, reading)]))
        };
        a.1.steps[0].path = account(10);
        let path = |clients: &[(String, Run)]| merged(clients).unwrap().steps[0].path.clone();
        assert_eq!(path(&[a.clone(), b.clone()]), None);
        b.1.steps[0].path = account(7);
        let sum = path(&[a, b]).unwrap();
        assert_eq!(
            (sum.connections, sum.total(PathFact::SentPackets)),
            (2, Some(17))
        );
    }

    #[test]
    fn losses_of_each_second_are_added_where_all_clients_know_theirs() {
        let [mut a, mut b] = clients(0);
        let lost = |lost_packets| {
            Some(PathSecond {
                lost_packets,
                smoothed_rtt_ns: Some(50_000),
            })
        };
        a.1.steps[0].intervals[2].path = lost(3);
        a.1.steps[0].intervals[5].path = lost(4);
        b.1.steps[0].intervals[5].path = lost(7);
        let merged = merged(&[a, b]).unwrap();
        let sums = merged.steps[0].intervals.iter().map(|second| second.path);
        let sums: Vec<_> = sums.collect();
        assert_eq!((sums[2], sums[4]), (None, None));
        let sum = PathSecond {
            lost_packets: 11,
            smoothed_rtt_ns: None,
        };
        assert_eq!(sums[5], Some(sum));
    }

    #[test]
    fn requests_of_others_are_known_by_the_sum() {
        let found = |readings: [u64; 2], late, has_other_clients| {
            let mut clients = clients(late);
            for ((_, run), (server, client)) in
                clients.iter_mut().zip(readings.iter().zip([3000, 1000]))
            {
                let requests = RequestCounts {
                    server: *server,
                    client,
                    unsure: 10,
                    has_other_clients,
                };
                let step = &mut run.steps[0];
                step.cost.server = Some(ServerDemand {
                    cpu_seconds: 5.0,
                    requests: Some(requests),
                    ..ServerDemand::default()
                });
                step.warnings
                    .extend(ServerShared::of_counts(&requests).map(Warning::from));
            }
            let run = merged_by(
                &clients,
                &MergeRules {
                    min_overlap: 0.9,
                    ..MergeRules::default()
                },
            );
            let step = run.unwrap().steps.remove(0);
            let names: Vec<_> = step.warnings.iter().map(Warning::name).collect();
            (step.cost.server.unwrap().requests.unwrap(), names)
        };
        for has_other_clients in [true, false] {
            // 2 % of 4,000, and 20.
            let found = |readings| found(readings, 0, has_other_clients);
            let (counts, names) = found([4098, 4102]);
            let expected = RequestCounts {
                server: 4100,
                client: 4000,
                unsure: 20,
                has_other_clients: false,
            };
            assert_eq!((counts, names), (expected, vec![]));
            assert_eq!(found([4099, 4103]).1, ["SERVER_SHARED"]);
            assert_eq!(found([3900, 3900]).1, Vec::<&str>::new());
            assert_eq!(found([3899, 3899]).1, ["COUNTERS_DISAGREE"]);
        }
        // A twentieth of the time is not common to both, and so are as many of their requests.
        let (counts, names) = found([4000, 4000], SECOND / 2, true);
        assert_eq!((counts.client, counts.unsure), (3800, 219));
        assert_eq!(names, Vec::<&str>::new());
    }

    proptest! {
        /// However samples are spread over clients, the histogram of the sum is that of all
        /// samples.
        #[test]
        fn merging_parts_of_samples_gives_the_histogram_of_the_whole(
            samples in prop::collection::vec((0_usize..4, 1_u64..60_000_000_000), 1..300),
        ) {
            let mut whole = histogram();
            let mut parts: Vec<Vec<u64>> = vec![Vec::new(); 4];
            for (part, time) in samples {
                record(&mut whole, time);
                parts[part].push(time);
            }
            let clients: Vec<(String, Run)> = parts
                .iter()
                .enumerate()
                .map(|(number, times)| {
                    let own = step(3, |second| if second == 1 { times.clone() } else { Vec::new() });
                    // Equal parts are not the same client here.
                    let start = STARTED_AT + number as u64;
                    client(&format!("host-{number}"), Step { window_started_at: Some(start), ..own })
                })
                .collect();
            match merged(&clients) {
                Ok(run) => {
                    let whole = Counts::from(&whole);
                    let times = &run.steps[0].histograms.times;
                    prop_assert_eq!(&times[Time::Service], &whole);
                    prop_assert_eq!(&times[Time::Response], &whole);
                    prop_assert_eq!(times[Time::Lag].len(), whole.len());
                    prop_assert_eq!(&run.steps[0].summary.times[Time::Service], &Distribution::of(&whole));
                }
                Err(error) => prop_assert!(matches!(error, MergeError::Same { .. }), "{}", error),
            }
        }
    }
}
