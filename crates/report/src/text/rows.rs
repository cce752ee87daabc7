//! A row for each step, under a heading for each target.

use netping_measure::statistics::knee;
use netping_results::{
    estimate::estimate,
    format::thousands,
    metric::{self, Metric},
    run::{Kind, Measurement, Run, Step, StepSettings},
};

use super::connect;
use crate::{
    bars::bars,
    finding::value,
    steps::StepTable,
    table::{is_unicode, terminal_width},
};

/// The rows of a run's steps, shown one by one as they are measured.
#[derive(Debug)]
pub struct Rows {
    kind: Kind,
    closed: StepTable,
    open: StepTable,
    /// The heading of the rows above.
    heading: Option<String>,
}

impl Rows {
    /// Returns the rows of a run of this kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            closed: match kind {
                Kind::Latency => StepTable::latency(),
                _ => StepTable::closed(),
            },
            open: StepTable::open(),
            heading: None,
        }
    }

    /// Returns a step's row, below its heading unless that stands above already.
    pub fn show(&mut self, step: &Step) -> String {
        if self.kind == Kind::Connect {
            return connect::text(step);
        }
        let is_open = step.settings.planned_rate.is_some();
        let table = if is_open { &self.open } else { &self.closed };
        let row = table.row(step) + &message_line(step) + &stream_line(step);
        let heading = Some(self.heading_of(step));
        if self.heading == heading {
            return row;
        }
        self.heading = heading;
        let heading = self.heading.as_deref().unwrap_or_default();
        format!("{heading}\n{}\n{row}", table.header())
    }

    fn heading_of(&self, step: &Step) -> String {
        let settings = &step.settings;
        let label = step.label.as_deref();
        let name = label.map_or_else(String::new, |label| format!("{label}  ")) + &step.target;
        let requests = requests(settings);
        match (self.kind, settings.planned_rate) {
            (Kind::Quick, _) => name,
            (Kind::Latency, _) => {
                let what = requests.map_or_else(String::new, |what| format!(" of {what}"));
                format!("{name}  round trips{what}, in us")
            }
            (_, rate) => {
                let what = requests.map_or_else(String::new, |what| format!("{what}, "));
                let arrivals = match rate {
                    None => "closed loop".to_owned(),
                    Some(_) => format!("open loop, {} arrivals", settings.arrivals),
                };
                format!("{name}  {what}{arrivals}")
            }
        }
    }

    /// Returns what stands below the last row of a target: of a quick look, the distribution of the
    /// response times of its last step.
    pub fn end(&self, step: &Step) -> Option<String> {
        if self.kind != Kind::Quick {
            return None;
        }
        let callers = step.settings.callers;
        let width = terminal_width().unwrap_or(usize::MAX);
        let drawn = bars(&step.histograms.response_time, is_unicode(), width);
        (!drawn.is_empty()).then(|| format!("\nresponse times with {callers} callers\n{drawn}\n"))
    }
}

/// Returns the rows of a whole run.
pub(super) fn text(run: &Run) -> String {
    let mut rows = Rows::new(run.kind);
    let mut parts = Vec::new();
    for (at, step) in run.steps.iter().enumerate() {
        parts.push(rows.show(step));
        let next = run.steps.get(at + 1);
        if next.is_none_or(|next| next.target != step.target) {
            parts.extend(rows.end(step));
            parts.extend(knee(run, &step.target));
        }
    }
    parts.join("\n")
}

/// Returns the knee of a target's sweep over callers; `None` where it has none, or is no such sweep.
pub fn knee(run: &Run, target: &str) -> Option<String> {
    let sweep: Vec<Measurement<'_>> = run
        .measurements()
        .into_iter()
        .filter(|own| own.first().target == target)
        .collect();
    let rises = sweep
        .windows(2)
        .all(|pair| pair[0].settings().callers < pair[1].settings().callers);
    let is_closed = |own: &Measurement<'_>| own.settings().planned_rate.is_none();
    if run.kind != Kind::Throughput || !rises || !sweep.iter().all(is_closed) {
        return None;
    }
    let of = |metric: &Metric, own: &Measurement<'_>| estimate(metric, own);
    let points: Vec<_> = sweep
        .iter()
        .map(|own| {
            let rate = of(&metric::RATE, own).map_or(0.0, |rate| rate.value);
            (rate, of(&metric::P99, own).map(|p99| p99.value as u64))
        })
        .collect();
    let at = knee::knee(&points)?;
    let growth = if points[at + 1].0 < points[at].0 {
        "falls"
    } else {
        "grows by less than 5%"
    };
    let shown = |metric: &'static Metric, at: usize| value(metric, of(metric, &sweep[at]));
    Some(format!(
        "knee: {} callers with {} req/s and p99 {} us; with more callers, the rate {growth}, and p99 rises to {} us",
        sweep[at].settings().callers,
        shown(&metric::RATE, at),
        shown(&metric::P99, at),
        shown(&metric::P99, at + 1),
    ))
}

/// Describes the requests of a step, as headings have it; `None` where they are all empty.
fn requests(settings: &StepSettings) -> Option<String> {
    let bytes = |bytes| format!("{} bytes", thousands(bytes as f64));
    match (settings.payload_bytes, settings.bodies) {
        (0, None) => None,
        (length, None) => Some(bytes(length)),
        (length, Some(bodies)) => {
            let order = settings.body_order.as_deref().unwrap_or_default();
            let mean = bytes(length);
            let bodies = thousands(bodies as f64);
            Some(format!("{bodies} bodies ({order}) of {mean} on average"))
        }
    }
}

/// Returns the line that rpcx-benchmark prints after a run with its message.
fn message_line(step: &Step) -> String {
    if step.settings.message.is_none() {
        return String::new();
    }
    let time = |metric: &Metric| metric.cell_of_times(&step.summary.service_time);
    format!(
        "\n  TPS {}; in us: mean {}, median {}, max {}, min {}, p99.9 {}",
        metric::RATE.show(step.summary.rate),
        time(&metric::MEAN),
        time(&metric::P50),
        time(&metric::MAX),
        time(&metric::MIN),
        time(&metric::P999),
    )
}

/// Returns what the messages of a step's calls came to, if these stream.
fn stream_line(step: &Step) -> String {
    if step.messages.is_none() {
        return String::new();
    }
    let cell = |metric: &Metric| metric.cell_of_step(step);
    format!(
        "\n  messages/s: {} received, {} sent; to the first in us: p50 {}, p99 {}",
        cell(&metric::MESSAGES_RECEIVED),
        cell(&metric::MESSAGES_SENT),
        cell(&metric::FIRST_MESSAGE_P50),
        cell(&metric::FIRST_MESSAGE_P99),
    )
}
