//! The results of several clients: what each contributed to every step, and the sum.

use std::collections::BTreeSet;

use netping_measure::{
    statistics::outliers::{Rule, outliers},
    times::Time,
};
use netping_results::{
    format::{self, on_one_line, plural, thousands},
    metric::{self, Metric, Reading},
    run::{ClockOffset, Kind, Part, PartStep, Run, Step, clock::behind},
    time_unit::TimeUnit,
};

use super::{anatomy, bulk, trials};
use crate::table::{Column, Layout, Table};

const LEGEND: &str = "start: of a client's window, after that of the first; overlap: share of its window that all have in common; \
                      clock: the server's less the client's, from --clock-server. Starts are by the server's clock where \
                      all offsets are known.";

/// The number of clients from which on their rows give way to the spread of their values, and to the rows of those that
/// are far off the others.
const MANY: usize = 17;

/// The distance of a client's rate or p99 from the others' that is far off.
const FAR_OFF: Rule = Rule {
    fewest: MANY,
    deviations: 5.0,
    multiple: 1.25,
};

/// Most rows of such clients.
const MOST_FAR_OFF: usize = 10;

/// Returns the contribution of each client to each step, and the sum.
pub(super) fn text(run: &Run) -> String {
    let requests = |part: &Part| part.steps.iter().map(|step| step.requests).sum::<u64>();
    let client = |part: &Part| {
        let (host, started_at) = (on_one_line(&part.host), on_one_line(&part.started_at));
        let requests = thousands(requests(part) as f64);
        format!("{host}  {requests} requests, from {started_at}")
    };
    let mut lines: Vec<String> = if run.parts.len() < MANY {
        run.parts.iter().map(client).collect()
    } else {
        let hosts: BTreeSet<&str> = run.parts.iter().map(|part| &*part.host).collect();
        let begun = || run.parts.iter().map(|part| on_one_line(&part.started_at));
        vec![format!(
            "{} clients on {}, {} requests, begun from {} to {}",
            thousands(run.parts.len() as f64),
            plural(hosts.len() as u64, "host"),
            thousands(run.parts.iter().map(requests).sum::<u64>() as f64),
            begun().min().unwrap_or_default(),
            begun().max().unwrap_or_default()
        )]
    };
    if run.kind == Kind::Bulk {
        lines.push(bulk::text(run));
        return lines.join("\n");
    }
    lines.push(tables(run, Table::whole));
    lines.push(LEGEND.to_owned());
    if run.order_seed.is_some() {
        lines.push(trials::text(run));
    }
    for step in &run.steps {
        if let Some(own) = &step.anatomy {
            lines.push(format!("all clients, {}:", step.settings.load_in_words()));
            lines.push(anatomy::block(own, &step.settings));
        }
    }
    lines.join("\n")
}

/// The columns that have units of time.
struct Units {
    p50: Reading,
    p99: Reading,
    start: TimeUnit,
    clock: TimeUnit,
    client_cpu: Reading,
    server_cpu: Reading,
}

impl Units {
    fn of(run: &Run, starts: &[Vec<Option<u64>>]) -> Self {
        let parts = || run.parts.iter().flat_map(|part| &part.steps);
        let times = |metric: &Metric| {
            let parts = parts().filter_map(|step| metric.of_times(step.response_time.as_ref()?));
            metric.reading(parts.chain(run.steps.iter().filter_map(|step| metric.of_step(step))))
        };
        let costs = |metric: &Metric| {
            metric.reading(run.steps.iter().filter_map(|step| metric.of_step(step)))
        };
        let after = starts.iter().flat_map(|all| afters(all)).flatten();
        let offsets = run.parts.iter().filter_map(offset);
        Self {
            p50: times(&metric::P50),
            p99: times(&metric::P99),
            start: TimeUnit::of(after.map(|time| time as f64)),
            clock: TimeUnit::of(offsets.map(|own| own.offset_ns as f64)),
            client_cpu: costs(&metric::CLIENT_CPU),
            server_cpu: costs(&metric::SERVER_CPU),
        }
    }

