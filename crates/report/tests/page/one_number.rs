//! Every view of a run tells the same number of the same metric of the same measurement.

use std::{collections::BTreeMap, fs};

use netping_report::{
    export::FORMATS,
    finding,
    page::{self, Chart, Exact, Panel, Point},
    words,
};
use netping_results::{
    compare::compare_runs,
    estimate::estimate,
    metric::{self, Metric, Unit},
    run::{Measurement, Run},
    time_unit::TimeUnit,
};

use super::{fixture, terminal};

/// A number that a view tells: what it is of, and its text, without the unit and the interval.
pub type Told = (Key, String);

/// The subject of a number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A measurement, by its number, and a metric.
    Value(usize, &'static str),
    /// A pair of measurements, by its place, and a metric.
    Difference(usize, &'static str),
}

/// A view, by its name, and what it tells of a run.
type Teller = (&'static str, fn(&Run) -> Vec<Told>);

/// Every view. A further one is a line here.
const TELLERS: [Teller; 6] = [
    ("terminal", terminal::told),
    ("sentence", in_sentences),
    ("chart", in_charts),
    ("table of the page", in_table),
    ("CSV", in_csv),
    ("Markdown", in_markdown),
];

#[test]
fn every_view_tells_the_same_number() {
    // Pages show the times of metrics in microseconds.
    TimeUnit::Micros.choose();
    for run in [
        fixture::trials(),
        fixture::ladder(),
        fixture::proxies(),
        fixture::bulk_targets(),
        fixture::sweep(80_000.0),
    ] {
        let mut told: BTreeMap<Key, Vec<(&str, String)>> = BTreeMap::new();
        for (view, teller) in TELLERS {
            for (key, text) in teller(&run) {
                told.entry(key).or_default().push((view, text));
            }
        }
        for own in run.measurements() {
            for metric in metrics(&own) {
                let known = estimate(metric, &own);
                let expected = finding::value(metric.unit.reading_in(TimeUnit::Micros), known);
                let views = told.remove(&Key::Value(own.number, metric.name));
                let views = views.unwrap_or_default();
                assert!(
                    views.iter().all(|(_, text)| *text == expected),
                    "{}: {} is {expected}, and in {views:?}",
                    own.long_name(),
                    metric.name
                );
                let is_everywhere = [&metric::RATE, &metric::BULK_RATE].contains(&metric);
                let least = if is_everywhere {
                    3
                } else {
                    usize::from(known.is_some())
                };
                assert!(views.len() >= least, "{}: {views:?}", metric.name);
            }
        }
        // The differences are left.
        assert_eq!(told.is_empty(), run.pairings.is_empty());
        for (key, views) in told {
            assert!(views.len() > 1, "{key:?}: {views:?}");
            assert!(
                views.iter().all(|(_, text)| *text == views[0].1),
                "{key:?}: {views:?}"
            );
        }
    }
}

#[test]
fn two_files_differ_by_one_number() {
    let (base, new) = (fixture::sweep(80_000.0), fixture::sweep(95_000.0));
    let comparison = compare_runs(&base, &new, &[]);
    let html = page::comparison(&base, std::slice::from_ref(&new), "");
    for pair in &comparison.pairs {
        for by in &pair.comparisons {
            if by.change.is_none() || !by.metric.is_claimed() {
                continue;
            }
            let (name, change) = (comparison.short_name(pair), finding::change(by));
            let drawn = format!("<title>{name}, base: {change}");
            assert!(html.contains(&drawn), "{drawn}");
        }
    }
    // The first pair has a sentence, too.
    let rate = comparison.pairs[0].by(&metric::RATE).unwrap();
    let sentence = format!(
        "rate {} ({})",
        finding::change(rate),
        finding::change_interval(rate)
    );
    assert!(html.contains(&sentence), "{sentence}");
}

/// Returns the metrics that some view shows of a measurement.
fn metrics(own: &Measurement<'_>) -> Vec<&'static Metric> {
    if own.settings().bulk.is_some() {
        return metric::BULK.to_vec();
    }
    let mut all = metric::PAGE.to_vec();
    all.extend(metric::MARKDOWN);
    all.extend(metric::OVERHEAD);
    all.sort_by_key(|metric| metric.name);
    all.dedup();
    all
}

fn told(own: &Measurement<'_>, metric: &'static Metric, text: &str) -> Told {
    (Key::Value(own.number, metric.name), first_word(text))
}

/// Returns a number without its unit and its interval.
fn first_word(text: &str) -> String {
    text.split(' ').next().unwrap().to_owned()
}

/// Tells what sentences say of measurements that are the only one of their target.
fn in_sentences(run: &Run) -> Vec<Told> {
    let measurements = run.measurements();
    let sentences = words::sentences(run);
    let mut all = Vec::new();
    for own in &measurements {
        let name = own.name();
        if measurements
            .iter()
            .filter(|other| other.name() == name)
            .count()
            > 1
        {
            continue;
        }
        for (verb, metric) in [("served", &metric::RATE), ("moved", &metric::BULK_RATE)] {
            let start = format!("{name} {verb} ");
            let said = sentences.iter().find_map(|own| own.strip_prefix(&start));
            all.extend(said.map(|rest| told(own, metric, rest)));
        }
    }
    all
}

fn in_charts(run: &Run) -> Vec<Told> {
    let charts = page::charts(std::slice::from_ref(run));
    let mut all = Vec::new();
    for own in &run.measurements() {
        for metric in metrics(own) {
            let drawn = values(&charts, own, metric);
            all.extend(drawn.map(|(panel, point)| told(own, metric, &panel.shown(point))));
        }
    }
    for (place, pair) in run.compared().iter().enumerate() {
        for by in &pair.comparisons {
            let texts = charts
                .iter()
                .flat_map(|chart| &chart.panels)
                .filter_map(|panel| {
                    let title =
                        ["change of ", "added to "].map(|way| way.to_owned() + by.metric.label);
                    title
                        .contains(&panel.title)
                        .then(|| difference(run, panel, place, by.metric))
                });
            let key = Key::Difference(place, by.metric.name);
            all.extend(texts.map(|text| (key.clone(), text)));
        }
    }
    all
}

/// Returns the points that stand for a metric of a measurement.
fn values<'a>(
    charts: &'a [Chart],
    own: &'a Measurement<'_>,
    metric: &'static Metric,
) -> impl Iterator<Item = (&'a Panel, &'a Point)> {
    let settings = own.settings();
    let x: Exact = match (&settings.bulk, settings.planned_rate) {
        (Some(_), _) => "all".into(),
        (None, Some(rate)) => rate.into(),
        (None, None) => (settings.callers as f64).into(),
    };
    let kinds = ["throughput", "latency", "ladder", "bulk"];
    let is_titled = |panel: &&Panel| {
        let rest = panel.title.strip_prefix(metric.label);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',']))
    };
    charts
        .iter()
        .filter(move |chart| kinds.contains(&chart.kind))
        .flat_map(|chart| &chart.panels)
        .filter(is_titled)
        .flat_map(move |panel| {
            let own = panel.series.iter().filter(|row| row.name == own.name());
            let points: Vec<&Point> = own
                .flat_map(|row| &row.points)
                .filter(|point| point.x == x)
                .collect();
            points.into_iter().map(move |point| (panel, point))
        })
}

