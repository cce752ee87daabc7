//! Bulk streams: a row for each combination of settings.

use netping_measure::path::PathAccount;
use netping_results::{
    bulk::{BulkSettings, SERVERS_CHOICE},
    estimate::estimate,
    format::{self, on_one_line, thousands},
    metric,
    probe::ProbeSummary,
    run::{Measurement, Run},
};

use crate::{
    finding::{
        MetricColumn, change_cells, hold_together, interval, missing, pair_of, value_of,
        value_with_interval,
    },
    path,
    table::{Column, Table},
};

/// A setting that may differ between combinations: its column, and its value as text.
type Setting = (Column, fn(&Measurement<'_>, &BulkSettings) -> String);

const SETTINGS: [Setting; 5] = [
    (Column::text("target"), |own, _| own.name().to_owned()),
    (Column::number("size"), |_, of| {
        BulkSettings::shown(of.size_bytes)
    }),
    (Column::number("chunk"), |_, of| {
        BulkSettings::shown(of.chunk_bytes)
    }),
    (Column::number("window"), |_, of| {
        or_default(of.window_bytes)
    }),
    (Column::number("frame"), |_, of| or_default(of.frame_bytes)),
];

/// Returns the columns of the results, with these of times.
fn result_columns(times: &[MetricColumn]) -> Vec<Column> {
    let mut columns = vec![
        Column::number("GiB/s"),
        Column::number("95% interval"),
        Column::number("cli s/GiB").spare(3),
        Column::number("srv s/GiB").spare(2),
        Column::number("in kernel").spare(5),
        Column::number("softirq s/GiB").spare(6),
    ];
    columns.extend(times.iter().map(|own| own.column().spare(4)));
    columns.extend([Column::number("runs"), Column::number("failed")]);
    columns
}

const COMPARED: [Column; 3] = [
    Column::number("to first"),
    Column::number("95% interval").spare(1),
    Column::text("shown"),
];

/// Returns the settings that all share, and a table of the others.
pub(super) fn text(run: &Run) -> String {
    let measurements = run.measurements();
    let all: Vec<(&Measurement<'_>, &BulkSettings)> = measurements
        .iter()
        .filter_map(|own| Some((own, own.settings().bulk.as_ref()?)))
        .collect();
    let Some((first, settings)) = all.first() else {
        return String::new();
    };
    let differs = |(_, of): &Setting| {
        let mut others = all.iter();
        others.any(|(own, it)| of(own, it) != of(first, settings))
    };
    let (varied, fixed): (Vec<Setting>, Vec<Setting>) = SETTINGS.into_iter().partition(differs);
    let mut title = vec![settings.direction.name().to_owned()];
    let fixed = fixed.iter();
    title.extend(fixed.map(|(column, of)| format!("{} {}", column.title, of(first, settings))));
    title.push(format!("streams {}", settings.streams));
    title.extend(settings.verify.then(|| "verified".to_owned()));
    let compared = run.compared();
    let mut columns: Vec<Column> = varied.iter().map(|(column, _)| column.clone()).collect();
    let times = [&metric::BULK_FIRST_BYTE].into_iter();
    let times = times.chain(metric::of_probes(&run.steps).iter().copied());
    let times = times.map(|metric| MetricColumn::of(metric, &measurements));
    let times: Vec<MetricColumn> = times.collect();
    columns.extend(result_columns(&times));
    if !compared.is_empty() {
        columns.extend(COMPARED);
    }
    let row = |(own, settings): &(&Measurement<'_>, &BulkSettings)| {
        let mut row: Vec<String> = varied.iter().map(|(_, of)| of(own, settings)).collect();
        row.extend(results(own, &times));
        if !compared.is_empty() {
            let pair = pair_of(&compared, own);
            row.extend(change_cells(
                pair.and_then(|pair| pair.by(&metric::BULK_RATE)),
            ));
        }
        row
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let mut lines = vec![title.join(", "), Table::whole(&columns, &rows)];
    let choices = all
        .iter()
        .filter_map(|(own, settings)| choice(own, settings));
    lines.extend(choices);
    let shown = [metric::BULK, metric::of_probes(&run.steps)].concat();
    let missing = all.iter().filter_map(|(own, _)| missing(&shown, own));
    lines.extend(missing);
    lines.extend(all.iter().filter_map(|(own, _)| limit(own)));
    lines.extend(all.iter().filter_map(|(own, _)| probe(own)));
    if !compared.is_empty() {
        let hold = hold_together(run.family().claims);
        lines.push(format!(
            "Every combination was measured in each round, in random order. A difference to the first row is taken within rounds, \
             and shown where its interval leaves out 0; {hold} (Student's t-test on logarithms)."
        ));
    }
    lines.join("\n")
}

fn results(own: &Measurement<'_>, times: &[MetricColumn]) -> Vec<String> {
    let cell = |metric| value_of(metric, own);
    let failed = own.trials.iter().filter(|step| step.bulk.is_none()).count();
    let mut row = vec![
        cell(&metric::BULK_RATE),
        interval(
            metric::BULK_RATE.reading([]),
            estimate(&metric::BULK_RATE, own),
        ),
        cell(&metric::BULK_CLIENT_CPU),
        cell(&metric::BULK_SERVER_CPU),
        cell(&metric::BULK_SERVER_SYSTEM),
        cell(&metric::BULK_SOFTIRQ),
    ];
    row.extend(times.iter().map(|column| column.cell(own)));
    row.extend([own.trials.len().to_string(), failed.to_string()]);
    row
}

/// Says what the streams did to small requests: by the median of each run, and by the times of all runs together.
fn probe(own: &Measurement<'_>) -> Option<String> {
    let all = ProbeSummary::sum(own.trials.iter().filter_map(|step| step.probe.as_deref()))?;
    let added = estimate(&metric::PROBE_ADDED_P50, own);
    let mut parts = vec![match added {
        Some(_) => {
            let added = value_with_interval(&metric::PROBE_ADDED_P50, added);
            format!("the streams added {added} us to p50")
        }
        None => "too few beside the streams for p50".to_owned(),
    }];
    let both = [&all.idle.time, &all.loaded.time];
    parts.push(if both.iter().all(|times| times.quantile(99.0).is_some()) {
        let [idle, loaded] = both.map(|times| metric::P99.tell_times(times));
        format!("p99 of all runs was {idle} idle, {loaded} loaded")
    } else {
        "too few for p99".to_owned()
    });
    parts.extend((all.failed > 0).then(|| format!("{} failed", all.failed)));
    parts.extend((all.waited > 0).then(|| {
        let waited = thousands(all.waited as f64);
        format!(
            "{waited} were late, since too many were under way, and their times grow with the run"
        )
    }));
    let name = on_one_line(&own.long_name());
    Some(format!("{name}: small requests: {}", parts.join("; ")))
}

fn or_default(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "default".to_owned(), format::bytes)
}

/// Says what held a combination's data back over all its runs, if anything did.
fn limit(own: &Measurement<'_>) -> Option<String> {
    let paths = own.trials.iter().filter_map(|step| step.path.clone());
    let told = path::limit(&PathAccount::sum(paths)?)?;
    Some(format!("{}: {told}", on_one_line(&own.long_name())))
}

/// Says what the server chose, if anything was its choice.
fn choice(own: &Measurement<'_>, settings: &BulkSettings) -> Option<String> {
    if ![settings.size_bytes, settings.chunk_bytes].contains(&SERVERS_CHOICE) {
        return None;
    }
    let runs = || own.trials.iter().filter_map(|step| step.bulk);
    let exact = |bytes: u64| format!("{} bytes", thousands(bytes as f64));
    let sizes = || runs().map(|run| run.bytes);
    let (least, most) = (sizes().min()?, sizes().max()?);
    let sizes = if least == most {
        exact(least)
    } else {
        format!("{} to {}", exact(least), exact(most))
    };
    let longest = runs().filter_map(|run| run.message_bytes).max();
    let messages = longest.map(|most| format!(", in messages of at most {}", exact(most)));
    let messages = messages.unwrap_or_default();
    Some(format!("{}: each run had {sizes}{messages}", own.name()))
}