    fn titles(&self) -> [String; 12] {
        [
            "client".to_owned(),
            "callers".to_owned(),
            "conns".to_owned(),
            "req/s".to_owned(),
            metric::P50.title_in(self.p50),
            metric::P99.title_in(self.p99),
            format!("start {}", self.start.name()),
            "overlap".to_owned(),
            format!("clock {}", self.clock.name()),
            metric::CLIENT_CPU.title_in(self.client_cpu),
            metric::SERVER_CPU.title_in(self.server_cpu),
            "failed".to_owned(),
        ]
    }
}

/// Returns a table for each target: the rows of all clients and steps.
pub(crate) fn tables(run: &Run, layout: Layout) -> String {
    let behind = behind(run.parts.iter().map(|part| part.clock.as_ref()));
    let starts_of = |at: usize| {
        let start = |(part, behind): (&Part, &i64)| {
            let own = part.steps.get(at)?.window_started_at?;
            Some(own.saturating_add_signed(*behind))
        };
        run.parts.iter().zip(&behind).map(start).collect()
    };
    let starts: Vec<Vec<Option<u64>>> = (0..run.steps.len()).map(starts_of).collect();
    let units = Units::of(run, &starts);
    let mut targets: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for (at, (step, starts)) in run.steps.iter().zip(&starts).enumerate() {
        let name = step.full_name();
        let place = targets.iter().position(|(own, _)| *own == name);
        let place = place.unwrap_or_else(|| {
            targets.push((name, Vec::new()));
            targets.len() - 1
        });
        let rows = &mut targets[place].1;
        let all: Vec<Contribution<'_>> = run
            .parts
            .iter()
            .zip(afters(starts))
            .filter_map(|(part, after)| Some((part, part.steps.get(at)?, after)))
            .collect();
        let row = |own: &Contribution<'_>| contribution(own, &units);
        if all.len() < MANY {
            rows.extend(all.iter().map(row));
        } else {
            rows.extend(spread(&all, &units));
            let far_off = far_off(&all);
            rows.extend(far_off.iter().copied().take(MOST_FAR_OFF).map(row));
            if let Some(more @ 1..) = far_off.len().checked_sub(MOST_FAR_OFF) {
                rows.push(row_of([format!("... and {more} more far off")]));
            }
        }
        let name = match run.order_seed {
            Some(_) => format!("all, trial {}", step.trial),
            None => "all".to_owned(),
        };
        rows.push(sum(name, step, &units));
    }
    let mut columns = Column::named_rows([""; 12]);
    for (column, title) in columns.iter_mut().zip(units.titles()) {
        *column = column.clone().titled(title);
    }
    let clients = thousands(run.parts.len() as f64);
    let block = |(name, rows): (String, Vec<Vec<String>>)| {
        let (name, table) = (on_one_line(&name), layout(&columns, &rows));
        format!("\n{name}  {clients} clients\n{table}")
    };
    let blocks: Vec<String> = targets.into_iter().map(block).collect();
    blocks.join("\n")
}

/// Returns the times, in nanoseconds, of these starts after the first of them.
fn afters(starts: &[Option<u64>]) -> impl Iterator<Item = Option<u64>> {
    let first = starts.iter().flatten().min();
    let after = move |own: &Option<u64>| own.zip(first).map(|(own, first)| own - first);
    starts.iter().map(after)
}

fn offset(part: &Part) -> Option<&ClockOffset> {
    part.clock.as_ref().and_then(|clock| clock.offset.as_ref())
}

/// A client's contribution to a step, and how many nanoseconds after the first client's its window began.
type Contribution<'a> = (&'a Part, &'a PartStep, Option<u64>);

fn p99(step: &PartStep) -> Option<f64> {
    metric::P99.of_times(step.response_time.as_ref()?)
}

