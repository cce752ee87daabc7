//! The resources that a run with several clients used.

use netping_measure::{
    cost::{Cost, RequestCounts, ServerDemand, ServerWorkers},
    summary::Summary,
};

use crate::run::Step;

/// Readings of one server's CPU time that differ by more than this share are not of one server, or
/// not of one time.
const AGREE: f64 = 0.1;

/// The cost of the sum: the clients' CPU time is added; the server's is one process', read by each
/// of them over nearly the same window, and so is taken once. Without all clients, what the server used for each request
/// is not known.
pub(super) fn cost(steps: &[&Step], summary: &Summary, are_all: bool) -> Cost {
    let mut cost = Cost::default();
    for step in steps {
        cost.add_workers(&step.cost);
    }
    let costs = || steps.iter().map(|step| &step.cost);
    // Of targets that were measured together, the threads' time is that of all.
    let is_alone = steps.iter().all(|step| step.settings.together.is_none());
    let handled = summary.accounting.handled();
    // Several clients may share a machine, whose events would count twice: there are none here.
    Cost {
        client_cpu_us_per_request: cost.worker_cpu_us(handled).filter(|_| is_alone),
        server: server(steps, summary, are_all),
        client_hiccups: costs()
            .filter_map(|cost| cost.client_hiccups)
            .max_by_key(|hiccups| hiccups.max_ns),
        client_between_requests_seconds: costs()
            .map(|cost| cost.client_between_requests_seconds)
            .sum(),
        ..cost
    }
}

/// The server's demand: the mean of the clients' readings, each per second of its own window. For
/// each request it is that over the rate of all clients together, whether or not the server counts
/// requests itself. Absent where the readings do not agree.
fn server(steps: &[&Step], summary: &Summary, are_all: bool) -> Option<ServerDemand> {
    let read: Vec<(&ServerDemand, f64)> = steps
        .iter()
        .filter(|step| step.summary.seconds > 0.0)
        .filter_map(|step| Some((step.cost.server.as_ref()?, step.summary.seconds)))
        .collect();
    let per_second: Vec<f64> = read
        .iter()
        .map(|(server, seconds)| server.cpu_seconds / seconds)
        .collect();
    let most = per_second.iter().copied().fold(0.0, f64::max);
    let least = per_second.iter().copied().fold(f64::INFINITY, f64::min);
    if per_second.is_empty() || least < most * (1.0 - AGREE) {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    // Counters that several targets share tell no client what a request took, where one alone can tell by its own.
    let is_shared = steps.iter().any(|step| {
        let server = step.cost.server.as_ref();
        let is_unknown = server.is_some_and(|own| own.cpu_us_per_request.is_none());
        step.settings.together.is_some() && is_unknown
    });
    let is_known = are_all && !is_shared && summary.rate > 0.0;
    let each = |per_second: f64| is_known.then(|| per_second / summary.rate);
    let counted = |of: fn(&ServerDemand) -> Option<f64>| {
        let counts = read
            .iter()
            .map(|(server, seconds)| Some(all(server, of(server)?)? / seconds));
        let counts: Option<Vec<f64>> = counts.collect();
        each(mean(&counts?))
    };
    let mean_time = |of: fn(&ServerDemand) -> Option<f64>| {
        let times = read
            .iter()
            .map(|(server, seconds)| Some(of(server)? / seconds));
        let times: Option<Vec<f64>> = times.collect();
        Some(mean(&times?) * summary.seconds)
    };
    Some(ServerDemand {
        cpu_seconds: mean(&per_second) * summary.seconds,
        system_seconds: mean_time(|server| server.system_seconds),
        waited_seconds: mean_time(|server| server.waited_seconds),
        cpu_us_per_request: each(mean(&per_second) * 1e6),
        context_switches_per_request: counted(|server| server.context_switches_per_request),
        instructions_per_request: counted(|server| server.instructions_per_request),
        system_calls_per_request: counted(|server| server.system_calls_per_request),
        resident_bytes: read
            .iter()
            .filter_map(|(server, _)| server.resident_bytes)
            .max(),
        cores: read.iter().find_map(|(server, _)| server.cores),
        workers: read.iter().find_map(|(server, seconds)| {
            let scale = summary.seconds / seconds;
            server.workers.map(|own| ServerWorkers {
                busiest_seconds: own.busiest_seconds * scale,
                cpu_seconds: own.cpu_seconds * scale,
                ..own
            })
        }),
        // Each client has seen the same events.
        host: read.first()?.0.host,
        requests: requests(steps, summary.seconds).filter(|_| are_all),
    })
}

/// Returns both sides' counts of requests in the `seconds` that all clients have in common: of the server
/// the mean of the clients' readings, of the clients the sum. `None` unless all have both, or one reads for those that
/// share the load with it.
fn requests(steps: &[&Step], seconds: f64) -> Option<RequestCounts> {
    let counts_of = |step: &Step| step.cost.server.as_ref()?.requests;
    let readers: Vec<_> = steps
        .iter()
        .filter_map(|step| Some((step, counts_of(step)?)))
        .collect();
    let (reader, read) = readers.first()?;
    // Between the readings, which is not quite the window.
    let between = read.client as f64 / reader.summary.accounting.ok.max(1) as f64;
    let doubt = read.unsure as f64 / read.client.max(1) as f64;
    let [mut server, mut client, mut unsure] = [0.0; 3];
    for step in steps {
        let share = seconds / step.summary.seconds;
        let Some(counts) = counts_of(step) else {
            step.settings.part?;
            let own = step.summary.accounting.ok as f64;
            let outside = step.settings.callers as u64 + step.summary.unserved();
            client += own * between * share;
            unsure += own * ((between - 1.0).abs() + doubt + (1.0 - share)) + outside as f64;
            continue;
        };
        server += counts.server as f64 * share / readers.len() as f64;
        client += counts.client as f64 * share;
        // While the others were not there, it had another rate.
        unsure += counts.unsure as f64 * share + counts.client as f64 * (1.0 - share);
    }
    let [server, client, unsure] = [server, client, unsure].map(|count| count.round() as u64);
    Some(RequestCounts {
        server,
        client,
        unsure,
        has_other_clients: false,
    })
}

/// Returns all that a reading has so many of for each request: times the number of requests that its CPU times imply.
fn all(server: &ServerDemand, per_request: f64) -> Option<f64> {
    let each = server.cpu_us_per_request.filter(|each| *each > 0.0)?;
    Some(per_request * server.cpu_seconds * 1e6 / each)
}
