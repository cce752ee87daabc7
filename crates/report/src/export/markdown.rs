//! Tables in Markdown, as a README has them: measurements of requests and of bulk streams, and what
//! comparisons found, as far as there are any.

use netping_results::{
    bulk::BulkSettings,
    comparison::{Compared, Comparison},
    format::{is_unsafe, on_lines, thousands},
    metric::{self, Metric, Unit},
    run::{Kind, Measurement, Run, StepSettings},
    time_unit::TimeUnit,
    warning::Warnings,
};

use super::Rendered;
use crate::{
    ab,
    finding::{
        FAILED_TIMES, MetricColumn, added, change, change_interval, has_failures, or_dash,
        reading_of, shown, sides, unit_of_added, value,
    },
    in_shell,
    table::Column,
};

/// A column with the cells of all rows.
type Cells = (Column, Vec<String>);

/// One file.
#[expect(clippy::unnecessary_wraps, reason = "every format has this form")]
pub(super) fn render(runs: &[Run]) -> Rendered {
    let all = runs.iter().flat_map(Run::measurements);
    let (streams, others): (Vec<_>, Vec<_>) = all.partition(|own| own.settings().bulk.is_some());
    let (deciding, comparing): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|own| own.kind == Kind::Ab);
    let compared: Vec<Compared<'_>> = comparing.into_iter().flat_map(Run::compared).collect();
    let mut tables = vec![not_valid(runs)];
    tables.extend(deciding.into_iter().map(decision));
    tables.extend([requests(&others), bulk(&streams), differences(&compared)]);
    if compared.iter().any(has_failures) {
        tables.push(format!(
            "\\*: requests failed on one of the two sides; {FAILED_TIMES}.\n"
        ));
    }
    tables.retain(|table| !table.is_empty());
    // Each ends its last line, so that there is an empty one between them.
    Ok(tables.join("\n").into_bytes())
}

/// Returns a line for each run that is not valid.
fn not_valid(runs: &[Run]) -> String {
    let line = |run: &Run| {
        let names = Warnings::of_run(run).invalidating();
        let (kind, names) = (run.kind.name(), escape(&names.join(", ")));
        let line = format!("**NOT VALID** ({kind}): {names}; do not rely on the numbers below.\n");
        (!names.is_empty()).then_some(line)
    };
    let lines: Vec<String> = runs.iter().filter_map(line).collect();
    lines.join("\n")
}

/// Returns the verdict of a run that is to decide, and what it rests on.
fn decision(run: &Run) -> String {
    let decided = run.decided();
    let sentence = ab::sentence(run, &decided);
    let (answer, rest) = sentence.split_once(':').unwrap_or((&sentence, ""));
    let mut lines = vec![
        format!("**{}**:{}", escape(answer), escape(rest)),
        ab::table(&decided, in_markdown),
    ];
    lines.extend(ab::failures(run).as_deref().map(escape));
    lines.push(escape(&ab::legend(run, &decided)));
    // What differs between the two are the commands that start them, or their URLs.
    lines.push(in_code(&on_lines(&in_shell(&run.command_line))));
    lines.join("\n\n") + "\n"
}

/// Returns a block of code.
fn in_code(text: &str) -> String {
    format!("    {}", text.replace('\n', "\n    "))
}

/// Lays out a table in Markdown, without the last line end.
fn in_markdown(columns: &[Column], rows: &[Vec<String>]) -> String {
    let columns = columns.iter().enumerate();
    let columns = columns.map(|(at, column)| cells(column.clone(), rows, |row| row[at].clone()));
    table(&columns.collect::<Vec<_>>()).trim_end().to_owned()
}

/// Returns a table with a line end; nothing where it has no rows.
fn table(columns: &[Cells]) -> String {
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    if rows == 0 {
        return String::new();
    }
    let line = |cell: &dyn Fn(&Cells) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let titles = line(&|(column, _)| column.title.to_string());
    let rule = line(&|(column, _)| if column.left { "---" } else { "---:" }.to_owned());
    let rows = (0..rows).map(|row| line(&|(_, cells)| escape(&cells[row])));
    titles + &rule + &rows.collect::<String>()
}