/// Returns the contributions whose rate or p99 is far off the others', in their order.
fn far_off<'a>(all: &'a [Contribution<'a>]) -> Vec<&'a Contribution<'a>> {
    let rates: Vec<f64> = all.iter().map(|(_, step, _)| step.rate).collect();
    // One that is not known is left out, as 0 is.
    let p99s: Vec<f64> = all
        .iter()
        .map(|(_, step, _)| p99(step).unwrap_or(0.0))
        .collect();
    let found = [rates, p99s].map(|values| outliers(FAR_OFF, &values));
    let places: BTreeSet<usize> = found.iter().flatten().map(|own| own.at).collect();
    places.into_iter().map(|at| &all[at]).collect()
}

/// Returns the least, the median and the greatest value of each column, as rows.
fn spread(all: &[Contribution<'_>], units: &Units) -> [Vec<String>; 3] {
    let column = |of: &dyn Fn(&Contribution<'_>) -> Option<f64>| {
        let mut values: Vec<f64> = all.iter().filter_map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let times = |metric: &'static Metric| {
        column(&|(_, step, _)| metric.of_times(step.response_time.as_ref()?))
    };
    let rates = column(&|(_, step, _)| Some(step.rate));
    let (p50s, p99s) = (times(&metric::P50), times(&metric::P99));
    let starts = column(&|(_, _, after)| after.map(|after| after as f64));
    let overlaps = column(&|(_, step, _)| Some(step.overlap));
    let offsets = column(&|(part, _, _)| Some(offset(part)?.offset_ns as f64));
    // By the client whose value it is: it may be a lower bound.
    let marked = |metric: &'static Metric, reading: Reading, value: Option<f64>| {
        let mut clients = all
            .iter()
            .filter_map(|(_, step, _)| step.response_time.as_ref());
        let own = clients.find(|times| metric.of_times(times) == value);
        own.map_or_else(
            || reading.cell(value),
            |times| metric.cell_of_times(times, reading),
        )
    };
    [("least", 0.0), ("median", 0.5), ("greatest", 1.0)].map(|(name, share)| {
        let at = |values: &[f64]| {
            let last = values.len().checked_sub(1)?;
            values.get((last as f64 * share) as usize).copied()
        };
        let known =
            |values: &[f64], show: &dyn Fn(f64) -> String| at(values).map(show).unwrap_or_default();
        row_of([
            name.to_owned(),
            String::new(),
            String::new(),
            known(&rates, &thousands),
            marked(&metric::P50, units.p50, at(&p50s)),
            marked(&metric::P99, units.p99, at(&p99s)),
            known(&starts, &|start| units.start.show(start)),
            known(&overlaps, &|share| format!("{:.2}%", share * 100.0)),
            known(&offsets, &|offset| units.clock.show(offset)),
        ])
    })
}

/// Returns a row that begins with these cells.
fn row_of(cells: impl Into<Vec<String>>) -> Vec<String> {
    let mut cells = cells.into();
    cells.resize(12, String::new());
    cells
}

/// Returns the row of a client's contribution to a step.
fn contribution((part, step, after): &Contribution<'_>, units: &Units) -> Vec<String> {
    let time = |metric: &Metric, reading| {
        let times = step.response_time.as_ref();
        times.map(|times| metric.cell_of_times(times, reading))
    };
    let offset = offset(part).map(|offset| {
        let [own, uncertainty] = [offset.offset_ns as f64, offset.uncertainty_ns() as f64]
            .map(|time| units.clock.show(time));
        format!("{own} +-{uncertainty}")
    });
    let times = [
        time(&metric::P50, units.p50),
        time(&metric::P99, units.p99),
        after.map(|after| units.start.show(after as f64)),
    ];
    let mut cells = vec![on_one_line(&part.host), String::new(), String::new()];
    cells.push(format::rate(step.rate));
    cells.extend(times.map(Option::unwrap_or_default));
    cells.push(format!("{:.2}%", step.overlap * 100.0));
    cells.push(offset.unwrap_or_default());
    row_of(cells)
}

