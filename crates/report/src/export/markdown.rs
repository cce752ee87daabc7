//! Tables in Markdown, as a README has them: steps, bulk streams, and what proxies add, as far as
//! there are any.

use std::borrow::Cow;

use netping_results::{
    bulk::BulkStep,
    format::{micros, thousands},
    metric::{self, Unit},
    overhead::Overhead,
    run::{Run, Step},
};

use super::Rendered;

/// One file.
#[expect(clippy::unnecessary_wraps, reason = "every format has this form")]
pub(super) fn render(runs: &[Run]) -> Rendered {
    let steps: Vec<&Step> = runs.iter().flat_map(|run| &run.steps).collect();
    let bulk: Vec<&BulkStep> = runs.iter().flat_map(|run| &run.bulk).collect();
    let overheads: Vec<&Overhead> = runs.iter().flat_map(|run| &run.overheads).collect();
    let tables = [
        table(&step_columns(&steps), &steps),
        table(&bulk_columns(), &bulk),
        table(&overhead_columns(), &overheads),
    ];
    let failed = overheads.iter().any(|overhead| overhead.failed > 0);
    let tables: Vec<String> = tables
        .into_iter()
        .flatten()
        .chain(failed.then(|| MARK.to_owned()))
        .collect();
    // Each ends its last line, so that there is an empty one between them.
    Ok(tables.join("\n").into_bytes())
}

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
fn table<T>(columns: &[Column<T>], rows: &[&T]) -> Option<String> {
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

/// The columns for these steps: those that tell them apart only where they do.
fn step_columns(steps: &[&Step]) -> Vec<Column<Step>> {
    let open = |step: &&Step| step.settings.planned_rate.is_some();
    let planned = steps.iter().any(open);
    let trials = steps.iter().any(|step| step.trial > 1);
    let target = |step: &Step| step.name().to_owned();
    let mut columns = vec![
        words("target", target),
        number("callers", |step: &Step| step.settings.callers.to_string()),
        number("connections", |step: &Step| {
            step.settings.connections.to_string()
        }),
        number("payload bytes", |step: &Step| {
            thousands(step.settings.payload_bytes as f64)
        }),
    ];
    if trials {
        columns.push(number("trial", |step: &Step| step.trial.to_string()));
    }
    if planned {
        let rate = |step: &Step| step.settings.planned_rate.map_or_else(nothing, thousands);
        columns.push(number("planned req/s", rate));
    }
    let streams = metric::of_streams(steps.iter().copied());
    columns.extend(
        metric::MARKDOWN
            .iter()
            .chain(streams)
            .map(|&metric| Column {
                title: match metric.unit {
                    Unit::CpuMicros => format!("{} us/req", metric.label).into(),
                    _ => metric.title.into(),
                },
                words: false,
                cell: Box::new(move |step: &Step| metric.cell_of_step(step)),
            }),
    );
    columns
}

fn bulk_columns() -> [Column<BulkStep>; 8] {
    let rate = |step: &BulkStep| Some(step.summary?.gib_per_second.mean);
    let half = |step: &BulkStep| step.summary?.gib_per_second.half_width;
    let cell = |value: Option<f64>| value.map_or_else(nothing, |value| format!("{value:.3}"));
    [
        words("target", |step: &BulkStep| step.target.clone()),
        words("direction", |step: &BulkStep| {
            step.settings.direction.name().to_owned()
        }),
        number("bytes", |step: &BulkStep| {
            thousands(step.settings.size_bytes as f64)
        }),
        number("streams", |step: &BulkStep| {
            step.settings.streams.to_string()
        }),
        number("runs", |step: &BulkStep| step.runs.len().to_string()),
        number("GiB/s", move |step: &BulkStep| cell(rate(step))),
        number("±GiB/s", move |step: &BulkStep| cell(half(step))),
        number("failed", |step: &BulkStep| {
            thousands(step.errors.values().sum::<u64>() as f64)
        }),
    ]
}

fn overhead_columns() -> [Column<Overhead>; 7] {
    [
        words("via", Overhead::marked_via),
        number("planned req/s", |of: &Overhead| {
            of.planned_rate.map_or_else(nothing, thousands)
        }),
        words("measure", |of: &Overhead| of.measure.clone()),
        number("direct us", |of: &Overhead| micros(of.direct_us)),
        number("via us", |of: &Overhead| micros(of.via_us)),
        number("added us", |of: &Overhead| micros(of.added_us)),
        number("95% interval us", |of: &Overhead| {
            let interval = |[low, high]: [f64; 2]| format!("{}..{}", micros(low), micros(high));
            of.interval_us.map_or_else(nothing, interval)
        }),
    ]
}

/// The meaning of the mark at a proxy's name.
const MARK: &str = "\\*: requests failed on this path or on the direct one; the times are of the successful requests alone and do not describe \
                        the proxy.\n";

/// Where there is no number to show.
fn nothing() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
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
            ["1,000", "500", "990", "-"].map(str::to_owned)
        );
    }

    #[test]
    fn columns_that_tell_nothing_are_left_out() {
        let step = fixture::step("tcp://h:1", 1, &[5]);
        let titles = |run: Run| cells(run).remove(0);
        let plain = titles(fixture::run(vec![step.clone()]));
        assert!(
            !plain.contains(&"trial".to_owned()) && !plain.contains(&"planned req/s".to_owned())
        );
        let mut second = Step { trial: 2, ..step };
        second.settings.planned_rate = Some(1000.0);
        let more = titles(fixture::run(vec![second]));
        assert!(more.contains(&"trial".to_owned()) && more.contains(&"planned req/s".to_owned()));
    }

    #[test]
    fn bulk_streams_and_overheads_are_tables_of_their_own() {
        let mut run = fixture::run(Vec::new());
        run.bulk.push(netping_results::fixtures::bulk());
        run.overheads.push(Overhead {
            via: "a|b".to_owned(),
            planned_rate: None,
            measure: "p99".to_owned(),
            direct_us: 100.0,
            via_us: 150.0,
            added_us: 50.0,
            interval_us: Some([40.0, 60.0]),
            p_value: Some(0.01),
            failed: 0,
        });
        let lines = cells(run.clone());
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[2][5..7], ["3.000", "1.500"].map(str::to_owned));
        assert_eq!(
            lines[5],
            ["a\\|b", "-", "p99", "100", "150", "50.0", "40.0..60.0"]
        );
        run.overheads[0].failed = 1;
        let text = String::from_utf8(render(&[run]).unwrap()).unwrap();
        assert!(
            text.contains("\n| a\\|b\\* | - | p99 |") && text.ends_with("describe the proxy.\n"),
            "{text}"
        );
    }
}
