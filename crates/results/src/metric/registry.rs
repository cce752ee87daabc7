//! Every metric, and the lists of those that each output shows.

use netping_measure::{
    distribution::Distribution,
    path::{PathAccount, PathFact},
    times::Time,
};

use super::{Better, Metric, Scale, Source, Unit};
use crate::{recovery::recoveries, run::Step};

/// Declares metrics, each with its name, title, label and key, its unit, better direction and scale,
/// and its definition and source.
macro_rules! metrics {
    ($($(#[$doc:meta])* $id:ident: $name:literal, $title:literal, $label:literal, $key:literal,
        $unit:ident, $better:ident, $scale:ident, $about:expr, $source:ident($($of:expr),*);)*) => {$(
        $(#[$doc])*
        pub static $id: Metric = Metric {
            name: $name,
            title: $title,
            label: $label,
            about: $about,
            key: $key,
            unit: Unit::$unit,
            better: Better::$better,
            scale: Scale::$scale,
            source: Source::$source($($of),*),
        };
    )*};
}

const QUANTILE: &str = "Quantile of the response time";
const SERVICE: &str = "Quantile of the service time";

/// Returns a step's service times.
#[expect(clippy::unnecessary_wraps, reason = "a step may lack the other times")]
fn service_time(step: &Step) -> Option<&Distribution> {
    Some(&step.summary.times[Time::Service])
}

/// Returns a step's times to the first message.
fn first_message(step: &Step) -> Option<&Distribution> {
    Some(&step.messages.as_ref()?.first_message.time)
}

/// Returns a step's times from one message to the next.
fn message_gap(step: &Step) -> Option<&Distribution> {
    Some(&step.messages.as_ref()?.message_gap.as_ref()?.time)
}

/// Returns the response times of a step's probe before the streams.
fn idle(step: &Step) -> Option<&Distribution> {
    Some(&step.probe.as_ref()?.idle.time)
}

/// Returns the response times of a step's probe beside the streams.
fn loaded(step: &Step) -> Option<&Distribution> {
    Some(&step.probe.as_ref()?.loaded.time)
}

metrics! {
    /// Verified replies per second.
    RATE: "rate", "req/s", "rate", "rate_per_second", PerSecond, Higher, Logarithmic,
        "Verified replies per second", Step(Step::rate);
    /// The shortest time.
    MIN: "min", "min us", "min", "min", Nanos, Lower, Logarithmic,
        "Shortest response time", Time(|time| time.min.map(|time| time as f64));
    /// The arithmetic mean of the times.
    MEAN: "mean", "mean us", "mean", "mean", Nanos, Lower, Logarithmic,
        "Mean response time", Time(|time| time.mean);
    /// The mean without the lowest and the highest 0.1 % of the samples.
    TRIMMED_MEAN: "tm99.9", "tm99.9 us", "tm99.9", "trimmed_mean", Nanos, Lower, Logarithmic,
        "Mean response time without the lowest and the highest 0.1 %", Time(|time| time.trimmed_mean);
    /// The standard deviation of the times.
    SD: "sd", "sd us", "sd", "sd", Nanos, Lower, Logarithmic,
        "Standard deviation of the response time", Time(|time| time.sd);
    /// The interquartile range: the spread of the middle half, which a few slow requests do not
    /// widen.
    IQR: "iqr", "iqr us", "iqr", "iqr", Nanos, Lower, Logarithmic,
        "Interquartile range of the response time", Range(25.0, 75.0);
    /// The 1st percentile.
    P1: "p1", "p1 us", "p1", "p1", Nanos, Lower, Logarithmic, QUANTILE, Quantile(1.0);
    /// The lower quartile.
    P25: "p25", "p25 us", "p25", "p25", Nanos, Lower, Logarithmic, QUANTILE, Quantile(25.0);
    /// The median.
    P50: "p50", "p50 us", "p50", "p50", Nanos, Lower, Logarithmic, QUANTILE, Quantile(50.0);
    /// The upper quartile.
    P75: "p75", "p75 us", "p75", "p75", Nanos, Lower, Logarithmic, QUANTILE, Quantile(75.0);
    /// The 90th percentile.
    P90: "p90", "p90 us", "p90", "p90", Nanos, Lower, Logarithmic, QUANTILE, Quantile(90.0);
    /// The 95th percentile.
    P95: "p95", "p95 us", "p95", "p95", Nanos, Lower, Logarithmic, QUANTILE, Quantile(95.0);
    /// The 99th percentile.
    P99: "p99", "p99 us", "p99", "p99", Nanos, Lower, Logarithmic, QUANTILE, Quantile(99.0);
    /// The 99.9th percentile.
    P999: "p99.9", "p99.9 us", "p99.9", "p99.9", Nanos, Lower, Logarithmic, QUANTILE, Quantile(99.9);
    /// The 99.99th percentile.
    P9999: "p99.99", "p99.99 us", "p99.99", "p99.99", Nanos, Lower, Logarithmic, QUANTILE, Quantile(99.99);
    /// The 99.999th percentile.
    P99999: "p99.999", "p99.999 us", "p99.999", "p99.999", Nanos, Lower, Logarithmic, QUANTILE, Quantile(99.999);
    /// The median of the service time.
    SERVICE_P50: "service-p50", "service p50", "service p50", "service_p50", Nanos, Lower, Logarithmic,
        SERVICE, OtherTimes(service_time, &P50);
    /// The 99th percentile of the service time.
    SERVICE_P99: "service-p99", "service p99", "service p99", "service_p99", Nanos, Lower, Logarithmic,
        SERVICE, OtherTimes(service_time, &P99);
    /// The 99.9th percentile of the service time.
    SERVICE_P999: "service-p99.9", "service p99.9", "service p99.9", "service_p99.9", Nanos, Lower, Logarithmic,
        SERVICE, OtherTimes(service_time, &P999);
    /// The longest time.
    MAX: "max", "max us", "max", "max", Nanos, Lower, Logarithmic,
        "Longest response time", Time(|time| time.max.map(|time| time as f64));
    /// Messages received per second, by calls that stream.
    MESSAGES_RECEIVED: "messages-received", "recv/s", "messages received", "messages_received_per_second",
        PerSecond, Higher, Logarithmic,
        "Messages received per second, by calls that stream",
        Step(|step| Some(step.messages.as_ref()?.received_per_s));
    /// Messages sent per second, by calls that stream.
    MESSAGES_SENT: "messages-sent", "sent/s", "messages sent", "messages_sent_per_second",
        PerSecond, Higher, Logarithmic,
        "Messages sent per second, by calls that stream",
        Step(|step| Some(step.messages.as_ref()?.sent_per_s));
    /// The median time to the first message of a stream.
    FIRST_MESSAGE_P50: "first-message-p50", "first p50 us", "first message p50", "first_message_p50", Nanos, Lower, Logarithmic,
        "Median time to the first message of a stream",
        OtherTimes(first_message, &P50);
    /// The 99th percentile of the time to the first message of a stream.
    FIRST_MESSAGE_P99: "first-message-p99", "first p99 us", "first message p99", "first_message_p99", Nanos, Lower, Logarithmic,
        "99th percentile of the time to the first message of a stream",
        OtherTimes(first_message, &P99);
    /// The median time from one message of a stream to the next.
    MESSAGE_GAP_P50: "message-gap-p50", "gap p50 us", "message gap p50", "message_gap_p50", Nanos, Lower, Logarithmic,
        "Median time from one message of a stream to the next",
        OtherTimes(message_gap, &P50);
    /// The 99th percentile of the time from one message of a stream to the next.
    MESSAGE_GAP_P99: "message-gap-p99", "gap p99 us", "message gap p99", "message_gap_p99", Nanos, Lower, Logarithmic,
        "99th percentile of the time from one message of a stream to the next",
        OtherTimes(message_gap, &P99);
    /// The longest time from one message of a stream to the next.
    MESSAGE_GAP_MAX: "message-gap-max", "gap max us", "message gap max", "message_gap_max", Nanos, Lower, Logarithmic,
        "Longest time from one message of a stream to the next",
        OtherTimes(message_gap, &MAX);
    /// The longest time until the server has recovered from a burst.
    RECOVERY: "recovery", "recovery us", "recovery", "recovery", Nanos, Lower, Linear,
        "Longest time from a burst's end until p99 was as before it, in whole seconds; at least, where it never was",
        Step(|step| Some(recoveries(step)?.longest() as f64 * 1e9));
    /// CPU time of the client per request.
    CLIENT_CPU: "client-cpu", "cli us", "client CPU", "client_cpu_us_per_request", CpuMicros, Lower, Logarithmic,
        "CPU time of the client for each request", Step(|step| step.cost.client_cpu_us_per_request);
    /// CPU time of the server per request.
    SERVER_CPU: "server-cpu", "srv us", "server CPU", "server_cpu_us_per_request", CpuMicros, Lower, Logarithmic,
        "CPU time of the server for each request", Step(|step| step.cost.server_cpu_us_per_request());
    /// Packets that the client sent again over TCP, or lost over QUIC.
    RETRANSMITS: "retransmits", "resent", "retransmits", "retransmits", Count, Lower, Linear,
        "Packets that the client sent again over TCP, or lost over QUIC",
        Step(|step| Some(step.path.as_ref().and_then(PathAccount::lost)?.sum as f64));
    /// The mean smoothed round-trip time of the connections, by TCP or QUIC.
    PATH_RTT: "path-rtt", "rtt us", "RTT of the path", "path_rtt", Nanos, Lower, Logarithmic,
        "Smoothed round-trip time by TCP or QUIC, mean over connections",
        Step(|step| step.path.as_ref()?.mean(PathFact::SmoothedRttNs));
    /// The share of requests without a verified reply.
    ERROR_SHARE: "errors", "failed", "failed", "error_rate", Share, Lower, Linear,
        "Share of requests without a verified reply",
        Step(|step| Some(step.summary.accounting.error_rate()));
    /// The share of the callers' time that failed requests took.
    TIME_LOST: "time-lost", "time lost", "caller time lost", "caller_time_lost", Share, Lower, Linear,
        "Share of the callers' time that failed requests took",
        Step(|step| Some(step.summary.time_lost()));
    /// The number of requests without a verified reply.
    ERRORS: "errors", "failed", "failed", "errors", Count, Lower, Linear,
        "Requests without a verified reply", Step(|step| Some(step.summary.unserved() as f64));
    /// GiB per second of a bulk stream.
    BULK_RATE: "bulk-rate", "GiB/s", "bulk rate", "gib_per_second", GibPerSecond, Higher, Logarithmic,
        "GiB per second of a bulk stream", Step(|step| Some(step.bulk.as_ref()?.gib_per_second));
    /// The time to the first byte of a bulk stream.
    BULK_FIRST_BYTE: "first-byte", "first byte us", "first byte", "first_byte", Nanos, Lower, Logarithmic,
        "Time to the first byte of a bulk stream",
        Step(|step| Some(step.bulk.as_ref()?.first_byte_seconds * 1e9));
    /// CPU time of the client per GiB.
    BULK_CLIENT_CPU: "bulk-client-cpu", "cli s/GiB", "client CPU", "client_cpu_seconds_per_gib",
        CpuPerGib, Lower, Logarithmic,
        "CPU time of the client for each GiB", Step(|step| step.bulk.as_ref()?.client_cpu_seconds_per_gib);
    /// CPU time of the server per GiB.
    BULK_SERVER_CPU: "bulk-server-cpu", "srv s/GiB", "server CPU", "server_cpu_seconds_per_gib",
        CpuPerGib, Lower, Logarithmic,
        "CPU time of the server for each GiB", Step(|step| step.bulk.as_ref()?.server_cpu_seconds_per_gib);
    /// The part of it in the kernel.
    BULK_SERVER_SYSTEM: "bulk-server-system", "in kernel", "server CPU in the kernel", "server_system_seconds_per_gib",
        CpuPerGib, Lower, Logarithmic,
        "CPU time of the server in the kernel for each GiB",
        Step(|step| step.bulk.as_ref()?.server_system_seconds_per_gib);
    /// CPU time of soft interrupts on the server's machine per GiB.
    BULK_SOFTIRQ: "bulk-softirq", "softirq s/GiB", "soft interrupts", "server_softirq_seconds_per_gib",
        CpuPerGib, Lower, Linear,
        "CPU time of soft interrupts on the server's machine for each GiB",
        Step(|step| step.bulk.as_ref()?.server_softirq_seconds_per_gib);
    /// The median response time of a small request before bulk streams.
    PROBE_IDLE_P50: "probe-idle-p50", "idle p50 us", "idle p50", "probe_idle_p50", Nanos, Lower, Logarithmic,
        "Median response time of a small request before the streams", OtherTimes(idle, &P50);
    /// The median response time of a small request beside bulk streams.
    PROBE_P50: "probe-p50", "loaded p50 us", "loaded p50", "probe_p50", Nanos, Lower, Logarithmic,
        "Median response time of a small request beside the streams", OtherTimes(loaded, &P50);
    /// By how much bulk streams raise the median response time of a small request.
    PROBE_ADDED_P50: "probe-added-p50", "added p50 us", "added p50", "probe_added_p50", Nanos, Lower, Linear,
        "Increase of the median response time of a small request beside the streams",
        Increase([idle, loaded], &P50);
    /// The 99th percentile of the response time of a small request before bulk streams.
    PROBE_IDLE_P99: "probe-idle-p99", "idle p99 us", "idle p99", "probe_idle_p99", Nanos, Lower, Logarithmic,
        "99th percentile of the response time of a small request before the streams",
        OtherTimes(idle, &P99);
    /// The 99th percentile of the response time of a small request beside bulk streams.
    PROBE_P99: "probe-p99", "loaded p99 us", "loaded p99", "probe_p99", Nanos, Lower, Logarithmic,
        "99th percentile of the response time of a small request beside the streams",
        OtherTimes(loaded, &P99);
    /// By how much bulk streams raise the 99th percentile of the response time of a small request.
    PROBE_ADDED_P99: "probe-added-p99", "added p99 us", "added p99", "probe_added_p99", Nanos, Lower, Linear,
        "Increase of the 99th percentile of the response time of a small request beside the streams",
        Increase([idle, loaded], &P99);
}

/// Some metrics, in the order of an output.
pub type List = &'static [&'static Metric];

/// Declares lists of metrics.
macro_rules! lists {
    ($($(#[$doc:meta])* $id:ident: $($metric:ident)*;)*) => {$(
        $(#[$doc])*
        pub static $id: List = &[$(&$metric),*];
    )*};
}

lists! {
    /// The description of a distribution of times: the columns of CSV.
    TIMES: MIN MEAN TRIMMED_MEAN SD IQR P1 P25 P50 P75 P90 P95 P99 P999 P9999 P99999 MAX;
    /// The costs of a request, which CSV and the push to Prometheus show beside its rate and times.
    COSTS: CLIENT_CPU SERVER_CPU;
    /// The metrics of a step that are not times.
    OTHERS: RATE MESSAGES_RECEIVED MESSAGES_SENT FIRST_MESSAGE_P50 FIRST_MESSAGE_P99 MESSAGE_GAP_P50 MESSAGE_GAP_P99
        MESSAGE_GAP_MAX RECOVERY CLIENT_CPU SERVER_CPU RETRANSMITS PATH_RTT TIME_LOST ERROR_SHARE ERRORS;
    /// The metrics of calls that stream, which outputs show where there are such.
    STREAMS: MESSAGES_RECEIVED MESSAGES_SENT FIRST_MESSAGE_P50 FIRST_MESSAGE_P99 MESSAGE_GAP_P50 MESSAGE_GAP_P99
        MESSAGE_GAP_MAX;
    /// The columns of a table in Markdown.
    MARKDOWN: RATE P50 P99 P999 MAX CLIENT_CPU SERVER_CPU;
    /// The table of steps in a page.
    PAGE: RATE P50 P99 P999 MAX TRIMMED_MEAN SD IQR CLIENT_CPU SERVER_CPU RETRANSMITS PATH_RTT;
    /// The account of connections by TCP or QUIC: columns of CSV.
    PATH: RETRANSMITS PATH_RTT;
    /// The panels of a page's chart of all trials.
    PAGE_TRIALS: RATE P50 P99 CLIENT_CPU SERVER_CPU;
    /// The panels of a page's charts against the load.
    LOAD_CHARTS: P50 P99 P999 CLIENT_CPU SERVER_CPU;
    /// The service time beside the first of them, in an open loop.
    SERVICE_CHARTS: SERVICE_P50 SERVICE_P99 SERVICE_P999;
    /// The units of a line in Go's benchmark format.
    BENCHMARK: MEAN RATE P50 P99 P999 MAX CLIENT_CPU SERVER_CPU;
    /// The metrics that trials of several targets are compared by.
    TRIALS: RATE P50 P99 SERVER_CPU;
    /// The metrics that targets which were called by turns are compared by.
    BY_TURNS: P50 P99 SERVER_CPU;
    /// The metrics of which it may be said that they are better or worse; all others are shown
    /// without a claim.
    CLAIMED: RATE P50 P99 SERVER_CPU BULK_RATE BULK_CLIENT_CPU BULK_SERVER_CPU;
    /// The metrics of a proxy's overhead.
    OVERHEAD: P50 P90 P95 P99 P999 P9999 MAX TRIMMED_MEAN SD;
    /// The metrics that steps of two runs are compared by. The longest time is not one of them: it
    /// is that of a single request.
    COMPARED: RATE MEAN P50 P99 P999 MESSAGES_RECEIVED MESSAGES_SENT FIRST_MESSAGE_P50 FIRST_MESSAGE_P99
        MESSAGE_GAP_P50 MESSAGE_GAP_P99 CLIENT_CPU SERVER_CPU ERROR_SHARE;
    /// The metrics of bulk streams.
    BULK: BULK_RATE BULK_FIRST_BYTE BULK_CLIENT_CPU BULK_SERVER_CPU BULK_SERVER_SYSTEM BULK_SOFTIRQ;
    /// The metrics of small requests beside bulk streams, which outputs show where there are such.
    PROBE: PROBE_IDLE_P50 PROBE_P50 PROBE_ADDED_P50 PROBE_IDLE_P99 PROBE_P99 PROBE_ADDED_P99;
    /// The metric that bulk streams of one run are compared by.
    BULK_TRIALS: BULK_RATE;
    /// The metric of a ladder's round trips.
    ROUND_TRIP: P50;
    /// The metric of the highest throughput.
    CAPACITY: RATE;
    /// The quantiles that are pushed to Prometheus.
    PUSHED_QUANTILES: P50 P90 P99 P999 P9999;
}
