//! Go's benchmark format (golang.org/design/14313-benchmark-format), for benchstat: a line for each
//! trial. Those of one measurement have the same name, and so have the same measurements of two runs,
//! wherever the servers listened.

use std::collections::BTreeMap;

use netping_measure::{bulk::BulkRun, status::Status};
use netping_results::{
    bulk::BulkSettings,
    metric::{self, Better, Metric, Unit},
    run::{Run, Step},
};

use super::{Rendered, text};

/// The unit of the time to the first byte.
const FIRST_BYTE: &str = "first-byte-ns";

/// Bytes in a MB, as Go counts them.
const MB: f64 = 1e6;

/// One file.
#[expect(clippy::unnecessary_wraps, reason = "every format has this form")]
pub(super) fn render(runs: &[Run]) -> Rendered {
    // Directions, which benchstat does not know.
    let streams = metric::of_streams(runs.iter().flat_map(|run| &run.steps));
    let mut lines: Vec<String> = metric::BENCHMARK
        .iter()
        .chain(streams)
        .map(|metric| (unit(metric), metric.better))
        .chain([(FIRST_BYTE.to_owned(), Better::Lower)])
        .map(|(unit, better)| match better {
            Better::Higher => format!("Unit {unit} better=higher"),
            Better::Lower => format!("Unit {unit} better=lower"),
        })
        .collect();
    for run in runs {
        // Not more: benchstat compares only what has the same configuration.
        lines.push("goos: linux".to_owned());
        lines.push("pkg: netping".to_owned());
        lines.push(format!(
            "cpu: {}",
            run.environment.cpu_model.replace(char::is_control, " ")
        ));
        let names = names(run);
        let cpus = run.environment.cpus;
        // An interrupted step is no trial like the others, and the format has no way to say so.
        let whole = run
            .steps
            .iter()
            .filter(|step| step.status == Status::Complete);
        for step in whole {
            let name = names
                .get(&step.measurement)
                .map_or("unknown", String::as_str);
            lines.extend(match &step.settings.bulk {
                Some(settings) => {
                    let run = step.bulk.as_ref();
                    run.map(|run| bulk_line(settings, run, name, cpus))
                }
                None => step_line(step, name, cpus),
            });
        }
    }
    Ok(text(&lines))
}

/// A step's line; `None` where it has no time to show.
fn step_line(step: &Step, name: &str, cpus: usize) -> Option<String> {
    let (settings, summary) = (&step.settings, &step.summary);
    summary.response_time.mean?;
    let mut line = format!(
        "BenchmarkNetping/target={name}/client={}/arrivals={}/callers={}/conns={}/payload={}",
        word(&settings.client),
        word(&settings.arrivals),
        settings.callers,
        settings.connections,
        settings.payload_bytes
    );
    let parts = [
        ("message", settings.message.as_deref().map(word)),
        (
            "response",
            settings.response_bytes.map(|bytes| bytes.to_string()),
        ),
        ("rate", settings.planned_rate.map(|rate| rate.to_string())),
        (
            "per-conn",
            settings
                .requests_per_connection
                .map(|requests| requests.to_string()),
        ),
    ];
    for (part, value) in parts {
        if let Some(value) = value {
            line.extend(["/", part, "=", value.as_str()]);
        }
    }
    let streams = metric::of_streams([step]);
    let values = metric::BENCHMARK.iter().chain(streams).map(|metric| {
        let value = metric.of_step(step).map(|value| match metric.unit {
            Unit::CpuMicros => value * 1e3,
            _ => value,
        });
        (value, unit(metric))
    });
    let count = summary.response_time.count;
    Some(measured(&line, cpus, count, values))
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

/// The line of one run of a bulk stream.
fn bulk_line(settings: &BulkSettings, run: &BulkRun, name: &str, cpus: usize) -> String {
    let direction = settings.direction.name();
    let line = format!(
        "BenchmarkNetpingBulk/target={name}/direction={direction}/size={}/chunk={}/streams={}",
        settings.size_bytes, settings.chunk_bytes, settings.streams
    );
    let values = [
        (Some(run.seconds * 1e9), "ns/op".to_owned()),
        (
            (run.seconds > 0.0).then(|| run.bytes as f64 / MB / run.seconds),
            "MB/s".to_owned(),
        ),
        (Some(run.first_byte_seconds * 1e9), FIRST_BYTE.to_owned()),
    ];
    measured(&line, cpus, 1, values.into_iter())
}

fn measured(
    name: &str,
    cpus: usize,
    iterations: u64,
    values: impl Iterator<Item = (Option<f64>, String)>,
) -> String {
    let values = values.filter_map(|(value, unit)| value.map(|value| format!("{value:.2} {unit}")));
    format!(
        "{name}-{cpus} {iterations} {}",
        values.collect::<Vec<_>>().join(" ")
    )
}

/// Names each measurement after its label or its target's scheme. Where several targets have the same
/// word, the second that was given is `tcp.2`, and so on.
fn names(run: &Run) -> BTreeMap<usize, String> {
    let mut targets: BTreeMap<&str, String> = BTreeMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for own in run.measurements() {
        let name = targets.entry(own.name()).or_insert_with(|| {
            let scheme = own.name().split("://").next().unwrap_or_default();
            let word = word(own.first().label.as_deref().unwrap_or(scheme));
            let count = seen.entry(word.clone()).or_default();
            *count += 1;
            if *count == 1 {
                word
            } else {
                format!("{word}.{count}")
            }
        });
        names.insert(own.number, name.clone());
    }
    names
}

/// A part of a name: nothing in it that has a meaning there, such as white space, `/` and `=`.
fn word(text: &str) -> String {
    let parts = text.split(|character: char| {
        !character.is_alphanumeric() && !matches!(character, '.' | '+' | '_')
    });
    parts
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_")
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
