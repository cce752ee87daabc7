//! Tables in Markdown, as a README has them: measurements of requests and of bulk streams, and what
//! comparisons found, as far as there are any.

use std::borrow::Cow;

use netping_results::{
    comparison::{Compared, Comparison},
    estimate::estimate,
    format::{micros, thousands},
    metric::{self, Metric, Unit},
    run::{Measurement, Run},
};

use super::Rendered;
use crate::finding::{change, change_interval, interval, range, value};

/// One file.
#[expect(clippy::unnecessary_wraps, reason = "every format has this form")]
pub(super) fn render(runs: &[Run]) -> Rendered {
    let all = runs.iter().flat_map(Run::measurements);
    let (bulk, requests): (Vec<_>, Vec<_>) = all.partition(|own| own.settings().bulk.is_some());
    let compared: Vec<Compared<'_>> = runs.iter().flat_map(Run::compared).collect();
    let differences: Vec<Difference<'_>> = compared
        .iter()
        .flat_map(|pair| pair.comparisons.iter().map(move |by| (pair, by)))
        .collect();
    let tables = [
        table(&request_columns(&requests), &requests),
        table(&bulk_columns(), &bulk),
        table(&difference_columns(), &differences),
    ];
    let failed = compared.iter().any(has_failures);
    let tables: Vec<String> = tables
        .into_iter()
        .flatten()
        .chain(failed.then(|| MARK.to_owned()))
        .collect();
    // Each ends its last line, so that there is an empty one between them.
    Ok(tables.join("\n").into_bytes())
}

/// A comparison by one metric, and what it compares.
type Difference<'a> = (&'a Compared<'a>, &'a Comparison);

/// A column: its title with the unit, whether it holds words, and its cells.
struct Column<T> {
    title: Cow<'static, str>,
    words: bool,
    cell: Box<dyn Fn(&T) -> String>,
}

fn number<T>(title: &'static str, cell: impl Fn(&T) -> String + 'static) -> Column<T> {
    Column {
        title: title.into(),
        words: false,
        cell: Box::new(cell),
    }
}

fn words<T>(title: &'static str, cell: impl Fn(&T) -> String + 'static) -> Column<T> {
    Column {
        words: true,
        ..number(title, cell)
    }
}

/// A table of these rows with a line end; `None` without rows.
fn table<T>(columns: &[Column<T>], rows: &[T]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = columns.iter().map(|column| column.title.to_string());
    let rule = |column: &Column<T>| if column.words { "---" } else { "---:" };
    let rule = columns.iter().map(|column| rule(column).to_owned());
    let (titles, rule) = (line(titles.collect()), line(rule.collect()));
    let rows = rows.iter().map(|row| {
        let cells = columns.iter().map(|column| escape(&(column.cell)(row)));
        line(cells.collect())
    });
    Some([titles, rule].into_iter().chain(rows).collect())
}

/// Text as a cell shows it: on one line, and with nothing in it that Markdown would take for its
/// own.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' => {
                escaped.extend(['\\', character]);
            }
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

/// The columns for these measurements: those that tell them apart only where they do.
fn request_columns<'a>(all: &[Measurement<'a>]) -> Vec<Column<Measurement<'a>>> {
    let planned = all.iter().any(|own| own.settings().planned_rate.is_some());
    let mut columns = vec![
        words("target", |own: &Measurement<'_>| own.name().to_owned()),
        number("callers", |own: &Measurement<'_>| {
            own.settings().callers.to_string()
        }),
        number("connections", |own: &Measurement<'_>| {
            own.settings().connections.to_string()
        }),
        number("payload bytes", |own: &Measurement<'_>| {
            thousands(own.settings().payload_bytes as f64)
        }),
    ];
    if all.iter().any(|own| own.trials.len() > 1) {
        columns.push(trials());
    }
    if planned {
        columns.push(number("planned req/s", |own: &Measurement<'_>| {
            let rate = own.settings().planned_rate;
            rate.map_or_else(nothing, thousands)
        }));
    }
    let steps = all.iter().flat_map(|own| own.trials.iter().copied());
    let metrics = metric::MARKDOWN.iter().chain(metric::of_streams(steps));
    columns.extend(metrics.map(|metric| estimates(metric)));
    columns.push(failed());
    columns
}

