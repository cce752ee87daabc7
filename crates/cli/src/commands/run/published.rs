//! The published numbers of a scenario file.
//!
//! A row's keys select a measurement, or name a metric and have its published value. They are those of
//! result files and of conditions.

use std::path::Path;

use netping_report::text::{Published, PublishedRow, setting_names};
use netping_results::metric::{self, Metric, Unit};
use toml::{Spanned, Value};

use super::file::{self, File, Keys, Mistake, PublishedTable, Variables, text_of, wrong};
use crate::args::{choice::Named, range::Range};

/// Keys of a row beside metrics and settings.
const OTHERS: &str = "name, target, label, kind";

/// Reads the tables of a scenario file, with these values of its variables.
pub fn read_published(path: &Path, given: &[Named<String>]) -> anyhow::Result<Vec<Published>> {
    file::read(path, |text| {
        let file = File::parse(text)?;
        let tables = published(&file, &file.variables(given)?)?;
        if tables.is_empty() {
            return Err((0, "there is no [[published]]".to_owned()));
        }
        Ok(tables)
    })
}

/// Returns the tables of a file.
pub(super) fn published(file: &File, variables: &Variables) -> Result<Vec<Published>, Mistake> {
    let tables = file.published.iter();
    tables.map(|own| table(own, variables)).collect()
}

fn table(table: &Spanned<PublishedTable>, variables: &Variables) -> Result<Published, Mistake> {
    let own = table.get_ref();
    if own.rows.is_empty() {
        return Err(wrong(table, "a table of published numbers has no rows"));
    }
    let rows = own.rows.iter();
    let rows = rows.map(|row| self::row(row, &own.all, variables));
    Ok(Published {
        source: own.source.clone(),
        rows: rows.collect::<Result<_, _>>()?,
    })
}

fn row(row: &Spanned<Keys>, all: &Keys, variables: &Variables) -> Result<PublishedRow, Mistake> {
    let own = row.get_ref();
    let shared = all.iter().filter(|(key, _)| !own.contains_key(*key));
    let mut keys: Vec<(&String, &Spanned<Value>)> = shared.chain(own).collect();
    // As they are written.
    keys.sort_by_key(|(_, value)| value.span().start);
    let mut read = PublishedRow::default();
    for (key, value) in keys {
        add(&mut read, key, value.get_ref(), variables).map_err(|reason| wrong(value, reason))?;
    }
    if read.values.is_empty() {
        return Err(wrong(row, "the row has no value, such as p50 = \"40us\""));
    }
    if read.name.is_none() && read.target.is_none() && read.label.is_none() {
        return Err(wrong(
            row,
            "the row needs a target or a label; or, if nothing here measures it, a name",
        ));
    }
    Ok(read)
}

/// Adds a key and its value to a row.
fn add(
    row: &mut PublishedRow,
    key: &str,
    value: &Value,
    variables: &Variables,
) -> Result<(), String> {
    match key {
        "name" => row.name = Some(string(key, value, variables)?),
        "target" => row.target = Some(string(key, value, variables)?),
        "label" => row.label = Some(string(key, value, variables)?),
        "kind" => row.kind = Some(string(key, value, variables)?),
        _ if setting_names().contains(key) => {
            row.settings
                .push((key.to_owned(), setting(key, value, variables)?));
        }
        _ => row.values.push(published_value(key, value)?),
    }
    Ok(())
}

fn string(key: &str, value: &Value, variables: &Variables) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("{key} is a text"))?;
    variables.expand(text)
}

/// Reads a setting; bytes may have a unit.
fn setting(key: &str, value: &Value, variables: &Variables) -> Result<String, String> {
    let text = match value {
        Value::String(text) => variables.expand(text)?,
        // 25000.0 is 25000.
        Value::Float(number) => return Ok(number.to_string()),
        other => return Ok(other.to_string()),
    };
    if !key.ends_with("_bytes") {
        return Ok(text);
    }
    match Range::of_bytes(&text)?.values() {
        [bytes] => Ok(bytes.to_string()),
        _ => Err(format!("{key} is a single value")),
    }
}

/// Reads the value of a metric, as a condition has it.
fn published_value(key: &str, value: &Value) -> Result<(&'static Metric, f64), String> {
    let metrics = metric::of_steps().chain(metric::of_bulk());
    let found = metric::named(key, metrics).map_err(|error| {
        let settings: Vec<_> = setting_names().into_iter().collect();
        format!(
            "{error}; nor of the settings {}; nor of {OTHERS}",
            settings.join(", ")
        )
    })?;
    let text = text_of(value);
    // Errors have two units.
    let mut read = found
        .iter()
        .filter_map(|metric| Some((*metric, metric.unit.parse(&text)?)));
    read.next().ok_or_else(|| {
        let example = match found[0].unit {
            Unit::Nanos | Unit::CpuMicros => "\"7.5us\"",
            Unit::Share => "\"0.1%\"",
            _ => "1.7",
        };
        let quote = if key.contains('.') { "\"" } else { "" };
        format!("'{text}' is no value of {key}, such as {quote}{key}{quote} = {example}")
    })
}

