//! Small requests beside the streams, on connections of their own: what the streams do to others.

use std::{
    collections::BTreeSet,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
    },
    thread,
    time::Duration,
};

use netping_measure::{
    bulk::BulkRun,
    counts::Counts,
    error_kind::ErrorKind,
    histogram::{Histogram, histogram, record, record_n},
};
use netping_protocol::scheme::Protocol;
use netping_results::probe::ProbeSummary;

use super::{Bulk, BulkPlan, Ended, LOOK};
use crate::{
    clock::Moment,
    engine::{self, Measured, Observer, Phase, tcp_readings},
    error::StartError,
    interrupt::Interrupt,
    plan::{Arrival, Plan},
    probe::metrics::ServerSource,
    transport::{Failure, Kind},
};

/// Time for which requests are measured before the streams carry anything.
pub const IDLE: Duration = Duration::from_secs(1);

/// Requests that may wait for their replies at a time: within these limits, those of the time limit if one connection
/// carries them all...
const SHARED: RangeInclusive<f64> = 16.0..=4096.0;

/// ...and those of a quarter of a second if each takes a connection.
const ALONE: RangeInclusive<f64> = 16.0..=256.0;

/// Returns the plan of small requests to the same server, at a constant rate; `None` if there are to be none.
pub(super) fn plan(bulk: &BulkPlan) -> Option<Plan> {
    let rate = bulk.settings.probes_per_s?;
    let mut target = bulk.target.clone();
    target.server = ServerSource::Nowhere;
    let kind = match target.url.scheme.protocol() {
        Protocol::Grpc => Kind::GrpcH2,
        Protocol::Quic => Kind::Quic,
        // Flags make no such plan for HTTP.
        Protocol::Tcp | Protocol::Http => Kind::Line,
    };
    let mut plan = Plan::new(target, kind);
    plan.load.arrival = Arrival::Constant(rate);
    let (most, seconds) = if kind.multiplexes() {
        (SHARED, bulk.timeout.as_secs_f64())
    } else {
        (ALONE, 0.25)
    };
    let callers = (rate * seconds).clamp(*most.start(), *most.end()) as usize;
    plan.load.callers = callers;
    plan.load.connections = if kind.multiplexes() { 1 } else { callers };
    plan.load.max_backlog = usize::MAX;
    plan.load.timeout = bulk.timeout;
    plan.execution.keep_samples = true;
    Some(plan)
}

impl Bulk {
    /// Carries the bytes once, as [`Bulk::run`] does, while small requests are sent if the plan has such.
    ///
    /// # Errors
    /// [`Ended`] if the bytes do not arrive, or the requests cannot begin.
    pub fn run_with_probe(
        &mut self,
        interrupt: &Interrupt,
    ) -> Result<(BulkRun, Option<ProbeSummary>), Ended> {
        let Some(plan) = plan(&self.plan) else {
            return Ok((self.run(interrupt)?, None));
        };
        let target = self.plan.target.clone();
        let connections = || -> BTreeSet<u64> {
            let readings = tcp_readings(&target).unwrap_or_default();
            readings.into_keys().collect()
        };
        let before = connections();
        let (begins, begun) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            begins,
            is_over: Arc::clone(&is_over),
        };
        let (run, idle, measured) = thread::scope(|scope| {
            let probing = scope.spawn(move || engine::run(&plan, interrupt, &watch));
            // There is no beginning if it fails to start.
            let has_begun = begun.recv().is_ok();
            self.others = connections().difference(&before).copied().collect();
            let idle = rest(interrupt);
            let run = if has_begun {
                self.run(interrupt)
            } else {
                Err(Ended::Interrupted)
            };
            is_over.store(true, Ordering::Release);
            (run, idle, probing.join())
        });
        let measured = match measured {
            Ok(Ok(measured)) => measured,
            Ok(Err(StartError::Interrupted)) => return Err(Ended::Interrupted),
            Ok(Err(error)) => {
                let detail = format!("--probe: {error}");
                return Err(Ended::Failed(Failure::request(ErrorKind::Other, detail)));
            }
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let run = run?;
        let length = (run.seconds * 1e9) as u64;
        let loaded = [self.started_at, self.started_at + length];
        let spans = [idle, loaded].map(|span| within(&measured, span));
        let waited = spans.iter().map(|(_, waited)| waited).sum();
        let mut times = spans.map(|(times, _)| times);
        let accounting = &measured.totals.accounting;
        let failed = accounting.failed() + accounting.in_flight + accounting.not_sent;
        let timeout = self.plan.timeout.as_nanos() as u64;
        // Nobody waits longer.
        record_n(&mut times[1], timeout, failed);
        let times = times.map(|times| Counts::from(&times));
        Ok((run, Some(ProbeSummary::of(times, failed, waited))))
    }
}

/// Waits for the idle time, and returns its beginning and end in nanoseconds since 1970.
fn rest(interrupt: &Interrupt) -> [u64; 2] {
    let begun = Moment::now().nanos();
    let until = Moment::now().after(IDLE);
    while let Ok(left) = until.left()
        && !left.is_zero()
        && !interrupt.is_set()
    {
        thread::sleep(left.min(LOOK));
    }
    [begun, Moment::now().nanos()]
}

/// Returns the response times of the requests that were due within a span of the time of day, which is in nanoseconds
/// since 1970, and the number of those that waited for a caller.
fn within(measured: &Measured, [from, until]: [u64; 2]) -> (Histogram, u64) {
    let (window, started_at) = (measured.totals.window, measured.window_started_at);
    let (mut times, mut waited) = (histogram(), 0);
    for sample in &measured.report.samples {
        let due = started_at.unwrap_or_default() + sample.intended;
        if (from + window.start..until + window.start).contains(&due) {
            record(&mut times, sample.end - sample.intended);
            waited += u64::from(sample.free > sample.intended);
        }
    }
    (times, waited)
}

/// Watches the requests: tells when they count, and ends them with the streams' run.
struct Watch {
    begins: Sender<()>,
    is_over: Arc<AtomicBool>,
}

impl Observer for Watch {
    fn phase(&self, phase: Phase, _: Option<Duration>) {
        if phase == Phase::Measure {
            // It fails only if nobody waits for it any more.
            let _ = self.begins.send(());
        }
    }

    fn tick(&self, _: Duration, _: f64) {}

    fn ends_step(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}