fn bulk_columns<'a>() -> Vec<Column<Measurement<'a>>> {
    let of = |own: &Measurement<'_>| own.settings().bulk.clone();
    let mut columns = vec![
        words("target", |own: &Measurement<'_>| own.name().to_owned()),
        words("direction", move |own: &Measurement<'_>| {
            of(own).map_or_else(nothing, |bulk| bulk.direction.name().to_owned())
        }),
        number("bytes", move |own: &Measurement<'_>| {
            of(own).map_or_else(nothing, |bulk| thousands(bulk.size_bytes as f64))
        }),
        number("streams", move |own: &Measurement<'_>| {
            of(own).map_or_else(nothing, |bulk| bulk.streams.to_string())
        }),
        trials(),
    ];
    columns.extend(metric::BULK.iter().map(|metric| estimates(metric)));
    columns.push(failed());
    columns
}

fn trials<'a>() -> Column<Measurement<'a>> {
    number("trials", |own: &Measurement<'_>| {
        own.trials.len().to_string()
    })
}

/// Requests without a verified reply, over all trials.
fn failed<'a>() -> Column<Measurement<'a>> {
    number(metric::ERRORS.title, |own: &Measurement<'_>| {
        thousands(own.unserved() as f64)
    })
}

/// The estimates of a metric, with their intervals where a claim may be made of it.
fn estimates<'a>(metric: &'static Metric) -> Column<Measurement<'a>> {
    let cell = move |own: &Measurement<'_>| {
        let estimate = estimate(metric, own);
        let has_interval = estimate.is_some_and(|own| own.interval.is_some());
        let mut cell = value(metric, estimate);
        if metric.is_claimed() && has_interval {
            cell.extend([" (", &interval(metric, estimate), ")"]);
        }
        cell
    };
    Column {
        title: match metric.unit {
            Unit::CpuMicros => format!("{} us/req", metric.label).into(),
            _ => metric.title.into(),
        },
        words: false,
        cell: Box::new(cell),
    }
}

fn difference_columns<'a>() -> Vec<Column<Difference<'a>>> {
    vec![
        words("target", |(pair, _): &Difference<'_>| {
            let mark = if has_failures(pair) { "*" } else { "" };
            pair.new.short_name() + mark
        }),
        words("against", |(pair, _): &Difference<'_>| {
            pair.base.short_name()
        }),
        words("metric", |(_, by): &Difference<'_>| {
            by.metric.title.to_owned()
        }),
        number("base", |(_, by): &Difference<'_>| value(by.metric, by.base)),
        number("value", |(_, by): &Difference<'_>| value(by.metric, by.new)),
        number("change", |(_, by): &Difference<'_>| change(by)),
        number("95% interval", |(_, by): &Difference<'_>| {
            by.interval.map_or_else(nothing, |_| change_interval(by))
        }),
        number("added us", |(_, by): &Difference<'_>| {
            added(by).map_or_else(nothing, |(added, _)| micros(added / 1e3))
        }),
        number("95% interval us", |(_, by): &Difference<'_>| {
            let ends = added(by).and_then(|(_, ends)| ends);
            ends.map_or_else(nothing, |ends| range(ends, |end| micros(end / 1e3)))
        }),
    ]
}

/// Returns the time that a comparison adds, in nanoseconds; `None` for a metric that is no time.
fn added(comparison: &Comparison) -> Option<(f64, Option<[f64; 2]>)> {
    let added = comparison.added()?;
    (comparison.metric.unit == Unit::Nanos).then_some(added)
}

