//! Result files that the first release of each schema version wrote are still read.

use std::{collections::BTreeMap, fs, path::Path};

use netping_report::{export::FORMATS, page};
use netping_results::{
    compare::compare_runs,
    merge::{MergeRules, merge},
    run::Run,
};
use serde_json::{Map, Value};

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

/// The versions, each with a folder of files.
const VERSIONS: [&str; 2] = ["v1", "v2"];

fn text(version: &str, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/tests/fixtures");
    fs::read_to_string(folder.join(version).join(name).with_extension("json")).unwrap()
}

fn run(version: &str, name: &str) -> Run {
    Run::from_json(text(version, name).as_bytes())
        .unwrap_or_else(|error| panic!("{version} {name}: {error}"))
}

fn written(run: &Run) -> Value {
    serde_json::from_str(&run.to_json().unwrap()).unwrap()
}

/// Texts for people, which a newer version may word otherwise.
const WORDED: [&str; 2] = ["sentence", "remedy"];

/// Checks that `after` has everything that `before` has; newer versions add fields.
fn assert_kept(place: &str, before: &Value, after: &Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before
                .iter()
                .filter(|(key, _)| !WORDED.contains(&key.as_str()))
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

/// Returns how often each number and text occurs in a file.
fn leaves(value: &Value) -> BTreeMap<String, usize> {
    match value {
        Value::Null => BTreeMap::new(),
        Value::Array(_) | Value::Object(_) => {
            let in_array = value.as_array().into_iter().flatten();
            let in_object = value.as_object().into_iter().flat_map(Map::values);
            let mut all = BTreeMap::new();
            for (leaf, count) in in_array.chain(in_object).flat_map(leaves) {
                *all.entry(leaf).or_default() += count;
            }
            all
        }
        leaf => BTreeMap::from([(leaf.to_string(), 1)]),
    }
}

#[test]
fn everything_in_a_file_is_written_as_it_was_read() {
    for name in FILES {
        let before: Value = serde_json::from_str(&text("v2", name)).unwrap();
        assert_kept(name, &before, &written(&run("v2", name)));
    }
}

#[test]
fn every_value_of_version_1_has_a_place() {
    for name in FILES {
        let mut before: Value = serde_json::from_str(&text("v1", name)).unwrap();
        for step in before["steps"].as_array_mut().unwrap() {
            // It is text now.
            step["window_started_at"] = Value::Null;
        }
        let after = leaves(&written(&run("v1", name)));
        for (leaf, count) in leaves(&before) {
            let kept = after.get(&leaf).copied().unwrap_or(0);
            assert!(kept >= count, "{name}: {count} of {leaf}, {kept} kept");
        }
    }
    let run = run("v1", "throughput-open");
    let start = run.steps[0].window_started_at;
    assert_eq!(start, Some(1_795_317_222_827_290_797));
}

#[test]
fn every_format_renders_them() {
    let folder = tempfile::tempdir().unwrap();
    for (version, name) in VERSIONS.iter().flat_map(|v| FILES.map(|name| (v, name))) {
        let runs = [run(version, name)];
        for format in &FORMATS {
            let path = folder.path().join(format.name);
            format.write(&runs, &path).unwrap();
            assert!(
                fs::metadata(&path).unwrap().len() > 0,
                "{version} {name}: {}",
                format.name
            );
        }
        assert!(!page::charts(&runs).is_empty(), "{version} {name}");
        let same = compare_runs(&runs[0], &runs[0], &[]);
        assert!(
            same.diffs.is_empty() && !same.pairs.is_empty(),
            "{version} {name}"
        );
    }
}

#[test]
fn they_are_merged() {
    let mut clients = ["a", "b"].map(|host| {
        let mut run = run("v1", "throughput-open");
        run.environment.host = host.to_owned();
        (host.to_owned(), run)
    });
    for step in &mut clients[1].1.steps {
        // Equal times would be those of the same client.
        step.histograms.service_time = step.histograms.lag.clone();
    }
    let tool = clients[0].1.tool.clone();
    let sum = merge(&clients, &MergeRules::default(), tool, Vec::new()).unwrap();
    assert_eq!(sum.parts.len(), 2);
}
