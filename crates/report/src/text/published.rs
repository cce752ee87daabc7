//! Published numbers beside those of a run.

use std::collections::BTreeSet;

use netping_results::{
    bulk::BulkSettings,
    estimate::{Estimate, estimate},
    format::{bytes, thousands},
    metric::Metric,
    run::{InProcess, Measurement, Run, StepSettings},
    warning::Warnings,
};
use serde_json::Value;

use crate::{
    fields::fields,
    finding::{interval, value},
    table::{Column, Table, wrap},
};

/// A table of published numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Where the numbers stand, and the machines that they are of.
    pub source: String,
    /// The rows, in the order in which they were published.
    pub rows: Vec<PublishedRow>,
}

/// A row of published numbers, and the measurement that repeats it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishedRow {
    /// The name of what was measured; absent where the target or the label says it.
    pub name: Option<String>,
    /// The target of the measurement. A row with neither a target nor a label has no measurement.
    pub target: Option<String>,
    /// The label of the measurement.
    pub label: Option<String>,
    /// The name of the command that measures it; absent where any may.
    pub kind: Option<String>,
    /// Settings of the measurement, by their names in result files.
    pub settings: Vec<(String, String)>,
    /// The published values, in the units of the metrics.
    pub values: Vec<(&'static Metric, f64)>,
}

const COLUMNS: [Column; 6] = [
    Column::text("published for"),
    Column::text("measure"),
    Column::number("published"),
    Column::number("here"),
    Column::number("95% interval").spare(1),
    Column::number("ratio"),
];

/// Returns the settings by which a row can select a measurement.
pub fn setting_names() -> BTreeSet<String> {
    // Those that are left out where they are absent.
    let all = StepSettings {
        bulk: Some(BulkSettings::default()),
        in_process: Some(InProcess::OneThread),
        ..StepSettings::default()
    };
    fields(&all).into_keys().collect()
}

/// Returns each published value beside the one that was measured here, and their ratio.
pub fn published(tables: &[Published], runs: &[Run]) -> String {
    let measured: Vec<_> = runs.iter().flat_map(measured).collect();
    let mut parts: Vec<String> = tables.iter().map(|own| table(own, &measured)).collect();
    let legend = "ratio: the value here over the published one, which is of other machines and has no interval. \
                  -: not measured here, or too few samples.";
    parts.push(wrap(legend, usize::MAX));
    parts.join("\n\n")
}

/// A measurement of a run here.
struct Measured<'a> {
    measurement: Measurement<'a>,
    /// True where a warning invalidates it.
    is_wrong: bool,
}

/// Returns the measurements of a run.
fn measured(run: &Run) -> Vec<Measured<'_>> {
    let warnings = Warnings::of_run(run);
    let all = run.measurements().into_iter();
    all.map(|measurement| Measured {
        is_wrong: !warnings.invalidating_one(measurement.number).is_empty(),
        measurement,
    })
    .collect()
}