#[cfg(test)]
mod tests {
    use netping_results::metric::{BULK_RATE, P50, P999, RATE};

    use super::*;
    use crate::commands::run::file::line_of;

    const VARIABLES: &str = "[variables]\nserver = 'h'\n";

    fn parsed(tables: &str, given: &[&str]) -> Result<Vec<Published>, Mistake> {
        let file = File::parse(&format!("{VARIABLES}{tables}"))?;
        let given: Vec<_> = given.iter().map(|text| text.parse().unwrap()).collect();
        published(&file, &file.variables(&given)?)
    }

    /// The line of a mistake in the row, and its reason.
    fn error(row: &str) -> (usize, String) {
        let tables = format!("[[published]]\nsource = 's'\nrows = [\n{row}\n]\n");
        let (at, reason) = parsed(&tables, &[]).unwrap_err();
        (line_of(&format!("{VARIABLES}{tables}"), at), reason)
    }

    #[test]
    fn a_row_has_what_selects_a_measurement_and_its_values() {
        let tables = "[[published]]\nsource = 'a study'\nall = { kind = 'bulk', callers = 1 }\nrows = [\n\
            { target = 'tcp://${server}:1', callers = 8, 'p99.9' = '2ms', p50 = '7.5us', rate = '1.5k' },\n\
            { name = 'Go', size_bytes = '1MiB', planned_rate_per_s = 25000.0, bulk-rate = 3.4 },\n]\n";
        let tables = parsed(tables, &["server=198.18.0.2"]).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let settings = |all: &[(&str, &str)]| {
            let all = all.iter();
            all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let expected = Published {
            source: "a study".to_owned(),
            rows: vec![
                PublishedRow {
                    target: text("tcp://198.18.0.2:1"),
                    kind: text("bulk"),
                    settings: settings(&[("callers", "8")]),
                    // In the order in which they are written.
                    values: vec![(&P999, 2e6), (&P50, 7500.0), (&RATE, 1500.0)],
                    ..PublishedRow::default()
                },
                PublishedRow {
                    name: text("Go"),
                    kind: text("bulk"),
                    settings: settings(&[
                        ("callers", "1"),
                        ("size_bytes", "1048576"),
                        ("planned_rate_per_s", "25000"),
                    ]),
                    values: vec![(&BULK_RATE, 3.4)],
                    ..PublishedRow::default()
                },
            ],
        };
        assert_eq!(tables, [expected]);
    }

    #[test]
    fn a_mistake_in_a_row_has_its_line_and_its_reason() {
        for (row, expected) in [
            (
                "{ name = 'a', p98 = '1us' }",
                "'p98' is not one of min, mean,",
            ),
            (
                "{ name = 'a', calers = 8, p50 = '1us' }",
                "nor of the settings arrivals,",
            ),
            (
                "{ name = 'a', p50 = 40 }",
                "'40' is no value of p50, such as p50 = \"7.5us\"",
            ),
            (
                "{ name = 'a', \"p99.9\" = '40' }",
                "'40' is no value of p99.9, such as \"p99.9\" = \"7.5us\"",
            ),
            ("{ name = 'a', rate = '5us' }", "such as rate = 1.7"),
            ("{ name = 'a', callers = 8 }", "the row has no value"),
            ("{ p50 = '1us' }", "the row needs a target or a label"),
            ("{ name = 5, p50 = '1us' }", "name is a text"),
            ("{ target = '${x}', p50 = '1us' }", "[variables] has no 'x'"),
            (
                "{ name = 'a', size_bytes = '1MiB,2MiB', rate = 1 }",
                "is a single value",
            ),
        ] {
            let (line, reason) = error(&format!("{{ name = 'right', rate = 1 }},\n{row}"));
            assert!(line == 7 && reason.contains(expected), "{line}: {reason}");
        }
        let empty = parsed("[[published]]\nsource = 's'\nrows = []\n", &[]);
        assert!(empty.unwrap_err().1.contains("no rows"));
        let unknown = parsed("[[published]]\nsource = 's'\nrow = []\n", &[]);
        assert!(unknown.unwrap_err().1.contains("unknown field"));
    }
}
