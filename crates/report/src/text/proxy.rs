//! The overhead of proxies over the direct path, and their maximum throughput.

use netping_results::{
    comparison::{Compared, Comparison},
    estimate::estimate,
    format::{optional, signed, thousands},
    metric::{self, Metric},
    run::{Measurement, Run},
};

use crate::{
    finding::{
        added, change_cells, hold_together, interval, missing, or_dash, pair_of, value, value_of,
    },
    loads::{fullest, most_trials},
    table::{Column, Table},
};

const MIB: f64 = 1_048_576.0;

/// The direct path under one load, and the proxies that are compared with it.
struct Paths<'a> {
    direct: Measurement<'a>,
    proxies: Vec<Compared<'a>>,
}

impl<'a> Paths<'a> {
    fn all(&self) -> impl Iterator<Item = &Measurement<'a>> {
        let proxies = self.proxies.iter().map(|own| &own.new);
        [&self.direct].into_iter().chain(proxies)
    }
}

/// Returns the tables of each planned rate, and of the closed loops.
pub(super) fn text(run: &Run) -> String {
    let mut compared = run.compared();
    let mut loads: Vec<Paths<'_>> = Vec::new();
    for direct in run.measurements() {
        if run.pairings.iter().any(|own| own.new == direct.number) {
            continue;
        }
        let is_own = |own: &mut Compared<'_>| own.base.number == direct.number;
        let proxies = compared.extract_if(.., is_own).collect();
        loads.push(Paths { direct, proxies });
    }
    let is_open = |own: &Paths<'_>| own.direct.settings().planned_rate.is_some();
    let (open, closed): (Vec<_>, Vec<_>) = loads.into_iter().partition(is_open);
    let mut parts: Vec<String> = open.iter().map(overheads).collect();
    parts.extend(maximum(&closed));
    parts.push(legend(run, !open.is_empty()));
    parts.join("\n")
}

/// Returns the tables of one planned rate.
fn overheads(paths: &Paths<'_>) -> String {
    let rate = paths.direct.settings().planned_rate.unwrap_or_default();
    let mut parts = vec![
        format!("open loop, {} req/s planned", thousands(rate)),
        resources(paths),
    ];
    if paths.proxies.is_empty() {
        return parts.join("\n");
    }
    let mut columns = vec![Column::text("difference of"), Column::number("direct us")];
    columns.extend(paths.proxies.iter().map(|own| {
        let failed = paths.direct.unserved() + own.new.unserved();
        Column::text("").titled(format!("{} us", marked(&own.new, failed)))
    }));
    let row = |metric: &&'static Metric| {
        let mut row = vec![metric.name.to_owned(), value_of(metric, &paths.direct)];
        let proxies = paths.proxies.iter();
        row.extend(proxies.map(|own| or_dash(own.by(metric).and_then(overhead))));
        row
    };
    let rows: Vec<_> = metric::OVERHEAD.iter().map(row).collect();
    parts.push(Table::whole(&columns, &rows));
    if paths.all().any(|path| path.unserved() > 0) {
        parts.push(
            "* requests failed on this path or on the direct one: the times are those of the successful requests and do \
             not describe the proxy"
                .to_owned(),
        );
    }
    parts.extend(
        paths
            .all()
            .filter_map(|path| missing(metric::OVERHEAD, path)),
    );
    parts.join("\n")
}