fn table(of: &Published, measured: &[Measured<'_>]) -> String {
    let shared = of.shared();
    let mut lines = Vec::new();
    let mut notes = BTreeSet::new();
    for row in &of.rows {
        let mut found: Vec<_> = measured.iter().collect();
        found.retain(|own| row.selects(&own.measurement));
        let mut words = row.words();
        words.retain(|word| !shared.contains(word));
        let name = words.join(", ");
        if found.len() < 2 {
            lines.extend(row.lines(name, found.first().copied()));
        } else {
            notes.insert("#: which of the measurements that have these settings");
            for (own, number) in found.iter().zip(1..) {
                lines.extend(row.lines(format!("{name} #{number}"), Some(own)));
            }
        }
        if found.iter().any(|own| own.is_wrong) {
            notes.insert("!: not valid; the warnings of the run say why");
        }
    }
    let mut parts = vec![wrap(&format!("published: {}", of.source), usize::MAX)];
    if !shared.is_empty() {
        parts.push(format!("all rows: {}", shared.join(", ")));
    }
    parts.push(Table::whole(&COLUMNS, &lines));
    parts.extend(notes.into_iter().map(str::to_owned));
    parts.join("\n")
}

/// Returns the ratio of a value to a published one; `-` where there is none.
fn ratio(number: f64, here: Option<Estimate>) -> String {
    match here {
        Some(here) if number > 0.0 => {
            let (sign, ratio) = (if here.is_bound { ">" } else { "" }, here.value / number);
            let digits = if ratio < 0.1 { 4 } else { 2 };
            format!("{sign}{ratio:.digits$}")
        }
        _ => "-".to_owned(),
    }
}

impl Published {
    /// Returns the words that all rows have; none where there is a single one.
    fn shared(&self) -> Vec<String> {
        let Some((first, others)) = self.rows.split_first() else {
            return Vec::new();
        };
        let others: Vec<_> = others.iter().map(PublishedRow::words).collect();
        let is_shared = |word: &String| others.iter().all(|own| own.contains(word));
        let mut words = first.words();
        words.retain(|word| !others.is_empty() && is_shared(word));
        words
    }
}

impl PublishedRow {
    /// Returns a line for each of its values, beside that of a measurement.
    fn lines(&self, name: String, here: Option<&Measured<'_>>) -> Vec<Vec<String>> {
        let is_wrong = here.is_some_and(|own| own.is_wrong);
        let mut name = Some(name);
        let line = |(metric, number): &(&'static Metric, f64)| {
            let here = here.and_then(|own| estimate(metric, &own.measurement));
            let mark = if is_wrong && here.is_some() { "!" } else { "" };
            let reading = metric.reading([*number].into_iter().chain(here.map(|own| own.value)));
            vec![
                name.take().unwrap_or_default(),
                metric.title_in(reading),
                reading.show(*number),
                value(reading, here) + mark,
                interval(reading, here),
                ratio(*number, here),
            ]
        };
        self.values.iter().map(line).collect()
    }

    /// Returns true if it is of this measurement.
    fn selects(&self, measurement: &Measurement<'_>) -> bool {
        let first = measurement.first();
        let settings = fields(&first.settings);
        let mut set = self.settings.iter();
        let fits = |own: &Option<String>, there| own.is_none() || own.as_deref() == there;
        (self.target.is_some() || self.label.is_some())
            && fits(&self.target, Some(&first.target))
            && fits(&self.label, first.label.as_deref())
            && fits(&self.kind, Some(measurement.run.kind.name()))
            && set.all(|(name, own)| settings.get(name).map(text).as_ref() == Some(own))
    }

    /// Returns its name, and how it selects a measurement, each part as people read it.
    fn words(&self) -> Vec<String> {
        let texts = [&self.name, &self.label, &self.target, &self.kind];
        let mut words: Vec<String> = texts.into_iter().flatten().cloned().collect();
        let settings = self.settings.iter();
        words.extend(settings.map(|(name, value)| setting_in_words(name, value)));
        words
    }
}

/// Returns a setting as people read it.
fn setting_in_words(name: &str, value: &str) -> String {
    let (name, value) = match (name.strip_suffix("_bytes"), value.parse::<f64>()) {
        (Some(name), Ok(number)) => (name, bytes(number as u64)),
        (None, Ok(number)) => (name, thousands(number)),
        _ => (name, value.to_owned()),
    };
    format!("{} {value}", name.replace('_', " "))
}

/// Returns a setting of a result file as the text by which it is compared: 25000 and 25000.0 are the
/// same.
fn text(value: &Value) -> String {
    let number = value.as_f64().map(|number| number.to_string());
    let text = number.or_else(|| value.as_str().map(str::to_owned));
    text.unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures,
        metric::{P50, P99, RATE},
        run::{Kind, Step},
        warning::{ClientThrottled, Severity, SharedHost},
    };

    use super::*;

    fn run(steps: Vec<Step>) -> Run {
        let mut steps = steps;
        for (number, step) in steps.iter_mut().enumerate() {
            step.measurement = number;
        }
        fixtures::run(steps)
    }

    /// 1,000 requests per second of 20 us each.
    fn step(target: &str, callers: usize) -> Step {
        let mut step = fixtures::step(4, |_| vec![20_000; 1000]);
        step.target = target.to_owned();
        step.settings.callers = callers;
        step
    }

    fn row(target: Option<&str>, settings: &[(&str, &str)]) -> PublishedRow {
        let settings = settings.iter();
        PublishedRow {
            target: target.map(str::to_owned),
            settings: settings
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            values: vec![(&RATE, 500.0), (&P50, 40_000.0)],
            ..PublishedRow::default()
        }
    }

    fn table_of(rows: Vec<PublishedRow>, runs: &[Run]) -> Vec<Vec<String>> {
        let source = "a study".to_owned();
        let text = published(&[Published { source, rows }], runs);
        // Columns are two spaces apart.
        let cells = |line: &str| {
            let cells = line.split("  ").filter(|cell| !cell.is_empty());
            cells.map(|cell| cell.trim().to_owned()).collect()
        };
        text.lines().map(cells).collect()
    }

    #[test]
    fn published_values_stand_beside_those_of_the_measurement_with_their_settings() {
        let own = run(vec![
            step("tcp://a:1", 1),
            step("tcp://a:1", 8),
            step("tcp://b:1", 8),
        ]);
        let rate = estimate(&RATE, &own.measurements()[1]);
        let found = row(Some("tcp://a:1"), &[("callers", "8")]);
        let missing = row(Some("tcp://a:1"), &[("callers", "64")]);
        let mut unmeasured = row(None, &[("callers", "8"), ("size_bytes", "536870912")]);
        unmeasured.name = Some("Go".to_owned());
        let lines = table_of(vec![found, missing, unmeasured], std::slice::from_ref(&own));
        assert_eq!(lines[0], ["published: a study"]);
        let ends = interval(RATE.reading([]), rate);
        assert_eq!(
            lines[2],
            [
                "tcp://a:1, callers 8",
                "req/s",
                "500",
                "1,000",
                &ends,
                "2.00"
            ]
        );
        // Of the second value, without the name.
        assert_eq!(lines[3][..3], ["p50 us", "40.0", "20.0"]);
        assert_eq!(lines[3].last().unwrap(), "0.50");
        assert_eq!(
            lines[4],
            ["tcp://a:1, callers 64", "req/s", "500", "-", "-", "-"]
        );
        assert_eq!(
            lines[6],
            ["Go, callers 8, size 512MiB", "req/s", "500", "-", "-", "-"]
        );
    }

    #[test]
    fn what_all_rows_share_stands_above_them() {
        let rows = ["1", "8"].map(|callers| {
            row(
                Some("tcp://a:1"),
                &[("connections", "2"), ("callers", callers)],
            )
        });
        let lines = table_of(rows.to_vec(), &[]);
        assert_eq!(lines[1], ["all rows: tcp://a:1, connections 2"]);
        assert_eq!(
            (&*lines[3][0], &*lines[5][0]),
            ("callers 1", "callers 8"),
            "{lines:?}"
        );
    }

    #[test]
    fn each_measurement_that_fits_has_its_line() {
        let own = || run(vec![step("tcp://a:1", 8)]);
        let lines = table_of(vec![row(Some("tcp://a:1"), &[])], &[own(), own()]);
        assert_eq!(lines[2][0], "tcp://a:1 #1");
        assert_eq!(lines[4][0], "tcp://a:1 #2");
    }

    #[test]
    fn a_row_selects_by_label_kind_and_settings_of_any_type() {
        let mut planned = step("tcp://a:1", 8);
        planned.label = Some("haproxy".to_owned());
        planned.settings.planned_rate = Some(25_000.0);
        let mut own = run(vec![planned]);
        own.kind = Kind::Proxy;
        let fits = |change: fn(&mut PublishedRow)| {
            let mut row = row(None, &[("planned_rate_per_s", "25000"), ("client", "line")]);
            row.label = Some("haproxy".to_owned());
            row.kind = Some("proxy".to_owned());
            change(&mut row);
            row.selects(&own.measurements()[0])
        };
        assert!(fits(|_| ()));
        assert!(!fits(|row| row.label = Some("nginx".to_owned())));
        assert!(!fits(|row| row.kind = Some("connect".to_owned())));
        assert!(!fits(|row| row.settings[0].1 = "24000".to_owned()));
        assert!(!fits(|row| row.settings[1].1 = "frame".to_owned()));
        assert!(!fits(|row| row.label = None));
    }

    #[test]
    fn a_value_that_is_not_valid_is_marked() {
        let mut wrong = step("tcp://a:1", 8);
        wrong.warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        assert_eq!(wrong.warnings[0].severity(), Severity::Invalid);
        let mut note = step("tcp://b:1", 8);
        note.warnings = vec![SharedHost.into()];
        let own = run(vec![wrong, note]);
        let rows = vec![row(Some("tcp://a:1"), &[]), row(Some("tcp://b:1"), &[])];
        let lines = table_of(rows, &[own]);
        assert_eq!(
            (&*lines[2][3], &*lines[4][3]),
            ("1,000!", "1,000"),
            "{lines:?}"
        );
        assert!(lines.iter().any(|line| line[0].starts_with("!: not valid")));
    }

    #[test]
    fn a_missing_value_has_no_ratio() {
        let mut few = row(Some("tcp://a:1"), &[]);
        few.values = vec![(&P99, 1e6)];
        let short = fixtures::step(1, |_| vec![20_000; 20]);
        let own = run(vec![Step {
            target: "tcp://a:1".to_owned(),
            ..short
        }]);
        let lines = table_of(vec![few], &[own]);
        assert_eq!(lines[2], ["tcp://a:1", "p99 ms", "1.00", "-", "-", "-"]);
        assert_eq!(ratio(0.0, None), "-");
    }

    #[test]
    fn settings_of_requests_and_of_bulk_streams_can_be_named() {
        let names = setting_names();
        for name in ["callers", "planned_rate_per_s", "size_bytes", "in_process"] {
            assert!(names.contains(name), "{name}");
        }
    }
}
