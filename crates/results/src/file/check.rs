//! The consistency of a result file's numbers, checked once so that their users need not.

use netping_measure::{
    cost::{Balance, HostEvents, ServerDemand, SideUse},
    counts::Counts,
    distribution::Distribution,
    path::{PathAccount, Spread},
    summary::Summary,
    text::MOST,
    times::Time,
    window::INTERVAL,
};

use crate::{
    anatomy::AnatomySummary,
    run::{Kind, PartSettings, Run, Step},
};

/// Maximum of any number in a result file: larger ones are damage, and would overflow sums.
const GREATEST: f64 = 1e15;

/// Maximum number of a measurement.
const MOST_MEASUREMENTS: usize = 1_000_000;

/// Most clients of one run.
const MOST_CLIENTS: usize = 100_000;

/// Maximum length of a window, in seconds: some 46 days.
const LONGEST_WINDOW: f64 = 4e6;

/// Largest deviation of a description's times from those of its histogram, as a share: a program may
/// describe times before it rounds them to a histogram's slots.
const ROUNDING: f64 = 0.005;

/// Checks that counts add up, that numbers are within bounds, and that histograms are those that
/// their descriptions describe.
///
/// # Errors
/// A description of the first inconsistency.
pub fn check(run: &Run) -> Result<(), String> {
    for (at, step) in run.steps.iter().enumerate() {
        check_step(step)
            .and_then(|()| check_parts(step, run.kind))
            .map_err(|what| format!("step {} ({}): {what}", at + 1, step.target))?;
    }
    let paired = run.pairings.iter().flat_map(|own| [own.base, own.new]);
    let mut numbers = paired.chain(run.steps.iter().map(|step| step.measurement));
    if let Some(number) = numbers.find(|number| *number > MOST_MEASUREMENTS) {
        return Err(format!("measurement {number} is out of range"));
    }
    for own in run.measurements() {
        let what = |step: &Step| (step.name().to_owned(), step.settings.in_words());
        let first = what(own.first());
        if own.trials.iter().any(|step| what(step) != first) {
            let number = own.number;
            return Err(format!(
                "the trials of measurement {number} differ in their settings"
            ));
        }
    }
    if run.looks == 0 {
        return Err("looks is 0, though there is always one".to_owned());
    }
    within(&[("looks", Some(run.looks as f64)), ("margin", run.margin)])
}

/// Checks a client's part of a shared load.
fn check_part(part: &PartSettings) -> Result<(), String> {
    let is_one = (1..=part.of).contains(&part.number) && part.of <= MOST_CLIENTS;
    let has_share = part.of <= part.callers.min(part.connections);
    if !is_one || !has_share || part.callers.max(part.connections) > u32::MAX as usize {
        return Err(part.to_string());
    }
    within(&[("part.planned_rate", part.planned_rate)])
}

