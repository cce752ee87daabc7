//! Comma-separated values, quoted as in RFC 4180: a row for each step, with all of its settings and
//! numbers, and one for each measurement with several trials, with its estimates. Names of columns
//! say units; a missing number is an empty cell.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use netping_measure::{
    cost::Cost, distribution::Distribution, status::Status, summary::Summary, times::Time,
};
use netping_results::{
    connect::ChannelSecurity,
    estimate::estimate,
    format::on_one_line,
    metric::{self, Metric, Unit},
    run::{Measurement, Run, Step},
    warning::Warning,
};
use serde::Serialize;
use serde_json::Value;

use super::{Rendered, failed};
use crate::fields::fields;

/// The trial of a row with the estimates over all trials.
const ALL: &str = "all";

/// One file.
pub(super) fn render(runs: &[Run]) -> Rendered {
    let mut rows = Vec::new();
    for run in runs {
        let steps = (1..).zip(&run.steps);
        rows.extend(steps.map(|(number, step)| step_row(run, number, step)));
        let measurements = run.measurements();
        let several = measurements.iter().filter(|own| own.trials.len() > 1);
        rows.extend(several.map(estimates_row));
    }
    write(&rows)
}

/// Writes a table with every column that some row has.
fn write(rows: &[CsvRow]) -> Rendered {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut seen = BTreeSet::new();
    let titles = rows.iter().flat_map(|row| &row.0).map(|(title, _)| title);
    let titles: Vec<&String> = titles.filter(|title| seen.insert(*title)).collect();
    if !titles.is_empty() {
        writer.write_record(&titles).map_err(failed)?;
    }
    for CsvRow(cells) in rows {
        let cells: BTreeMap<_, _> = cells.iter().map(|(title, cell)| (title, &**cell)).collect();
        let record = titles
            .iter()
            .map(|title| safe(cells.get(title).unwrap_or(&"")));
        writer.write_record(record).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// Returns a cell that is what it looks like: on one line and, where it is text, no formula of a spreadsheet.
fn safe(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
    on_one_line(&if is_formula {
        format!("'{cell}")
    } else {
        cell.to_owned()
    })
}

/// Titles and cells.
#[derive(Default)]
struct CsvRow(Vec<(String, String)>);

impl CsvRow {
    fn put(&mut self, title: impl Into<String>, cell: impl Display) {
        self.0.push((title.into(), cell.to_string()));
    }

    /// Puts an empty cell where there is no value.
    fn maybe(&mut self, title: impl Into<String>, cell: Option<impl Display>) {
        let cell = cell.map_or_else(String::new, |cell| cell.to_string());
        self.put(title, cell);
    }

    /// The columns that every row begins with: the run, and what was measured.
    fn begin(run: &Run, step: &Step, status: Status) -> Self {
        let mut row = Self::default();
        row.put("started_at", &run.started_at);
        row.put("version", &run.tool.version);
        row.maybe("commit", run.tool.commit.as_ref());
        let environment = &run.environment;
        row.put("client_host", &environment.host);
        row.put("client_kernel", &environment.kernel);
        row.put("client_cpu_model", &environment.cpu_model);
        row.put("client_cpus", environment.cpus);
        row.put("target", &step.target);
        row.maybe("label", step.label.as_ref());
        row.put("measurement", step.measurement);
        row.put("status", status.name());
        match &step.settings.bulk {
            Some(bulk) => row.settings(bulk),
            None => row.settings(&step.settings),
        }
        row
    }

    /// The security of a step's connections, and its warnings.
    fn end(mut self, of: Option<&ChannelSecurity>, warnings: &[Warning]) -> Self {
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

    fn settings(&mut self, settings: &impl Serialize) {
        for (name, value) in fields(settings) {
            // The file has it shorter.
            let title = name.replace("planned_rate_per_s", "planned_rate_per_second");
            match value {
                Value::Null => self.put(title, ""),
                Value::String(text) => self.put(title, text),
                Value::Array(all) => {
                    let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                    self.put(title, texts.join(" "));
                }
                other => self.put(title, other.to_string().trim_end_matches(".0")),
            }
        }
    }

    /// The metrics of a step, or of the measurement that it is a trial of: `of` returns values with
    /// their 95 % intervals.
    fn metrics(&mut self, step: &Step, of: impl Fn(&Metric) -> Measured) {
        let mut metrics = [metric::BULK, metric::of_probes([step])].concat();
        if step.settings.bulk.is_none() {
            metrics = [&[&metric::RATE], metric::TIMES, metric::COSTS, metric::PATH].concat();
            metrics.extend(metric::of_streams([step]));
            metrics.extend(step.settings.bursts.map(|_| &metric::RECOVERY));
        }
        for metric in metrics {
            let measured = of(metric);
            self.maybe(column(metric, ""), measured.map(|(value, _)| value));
            if metric.is_claimed() {
                let ends = measured.and_then(|(_, interval)| interval);
                self.maybe(column(metric, "_low"), ends.map(|[low, _]| low));
                self.maybe(column(metric, "_high"), ends.map(|[_, high]| high));
            }
        }
    }

    fn summary(&mut self, summary: &Summary) {
        let accounting = &summary.accounting;
        let kinds = accounting
            .errors
            .iter()
            .map(|(kind, count)| format!("{kind}={count}"));
        self.put("window_seconds", summary.seconds);
        self.put("scheduled", summary.scheduled);
        self.put("ok", accounting.ok);
        self.put("errors", accounting.failed());
        self.put("errors_by_kind", kinds.collect::<Vec<_>>().join(" "));
        self.put("in_flight", accounting.in_flight);
        self.put("not_sent", accounting.not_sent);
        self.put("late", accounting.late);
        self.put("early", accounting.early);
        self.put("outside_ok", accounting.outside_ok);
        self.put("outside_errors", accounting.outside_errors);
        let response = &summary.times[Time::Response];
        self.put("response_time_count", response.count);
        self.at_least("response_time", |metric| metric.is_bound(response));
        for time in [Time::Service, Time::Lag, Time::Failed] {
            self.times(time.name(), &summary.times[time]);
        }
    }

    /// Names those of the times that are lower bounds.
    fn at_least(&mut self, name: &str, is_bound: impl Fn(&Metric) -> bool) {
        let bounds = metric::TIMES.iter().filter(|own| is_bound(own));
        let bounds: Vec<&str> = bounds.map(|own| own.key).collect();
        self.put(format!("{name}_at_least"), bounds.join(" "));
    }

    fn times(&mut self, name: &str, times: &Distribution) {
        self.put(format!("{name}_count"), times.count);
        self.at_least(name, |metric| metric.is_bound(times));
        for metric in metric::TIMES {
            let title = format!("{name}_{}_ns", metric.key);
            self.maybe(title, metric.of_times(times));
        }
    }

    fn cost(&mut self, cost: &Cost) {
        let of = cost.server.as_ref();
        self.maybe("client_cpu_seconds", cost.worker_cpu_seconds());
        self.maybe("server_cpu_seconds", of.map(|of| of.cpu_seconds));
        let switches = of.and_then(|of| of.context_switches_per_request);
        self.maybe("server_context_switches_per_request", switches);
        let resident = of.and_then(|of| of.resident_bytes);
        self.maybe("server_resident_bytes", resident);
    }
}

/// A value with its 95 % interval.
type Measured = Option<(f64, Option<[f64; 2]>)>;

/// Returns the column of a metric, or, with `_low` or `_high`, of an end of its interval.
fn column(metric: &Metric, end: &str) -> String {
    let times = if metric.is_of_response_time() {
        "response_time_"
    } else {
        ""
    };
    let unit = match metric.unit {
        Unit::Nanos => "_ns",
        _ => "",
    };
    format!("{times}{}{end}{unit}", metric.key)
}

fn step_row(run: &Run, number: usize, step: &Step) -> CsvRow {
    let mut row = CsvRow::begin(run, step, step.status);
    row.put("step", number);
    row.put("trial", step.trial);
    row.metrics(step, |metric| {
        Some((metric.of_step(step)?, metric.interval(step)))
    });
    if step.settings.bulk.is_some() {
        row.put("errors", step.summary.accounting.failed());
    } else {
        if step.settings.bursts.is_some() {
            row.put("recovery_is_at_least", metric::RECOVERY.is_bound_of(step));
        }
        row.summary(&step.summary);
        row.cost(&step.cost);
        row.put("reconnects", step.summary.accounting.reconnects);
        let of = step.fairness.as_ref();
        row.maybe("requests_per_connection_min", of.map(|of| of.min));
        row.maybe("requests_per_connection_median", of.map(|of| of.median));
        row.maybe("requests_per_connection_max", of.map(|of| of.max));
        row.maybe("jain_index", of.map(|of| of.jain));
        for (phase, times) in &step.connect {
            let phase = serde_json::to_value(phase).unwrap_or_default();
            let name = format!("connect_{}", phase.as_str().unwrap_or_default());
            row.times(&name, &times.time);
        }
    }
    row.end(step.security.as_ref(), &step.warnings)
}

fn estimates_row(own: &Measurement<'_>) -> CsvRow {
    let status = own.trials.iter().map(|step| step.status);
    let mut row = CsvRow::begin(own.run, own.first(), Status::of_all(status));
    row.put("trial", ALL);
    row.metrics(own.first(), |metric| {
        let estimate = estimate(metric, own)?;
        Some((estimate.value, estimate.interval))
    });
    row.at_least("response_time", |metric| {
        estimate(metric, own).is_some_and(|own| own.is_bound)
    });
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netping_measure::connect::{ConnectPhase, PhaseTimes};
    use netping_results::{burst::BurstSettings, fixtures, run::PartSettings};

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
        assert_eq!(cell("label"), on_one_line(fixture::HOSTILE));
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
    fn text_is_no_formula_and_hides_nothing() {
        assert_eq!(
            safe("=HYPERLINK(\"http://h\")"),
            "'=HYPERLINK(\"http://h\")"
        );
        assert_eq!(safe("@SUM(1)"), "'@SUM(1)");
        assert_eq!(safe("+1+cmd"), "'+1+cmd");
        assert_eq!(safe("-1.5e3"), "-1.5e3");
        assert_eq!(
            safe("a\n\u{1b}[2J\u{202e}b"),
            "a\u{fffd}\u{fffd}[2J\u{fffd}b"
        );
        assert_eq!(safe("tcp://h:1"), "tcp://h:1");
    }

    #[test]
    fn bursts_and_parts_do_not_stand_for_the_steps_own_load() {
        let mut step = fixtures::step(20, |second| {
            let time = if second < 10 { 1_000_000 } else { 50_000_000 };
            vec![time; 1000]
        });
        step.settings.callers = 4;
        step.settings.bursts = Some(BurstSettings {
            base_rate: 1000.0,
            rate: 5000.0,
            length: 2,
            every: 20,
        });
        step.settings.part = Some(PartSettings {
            number: 1,
            of: 2,
            callers: 8,
            connections: 8,
            planned_rate: None,
        });
        let rows = read(&render(&[fixture::run(vec![step])]).unwrap());
        let cell = |name: &str| rows[0][name].as_str();
        assert_eq!((cell("callers"), cell("part_callers")), ("4", "8"));
        assert_eq!(cell("bursts_base_rate_per_s"), "1000");
        assert_eq!(
            (cell("recovery_ns"), cell("recovery_is_at_least")),
            ("8000000000", "true")
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
    fn trials_have_a_row_with_their_estimates() {
        let step = |times: &[u64]| fixture::step("tcp://h:1", 1, times);
        let run = fixture::run(vec![step(&[1000; 100]), step(&[4000; 400])]);
        let rows = read(&render(&[run]).unwrap());
        let cells =
            |name: &str| -> Vec<&str> { rows.iter().map(|row| row[name].as_str()).collect() };
        assert_eq!(cells("trial"), ["1", "2", "all"]);
        assert_eq!(cells("measurement"), ["0", "0", "0"]);
        assert_eq!(cells("step"), ["1", "2", ""]);
        let rates: Vec<f64> = cells("rate_per_second")
            .iter()
            .map(|cell| cell.parse().unwrap())
            .collect();
        assert!((rates[2] - 200.0).abs() < 1e-9, "{rates:?}");
        let p50: f64 = cells("response_time_p50_ns")[2].parse().unwrap();
        let low: f64 = cells("response_time_p50_low_ns")[2].parse().unwrap();
        assert!((p50 - 2000.0).abs() < 5.0 && low < p50);
        assert_eq!(cells("ok"), ["100", "400", ""]);
    }

    #[test]
    fn bulk_streams_and_requests_have_their_columns_in_one_table() {
        let bulk = fixture::run(netping_results::fixtures::bulk("grpc://h:1", &[0.5, 0.25]));
        let requests = fixture::run(vec![fixture::step("tcp://h:1", 1, &[5])]);
        let rows = read(&render(&[bulk, requests]).unwrap());
        let cell = |row: usize, name: &str| rows[row][name].as_str();
        assert_eq!(rows.len(), 4);
        assert_eq!(
            (
                cell(0, "direction"),
                cell(0, "gib_per_second"),
                cell(0, "errors")
            ),
            ("down", "2", "0")
        );
        assert_eq!(
            (cell(2, "trial"), &cell(2, "gib_per_second")[..4]),
            ("all", "2.82")
        );
        assert_eq!(cell(0, "server_cpu_seconds_per_gib"), "");
        assert_eq!(
            (cell(0, "callers"), cell(3, "callers"), cell(3, "direction")),
            ("", "1", "")
        );
    }
}