/// Returns the text of the difference of the pair at `place`: panels have a row for each pair that
/// has the metric.
fn difference(run: &Run, panel: &Panel, place: usize, metric: &Metric) -> String {
    let compared = run.compared();
    let before = compared[..place]
        .iter()
        .filter(|pair| pair.by(metric).is_some());
    let row = &panel.series[before.count()];
    let text = first_word(&panel.shown(&row.points[0]));
    let is_time = panel.title.starts_with("added");
    if is_time {
        text.trim_start_matches('+').to_owned()
    } else {
        text
    }
}

fn in_table(run: &Run) -> Vec<Told> {
    let html = page::html(std::slice::from_ref(run));
    let heading = |metric: &Metric| match metric.unit {
        Unit::Nanos | Unit::CpuMicros => format!("{} µs", metric.label),
        _ => metric.title.to_owned(),
    };
    let table = |title: &str, is_bulk: bool| {
        let table = html.split(&format!("<h3>{title}</h3>")).nth(1);
        let table = table.and_then(|rest| rest.split("</table>").next());
        let mut rows = table
            .into_iter()
            .flat_map(|table| table.split("<tr>").skip(1))
            .map(cells);
        let titles = rows.next().unwrap_or_default();
        in_rows(run, is_bulk, &titles, &rows.collect::<Vec<_>>(), heading)
    };
    [table("Measurements", false), table("Bulk streams", true)].concat()
}

