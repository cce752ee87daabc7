//! The ladder: a table for each load, and what the differences show in words.

use netping_results::{
    anatomy::AnatomySummary,
    comparison::{Compared, Comparison},
    estimate::estimate,
    format::{plural, width},
    metric::{self, Metric},
    run::{Measurement, Run, StepSettings},
    time_unit::TimeUnit,
};

use super::anatomy;
use crate::{
    finding::{
        MetricColumn, added, claims, hold_together, missing, or_dash, pair_of, range, unit_of_added,
    },
    grouped,
    ladder::{FEWEST, in_words, metric_of},
    loads::most_trials,
    table::{Column, Table, wrap},
};

/// Characters in a line, without a terminal.
const WIDTH: usize = 80;

/// Stands for a difference that is not shown, which is not the same as none.
const NOT_SHOWN: &str = "~";

/// Stands for a difference that is not claimed, since one of its sides is not valid.
const NOT_CLAIMED: &str = "-";

/// Returns where the time of a round trip goes, the tables of all loads, and what they show in words.
pub(super) fn text(run: &Run) -> String {
    let compared = run.compared();
    let measurements = run.measurements();
    let anatomy = taken_apart(&measurements);
    let loads = measurements
        .into_iter()
        .map(|own| (title(own.settings()), own));
    let loads = grouped(loads);
    let tables = loads.iter().map(|(title, all)| {
        let metric = metric_of(all[0].settings());
        let units = Units::of(metric, all, &compared);
        let rows: Vec<_> = all
            .iter()
            .map(|own| row(metric, own, &compared, &units))
            .collect();
        let table = Table::whole(&columns(metric, &units), &rows);
        let missing = all.iter().filter_map(|own| missing(&[metric], own));
        let parts: Vec<String> = [title.clone(), table].into_iter().chain(missing).collect();
        parts.join("\n")
    });
    let mut parts: Vec<String> = anatomy.into_iter().chain(tables).collect();
    let words = in_words(&compared);
    let rounds = plural(most_trials(run), "round");
    parts.push(if words.is_empty() {
        format!("{rounds}: too few to call anything a difference (it takes {FEWEST}).")
    } else {
        let legend = legend(run, &rounds, &compared);
        wrap(&format!("{}\n\n{legend}", words.join("\n")), WIDTH)
    });
    parts.join("\n\n")
}

