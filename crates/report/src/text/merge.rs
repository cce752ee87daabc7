//! The results of several clients: what each contributed to every step, and the sum.

use netping_measure::times::Time;
use netping_results::{
    format::{on_one_line, thousands},
    metric::{self, Metric, Reading},
    run::{ClockOffset, Kind, Part, PartStep, Run, Step, clock::behind},
    time_unit::TimeUnit,
};

use super::{anatomy, bulk};
use crate::table::{Column, Layout, Table};

const LEGEND: &str = "start: of a client's window, after that of the first; overlap: share of its window that all have in common; \
                      clock: the server's less the client's, from --clock-server. Starts are by the server's clock where \
                      all offsets are known.";

/// Returns the contribution of each client to each step, and the sum.
pub(super) fn text(run: &Run) -> String {
    let client = |part: &Part| {
        let requests: u64 = part.steps.iter().map(|step| step.requests).sum();
        let (host, started_at) = (on_one_line(&part.host), on_one_line(&part.started_at));
        let requests = thousands(requests as f64);
        format!("{host}  {requests} requests, from {started_at}")
    };
    let mut lines: Vec<String> = run.parts.iter().map(client).collect();
    if run.kind == Kind::Bulk {
        lines.push(bulk::text(run));
        return lines.join("\n");
    }
    if let Some(step) = run.steps.first() {
        let (target, clients) = (on_one_line(&step.full_name()), run.parts.len());
        lines.push(format!("\n{target}  {clients} clients"));
    }
    lines.push(table(run, Table::whole));
    lines.push(LEGEND.to_owned());
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

/// Returns the rows of all clients and steps as a table.
pub(crate) fn table(run: &Run, layout: Layout) -> String {
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
    let mut rows = Vec::new();
    for (at, (step, starts)) in run.steps.iter().zip(&starts).enumerate() {
        for (part, after) in run.parts.iter().zip(afters(starts)) {
            let own = part.steps.get(at);
            rows.extend(own.map(|step| contribution(part, step, after, &units)));
        }
        rows.push(sum(step, &units));
    }
    let mut columns = Column::named_rows([""; 12]);
    for (column, title) in columns.iter_mut().zip(units.titles()) {
        *column = column.clone().titled(title);
    }
    layout(&columns, &rows)
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

/// Returns the row of a client's contribution to a step; its window began `after` nanoseconds after
/// the first client's.
fn contribution(part: &Part, step: &PartStep, after: Option<u64>, units: &Units) -> Vec<String> {
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
    cells.push(thousands(step.rate));
    cells.extend(times.map(Option::unwrap_or_default));
    cells.push(format!("{:.2}%", step.overlap * 100.0));
    cells.push(offset.unwrap_or_default());
    cells.resize(12, String::new());
    cells
}

fn sum(step: &Step, units: &Units) -> Vec<String> {
    let cell = |metric: &Metric, reading: Reading| reading.cell(metric.of_step(step));
    let times = &step.summary.times[Time::Response];
    vec![
        "all".to_owned(),
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        thousands(step.summary.rate),
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
