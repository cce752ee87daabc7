//! The consistency of a result file's numbers, checked once so that their users need not.

use netping_measure::{
    counts::Counts, distribution::Distribution, summary::Summary, window::INTERVAL,
};

use crate::{
    bulk::BulkStep,
    file::histogram::MOST,
    overhead::Overhead,
    run::{Run, Step},
};

/// Maximum of any number in a result file: larger ones are damage, and would overflow sums.
const GREATEST: f64 = 1e15;

/// Maximum length of a window, in seconds: some 46 days.
const LONGEST_WINDOW: f64 = 4e6;

/// Checks that counts add up, that numbers are within bounds, and that histograms have as many
/// samples as their descriptions say.
///
/// # Errors
/// A description of the first inconsistency.
pub fn check(run: &Run) -> Result<(), String> {
    for (at, step) in run.steps.iter().enumerate() {
        check_step(step).map_err(|what| format!("step {} ({}): {what}", at + 1, step.target))?;
    }
    for (at, bulk) in run.bulk.iter().enumerate() {
        check_bulk(bulk)
            .map_err(|what| format!("bulk stream {} ({}): {what}", at + 1, bulk.target))?;
    }
    for (at, overhead) in run.overheads.iter().enumerate() {
        check_overhead(overhead).map_err(|what| {
            format!(
                "overhead {} ({} of {}): {what}",
                at + 1,
                overhead.measure,
                overhead.via
            )
        })?;
    }
    Ok(())
}

fn check_step(step: &Step) -> Result<(), String> {
    let (settings, summary) = (&step.settings, &step.summary);
    let sizes = [
        ("callers", settings.callers),
        ("connections", settings.connections),
        ("workers", settings.workers),
    ];
    for (name, size) in sizes {
        if size == 0 || size > u32::MAX as usize {
            return Err(format!("{size} {name}"));
        }
    }
    let counts = [
        ("requests", settings.requests),
        ("reconnects", Some(step.reconnects)),
        ("ended_by_server", Some(step.ended_by_server)),
        ("outside_ok", Some(summary.outside_ok)),
        ("outside_errors", Some(summary.outside_errors)),
    ];
    for (name, count) in counts {
        within(name, count.map(|count| count as f64))?;
    }
    if step
        .window_started_at
        .is_some_and(|start| start > i64::MAX.unsigned_abs())
    {
        return Err("window_started_at is out of range".to_owned());
    }
    if summary.seconds > LONGEST_WINDOW {
        return Err(format!("a window of {} seconds", summary.seconds));
    }
    let numbers = [
        ("seconds", Some(summary.seconds)),
        ("rate", Some(summary.rate)),
        ("rate_half_width", summary.precision.rate_half_width),
        ("planned_rate", settings.planned_rate),
        ("warmup_seconds", Some(settings.warmup_seconds)),
        (
            "client_cpu_us_per_request",
            step.cost.client_cpu_us_per_request,
        ),
        (
            "server.cpu_seconds",
            step.cost.server.as_ref().map(|server| server.cpu_seconds),
        ),
        (
            "server.cpu_us_per_request",
            step.cost.server_cpu_us_per_request(),
        ),
        (
            "server.context_switches_per_request",
            step.cost
                .server
                .as_ref()
                .and_then(|server| server.context_switches_per_request),
        ),
    ];
    for (name, number) in numbers {
        within(name, number)?;
    }
    for seconds in &step.cost.client_worker_cpu_seconds {
        within("client_worker_cpu_seconds", Some(*seconds))?;
    }
    check_counts(summary)?;
    check_intervals(step)?;
    check_times(step)
}

/// Checks that outcomes add up to the number of requests.
fn check_counts(summary: &Summary) -> Result<(), String> {
    let accounting = &summary.accounting;
    let others = accounting
        .errors
        .values()
        .chain([&accounting.in_flight, &accounting.not_sent]);
    let sum = others.copied().try_fold(accounting.ok, u64::checked_add);
    if sum != Some(summary.scheduled) || summary.scheduled > MOST {
        return Err(
            "'scheduled' is not the sum of 'ok', 'errors', 'in_flight' and 'not_sent'".to_owned(),
        );
    }
    if summary.late > accounting.ok || summary.early > summary.outside_ok {
        return Err("'late' is more than 'ok', or 'early' more than 'outside_ok'".to_owned());
    }
    Ok(())
}

