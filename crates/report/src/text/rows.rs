//! A row for each step, under a heading for each target.

use netping_measure::times::Time;
use netping_results::{
    format::{self, plural, thousands},
    metric::{self, Metric},
    recovery,
    run::{Kind, Measurement, Run, Step, StepSettings},
};

use super::{
    anatomy, connect, per_request,
    steps::{StepTable, unit_of},
};
use crate::{
    balance::remarks,
    bars::bars,
    finding::{marked, value_in_words, value_of},
    loads::{self, knee_of},
    path,
    table::{is_unicode, terminal_width},
    verdict::is_valid,
    words::on_connections,
};

/// The rows of a run's steps, shown one by one as they are measured.
#[derive(Debug)]
pub struct Rows {
    kind: Kind,
    /// Each row shows when its step began.
    has_times: bool,
    /// The heading of the rows above, and their table.
    above: Option<(String, StepTable)>,
}

impl Rows {
    /// Returns the rows of a run of this kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            has_times: false,
            above: None,
        }
    }

    /// Returns rows that show when each step began, for a measurement that is repeated.
    #[must_use]
    pub fn with_times(mut self, is_repeated: bool) -> Self {
        self.has_times = is_repeated;
        self
    }

    /// Returns a step's row, below its heading unless that stands above already.
    pub fn show(&mut self, step: &Step) -> String {
        self.show_with(step, "")
    }

    /// Returns a step's row with this text behind it, below its heading unless that stands above already.
    pub fn show_with(&mut self, step: &Step, behind: &str) -> String {
        if self.kind == Kind::Connect {
            return connect::text(step) + behind + &path_line(step) + &balance_lines(step);
        }
        let heading = self.heading_of(step);
        let mut text = String::new();
        let stands = self.above.as_ref();
        if !stands.is_some_and(|(above, table)| *above == heading && table.suits(step)) {
            let table = StepTable::new(self.kind, step, self.has_times);
            text = format!("{heading}\n{}\n", table.table.header());
            self.above = Some((heading, table));
        }
        let row = self.above.as_ref().map(|(_, table)| table.row(step));
        text + &row.unwrap_or_default()
            + behind
            + &message_line(step)
            + &stream_line(step)
            + &burst_line(step)
            + &anatomy_lines(step)
            + &path_line(step)
            + &balance_lines(step)
    }

    fn heading_of(&self, step: &Step) -> String {
        let settings = &step.settings;
        let part = settings.part.map(|part| format!(", {part}"));
        let name = step.full_name() + &part.unwrap_or_default();
        let requests = requests(settings);
        match (self.kind, settings.planned_rate) {
            (Kind::Quick, _) => name,
            (Kind::Latency, _) => {
                let what = requests.map(|what| format!(" of {what}"));
                let unit = unit_of(step).name();
                format!("{name}  round trips{}, in {unit}", what.unwrap_or_default())
            }
            (_, rate) => {
                let what = requests.map(|what| what + ", ").unwrap_or_default();
                if rate.is_none() {
                    return format!("{name}  {what}closed loop");
                }
                let arrivals = &settings.arrivals;
                let assign = if settings.is_fixed() {
                    ", fixed assignment"
                } else {
                    ""
                };
                format!("{name}  {what}open loop, {arrivals} arrivals{assign}")
            }
        }
    }

    /// Returns what stands below the last row of a target: of a quick look, the distribution of the
    /// response times of its last step.
    pub fn end(&self, step: &Step) -> Option<String> {
        if self.kind != Kind::Quick {
            return None;
        }
        let callers = plural(step.settings.callers as u64, "caller");
        let width = terminal_width().unwrap_or(usize::MAX);
        let drawn = bars(&step.histograms.times[Time::Response], is_unicode(), width);
        (!drawn.is_empty()).then(|| format!("\nresponse times with {callers}\n{drawn}"))
    }
}

/// Returns the rows of a whole run.
pub(super) fn text(run: &Run) -> String {
    let is_repeated = run.steps.iter().any(|step| step.trial > 1);
    let mut rows = Rows::new(run.kind).with_times(is_repeated);
    let mut parts = Vec::new();
    for (at, step) in run.steps.iter().enumerate() {
        parts.push(rows.show(step));
        let next = run.steps.get(at + 1);
        if next.is_none_or(|next| next.name() != step.name()) {
            parts.extend(rows.end(step));
            parts.extend(of_sweep(run, step.name()));
        }
    }
    parts.join("\n")
}

/// Says what a target's sweep shows: the best number of connections where it is one over connections,
/// otherwise the knee over callers; `None` where it is none of them, or has no knee. `name` is its label or
/// URL.
pub fn of_sweep(run: &Run, name: &str) -> Option<String> {
    let mut sweep = run.measurements();
    sweep.retain(|own| own.name() == name && run.kind == Kind::Throughput);
    let sentence = on_connections(&sweep).or_else(|| knee(&sweep));
    sentence.map(|sentence| marked(sentence, is_valid(run)))
}