/// Returns the texts of the cells in a row of an HTML table.
fn cells(row: &str) -> Vec<String> {
    let cells = row
        .split("<t")
        .skip(1)
        .filter(|cell| cell.starts_with(['d', 'h']));
    let text = |cell: &str| cell.split(['<', '>']).nth(1).unwrap().to_owned();
    cells.map(text).collect()
}

/// Tells what a table with a row for each measurement shows.
fn in_rows(
    run: &Run,
    is_bulk: bool,
    titles: &[String],
    rows: &[Vec<String>],
    heading: impl Fn(&Metric) -> String,
) -> Vec<Told> {
    let mut all = Vec::new();
    let measurements = run.measurements();
    let own = measurements
        .iter()
        .filter(|own| own.settings().bulk.is_some() == is_bulk);
    for (own, row) in own.zip(rows) {
        for metric in metrics(own) {
            let at = titles.iter().position(|title| *title == heading(metric));
            all.extend(at.map(|at| told(own, metric, &row[at])));
        }
    }
    all
}

/// Returns a run in a format.
fn exported(run: &Run, format: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let format = FORMATS.iter().find(|own| own.name == format).unwrap();
    format.write(std::slice::from_ref(run), &path).unwrap();
    fs::read_to_string(path).unwrap()
}

fn in_csv(run: &Run) -> Vec<Told> {
    let text = exported(run, "csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
    let mut all = Vec::new();
    for own in &run.measurements() {
        let trial = if own.trials.len() > 1 { "all" } else { "1" };
        let number = own.number.to_string();
        let row = rows
            .iter()
            .find(|row| row["measurement"] == number && row["trial"] == trial);
        for metric in metrics(own) {
            let key = metric.key;
            let columns = [
                key.to_owned(),
                format!("{key}_ns"),
                format!("response_time_{key}_ns"),
            ];
            let cell = columns.iter().find_map(|column| row.unwrap().get(column));
            let cell = cell.filter(|cell| !cell.is_empty());
            let value = cell.map(|cell| metric.unit.show(cell.parse().unwrap()));
            all.extend(value.map(|text| told(own, metric, &text)));
        }
    }
    all
}

fn in_markdown(run: &Run) -> Vec<Told> {
    let text = exported(run, "markdown");
    let line = |line: &str| -> Vec<String> {
        line.split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']).to_owned())
            .collect()
    };
    let heading = |metric: &Metric| match metric.unit {
        Unit::CpuMicros => format!("{} us/req", metric.label),
        _ => metric.title.to_owned(),
    };
    let mut all = Vec::new();
    for table in text.split("\n\n") {
        let mut rows = table.lines().map(line);
        let titles = rows.next().unwrap();
        let rows: Vec<Vec<String>> = rows.skip(1).collect();
        if titles.contains(&"against".to_owned()) {
            all.extend(in_differences(run, &titles, &rows));
        } else {
            let is_bulk = titles.contains(&"direction".to_owned());
            all.extend(in_rows(run, is_bulk, &titles, &rows, heading));
        }
    }
    all
}

/// Tells what a table with a row for each comparison shows: where a time is added, that.
fn in_differences(run: &Run, titles: &[String], rows: &[Vec<String>]) -> Vec<Told> {
    let compared = run.compared();
    let each = compared.iter().enumerate();
    let each = each.flat_map(|(place, pair)| pair.comparisons.iter().map(move |by| (place, by)));
    let adds = matches!(run.kind.name(), "ladder" | "proxy");
    let tell = |((place, by), row): (
        (usize, &netping_results::comparison::Comparison),
        &Vec<String>,
    )| {
        let is_added = adds && by.metric.unit == Unit::Nanos;
        let title = if is_added { "added us" } else { "change" };
        let at = titles.iter().position(|own| own == title).unwrap();
        (Key::Difference(place, by.metric.name), row[at].clone())
    };
    each.zip(rows).map(tell).collect()
}
