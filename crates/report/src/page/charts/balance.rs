//! The balance of the CPUs: who had the time of those that client and server may use.

use netping_measure::cost::Balance;
use netping_results::{
    balance::{Shares, sums},
    run::{Measurement, Run},
};

use crate::{
    balance::{PARTS, name, parts},
    grouped,
    page::{
        chart::{Chart, Mark, Panel, Point, Series},
        series::{apart, of_run},
        unit::PageUnit,
    },
};

const NOTE: &str = "Who had the time of the CPUs that client and server may use, over all trials. Point at a side to see how long its threads \
                    waited for a CPU, summed over threads, as a share of the window. A server that cannot be told from other programs counts as one \
                    of them, and one on a host that cannot be read has no bar. Of many measurements, those are shown that other programs disturbed \
                    most.";

/// The colours of the parts.
const COLOURS: [usize; PARTS.len()] = [0, 1, 3, 4, 7, 6];

/// Most measurements of a run.
const MOST: usize = 32;

/// Returns the chart of the balance of the CPUs: a panel for each set of them.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut rows = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let all = run.measurements();
        let shown = most_disturbed(&all);
        let names = apart(&shown.iter().map(|(own, _)| *own).collect::<Vec<_>>());
        for (own, balances) in &shown {
            let name = of_run(runs, at, &names[&own.number].join(", "));
            let bar = |balance| {
                (
                    title(balance),
                    Series::new(name.clone(), 0, points(balance)),
                )
            };
            rows.extend(balances.iter().map(bar));
        }
    }
    let panels = grouped(rows.into_iter()).into_iter();
    let panels = panels.map(|(title, rows)| Panel::rows(&title, PageUnit::CpuShare, rows));
    let key = |(name, colour): (&str, usize)| Series::new(name.to_owned(), colour, Vec::new());
    let text = ["balance", "Who had the CPUs", NOTE];
    vec![Chart {
        keys: PARTS.into_iter().zip(COLOURS).map(key).collect(),
        ..Chart::new(text, "part", panels)
    }]
}

/// Returns the measurements that have balances, with the sum of those of their trials for each set of
/// CPUs: of many, those of which others had most.
fn most_disturbed<'a>(all: &'a [Measurement<'a>]) -> Vec<(&'a Measurement<'a>, Vec<Balance>)> {
    let mut found = Vec::new();
    for own in all {
        let balances = sums(own.trials.iter().flat_map(|step| &step.cost.balances));
        let shares = balances.iter().filter_map(Shares::of);
        let most = shares
            .map(|shares| shares.others + shares.steal)
            .reduce(f64::max);
        found.extend(most.map(|most| (most, own, balances)));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(MOST);
    found.sort_by_key(|(_, own, _)| own.number);
    let found = found.into_iter();
    found.map(|(_, own, balances)| (own, balances)).collect()
}

/// Returns the title of the panel of these CPUs.
fn title(balance: &Balance) -> String {
    let side = match (balance.client, balance.server) {
        (Some(_), Some(_)) => "client and server",
        (Some(_), None) => "client",
        (None, _) => "server",
    };
    format!("{}: {side}", name(balance))
}

/// Returns a bar of parts, each of which begins where the one before it ends.
fn points(balance: &Balance) -> Vec<Point> {
    let Some(shares) = Shares::of(balance) else {
        return Vec::new();
    };
    let mut end = 0.0;
    let bar = |part: crate::balance::Part| {
        let from = end;
        end += part.share;
        let colour = Some(COLOURS[part.place]);
        Point {
            aside: part.aside,
            ..Point::new(PARTS[part.place], part.share).marked(Mark::Bar { from, colour })
        }
    };
    parts(balance, &shares).into_iter().map(bar).collect()
}