/// Checks what the server used.
fn check_server(server: &ServerDemand) -> Result<(), String> {
    let workers = server.workers;
    if let Some(own) = workers.filter(|own| own.count < 2) {
        return Err(format!("{} server workers", own.count));
    }
    within(&[
        ("server.workers.count", workers.map(|own| own.count as f64)),
        (
            "server.workers.busiest_seconds",
            workers.map(|own| own.busiest_seconds),
        ),
        (
            "server.workers.cpu_seconds",
            workers.map(|own| own.cpu_seconds),
        ),
        ("server.cpu_seconds", Some(server.cpu_seconds)),
        ("server.system_seconds", server.system_seconds),
        ("server.waited_seconds", server.waited_seconds),
        ("server.cpu_us_per_request", server.cpu_us_per_request),
        (
            "server.context_switches_per_request",
            server.context_switches_per_request,
        ),
        (
            "server.instructions_per_request",
            server.instructions_per_request,
        ),
        (
            "server.system_calls_per_request",
            server.system_calls_per_request,
        ),
    ])
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
    settings.part.as_ref().map_or(Ok(()), check_part)?;
    let latest = i64::MAX.unsigned_abs();
    if step.window_started_at.is_some_and(|start| start > latest) {
        return Err("window_started_at is out of range".to_owned());
    }
    if summary.seconds > LONGEST_WINDOW {
        return Err(format!("a window of {} seconds", summary.seconds));
    }
    let (accounting, cost) = (&summary.accounting, &step.cost);
    let (server, bulk) = (cost.server.as_ref(), step.bulk.as_ref());
    let requests = server.and_then(|own| own.requests);
    let counts = [
        ("requests", settings.requests),
        ("reconnects", Some(accounting.reconnects)),
        ("ended_by_server", Some(accounting.ended_by_server)),
        ("outside_ok", Some(accounting.outside_ok)),
        ("outside_errors", Some(accounting.outside_errors)),
        ("server.requests.server", requests.map(|own| own.server)),
        ("server.requests.client", requests.map(|own| own.client)),
        ("server.requests.unsure", requests.map(|own| own.unsure)),
    ];
    within(&counts.map(|(name, count)| (name, count.map(|count| count as f64))))?;
    within(&[
        ("seconds", Some(summary.seconds)),
        ("rate", Some(summary.rate)),
        ("rate_half_width", summary.precision.rate_half_width),
        ("planned_rate", settings.planned_rate),
        ("warmup_seconds", Some(settings.warmup_seconds)),
        ("client_cpu_us_per_request", cost.client_cpu_us_per_request),
        (
            "probes_per_s",
            settings.bulk.as_ref().and_then(|own| own.probes_per_s),
        ),
        ("bulk.seconds", bulk.map(|own| own.seconds)),
        ("first_byte_seconds", bulk.map(|own| own.first_byte_seconds)),
        ("gib_per_second", bulk.map(|own| own.gib_per_second)),
        (
            "client_cpu_seconds_per_gib",
            bulk.and_then(|own| own.client_cpu_seconds_per_gib),
        ),
        (
            "server_cpu_seconds_per_gib",
            bulk.and_then(|own| own.server_cpu_seconds_per_gib),
        ),
        (
            "server_system_seconds_per_gib",
            bulk.and_then(|own| own.server_system_seconds_per_gib),
        ),
        (
            "server_softirq_seconds_per_gib",
            bulk.and_then(|own| own.server_softirq_seconds_per_gib),
        ),
    ])?;
    server.map_or(Ok(()), check_server)?;
    for host in server
        .map(|own| &own.host)
        .into_iter()
        .chain([&cost.client_host])
    {
        check_host(host)?;
    }
    for balance in &cost.balances {
        check_balance(balance)?;
    }
    step.path.as_ref().map_or(Ok(()), check_path)?;
    for seconds in &cost.client_worker_cpu_seconds {
        within(&[("client_worker_cpu_seconds", Some(*seconds))])?;
    }
    for seconds in &cost.client_worker_system_seconds {
        within(&[("client_worker_system_seconds", Some(*seconds))])?;
    }
    check_counts(summary)?;
    check_intervals(step)?;
    check_times(step)
}

/// Checks the parts of a step's round trips, if it has any.
fn check_parts(step: &Step, kind: Kind) -> Result<(), String> {
    let Some(anatomy) = &step.anatomy else {
        return Ok(());
    };
    // In a ladder, they are of another window.
    let requests = (kind != Kind::Ladder).then_some(step.summary.accounting.ok);
    check_anatomy(anatomy, requests)
}

/// Checks the numbers of connections, and that what is told of them all and of single ones fits.
fn check_path(path: &PathAccount) -> Result<(), String> {
    within(&[
        ("path.connections", Some(path.connections as f64)),
        ("path.opened", Some(path.opened as f64)),
        ("path.closed", Some(path.closed as f64)),
    ])?;
    for (fact, Spread { sum, min, max }) in &path.facts {
        if min > max || max > sum {
            return Err(format!("path: {fact:?} of {min} to {max}, {sum} in all"));
        }
    }
    Ok(())
}

/// Checks what happened on a machine.
fn check_host(host: &HostEvents) -> Result<(), String> {
    within(&[
        ("steal_seconds", host.steal_seconds),
        ("softirq_seconds", host.softirq_seconds),
        ("throttled_seconds", host.throttled_seconds),
    ])
}

/// Checks the times of a balance of the CPUs.
fn check_balance(balance: &Balance) -> Result<(), String> {
    let of_side = |side: Option<SideUse>| {
        [
            side.map(|own| own.cpu_seconds),
            side.and_then(|own| own.waited_seconds),
        ]
    };
    let sides = [balance.client, balance.server].map(of_side);
    for seconds in sides.concat() {
        within(&[("balances: time of a side", seconds)])?;
    }
    let busiest = balance.busiest_other.as_ref();
    within(&[
        ("balances.window_seconds", Some(balance.window_seconds)),
        ("balances.total_seconds", Some(balance.total_seconds)),
        ("balances.others_seconds", Some(balance.others_seconds)),
        (
            "balances.interrupt_seconds",
            Some(balance.interrupt_seconds),
        ),
        ("balances.steal_seconds", Some(balance.steal_seconds)),
        ("balances.idle_seconds", Some(balance.idle_seconds)),
        ("balances.pressure_seconds", balance.pressure_seconds),
        ("balances.busiest_other", busiest.map(|own| own.cpu_seconds)),
    ])
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
    if accounting.late > accounting.ok || accounting.early > accounting.outside_ok {
        return Err("'late' is more than 'ok', or 'early' more than 'outside_ok'".to_owned());
    }
    Ok(())
}

