//! Bulk streams: a row for each combination of settings.

use netping_results::{
    bulk::{BulkSettings, SERVERS_CHOICE},
    estimate::estimate,
    format::{self, thousands},
    metric::{self, Metric},
    run::{Measurement, Run},
};

use crate::{
    finding::{change, change_interval, hold_together, interval, shown, value},
    table::{Column, Table},
};

/// A setting that may differ between combinations: its column, and its value as text.
type Setting = (Column, fn(&Measurement<'_>, &BulkSettings) -> String);

const SETTINGS: [Setting; 5] = [
    (Column::text("target", 0), |own, _| own.name().to_owned()),
    (Column::number("size", 0), |_, settings| {
        BulkSettings::shown(settings.size_bytes)
    }),
    (Column::number("chunk", 0), |_, settings| {
        BulkSettings::shown(settings.chunk_bytes)
    }),
    (Column::number("window", 0), |_, settings| {
        optional_bytes(settings.window_bytes)
    }),
    (Column::number("frame", 0), |_, settings| {
        optional_bytes(settings.frame_bytes)
    }),
];

const RESULTS: [Column; 7] = [
    Column::number("GiB/s", 0),
    Column::number("95% interval", 0),
    Column::number("cli s/GiB", 0).spare(3),
    Column::number("srv s/GiB", 0).spare(2),
    Column::number("first byte us", 0).spare(4),
    Column::number("runs", 0),
    Column::number("failed", 0),
];

const COMPARED: [Column; 3] = [
    Column::number("to first", 0),
    Column::number("95% interval", 0).spare(1),
    Column::text("shown", 0),
];

/// Returns the settings that all share, and a table of the others.
pub(super) fn text(run: &Run) -> String {
    let all: Vec<(Measurement<'_>, &BulkSettings)> = run
        .measurements()
        .into_iter()
        .filter_map(|own| Some((own.clone(), own.settings().bulk.as_ref()?)))
        .collect();
    let Some((first, settings)) = all.first() else {
        return String::new();
    };
    let differs = |(_, of): &Setting| {
        all.iter()
            .any(|(own, it)| of(own, it) != of(first, settings))
    };
    let (varied, fixed): (Vec<Setting>, Vec<Setting>) = SETTINGS.into_iter().partition(differs);
    let mut title = vec![settings.direction.name().to_owned()];
    title.extend(
        fixed
            .iter()
            .map(|(column, of)| format!("{} {}", column.title, of(first, settings))),
    );
    title.push(format!("streams {}", settings.streams));
    title.extend(settings.verify.then(|| "verified".to_owned()));
    let compared = run.compared();
    let mut columns: Vec<Column> = varied.iter().map(|(column, _)| column.clone()).collect();
    columns.extend(RESULTS);
    if !compared.is_empty() {
        columns.extend(COMPARED);
    }
    let row = |(own, settings): &(Measurement<'_>, &BulkSettings)| {
        let mut row: Vec<String> = varied.iter().map(|(_, of)| of(own, settings)).collect();
        row.extend(results(own));
        let pair = compared.iter().find(|pair| pair.new.number == own.number);
        let by = pair.and_then(|pair| pair.by(&metric::BULK_RATE));
        if let Some(by) = by {
            row.extend([change(by), change_interval(by), shown(by)]);
        } else if !compared.is_empty() {
            row.extend(COMPARED.map(|_| String::new()));
        }
        row
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let mut lines = vec![title.join(", "), Table::whole(&columns, &rows)];
    lines.extend(
        all.iter()
            .filter_map(|(own, settings)| choice(own, settings)),
    );
    if !compared.is_empty() {
        let hold = hold_together(run.family().claims);
        lines.push(format!(
            "Every combination was measured in each round, in random order. A difference to the first row is taken within rounds, \
             and shown where its interval leaves out 0; {hold} (Student's t-test on logarithms)."
        ));
    }
    lines.join("\n")
}

fn results(own: &Measurement<'_>) -> Vec<String> {
    let rate = estimate(&metric::BULK_RATE, own);
    let cell = |metric: &'static Metric| value(metric, estimate(metric, own));
    let failed = own.trials.iter().filter(|step| step.bulk.is_none()).count();
    vec![
        value(&metric::BULK_RATE, rate),
        interval(&metric::BULK_RATE, rate),
        cell(&metric::BULK_CLIENT_CPU),
        cell(&metric::BULK_SERVER_CPU),
        cell(&metric::BULK_FIRST_BYTE),
        own.trials.len().to_string(),
        failed.to_string(),
    ]
}

fn optional_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "default".to_owned(), format::bytes)
}

/// Says what the server chose, if anything was its choice.
fn choice(own: &Measurement<'_>, settings: &BulkSettings) -> Option<String> {
    if settings.size_bytes != SERVERS_CHOICE && settings.chunk_bytes != SERVERS_CHOICE {
        return None;
    }
    let runs = || own.trials.iter().filter_map(|step| step.bulk);
    let exact = |bytes: u64| format!("{} bytes", thousands(bytes as f64));
    let (least, most) = (
        runs().map(|run| run.bytes).min()?,
        runs().map(|run| run.bytes).max()?,
    );
    let sizes = if least == most {
        exact(least)
    } else {
        format!("{} to {}", exact(least), exact(most))
    };
    let longest = runs().filter_map(|run| run.message_bytes).max();
    let messages = longest.map_or_else(String::new, |longest| {
        format!(", in messages of at most {}", exact(longest))
    });
    Some(format!("{}: each run had {sizes}{messages}", own.name()))
}