fn check_intervals(step: &Step) -> Result<(), String> {
    let precision = &step.summary.precision;
    for [low, high] in precision.p50.iter().chain(&precision.p99) {
        if low > high {
            return Err(format!("an interval from {low} to {high}"));
        }
    }
    for second in &step.intervals {
        let most = [second.ok, second.errors, second.start_ns >> 10]
            .into_iter()
            .max()
            .unwrap_or(0);
        if second.length_ns > INTERVAL || most > MOST {
            return Err(format!(
                "a second of {} ns at {} ns",
                second.length_ns, second.start_ns
            ));
        }
    }
    Ok(())
}

/// Checks that every histogram has as many samples as its description says, and those of replies
/// and failures as many as there were requests.
fn check_times(step: &Step) -> Result<(), String> {
    let (summary, own) = (&step.summary, &step.histograms);
    check_time("service_time", &own.service_time, &summary.service_time)?;
    check_time("response_time", &own.response_time, &summary.response_time)?;
    check_time("lag", &own.lag, &summary.lag)?;
    check_time("failed_time", &own.failed_time, &summary.failed_time)?;
    if summary.service_time.count != summary.accounting.ok
        || summary.failed_time.count != summary.accounting.failed()
    {
        return Err(
            "service_time or failed_time does not have one sample for each request".to_owned(),
        );
    }
    step.connect
        .values()
        .try_for_each(|phase| check_time("connect", &phase.histogram, &phase.time))
}

fn check_time(name: &str, histogram: &Counts, time: &Distribution) -> Result<(), String> {
    if histogram.len() != time.count {
        return Err(format!(
            "{name} says {} samples, and its histogram has {}",
            time.count,
            histogram.len()
        ));
    }
    within(name, time.mean)?;
    within(name, time.sd)?;
    within(name, time.trimmed_mean)
}

fn check_bulk(bulk: &BulkStep) -> Result<(), String> {
    for run in &bulk.runs {
        within("seconds", Some(run.seconds))?;
        within("first_byte_seconds", Some(run.first_byte_seconds))?;
        within("gib_per_second", Some(run.gib_per_second))?;
        within("client_cpu_seconds_per_gib", run.client_cpu_seconds_per_gib)?;
        within("server_cpu_seconds_per_gib", run.server_cpu_seconds_per_gib)?;
    }
    if let Some(summary) = &bulk.summary {
        let rate = summary.gib_per_second;
        let numbers = [
            ("gib_per_second", Some(rate.mean)),
            ("half_width", rate.half_width),
            ("sd", summary.sd),
            ("first_byte_seconds", Some(summary.first_byte_seconds)),
            (
                "client_cpu_seconds_per_gib",
                summary.client_cpu_seconds_per_gib,
            ),
            (
                "server_cpu_seconds_per_gib",
                summary.server_cpu_seconds_per_gib,
            ),
        ];
        for (name, number) in numbers {
            within(name, number)?;
        }
    }
    let failed = bulk.errors.values().copied().try_fold(0, u64::checked_add);
    if failed.is_none_or(|failed| failed > MOST) {
        return Err("too many 'errors'".to_owned());
    }
    Ok(())
}

fn check_overhead(overhead: &Overhead) -> Result<(), String> {
    let numbers = [
        ("planned_rate", overhead.planned_rate),
        ("direct_us", Some(overhead.direct_us)),
        ("via_us", Some(overhead.via_us)),
        // By way of a proxy, a request may take less.
        ("added_us", Some(overhead.added_us.abs())),
    ];
    for (name, number) in numbers {
        within(name, number)?;
    }
    if let Some([low, high]) = overhead.interval_us {
        within("interval_us", Some(low.abs()))?;
        within("interval_us", Some(high.abs()))?;
        if low > high {
            return Err(format!("an interval from {low} to {high}"));
        }
    }
    match overhead.p_value {
        Some(p) if !(0.0..=1.0).contains(&p) => Err(format!("p_value is {p}")),
        _ => Ok(()),
    }
}

/// Checks that a number, if there is one, is within the bounds of a measurement.
fn within(name: &str, number: Option<f64>) -> Result<(), String> {
    match number {
        Some(number) if !(0.0..=GREATEST).contains(&number) => Err(format!("{name} is {number}")),
        _ => Ok(()),
    }
}