fn check_intervals(step: &Step) -> Result<(), String> {
    let times = &step.summary.times[Time::Response];
    for [low, high] in times.p50_interval.iter().chain(&times.p99_interval) {
        if low > high {
            return Err(format!("an interval from {low} to {high}"));
        }
    }
    for second in &step.intervals {
        let (start, length) = (second.start_ns, second.length_ns);
        let lost = second.path.map_or(0, |own| own.lost_packets);
        let most = second.ok.max(second.errors).max(start >> 10).max(lost);
        if length > INTERVAL || most > MOST {
            return Err(format!("a second of {length} ns at {start} ns"));
        }
    }
    Ok(())
}

/// Checks that every histogram has as many samples as its description says, and those of replies
/// and failures as many as there were requests.
fn check_times(step: &Step) -> Result<(), String> {
    let (summary, histograms) = (&step.summary, &step.histograms);
    for (time, own) in &histograms.times {
        check_time(time.name(), own, &summary.times[time])?;
    }
    if histograms.censored.len() > histograms.times[Time::Response].len() {
        return Err("censored has more samples than response_time".to_owned());
    }
    if summary.times[Time::Service].count != summary.accounting.ok
        || summary.times[Time::Failed].count != summary.accounting.failed()
    {
        return Err(
            "service_time or failed_time does not have one sample for each request".to_owned(),
        );
    }
    if let Some(messages) = &step.messages {
        let first = &messages.first_message;
        check_time("first_message", &first.histogram, &first.time)?;
        if let Some(gap) = &messages.message_gap {
            check_time("message_gap", &gap.histogram, &gap.time)?;
        }
        within(&[
            ("sent_per_s", Some(messages.sent_per_s)),
            ("received_per_s", Some(messages.received_per_s)),
        ])?;
    }
    if let Some(probe) = &step.probe {
        check_time("probe.idle", &probe.idle.histogram, &probe.idle.time)?;
        check_time("probe.loaded", &probe.loaded.histogram, &probe.loaded.time)?;
    }
    if let Some(own) = &step.held_back
        && own.requests > summary.accounting.ok
    {
        return Err("held_back has more requests than succeeded".to_owned());
    }
    step.connect
        .values()
        .try_for_each(|phase| check_time("connect", &phase.histogram, &phase.time))
}

/// Checks the times of all parts and, where it is of so many requests, that each has parts or is counted among those
/// without.
fn check_anatomy(anatomy: &AnatomySummary, requests: Option<u64>) -> Result<(), String> {
    for (part, times) in &anatomy.parts {
        check_time(part.name(), &times.histogram, &times.time)?;
    }
    for own in anatomy.typical.iter().chain(&anatomy.slowest) {
        within(&[("requests", Some(own.requests))])?;
        for (part, mean) in &own.means {
            within(&[(part.name(), Some(*mean))])?;
        }
    }
    let others = [anatomy.without_stamps, anatomy.clock_set];
    let all = others
        .into_iter()
        .try_fold(anatomy.requests(), u64::checked_add);
    if let Some(ok) = requests
        && all != Some(ok)
    {
        return Err(format!(
            "the anatomy is not of the {ok} requests that succeeded"
        ));
    }
    anatomy.check()
}

fn check_time(name: &str, histogram: &Counts, time: &Distribution) -> Result<(), String> {
    if histogram.len() != time.count {
        let (says, has) = (time.count, histogram.len());
        return Err(format!(
            "{name} says {says} samples, and its histogram has {has}"
        ));
    }
    let has = Distribution::of(histogram);
    let number = |time: Option<u64>| time.map(|time| time as f64);
    for (what, says, has) in [
        ("a minimum", number(time.min), number(has.min)),
        ("a mean", time.mean, has.mean),
        ("a maximum", number(time.max), number(has.max)),
    ] {
        if let (Some(says), Some(has)) = (says, has)
            && (says - has).abs() > 1.0 + has * ROUNDING
        {
            return Err(format!(
                "{name} says {what} of {says} ns, and its histogram has {has} ns"
            ));
        }
    }
    within(&[
        (name, time.mean),
        (name, time.sd),
        (name, time.trimmed_mean),
    ])
}

/// Checks that the numbers that exist are within the bounds of a measurement.
fn within(numbers: &[(&str, Option<f64>)]) -> Result<(), String> {
    for (name, number) in numbers {
        if let Some(number) = number.filter(|number| !(0.0..=GREATEST).contains(number)) {
            return Err(format!("{name} is {number}"));
        }
    }
    Ok(())
}
