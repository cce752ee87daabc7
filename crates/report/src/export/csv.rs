//! Comma-separated values, quoted as in RFC 4180: a row for each step, with all of its settings and
//! numbers. Names of columns end in units; a missing number is an empty cell.

use std::{collections::BTreeSet, fmt::Display};

use netping_measure::{
    connect::ConnectPhase, cost::Cost, distribution::Distribution, status::Status, summary::Summary,
};
use netping_results::{
    bulk::BulkStep,
    connect::ChannelSecurity,
    metric::{self, Unit},
    run::{Run, Step, StepSettings},
    warning::Warning,
};

use super::{ExportError, Rendered};

/// One file. Results of bulk streams have columns of their own, and no file has both kinds.
pub(super) fn render(runs: &[Run]) -> Rendered {
    let bulk = runs.iter().any(|run| !run.bulk.is_empty());
    let steps = runs.iter().any(|run| !run.steps.is_empty());
    if bulk && steps {
        return Err(ExportError::Mixed);
    }
    // All rows have the same columns, or it would be no table.
    let phases: BTreeSet<ConnectPhase> = runs
        .iter()
        .flat_map(|run| &run.steps)
        .flat_map(|step| step.connect.keys().copied())
        .collect();
    let streams = metric::of_streams(runs.iter().flat_map(|run| &run.steps));
    let mut rows = Vec::new();
    for run in runs {
        let steps = (1..).zip(&run.steps);
        rows.extend(steps.map(|(number, step)| step_row(run, number, step, &phases, streams)));
        let bulk = (1..).zip(&run.bulk);
        rows.extend(bulk.map(|(number, step)| bulk_row(run, number, step)));
    }
    write(&rows)
}