/// Describes the knee of a sweep over callers.
fn knee(sweep: &[Measurement<'_>]) -> Option<String> {
    let at = knee_of(sweep)?;
    let [own, next] = [&sweep[at], &sweep[at + 1]];
    let growth = if loads::value(&metric::RATE, next) < loads::value(&metric::RATE, own) {
        "falls"
    } else {
        "grows by less than 5%"
    };
    Some(format!(
        "knee: {} with {} req/s and p99 {}; with more callers, the rate {growth}, and p99 rises to {}",
        plural(own.settings().callers as u64, "caller"),
        value_of(&metric::RATE, own),
        value_in_words(&metric::P99, own),
        value_in_words(&metric::P99, next),
    ))
}

/// Describes the requests of a step, as headings have it; `None` where they are all empty.
fn requests(settings: &StepSettings) -> Option<String> {
    let bytes = |bytes| format!("{} bytes", thousands(bytes as f64));
    let are_messages = settings.are_messages();
    match (settings.payload_bytes, settings.bodies) {
        (0, None) => are_messages.then(|| "empty messages".to_owned()),
        (length, None) if are_messages => Some(format!("messages of {}", bytes(length))),
        (length, None) => Some(bytes(length)),
        (length, Some(bodies)) => {
            let order = settings.body_order.as_deref().unwrap_or_default();
            let mean = bytes(length);
            let bodies = thousands(bodies as f64);
            let what = if are_messages { "messages" } else { "bodies" };
            Some(format!("{bodies} {what} ({order}) of {mean} on average"))
        }
    }
}

/// Returns the figures that rpcx-benchmark prints after a run with its message, in its order.
fn message_line(step: &Step) -> String {
    if step.settings.message.as_deref() != Some("benchmark") {
        return String::new();
    }
    let time = |metric: &Metric| metric.tell_times(&step.summary.times[Time::Service]);
    format!(
        "\n  TPS {}; mean {}, median {}, max {}, min {}, p99.9 {}",
        format::rate(step.summary.rate),
        time(&metric::MEAN),
        time(&metric::P50),
        time(&metric::MAX),
        time(&metric::MIN),
        time(&metric::P999),
    )
}

/// Returns what the messages of a step's calls came to, if these stream.
fn stream_line(step: &Step) -> String {
    let Some(messages) = &step.messages else {
        return String::new();
    };
    let cell = |metric: &Metric| metric.tell_step(step);
    let sent = if messages.sent_per_s > 0.0 {
        format!(", {} sent", cell(&metric::MESSAGES_SENT))
    } else {
        String::new()
    };
    let gaps = messages.message_gap.as_ref().map(|_| {
        format!(
            "; from one to the next: p50 {}, p99 {}, max {}",
            cell(&metric::MESSAGE_GAP_P50),
            cell(&metric::MESSAGE_GAP_P99),
            cell(&metric::MESSAGE_GAP_MAX),
        )
    });
    format!(
        "\n  messages/s: {} received{sent}; to the first: p50 {}, p99 {}{}",
        cell(&metric::MESSAGES_RECEIVED),
        cell(&metric::FIRST_MESSAGE_P50),
        cell(&metric::FIRST_MESSAGE_P99),
        gaps.unwrap_or_default(),
    )
}

/// Returns what a step's bursts did, if it had any.
fn burst_line(step: &Step) -> String {
    recovery::in_words(step).map_or_else(String::new, |line| format!("\n  {line}"))
}

/// Returns the parts of a step's round trips, and what they took of both sides, if they were asked for.
fn anatomy_lines(step: &Step) -> String {
    if step.anatomy.is_none() && !step.settings.perf_events {
        return String::new();
    }
    let parts = step.anatomy.as_ref();
    let block = parts.map(|own| anatomy::block(own, &step.settings));
    let block = block.filter(|text| !text.is_empty());
    let cost = per_request::describe(step).map(|line| format!("  {line}"));
    let lines = [block, cost].into_iter().flatten();
    lines.flat_map(|line| ["\n".to_owned(), line]).collect()
}

/// Returns what TCP or QUIC tells of a step's connections, where packets were lost.
fn path_line(step: &Step) -> String {
    path::remark(step).map_or_else(String::new, |line| format!("\n  {line}"))
}

/// Returns who had the CPUs of a step, where others had a part.
fn balance_lines(step: &Step) -> String {
    let lines = remarks(&step.cost.balances);
    lines.iter().flat_map(|line| ["\n  ", line]).collect()
}
