//! The numbers that the terminal's tables tell.

use netping_report::text;
use netping_results::{
    format::thousands,
    metric::{self, Metric},
    run::{Kind, Measurement, Run},
};

use super::one_number::{Key, Told};

/// Returns every number of the tables that stands for a metric of a measurement, or for what one adds
/// to a time.
pub fn told(run: &Run) -> Vec<Told> {
    let text = text::tables(run);
    let lines: Vec<Vec<&str>> = text.lines().map(cells).collect();
    match run.kind {
        Kind::Ladder => of_ladder(run, &lines),
        Kind::Proxy => of_proxies(run, &lines),
        Kind::Bulk => of_bulk(run, &lines),
        _ if run.order_seed.is_some() => of_trials(run, &lines),
        _ => of_rows(run, &lines),
    }
}

/// Returns the cells of a line, which are at least two spaces apart.
fn cells(line: &str) -> Vec<&str> {
    let cells = line.split("  ").map(str::trim);
    cells.filter(|cell| !cell.is_empty()).collect()
}

fn value(own: &Measurement<'_>, metric: &'static Metric, text: &str) -> Told {
    (Key::Value(own.number, metric.name), text.to_owned())
}

/// A table for each measurement, with a row for each metric.
fn of_trials(run: &Run, lines: &[Vec<&str>]) -> Vec<Told> {
    let mut all = Vec::new();
    let tables = lines.split(|line| line[0] == "measure").skip(1);
    for (own, rows) in run.measurements().iter().zip(tables) {
        let pair = run.pairings.iter().position(|pair| pair.new == own.number);
        for metric in metric::TRIALS {
            let row = rows.iter().find(|row| row[0] == metric.title).unwrap();
            all.push(value(own, metric, row[1]));
            // Some have no interval.
            let change = row[2..]
                .iter()
                .find(|cell| cell.ends_with('%') && !cell.contains(".."));
            if let (Some(place), Some(change)) = (pair, change) {
                all.push((Key::Difference(place, metric.name), (*change).to_owned()));
            }
        }
    }
    all
}

/// A row for each measurement, in the order of their numbers.
fn of_ladder(run: &Run, lines: &[Vec<&str>]) -> Vec<Told> {
    let mut rows = lines.iter();
    let mut all = Vec::new();
    for own in &run.measurements() {
        // The longest name is next to its value.
        let row = rows.find(|row| row.first().is_some_and(|cell| cell.starts_with(own.name())));
        let row = row.unwrap();
        let is_alone = own.settings().callers == 1;
        let metric = if is_alone {
            &metric::P50
        } else {
            &metric::RATE
        };
        all.push(value(own, metric, row[1]));
        let pair = run.pairings.iter().position(|pair| pair.new == own.number);
        // A difference that is not shown has no number.
        if let (Some(place), true, false) = (pair, is_alone, row.contains(&"~")) {
            let added = row[3].trim_start_matches('+');
            all.push((Key::Difference(place, metric.name), added.to_owned()));
        }
    }
    all
}

/// A row for each path at each of the lower rates; of the highest one, tables with a row for each path
/// and columns that are folded.
fn of_proxies(run: &Run, lines: &[Vec<&str>]) -> Vec<Told> {
    let mut all = Vec::new();
    let measurements = run.measurements();
    let (mut caption, mut titles): (&str, &[&str]) = ("", &[]);
    for line in lines {
        match line[..] {
            [text] => caption = text,
            ["path" | "planned/s", ..] => titles = line,
            _ if caption.starts_with("open loops at other rates") => {
                let is_own = |own: &&Measurement<'_>| {
                    let rate = own.settings().planned_rate.unwrap();
                    line[..2] == [&*thousands(rate), own.name()]
                };
                let own = measurements.iter().find(is_own).unwrap();
                for metric in [&metric::RATE, &metric::P50, &metric::P99] {
                    let at = titles.iter().position(|title| *title == metric.title);
                    all.push(value(own, metric, line[at.unwrap()]));
                }
            }
            _ => all.extend(of_path(run, caption, titles, line)),
        }
    }
    all
}

/// A row of a path at the highest rate.
fn of_path(run: &Run, caption: &str, titles: &[&str], row: &[&str]) -> Vec<Told> {
    let base = run.pairings[0].base;
    let of_base = |own: &&Measurement<'_>| own.number >= base && own.name() == row[0];
    let measurements = run.measurements();
    let own = measurements.iter().find(of_base).unwrap();
    let place = run.pairings.iter().position(|pair| pair.new == own.number);
    let mut all = Vec::new();
    if caption.starts_with("open loop, ") {
        all.push(value(own, &metric::RATE, row[1]));
    }
    for (title, text) in titles.iter().zip(row) {
        let mut metrics = metric::OVERHEAD.iter();
        let metric = metrics.find(|metric| metric.name == *title);
        let Some(metric) = metric.filter(|_| *text != "-") else {
            continue;
        };
        if caption.starts_with("response times") {
            all.push(value(own, metric, text));
        } else if caption.starts_with("added") {
            let added = text.trim_start_matches("~ ").split(' ').next().unwrap();
            let added = added.trim_start_matches('+').to_owned();
            all.push((Key::Difference(place.unwrap(), metric.name), added));
        }
    }
    all
}

/// A row for each measurement below the titles.
fn of_bulk(run: &Run, lines: &[Vec<&str>]) -> Vec<Told> {
    let header = lines
        .iter()
        .position(|line| line.contains(&"GiB/s"))
        .unwrap();
    let at = |title: &str| lines[header].iter().position(|own| *own == title).unwrap();
    let mut all = Vec::new();
    for (own, row) in run.measurements().iter().zip(&lines[header + 1..]) {
        for metric in metric::BULK {
            let text = row[at(metric.title)];
            if text != "-" {
                all.push(value(own, metric, text));
            }
        }
        let pair = run.pairings.iter().position(|pair| pair.new == own.number);
        let change = pair.map(|place| (place, row[at("to first")].to_owned()));
        all.extend(
            change.map(|(place, text)| (Key::Difference(place, metric::BULK_RATE.name), text)),
        );
    }
    all
}

/// A row for each step below the titles.
fn of_rows(run: &Run, lines: &[Vec<&str>]) -> Vec<Told> {
    let mut all = Vec::new();
    let mut titles: &[&str] = &[];
    let measurements = run.measurements();
    let mut own = measurements.iter();
    for line in lines {
        if line.contains(&"req/s") {
            titles = line;
        } else if line.len() == titles.len() && line[0].parse::<usize>().is_ok() {
            let own = own.next().unwrap();
            for metric in [
                &metric::RATE,
                &metric::P50,
                &metric::P99,
                &metric::SERVER_CPU,
            ] {
                let at = titles.iter().position(|title| *title == metric.title);
                let text = at.map(|at| line[at]).filter(|text| *text != "-");
                all.extend(text.map(|text| value(own, metric, text)));
            }
        }
    }
    all
}
