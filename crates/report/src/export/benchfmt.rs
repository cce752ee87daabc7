//! Go's benchmark format (golang.org/design/14313-benchmark-format), for benchstat: a line for each
//! trial. Those of one measurement have the same name, and so have the same measurements of two runs,
//! wherever the servers listened.

use std::collections::BTreeMap;

use netping_measure::{bulk::BulkRun, status::Status, times::Time};
use netping_results::{
    bulk::BulkSettings,
    metric::{self, Better, Metric, Unit},
    run::{Measurement, Run, Step},
};

use super::Rendered;
use crate::distinct;

/// The unit of the time to the first byte.
const FIRST_BYTE: &str = "first-byte-ns";

/// Bytes in a MB, as Go counts them.
const MB: f64 = 1e6;

/// One file.
#[expect(clippy::unnecessary_wraps, reason = "every format has this form")]
pub(super) fn render(runs: &[Run]) -> Rendered {
    // Directions, which benchstat does not know.
    let streams = metric::of_streams(runs.iter().flat_map(|run| &run.steps));
    let metrics = metric::BENCHMARK.iter().chain(streams);
    let units = metrics.map(|metric| (unit(metric), metric.better));
    let units = units.chain([(FIRST_BYTE.to_owned(), Better::Lower)]);
    let mut lines: Vec<String> = units
        .map(|(unit, better)| match better {
            Better::Higher => format!("Unit {unit} better=higher"),
            Better::Lower => format!("Unit {unit} better=lower"),
        })
        .collect();
    for run in runs {
        // Not more: benchstat compares only what has the same configuration.
        let cpu = run.environment.cpu_model.replace(char::is_control, " ");
        lines.extend(["goos: linux", "pkg: netping"].map(str::to_owned));
        lines.push(format!("cpu: {cpu}"));
        let names = names(run);
        // An interrupted step is no trial like the others, and the format has no way to say so.
        let steps = run.steps.iter();
        let whole = steps.filter(|step| step.status == Status::Complete);
        lines.extend(whole.filter_map(|step| {
            let name = names.get(&step.measurement)?;
            match &step.settings.bulk {
                Some(settings) => Some(bulk_line(settings, step.bulk.as_ref()?, name, run)),
                None => step_line(step, name, run),
            }
        }));
    }
    lines.push(String::new());
    Ok(lines.join("\n").into_bytes())
}

/// Returns a step's line; `None` where it has no time to show.
fn step_line(step: &Step, name: &str, run: &Run) -> Option<String> {
    let (settings, times) = (&step.settings, &step.summary.times[Time::Response]);
    times.mean?;
    let parts = [
        ("client", Some(word(&settings.client))),
        ("arrivals", Some(word(&settings.arrivals))),
        ("assign", settings.is_fixed().then(|| "fixed".to_owned())),
        ("callers", Some(settings.callers.to_string())),
        ("conns", Some(settings.connections.to_string())),
        ("payload", Some(settings.payload_bytes.to_string())),
        ("message", settings.message.as_deref().map(word)),
        (
            "response",
            settings.response_bytes.map(|own| own.to_string()),
        ),
        ("rate", settings.planned_rate.map(|own| own.to_string())),
        (
            "per-conn",
            settings.requests_per_connection.map(|own| own.to_string()),
        ),
    ];
    let mut line = format!("BenchmarkNetping/target={name}");
    for (part, value) in parts {
        line.extend(value.map(|value| format!("/{part}={value}")));
    }
    let metrics = metric::BENCHMARK.iter().chain(metric::of_streams([step]));
    let values = metrics.map(|metric| {
        // A lower bound would be compared as if it were the value.
        let value = metric.of_step(step).filter(|_| !metric.is_bound_of(step));
        let value = value.map(|value| match metric.unit {
            Unit::CpuMicros => value * 1e3,
            _ => value,
        });
        (value, unit(metric))
    });
    Some(measured(&line, run, times.count, values))
}

/// Returns the unit that a metric's values have in this format. The mean is the time of an
/// operation, by which Go's benchmarks are compared.
fn unit(metric: &Metric) -> String {
    match metric.unit {
        _ if *metric == metric::MEAN => "ns/op".to_owned(),
        Unit::Nanos => format!("{}-ns", metric.name),
        Unit::CpuMicros => format!("{}-ns/op", metric.name),
        _ => metric.title.to_owned(),
    }
}

/// Returns the line of a bulk stream.
fn bulk_line(settings: &BulkSettings, stream: &BulkRun, name: &str, run: &Run) -> String {
    let direction = settings.direction.name();
    let line = format!(
        "BenchmarkNetpingBulk/target={name}/direction={direction}/size={}/chunk={}/streams={}",
        settings.size_bytes, settings.chunk_bytes, settings.streams
    );
    let rate = stream.bytes as f64 / MB / stream.seconds;
    let values = [
        (Some(stream.seconds * 1e9), "ns/op"),
        (Some(rate).filter(|_| stream.seconds > 0.0), "MB/s"),
        (Some(stream.first_byte_seconds * 1e9), FIRST_BYTE),
    ];
    let values = values.map(|(value, unit)| (value, unit.to_owned()));
    measured(&line, run, 1, values.into_iter())
}

fn measured(
    name: &str,
    run: &Run,
    iterations: u64,
    values: impl Iterator<Item = (Option<f64>, String)>,
) -> String {
    let mut line = format!("{name}-{} {iterations}", run.environment.cpus);
    for (value, unit) in values {
        line.extend(value.map(|value| format!(" {value:.2} {unit}")));
    }
    line
}