fn write(rows: &[Row]) -> Result<Vec<u8>, ExportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    if let Some(first) = rows.first() {
        let titles = first.0.iter().map(|(title, _)| title);
        writer.write_record(titles).map_err(failed)?;
    }
    for row in rows {
        let cells = row.0.iter().map(|(_, cell)| cell);
        writer.write_record(cells).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

fn failed(error: impl Display) -> ExportError {
    ExportError::Writer {
        format: "csv",
        reason: error.to_string(),
    }
}

/// Titles and cells.
#[derive(Default)]
struct Row(Vec<(String, String)>);

impl Row {
    fn put(&mut self, title: impl Into<String>, cell: impl Display) {
        self.0.push((title.into(), cell.to_string()));
    }

    /// Puts an empty cell where there is no value.
    fn maybe(&mut self, title: impl Into<String>, cell: Option<impl Display>) {
        let cell = cell.map_or_else(String::new, |cell| cell.to_string());
        self.put(title, cell);
    }

    /// The columns that every kind of result begins with.
    fn begin(run: &Run, number: usize, target: &str, status: Status) -> Self {
        let mut row = Self::default();
        row.put("started_at", &run.started_at);
        row.put("version", &run.tool.version);
        row.maybe("commit", run.tool.commit.as_ref());
        let environment = &run.environment;
        row.put("client_host", &environment.host);
        row.put("client_kernel", &environment.kernel);
        row.put("client_cpu_model", &environment.cpu_model);
        row.put("client_cpus", environment.cpus);
        row.put("step", number);
        row.put("target", target);
        row.put("status", status.name());
        row
    }

    /// The columns that every kind of result ends with.
    fn end(mut self, security: Option<&ChannelSecurity>, warnings: &[Warning]) -> Self {
        let of = security;
        self.maybe("security_protocol", of.map(|of| &of.protocol));
        self.maybe("cipher_suite", of.map(|of| &of.cipher_suite));
        self.maybe("key_exchange", of.map(|of| &of.key_exchange));
        self.maybe("session_resumed", of.and_then(|of| of.resumed));
        self.maybe("server_verified", of.map(|of| of.server_verified));
        self.maybe("client_certificate", of.map(|of| of.client_certificate));
        let names: Vec<_> = warnings.iter().map(Warning::name).collect();
        self.put("warnings", names.join(" "));
        self
    }

    fn settings(&mut self, settings: &StepSettings) {
        self.put("arrivals", &settings.arrivals);
        self.maybe("planned_rate_per_second", settings.planned_rate);
        self.maybe("seed", settings.seed);
        self.put("callers", settings.callers);
        self.put("connections", settings.connections);
        self.put("workers", settings.workers);
        self.put("pinned", settings.pinned);
        self.put("busy_poll", settings.busy_poll);
        self.put("client", &settings.client);
        self.put("payload_bytes", settings.payload_bytes);
        self.maybe("response_bytes", settings.response_bytes);
        self.maybe("message", settings.message.as_ref());
        self.maybe("unix_socket", settings.unix_socket.as_ref());
        self.maybe("http_method", settings.http_method.as_ref());
        self.maybe("data_hash", settings.data_hash.as_ref());
        self.maybe("bodies", settings.bodies);
        self.maybe("body_order", settings.body_order.as_ref());
        self.put("headers", settings.headers.join(" "));
        self.maybe("deadline_seconds", settings.deadline_seconds);
        self.put("warmup_seconds", settings.warmup_seconds);
        self.maybe("duration_seconds", settings.duration_seconds);
        self.maybe("requests", settings.requests);
        self.put("timeout_seconds", settings.timeout_seconds);
        self.maybe("requests_per_connection", settings.requests_per_connection);
    }

    fn summary(&mut self, summary: &Summary) {
        let (accounting, precision) = (&summary.accounting, &summary.precision);
        let kinds = accounting
            .errors
            .iter()
            .map(|(kind, count)| format!("{kind}={count}"));
        self.put(metric::RATE.key, summary.rate);
        self.maybe("rate_half_width_per_second", precision.rate_half_width);
        self.put("window_seconds", summary.seconds);
        self.put("scheduled", summary.scheduled);
        self.put("ok", accounting.ok);
        self.put("errors", accounting.failed());
        self.put("errors_by_kind", kinds.collect::<Vec<_>>().join(" "));
        self.put("in_flight", accounting.in_flight);
        self.put("not_sent", accounting.not_sent);
        self.put("late", summary.late);
        self.put("early", summary.early);
        self.put("outside_ok", summary.outside_ok);
        self.put("outside_errors", summary.outside_errors);
        self.interval("response_time_p50", summary.response_time.p50_interval);
        self.interval("response_time_p99", summary.response_time.p99_interval);
        self.times("service_time", Some(&summary.service_time));
        self.times("response_time", Some(&summary.response_time));
        self.times("lag", Some(&summary.lag));
        self.times("failed_time", Some(&summary.failed_time));
    }

    /// The ends of a 95 % confidence interval.
    fn interval(&mut self, name: &str, interval: Option<[u64; 2]>) {
        self.maybe(format!("{name}_low_ns"), interval.map(|[low, _]| low));
        self.maybe(format!("{name}_high_ns"), interval.map(|[_, high]| high));
    }

    fn times(&mut self, name: &str, times: Option<&Distribution>) {
        self.maybe(format!("{name}_count"), times.map(|times| times.count));
        for metric in metric::TIMES {
            self.maybe(
                format!("{name}_{}_ns", metric.key),
                times.and_then(|times| metric.of_times(times)),
            );
        }
    }

    fn cost(&mut self, cost: &Cost) {
        let of = cost.server.as_ref();
        let client_cpu: f64 = cost.client_worker_cpu_seconds.iter().sum();
        self.put("client_cpu_seconds", client_cpu);
        self.maybe(metric::CLIENT_CPU.key, cost.client_cpu_us_per_request);
        self.maybe("server_cpu_seconds", of.map(|of| of.cpu_seconds));
        self.maybe(metric::SERVER_CPU.key, cost.server_cpu_us_per_request());
        let switches = of.and_then(|of| of.context_switches_per_request);
        self.maybe("server_context_switches_per_request", switches);
        let resident = of.and_then(|of| of.resident_bytes);
        self.maybe("server_resident_bytes", resident);
    }
}

fn step_row(
    run: &Run,
    number: usize,
    step: &Step,
    phases: &BTreeSet<ConnectPhase>,
    streams: metric::List,
) -> Row {
    let mut row = Row::begin(run, number, &step.target, step.status);
    row.maybe("label", step.label.as_ref());
    row.put("trial", step.trial);
    row.settings(&step.settings);
    row.summary(&step.summary);
    row.cost(&step.cost);
    row.put("reconnects", step.reconnects);
    let of = step.fairness.as_ref();
    row.maybe("requests_per_connection_min", of.map(|of| of.min));
    row.maybe("requests_per_connection_median", of.map(|of| of.median));
    row.maybe("requests_per_connection_max", of.map(|of| of.max));
    row.maybe("jain_index", of.map(|of| of.jain));
    for &phase in phases {
        let times = step.connect.get(&phase).map(|phase| &phase.time);
        row.times(column(phase), times);
    }
    for metric in streams {
        let unit = if metric.unit == Unit::Nanos {
            "_ns"
        } else {
            ""
        };
        row.maybe(format!("{}{unit}", metric.key), metric.of_step(step));
    }
    row.end(step.security.as_ref(), &step.warnings)
}

/// Returns the prefix of a phase's columns.
fn column(phase: ConnectPhase) -> &'static str {
    match phase {
        ConnectPhase::Resolve => "connect_resolve",
        ConnectPhase::Tcp => "connect_tcp",
        ConnectPhase::Handshake => "connect_handshake",
        ConnectPhase::Http2 => "connect_http2",
        ConnectPhase::FirstCall => "connect_first_call",
        ConnectPhase::Total => "connect_total",
    }
}