/// Returns true where a time does not describe all requests.
fn has_failures(pair: &Compared<'_>) -> bool {
    pair.base.unserved() + pair.new.unserved() > 0
}

/// The meaning of the mark at a name.
const MARK: &str = "\\*: requests failed on one of the two sides; the times are of the successful requests alone.\n";

/// Where there is no number to show.
fn nothing() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, run::Pairing};

    use super::{super::fixture, *};

    /// Each line's cells; a bar with a backslash before it ends none.
    fn cells(run: Run) -> Vec<Vec<String>> {
        let files = render(&[run]).unwrap();
        let text = String::from_utf8(files).unwrap();
        let cells = |line: &str| {
            let inner = line.strip_prefix("| ").unwrap().strip_suffix(" |").unwrap();
            inner.split(" | ").map(str::to_owned).collect()
        };
        text.lines()
            .filter(|line| !line.is_empty())
            .map(cells)
            .collect()
    }

    #[test]
    fn numbers_stand_at_the_right_and_hostile_text_stays_in_its_cell() {
        let times: Vec<u64> = (1..=1000).map(|number| number * 1000).collect();
        let mut step = fixture::step("tcp://h:1", 64, &times);
        step.label = Some(fixture::HOSTILE.to_owned());
        let lines = cells(fixture::run(vec![step]));
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{lines:?}"
        );
        assert_eq!(
            (lines[1][0].as_str(), lines[1][1].as_str()),
            ("---", "---:")
        );
        assert_eq!(lines[2][0], "a,b \"c\" \\|d\\| \\\\e f/g=h");
        let rate = lines[0].iter().position(|title| title == "req/s").unwrap();
        assert_eq!(
            lines[2][rate..rate + 4],
            ["1,000 (1,000..1,000)", "500", "990", "-"].map(str::to_owned)
        );
    }

    #[test]
    fn columns_that_tell_nothing_are_left_out() {
        let step = fixture::step("tcp://h:1", 1, &[5]);
        let titles = |run: Run| cells(run).remove(0);
        let plain = titles(fixture::run(vec![step]));
        assert!(
            !plain.contains(&"trials".to_owned()) && !plain.contains(&"planned req/s".to_owned())
        );
        let open = |trial: u64| {
            let mut open = fixture::step("tcp://h:1", 1, &[5 + trial]);
            open.settings.planned_rate = Some(1000.0);
            open
        };
        let lines = cells(fixture::run(vec![open(1), open(2)]));
        assert!(lines[0].contains(&"planned req/s".to_owned()), "{lines:?}");
        let trials = lines[0].iter().position(|title| title == "trials").unwrap();
        assert_eq!((lines.len(), lines[2][trials].as_str()), (3, "2"));
    }

    #[test]
    fn bulk_streams_and_differences_are_tables_of_their_own() {
        let mut steps = fixtures::bulk("grpc://a|b:1", &[0.5, 0.5]);
        steps.extend(fixtures::bulk("grpc://h:2", &[0.25, 0.25]));
        let mut run = Run {
            pairings: vec![Pairing {
                base: 0,
                new: 1,
                is_control: false,
            }],
            ..fixture::run(steps)
        };
        let lines = cells(run.clone());
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[2][0], "grpc://a\\|b:1");
        assert!(lines[2][5].starts_with("2.000"), "{:?}", lines[2]);
        assert!(lines[3][5].starts_with("4.000"), "{:?}", lines[3]);
        assert_eq!(
            lines[6][2..6],
            ["GiB/s", "2.000", "4.000", "+100.0%"].map(str::to_owned)
        );
        run.steps[0].summary.scheduled += 1;
        let text = String::from_utf8(render(&[run]).unwrap()).unwrap();
        assert!(
            text.contains("verified\\* |") && text.ends_with("requests alone.\n"),
            "{text}"
        );
    }
}
