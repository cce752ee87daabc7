//! Result files that earlier builds wrote are still read.

use std::{convert::Infallible, fs, path::Path};

use netping_measure::times::Time;
use netping_report::{export::FORMATS, page};
use netping_results::{
    compare::compare_runs,
    merge::{MergeRules, merge},
    run::Run,
};
use serde_json::Value;

const FILES: [&str; 8] = [
    "throughput-closed",
    "throughput-open",
    "latency",
    "connect",
    "bulk",
    "proxy",
    "ladder",
    "merged",
];

fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/tests/fixtures/v2");
    fs::read_to_string(folder.join(name).with_extension("json")).unwrap()
}

fn run(name: &str) -> Run {
    Run::from_json(text(name).as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn written(run: &Run) -> Value {
    serde_json::from_str(&run.to_json().unwrap()).unwrap()
}

/// The parts that a newer version may have otherwise: texts for people, what steps and pairings now hold, and
/// the version itself.
const OTHERWISE: [&str; 7] = [
    "sentence",
    "remedy",
    "bulk",
    "overheads",
    "differences",
    "targets",
    "schema_version",
];

/// Checks that `after` has everything else that `before` has; newer versions add fields.
fn assert_kept(place: &str, before: &Value, after: &Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before
                .iter()
                .filter(|(key, _)| !OTHERWISE.contains(&key.as_str()))
            {
                assert_kept(&format!("{place}/{key}"), value, &after[key]);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len(), "{place}");
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                assert_kept(&format!("{place}/{at}"), before, after);
            }
        }
        _ => assert_eq!(before, after, "{place}"),
    }
}

#[test]
fn everything_in_a_file_is_written_as_it_was_read() {
    for name in FILES.into_iter().filter(|name| *name != "bulk") {
        let before: Value = serde_json::from_str(&text(name)).unwrap();
        assert_kept(name, &before, &written(&run(name)));
    }
}

#[test]
fn each_run_of_a_bulk_stream_is_a_step() {
    let before: Value = serde_json::from_str(&text("bulk")).unwrap();
    let after = written(&run("bulk"));
    let steps = after["steps"].as_array().unwrap();
    let runs = steps.iter().map(|step| step["bulk"].clone()).collect();
    assert_kept("bulk", &before["bulk"][0]["runs"], &Value::Array(runs));
    let settings = &steps[0]["settings"]["bulk"];
    assert_kept("bulk", &before["bulk"][0]["settings"], settings);
}

#[test]
fn every_format_renders_them() {
    let folder = tempfile::tempdir().unwrap();
    for name in FILES {
        let runs = [run(name)];
        for format in &FORMATS {
            let path = folder.path().join(format.name);
            format.write(&runs, &path).unwrap();
            assert!(
                fs::metadata(&path).unwrap().len() > 0,
                "{name}: {}",
                format.name
            );
        }
        assert!(!page::charts(&runs).is_empty(), "{name}");
        let same = compare_runs(&runs[0], &runs[0], &[]);
        assert!(same.diffs.is_empty() && !same.pairs.is_empty(), "{name}");
    }
}

#[test]
fn they_are_merged() {
    let mut clients = ["a", "b"].map(|host| {
        let mut run = run("throughput-open");
        run.environment.host = host.to_owned();
        (host.to_owned(), run)
    });
    for step in &mut clients[1].1.steps {
        // Equal times would be those of the same client.
        step.histograms.times[Time::Service] = step.histograms.times[Time::Lag].clone();
    }
    let tool = clients[0].1.tool.clone();
    let names = clients.each_ref().map(|(name, _)| name.clone());
    let load = |at: usize| Ok::<_, Infallible>(clients[at].1.clone());
    let Ok(sum) = merge(&names, load, &MergeRules::default(), tool, Vec::new());
    let sum = sum.unwrap();
    assert_eq!(sum.parts.len(), 2);
}