fn cells<T>(column: Column, rows: &[T], cell: impl Fn(&T) -> String) -> Cells {
    (column, rows.iter().map(cell).collect())
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
            character if is_unsafe(character) => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

/// The table of requests: columns that tell measurements apart only where they do.
fn requests(all: &[Measurement<'_>]) -> String {
    let setting = |title, of: fn(&StepSettings) -> String| {
        cells(Column::number(title), all, |own| of(own.settings()))
    };
    let mut columns = vec![
        target(all),
        setting("callers", |of| of.callers.to_string()),
        setting("connections", |of| of.connections.to_string()),
        setting("payload bytes", |of| thousands(of.payload_bytes as f64)),
    ];
    if all.iter().any(|own| own.trials.len() > 1) {
        columns.push(trials(all));
    }
    if all.iter().any(|own| own.settings().planned_rate.is_some()) {
        let rate = |of: &StepSettings| or_dash(of.planned_rate.map(thousands));
        columns.push(setting("planned req/s", rate));
    }
    let steps = all.iter().flat_map(|own| own.trials.iter().copied());
    let metrics = metric::MARKDOWN.iter().chain(metric::of_streams(steps));
    columns.extend(metrics.map(|metric| estimates(metric, all)));
    columns.push(failed(all));
    table(&columns)
}

/// The table of bulk streams.
fn bulk(all: &[Measurement<'_>]) -> String {
    let setting = |column, of: fn(&BulkSettings) -> String| {
        cells(column, all, |own| {
            or_dash(own.settings().bulk.as_ref().map(of))
        })
    };
    let size = |of: &BulkSettings| thousands(of.size_bytes as f64);
    let mut columns = vec![
        target(all),
        setting(Column::text("direction"), |of| {
            of.direction.name().to_owned()
        }),
        setting(Column::number("bytes"), size),
        setting(Column::number("streams"), |of| of.streams.to_string()),
        trials(all),
    ];
    let steps = all.iter().flat_map(|own| own.trials.iter().copied());
    let metrics = metric::BULK.iter().chain(metric::of_probes(steps));
    columns.extend(metrics.map(|metric| estimates(metric, all)));
    columns.push(failed(all));
    table(&columns)
}

fn target(all: &[Measurement<'_>]) -> Cells {
    cells(Column::text("target"), all, |own| own.name().to_owned())
}

fn trials(all: &[Measurement<'_>]) -> Cells {
    cells(Column::number("trials"), all, |own| {
        own.trials.len().to_string()
    })
}

/// Requests without a verified reply, over all trials.
fn failed(all: &[Measurement<'_>]) -> Cells {
    let column = Column::number(metric::ERRORS.title);
    cells(column, all, |own| thousands(own.unserved() as f64))
}

/// The estimates of a metric, with their intervals where a claim may be made of it.
fn estimates(metric: &'static Metric, all: &[Measurement<'_>]) -> Cells {
    let of = MetricColumn::of(metric, all);
    let mut column = of.column();
    if metric.unit == Unit::CpuMicros {
        let unit = of.times().map_or("", TimeUnit::name);
        column.title = format!("{} {unit}/req", metric.label).into();
    }
    cells(column, all, |own| {
        if metric.is_claimed() {
            of.cell_with_interval(own)
        } else {
            of.cell(own)
        }
    })
}

/// The table of what comparisons found.
fn differences(compared: &[Compared<'_>]) -> String {
    let all: Vec<(&Compared<'_>, &Comparison)> = compared
        .iter()
        .flat_map(|pair| pair.comparisons.iter().map(move |by| (pair, by)))
        .collect();
    let pair = |title, of: fn(&Compared<'_>) -> String| {
        cells(Column::text(title), &all, |(pair, _)| of(pair))
    };
    let by = |title: &str, of: &dyn Fn(&Comparison) -> String| {
        let column = Column::number("").titled(title.to_owned());
        cells(column, &all, |(_, by)| of(by))
    };
    let reading = |by: &Comparison| reading_of(by.metric, [by.base, by.new]);
    let times = all.iter().map(|(_, by)| *by);
    let unit = unit_of_added(times.filter(|by| by.metric.unit == Unit::Nanos));
    let [added_title, ends_title] =
        ["added", "95% interval"].map(|title| format!("{title} {}", unit.name()));
    table(&[
        pair("target", |pair| {
            let [new, _] = sides(pair);
            new + if has_failures(pair) { "*" } else { "" }
        }),
        pair("against", |pair| {
            let [_, base] = sides(pair);
            base
        }),
        cells(Column::text("metric"), &all, |(_, by)| {
            by.metric.title_in(reading(by))
        }),
        by("base", &|by| value(reading(by), by.base)),
        by("value", &|by| value(reading(by), by.new)),
        by("change", &change),
        by("95% interval", &|by| {
            or_dash(Some(change_interval(by)).filter(|ends| !ends.is_empty()))
        }),
        by(&added_title, &|by| {
            or_dash(added_time(by, unit).map(|(time, _)| time))
        }),
        by(&ends_title, &|by| {
            or_dash(added_time(by, unit).and_then(|(_, ends)| ends))
        }),
        cells(Column::text("shown"), &all, |(_, by)| shown(by)),
    ])
}

/// Returns the time that a comparison adds and its interval, in this unit; `None` for a metric
/// that is no time.
fn added_time(by: &Comparison, unit: TimeUnit) -> Option<(String, Option<String>)> {
    added(by, |time| unit.show(time)).filter(|_| by.metric.unit == Unit::Nanos)
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, run::Pairing, warning::ClientThrottled};

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
        step.summary.precision.rate_half_width = Some(10.0);
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
            ["1,000 (990..1,010)", "500", "990", "-"].map(str::to_owned)
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
            pairings: vec![Pairing::new(0, 1)],
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
            text.contains("verified\\* |")
                && text.ends_with("those that failed otherwise do not.\n"),
            "{text}"
        );
    }

    #[test]
    fn a_run_that_decides_has_its_verdict_its_table_and_its_command() {
        let steps = ["base", "base again", "new", "new again"].map(|name| {
            let mut step = fixture::step("tcp://h:1", 1, &[1000; 1000]);
            step.label = Some(name.to_owned());
            step.summary.scheduled += u64::from(name == "new");
            step
        });
        let mut run = Run {
            kind: Kind::Ab,
            margin: Some(0.05),
            pairings: vec![Pairing::new(0, 2)],
            command_line: ["netping", "ab", "--base", "server {listen}"]
                .map(str::to_owned)
                .to_vec(),
            ..fixture::run(steps.to_vec())
        };
        for (number, step) in run.steps.iter_mut().enumerate() {
            step.measurement = number;
        }
        let text = String::from_utf8(render(&[run]).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert!(lines[0].starts_with("**UNDECIDED**: "), "{text}");
        assert!(
            lines[1].starts_with("|  | base | new | change | 95% interval | worse by the margin |"),
            "{text}"
        );
        assert!(
            text.contains("\nrequests without a verified reply: 1 to new\n"),
            "{text}"
        );
        assert!(
            text.contains("\n    netping ab --base 'server {listen}'\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_valid_says_so_above_and_claims_nothing() {
        let of = |target: &str, time: u64| {
            let trials = (0..5).map(|trial| {
                let mut step = fixture::step(target, 64, &[time + trial; 1000]);
                step.trial = trial as u32 + 1;
                step
            });
            trials.collect::<Vec<_>>()
        };
        let steps = [of("a", 500), of("b", 600), of("c", 700)].concat();
        let mut run = Run {
            pairings: vec![Pairing::new(0, 1), Pairing::new(0, 2)],
            ..fixture::run(steps)
        };
        let text = |run: &Run| {
            let files = render(std::slice::from_ref(run)).unwrap();
            String::from_utf8(files).unwrap()
        };
        let sound = text(&run);
        assert!(sound.starts_with("| target "), "{sound}");
        for step in run.steps.iter_mut().filter(|step| step.target == "c") {
            step.warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        }
        let wrong = text(&run);
        assert!(
            wrong.starts_with(
                "**NOT VALID** (throughput): CLIENT\\_THROTTLED; do not rely on the numbers below.\n\n| target "
            ),
            "{wrong}"
        );
        let p50 = |target: &str| -> Vec<String> {
            let mut lines = wrong.lines();
            let start = format!("| {target}, 64 callers | a, 64 callers | p50 us |");
            let line = lines.find(|line| line.starts_with(&start)).unwrap();
            line.split(" | ").skip(5).map(str::to_owned).collect()
        };
        let marked = p50("b");
        assert!(marked[0].starts_with('+'), "{marked:?}");
        assert_eq!(marked[4], "worse, not to be relied on |");
        let unclaimed = ["-", "-", "-", "-", "no claim: not valid |"];
        assert_eq!(p50("c"), unclaimed.map(str::to_owned));
    }

    #[test]
    fn a_difference_says_where_connections_differ() {
        let of = |target, connections| {
            let mut step = fixture::step(target, 64, &[5; 1000]);
            step.settings.connections = connections;
            step
        };
        let sides = |connections| {
            let run = Run {
                pairings: vec![Pairing::new(0, 1)],
                ..fixture::run(vec![of("tcp://h:1", 64), of("quic://h:2", connections)])
            };
            let lines = cells(run);
            lines.last().unwrap()[..2].to_vec()
        };
        assert_eq!(
            sides(64),
            ["quic://h:2, 64 callers", "tcp://h:1, 64 callers"]
        );
        assert_eq!(
            sides(2),
            [
                "quic://h:2, 64 callers on 2 connections",
                "tcp://h:1, 64 callers on 64 connections"
            ]
        );
    }
}