fn sum(name: String, step: &Step, units: &Units) -> Vec<String> {
    let cell = |metric: &Metric, reading: Reading| metric.cell_of_step(step, reading);
    let times = &step.summary.times[Time::Response];
    vec![
        name,
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        format::rate(step.summary.rate),
        metric::P50.cell_of_times(times, units.p50),
        metric::P99.cell_of_times(times, units.p99),
        String::new(),
        String::new(),
        String::new(),
        cell(&metric::CLIENT_CPU, units.client_cpu),
        cell(&metric::SERVER_CPU, units.server_cpu),
        thousands(step.summary.unserved() as f64),
    ]
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures::{STARTED_AT, run, step},
        run::Pairing,
    };

    use super::*;

    /// A merged run of so many clients, of which the last has ten times the others' p99.
    fn merged(clients: usize) -> Run {
        let own = step(10, |_| vec![1_000_000; 200]);
        let part = |number: usize| {
            let slow = number + 1 == clients;
            let times = step(10, |_| vec![if slow { 10_000_000 } else { 1_000_000 }; 200]);
            Part {
                host: format!("host-{number}"),
                cpus: None,
                started_at: format!("2026-01-31T12:00:{number:02}Z"),
                command_line: Vec::new(),
                clock: None,
                steps: vec![PartStep {
                    requests: 2000,
                    rate: 200.0 + number as f64,
                    window_started_at: Some(STARTED_AT + number as u64 * 1000),
                    window_seconds: 10.0,
                    overlap: 1.0,
                    response_time: Some(times.summary.times[Time::Response].clone()),
                }],
            }
        };
        Run {
            parts: (0..clients).map(part).collect(),
            ..run(vec![own])
        }
    }

    #[test]
    fn several_targets_have_tables_of_their_own_and_trials_are_compared() {
        let mut run = merged(2);
        let first = run.steps[0].clone();
        run.steps = (0..4)
            .map(|at| Step {
                target: format!("tcp://h:{}", at % 2),
                measurement: at % 2,
                trial: (at / 2 + 1) as u32,
                ..first.clone()
            })
            .collect();
        for part in &mut run.parts {
            part.steps = vec![part.steps[0].clone(); 4];
        }
        run.pairings = vec![Pairing::new(0, 1)];
        let lines = |run: &Run, start: &str| {
            let text = text(run);
            let all = text.lines().map(str::to_owned);
            all.filter(|line| line.starts_with(start))
                .collect::<Vec<_>>()
        };
        let headings = |run: &Run| lines(run, "tcp://h:").len();
        assert_eq!((headings(&run), lines(&run, "all ").len()), (2, 4));
        assert!(!text(&run).contains("2 trials"));
        run.order_seed = Some(1);
        for (at, line) in lines(&run, "all, trial ").iter().enumerate() {
            assert!(
                line.starts_with(&format!("all, trial {} ", at % 2 + 1)),
                "{line}"
            );
        }
        let text = text(&run);
        assert!(text.contains("2 trials of each"), "{text}");
        assert!(text.contains("tcp://h:1  8 callers"), "{text}");
    }

    #[test]
    fn many_clients_have_their_spread_and_those_far_off() {
        let few = text(&merged(MANY - 1));
        assert!(few.contains("host-3 ") && !few.contains("median"), "{few}");
        let many = text(&merged(MANY));
        let top = "17 clients on 17 hosts, 34,000 requests, begun from 2026-01-31T12:00:00Z to 2026-01-31T12:00:16Z";
        assert!(many.starts_with(top), "{many}");
        let row = |name: &str| {
            let line = many.lines().find(|line| line.starts_with(name));
            line.map(|line| line.split_whitespace().skip(1).take(4).collect::<Vec<_>>())
        };
        assert_eq!(
            row("least"),
            Some(vec!["200", "1.00", "1.00", "0.00"]),
            "{many}"
        );
        assert_eq!(
            row("median"),
            Some(vec!["208", "1.00", "1.00", "8.00"]),
            "{many}"
        );
        assert_eq!(
            row("greatest"),
            Some(vec!["216", "10.0", "10.0", "16.0"]),
            "{many}"
        );
        assert!(row("host-16").is_some(), "{many}");
        assert_eq!(row("host-15"), None, "{many}");
    }
}