/// Returns the rate and failures of each path, and the resources of its proxy or server.
fn resources(paths: &Paths<'_>) -> String {
    // In an open loop the rate is planned, and a proxy does not change it.
    let is_closed = paths.direct.settings().planned_rate.is_none();
    let mut columns = vec![Column::text("path"), Column::number("req/s")];
    if is_closed {
        columns.extend([
            Column::number("95% interval").spare(2),
            Column::number("to direct").spare(3),
            Column::number("95% interval").spare(1),
            Column::text("shown"),
        ]);
    }
    columns.extend(["failed", "cpu us", "RSS MiB"].map(Column::number));
    let row = |path: &Measurement<'_>| {
        let rate = estimate(&metric::RATE, path);
        let mut row = vec![marked(path, path.unserved()), value(&metric::RATE, rate)];
        if is_closed {
            let pair = pair_of(&paths.proxies, path);
            row.push(interval(&metric::RATE, rate));
            row.extend(change_cells(pair.and_then(|own| own.by(&metric::RATE))));
        }
        let servers = path
            .trials
            .iter()
            .filter_map(|step| step.cost.server.as_ref());
        let resident = servers.filter_map(|server| server.resident_bytes).max();
        row.extend([
            thousands(path.unserved() as f64),
            value_of(&metric::SERVER_CPU, path),
            optional(resident.map(|bytes| bytes as f64 / MIB)),
        ]);
        row
    };
    Table::whole(&columns, &paths.all().map(row).collect::<Vec<_>>())
}

/// Returns an overhead with its interval, after `~` where no difference is shown.
fn overhead(by: &Comparison) -> Option<String> {
    Some(match added(by, signed)? {
        (added, None) => added,
        (added, Some(ends)) if by.is_shown() == Some(false) => format!("~ {added} ({ends})"),
        (added, Some(ends)) => format!("{added} ({ends})"),
    })
}

/// Returns the maximum throughput of each path, and the paths with the number of callers at which
/// the direct one has its maximum.
///
/// There is no overhead: with a fixed number of callers, a response time is that number over the
/// rate (Little's law), and says nothing that the rate does not.
fn maximum(loads: &[Paths<'_>]) -> Option<String> {
    let direct = fullest(loads.iter().map(|paths| &paths.direct))?;
    let at_most = loads
        .iter()
        .find(|own| own.direct.number == direct.number)?;
    let columns = Column::named_rows(["path", "callers", "req/s", "95% interval", "failed"]);
    let row = |path: &Measurement<'_>| {
        let all = loads.iter().flat_map(Paths::all);
        let best = fullest(all.filter(|own| own.name() == path.name())).unwrap_or(path);
        let rate = estimate(&metric::RATE, best);
        vec![
            marked(best, best.unserved()),
            best.settings().callers.to_string(),
            value(&metric::RATE, rate),
            interval(&metric::RATE, rate),
            thousands(best.unserved() as f64),
        ]
    };
    let rows: Vec<_> = at_most.all().map(row).collect();
    Some(format!(
        "maximum throughput: closed loops, the number of callers with the highest rate\n{}\n\
         closed loop, {} callers, with which the direct path had its maximum throughput\n{}",
        Table::whole(&columns, &rows),
        direct.settings().callers,
        resources(at_most)
    ))
}

/// Returns the legend of the tables, with that of overheads if there are such.
fn legend(run: &Run, has_overheads: bool) -> String {
    let hold = hold_together(run.family().claims);
    let trust = match most_trials(run) {
        0 | 1 => "One trial of each path: the intervals are those from within it, and do not cover what varies from trial to trial; \
                  --trials 3 or more show it.\n"
            .to_owned(),
        trials => format!(
            "{trials} trials of each path, in random order: differences are taken within each trial (Student's t-test on \
             logarithms). Claims are made on rates, p50 and p99: {hold}. ~: no difference shown.\n"
        ),
    };
    let added = if has_overheads {
        "Under each proxy: the time that it adds. A row is the difference of the two paths' quantiles (or of another \
         measure), not a quantile of differences. Response times begin when a request was due.\n"
    } else {
        ""
    };
    format!(
        "{added}{trust}cpu us: per request; RSS: at the window's end (the maximum of all trials); of the server on the direct path and of \
         the proxy on the others; '-': unknown (--server-pid, --proxy-pid, --proxy-metrics)."
    )
}

/// Returns a path's name, marked where requests failed.
fn marked(path: &Measurement<'_>, failed: u64) -> String {
    format!("{}{}", path.name(), if failed > 0 { "*" } else { "" })
}