/// Names each measurement after its label or its target's scheme. Where several targets have the same
/// word, the second that was given is `tcp.2`, and so on.
fn names(run: &Run) -> BTreeMap<usize, String> {
    let measurements = run.measurements();
    let targets = distinct(measurements.iter().map(|own| {
        let scheme = own.name().split("://").next().unwrap_or_default();
        let label = own.first().label.as_deref();
        (own.name(), word(label.unwrap_or(scheme)))
    }));
    let name = |own: &Measurement<'_>| {
        let at = targets.iter().position(|(name, _)| *name == own.name())?;
        let (before, word) = (&targets[..at], &targets[at].1);
        let count = before.iter().filter(|(_, other)| other == word).count();
        Some(match count {
            0 => (own.number, word.clone()),
            _ => (own.number, format!("{word}.{}", count + 1)),
        })
    };
    measurements.iter().filter_map(name).collect()
}

/// A part of a name: nothing in it that has a meaning there, such as white space, `/` and `=`.
fn word(text: &str) -> String {
    let is_kept = |own: char| own.is_alphanumeric() || matches!(own, '.' | '+' | '_');
    let parts = text.split(|own| !is_kept(own));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

#[cfg(test)]
mod tests {
    use super::{super::fixture, *};

    fn of(run: Run) -> Vec<String> {
        let files = render(&[run]).unwrap();
        String::from_utf8(files)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The benchmark lines: name, iterations, and values by unit.
    fn results(lines: &[String]) -> Vec<(String, u64, BTreeMap<String, f64>)> {
        let lines = lines.iter().filter(|line| line.starts_with("Benchmark"));
        let parsed = lines.map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let values = fields[2..]
                .chunks(2)
                .map(|pair| (pair[1].to_owned(), pair[0].parse().unwrap()));
            (
                fields[0].to_owned(),
                fields[1].parse().unwrap(),
                values.collect(),
            )
        });
        parsed.collect()
    }

    #[test]
    fn a_step_is_a_line_with_its_values() {
        let times: Vec<u64> = (1..=1000).map(|number| number * 1000).collect();
        let lines = of(fixture::run(vec![fixture::step(
            "tcp+tls://h:1",
            64,
            &times,
        )]));
        assert!(
            lines.contains(&"Unit req/s better=higher".to_owned())
                && lines.contains(&"cpu: a processor".to_owned())
        );
        let results = results(&lines);
        let [(name, iterations, values)] = &results[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(
            name,
            "BenchmarkNetping/target=tcp+tls/client=line/arrivals=closed/callers=64/conns=64/payload=4-8"
        );
        assert_eq!(*iterations, 1000);
        assert!(
            (values["ns/op"] - 500_500.0).abs() < 500.0 && (values["req/s"] - 1000.0).abs() < 0.01
        );
        assert!(
            (values["p99-ns"] - 990_000.0).abs() < 990.0
                && (values["client-cpu-ns/op"] - 7250.0).abs() < 0.01
        );
        assert!(!values.contains_key("p99.9-ns") && !values.contains_key("server-cpu-ns/op"));
    }

    #[test]
    fn trials_have_one_name_and_targets_have_their_own() {
        let mut steps = Vec::new();
        for trial in [1, 2] {
            for target in ["tcp://h:1", "tcp://h:2", "grpc://h:3"] {
                steps.push(Step {
                    trial,
                    ..fixture::step(target, 1, &[1000])
                });
            }
        }
        let targets = |run: Run| -> Vec<String> {
            let names = results(&of(run)).into_iter().map(|(name, ..)| name);
            names
                .map(|name| name.split('/').nth(1).unwrap().to_owned())
                .collect()
        };
        let mut run = fixture::run(steps);
        let expected = ["target=tcp", "target=tcp.2", "target=grpc"].repeat(2);
        assert_eq!(targets(run.clone()), expected);
        // The order in which they were measured does not count.
        run.steps.swap(0, 1);
        assert_eq!(targets(run)[..2], ["target=tcp.2", "target=tcp"]);
    }

    #[test]
    fn a_label_is_a_word_in_the_name() {
        let mut step = fixture::step("tcp://h:1", 1, &[1000]);
        step.label = Some(fixture::HOSTILE.to_owned());
        step.settings.planned_rate = Some(2500.0);
        let (name, ..) = results(&of(fixture::run(vec![step]))).remove(0);
        assert!(
            name.starts_with("BenchmarkNetping/target=a_b_c_d_e_f_g_h/client="),
            "{name}"
        );
        assert!(name.ends_with("/payload=4/rate=2500-8"), "{name}");
    }

    #[test]
    fn a_step_without_replies_has_no_line() {
        assert!(results(&of(fixture::run(vec![fixture::step("tcp://h:1", 1, &[])]))).is_empty());
    }

    #[test]
    fn each_run_of_a_bulk_stream_is_a_line() {
        let steps = netping_results::fixtures::bulk("grpc://h:1", &[0.5, 0.25]);
        let results = results(&of(fixture::run(steps)));
        assert_eq!(results.len(), 2);
        assert!(
            results[0]
                .0
                .starts_with("BenchmarkNetpingBulk/target=grpc/direction=down/"),
            "{}",
            results[0].0
        );
        assert_eq!(results[0].0, results[1].0);
        assert!(
            (results[0].2["MB/s"] - 2147.48).abs() < 0.01,
            "{:?}",
            results[0]
        );
    }
}