fn bulk_row(run: &Run, number: usize, step: &BulkStep) -> Row {
    let mut row = Row::begin(run, number, &step.target, step.status);
    let (settings, of) = (&step.settings, step.summary.as_ref());
    row.put("direction", settings.direction.name());
    row.put("size_bytes", settings.size_bytes);
    row.put("chunk_bytes", settings.chunk_bytes);
    row.put("streams", settings.streams);
    row.maybe("window_bytes", settings.window_bytes);
    row.maybe("frame_bytes", settings.frame_bytes);
    row.put("verify", settings.verify);
    row.put("runs", step.runs.len());
    row.put("errors", step.errors.values().sum::<u64>());
    let rate = of.map(|of| of.gib_per_second);
    row.maybe("gib_per_second", rate.map(|rate| rate.mean));
    let half_width = rate.and_then(|rate| rate.half_width);
    row.maybe("gib_per_second_half_width", half_width);
    row.maybe("gib_per_second_sd", of.and_then(|of| of.sd));
    row.maybe("first_byte_seconds", of.map(|of| of.first_byte_seconds));
    let client = of.and_then(|of| of.client_cpu_seconds_per_gib);
    row.maybe("client_cpu_seconds_per_gib", client);
    let server = of.and_then(|of| of.server_cpu_seconds_per_gib);
    row.maybe("server_cpu_seconds_per_gib", server);
    row.end(step.security.as_ref(), &step.warnings)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netping_measure::connect::PhaseTimes;

    use super::{super::fixture, *};

    /// Each row by its columns' names.
    fn read(content: &[u8]) -> Vec<BTreeMap<String, String>> {
        let mut reader = ::csv::Reader::from_reader(content);
        reader.deserialize().map(Result::unwrap).collect()
    }

    #[test]
    fn a_row_has_the_steps_settings_and_numbers() {
        let times: Vec<u64> = (1..=1000).collect();
        let mut step = fixture::step("tcp://h:1", 64, &times);
        step.label = Some(fixture::HOSTILE.to_owned());
        let run = fixture::run(vec![step, fixture::step("tcp://h:1", 128, &[7])]);
        let rows = read(&render(std::slice::from_ref(&run)).unwrap());
        assert_eq!(rows.len(), 2);
        let cell = |name: &str| rows[0][name].as_str();
        assert_eq!(cell("label"), fixture::HOSTILE);
        assert_eq!(
            (cell("callers"), cell("rate_per_second"), cell("ok")),
            ("64", "1000", "1000")
        );
        assert_eq!(cell("response_time_p99_ns"), "990");
        assert_eq!(cell("client_cpu_us_per_request"), "7.25");
        // A thousand samples do not tell it; one does not tell the median.
        assert_eq!(cell("response_time_p99.9_ns"), "");
        assert_eq!(rows[1]["service_time_p50_ns"], "");
        assert_eq!(
            (
                rows[1]["step"].as_str(),
                rows[1]["service_time_max_ns"].as_str()
            ),
            ("2", "7")
        );
    }

    #[test]
    fn no_setting_is_left_out() {
        let step = fixture::step("tcp://h:1", 1, &[5]);
        let settings = serde_json::to_value(&step.settings).unwrap();
        let rows = read(&render(&[fixture::run(vec![step])]).unwrap());
        for name in settings.as_object().unwrap().keys() {
            assert!(
                rows[0]
                    .keys()
                    .any(|column| column.starts_with(name.as_str())),
                "{name}"
            );
        }
    }

    #[test]
    fn parts_of_connecting_have_columns_where_there_are_any() {
        let mut times = PhaseTimes::default();
        times.record(ConnectPhase::Http2, 1500);
        let mut step = fixture::step("grpc://h:1", 1, &[5]);
        step.connect = netping_results::connect::phases(&times);
        let rows = read(
            &render(&[fixture::run(vec![
                step,
                fixture::step("tcp://h:1", 1, &[5]),
            ])])
            .unwrap(),
        );
        let shown: Vec<_> = rows
            .iter()
            .map(|row| row["connect_http2_count"].as_str())
            .collect();
        assert_eq!(shown, ["1", ""]);
        assert!(!rows[0].contains_key("connect_handshake_count"));
    }

    #[test]
    fn bulk_streams_have_columns_of_their_own() {
        let mut run = fixture::run(Vec::new());
        run.bulk.push(netping_results::fixtures::bulk());
        let rows = read(&render(std::slice::from_ref(&run)).unwrap());
        let cell = |name: &str| rows[0][name].as_str();
        assert_eq!(
            (cell("direction"), cell("gib_per_second"), cell("runs")),
            ("down", "3", "2")
        );
        assert_eq!(cell("server_cpu_seconds_per_gib"), "");
        let requests = fixture::run(vec![fixture::step("tcp://h:1", 1, &[5])]);
        assert!(matches!(render(&[run, requests]), Err(ExportError::Mixed)));
    }
}