/// Returns where the time of a round trip over each rung goes, as far as its requests were taken apart.
fn taken_apart(measurements: &[Measurement<'_>]) -> Option<String> {
    let own = measurements.iter().filter_map(|own| {
        let of_rounds = own.trials.iter().filter_map(|step| step.anatomy.as_ref());
        Some((own.name(), AnatomySummary::sum(of_rounds)?))
    });
    let all: Vec<(&str, AnatomySummary)> = own.collect();
    let parts = anatomy::side_by_side(&all);
    (!all.is_empty()).then(|| format!("Where a round trip's time goes: one caller\n{parts}"))
}

/// Returns the name of a load.
fn title(settings: &StepSettings) -> String {
    let (callers, connections) = (settings.callers, settings.connections);
    let load = match callers {
        1 => "A round trip: one caller".to_owned(),
        _ if connections < callers => format!(
            "Sharing: {callers} callers on {connections} connections instead of one for each"
        ),
        _ => format!("The rate: {callers} callers, each on a connection of its own"),
    };
    if settings.message.is_some() {
        format!("{load}; {} bytes", settings.payload_bytes)
    } else {
        load
    }
}

/// The columns that have units of time.
struct Units {
    value: MetricColumn,
    client_cpu: MetricColumn,
    server_cpu: MetricColumn,
    /// The unit of times that rungs add.
    added: TimeUnit,
}

impl Units {
    fn of(metric: &'static Metric, all: &[Measurement<'_>], compared: &[Compared<'_>]) -> Self {
        let pairs = all.iter().filter_map(|own| pair_of(compared, own));
        let [value, client_cpu, server_cpu] = [metric, &metric::CLIENT_CPU, &metric::SERVER_CPU]
            .map(|metric| MetricColumn::of(metric, all));
        Self {
            value,
            client_cpu,
            server_cpu,
            added: unit_of_added(pairs.filter_map(|pair| pair.by(metric))),
        }
    }
}

fn columns(metric: &Metric, units: &Units) -> [Column; 8] {
    let difference = if is_rate(metric) {
        "x".to_owned()
    } else {
        format!("+{}", units.added.name())
    };
    [
        Column::text(""),
        units.value.column(),
        Column::text("over"),
        Column::number("").titled(difference),
        units.client_cpu.column(),
        units.server_cpu.column(),
        Column::number("+-"),
        Column::text("95% interval"),
    ]
}

fn row(
    metric: &'static Metric,
    measurement: &Measurement<'_>,
    compared: &[Compared<'_>],
    units: &Units,
) -> Vec<String> {
    let half = estimate(metric, measurement).and_then(|own| own.half_width());
    let pair = pair_of(compared, measurement);
    let by = pair.and_then(|pair| pair.by(metric));
    let base = pair.map(|pair| pair.base.name().to_owned());
    vec![
        measurement.name().to_owned(),
        units.value.cell(measurement),
        base.unwrap_or_default(),
        by.and_then(|by| amount(by, units.added))
            .unwrap_or_default(),
        units.client_cpu.cell(measurement),
        units.server_cpu.cell(measurement),
        or_dash(half.map(width)),
        by.and_then(|by| ends(by, units.added)).unwrap_or_default(),
    ]
}

/// Returns a difference as its column has it: a ratio of rates, or the time added.
fn amount(by: &Comparison, unit: TimeUnit) -> Option<String> {
    Some(if !claims(by) {
        NOT_CLAIMED.to_owned()
    } else if by.is_shown() == Some(false) {
        NOT_SHOWN.to_owned()
    } else if is_rate(by.metric) {
        format!("{:.2}", 1.0 + by.change?)
    } else {
        added(by, |time| unit.signed(time))?.0
    })
}

/// Returns the ends of a difference's interval as their column has them.
fn ends(by: &Comparison, unit: TimeUnit) -> Option<String> {
    Some(if is_rate(by.metric) {
        let ends = by.interval.filter(|_| claims(by))?;
        range(ends, |end| format!("{:.2}", 1.0 + end))
    } else {
        added(by, |time| unit.signed(time))?.1?
    })
}

fn is_rate(metric: &Metric) -> bool {
    metric == &metric::RATE
}

fn legend(run: &Run, rounds: &str, compared: &[Compared<'_>]) -> String {
    let controls = || compared.iter().filter(|own| own.is_control);
    let noise = |metric: &Metric| {
        let change = controls().find_map(|own| own.by(metric)?.change);
        or_dash(change.map(|own| format!("{:.1}%", own.abs() * 100.0)))
    };
    let again = controls().next().map(|own| {
        format!(
            ", or '{}', a second server like the first, differs as much (p50 {}, rate {})",
            own.new.name(),
            noise(&metric::P50),
            noise(&metric::RATE)
        )
    });
    let (again, hold) = (
        again.unwrap_or_default(),
        hold_together(run.family().claims),
    );
    let mut all = compared.iter().flat_map(|own| &own.comparisons);
    let not_claimed = if all.all(claims) {
        String::new()
    } else {
        format!(
            " {NOT_CLAIMED}: no claim, as a warning invalidates over a fifth of the windows of one of the two."
        )
    };
    format!(
        "{rounds} in random order. A value is the mean of its rounds on a logarithmic scale; differences are those within rounds; \
         {hold}. {NOT_SHOWN}: no difference shown, as its interval allows for none\
         {again}.{not_claimed} Rates are those of client and server together: 'cli' and 'srv', the CPU time of either per request, \
         show which of them limits one. '+-' is how far the 95% interval of the value reaches above it."
    )
}
