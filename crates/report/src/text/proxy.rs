//! The overhead of proxies over the direct path, and their maximum throughput.

use netping_results::{
    comparison::{Compared, Comparison, Finding, Standing},
    estimate::estimate,
    format::{self, optional, thousands},
    metric,
    run::{Measurement, Run},
    time_unit::TimeUnit,
};

use crate::{
    finding::{
        FAILED_TIMES, MetricColumn, NOT_RELIED_ON, added, change, change_cells, claim,
        hold_together, interval, missing, or_dash, pair_of, reading_of, unit_of_added, value,
        value_of,
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

    /// Returns the planned rate, in requests per second; `None` of a closed loop.
    fn rate(&self) -> Option<f64> {
        self.direct.settings().planned_rate
    }

    /// Returns the line above what proxies add.
    fn caption(&self, unit: TimeUnit) -> String {
        let caption = format!(
            "added to the direct path's, in {} and in % of it",
            unit.name()
        );
        let mut proxies = self.proxies.iter();
        if proxies.all(|own| own.standing() == Standing::Sound) {
            caption
        } else {
            format!("{caption}; {NOT_RELIED_ON}")
        }
    }

    /// Returns a row for each proxy, with a cell for each measure of its overhead.
    fn differences(&self, cell: impl Fn(&Comparison) -> Option<String>) -> Vec<Vec<String>> {
        let row = |own: &Compared<'_>| {
            let failed = self.direct.unserved() + own.new.unserved();
            let metrics = metric::OVERHEAD.iter();
            let cells = metrics.map(|metric| or_dash(own.by(metric).and_then(&cell)));
            named(marked(&own.new, failed), cells)
        };
        self.proxies.iter().map(row).collect()
    }
}

/// Returns the tables of the ramp, of the highest rate, and of the closed loops.
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
    let is_open = |own: &Paths<'_>| own.rate().is_some();
    let (mut open, closed): (Vec<_>, Vec<_>) = loads.into_iter().partition(is_open);
    let highest = highest(&open).map(|place| open.remove(place));
    let mut parts: Vec<String> = ramp(&open).into_iter().collect();
    parts.extend(highest.as_ref().map(overheads));
    parts.extend(maximum(&closed));
    parts.push(legend(run, highest.is_some(), !closed.is_empty()));
    parts.join("\n")
}

/// Returns the place of the highest rate at which paths are compared.
fn highest(open: &[Paths<'_>]) -> Option<usize> {
    let places = (0..open.len()).filter(|place| !open[*place].proxies.is_empty());
    let rate = |place: &usize| open[*place].rate().unwrap_or_default();
    places.max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// Returns a line for each path at each of the other rates; `None` where there is no other.
fn ramp(others: &[Paths<'_>]) -> Option<String> {
    let [p50, p99] = [&metric::P50, &metric::P99]
        .map(|metric| MetricColumn::of(metric, others.iter().flat_map(Paths::all)));
    let columns = [
        Column::number("planned/s"),
        Column::text("path"),
        Column::number("req/s"),
        Column::number("failed"),
        p50.column(),
        p99.column(),
    ];
    let row = |path: &Measurement<'_>| {
        vec![
            format::rate(path.settings().planned_rate.unwrap_or_default()),
            marked(path, path.unserved()),
            value_of(&metric::RATE, path),
            thousands(path.unserved() as f64),
            p50.cell(path),
            p99.cell(path),
        ]
    };
    let rows: Vec<_> = others.iter().flat_map(Paths::all).map(row).collect();
    (!rows.is_empty()).then(|| {
        format!(
            "open loops at other rates, which are described and not compared\n{}",
            Table::whole(&columns, &rows)
        )
    })
}

/// Returns the tables of the highest rate: the response times of each path, and what each proxy adds
/// to those of the direct path.
fn overheads(paths: &Paths<'_>) -> String {
    let rate = paths.rate().unwrap_or_default();
    let medians = paths.all().map(|path| estimate(&metric::P50, path));
    // One for all times, so that a row reads as a distribution.
    let unit = reading_of(&metric::P50, medians).times();
    let unit = unit.unwrap_or(TimeUnit::Micros);
    let times = paths.all().map(|path| {
        let times = metric::OVERHEAD.iter();
        let times = times.map(|metric| value(metric.unit.reading_in(unit), estimate(metric, path)));
        named(marked(path, path.unserved()), times)
    });
    let medians = paths.proxies.iter().filter_map(|own| own.by(&metric::P50));
    let added_unit = unit_of_added(medians);
    let shown = |time: f64| added_unit.signed(time);
    let mut parts = vec![
        format!("open loop, {} req/s planned", format::rate(rate)),
        resources(paths),
        format!("response times in {}", unit.name()),
        by_metric(&times.collect::<Vec<_>>()),
        paths.caption(added_unit),
        by_metric(&paths.differences(|by| overhead(by, added_unit))),
    ];
    let unclaimed = paths.proxies.iter();
    parts.extend(unclaimed.filter_map(|own| claim(own.new.name(), &[own], None)));
    let mut measured = paths.proxies.iter().flat_map(|own| &own.comparisons);
    if measured.any(|by| by.interval.is_some()) {
        parts.push(format!(
            "95% intervals of the time added, in {}",
            added_unit.name()
        ));
        parts.push(by_metric(&paths.differences(|by| added(by, shown)?.1)));
    }
    if paths.all().any(|path| path.unserved() > 0) {
        parts.push(format!(
            "* requests failed on this path or on the direct one, and the times do not describe the proxy: {FAILED_TIMES}"
        ));
    }
    parts.extend(
        paths
            .all()
            .filter_map(|path| missing(metric::OVERHEAD, path)),
    );
    parts.join("\n")
}

/// Returns a table with a row for each path and a column for each measure of a proxy's overhead.
fn by_metric(rows: &[Vec<String>]) -> String {
    let mut columns = vec![Column::text("path")];
    let metrics = metric::OVERHEAD.iter();
    columns.extend(metrics.map(|metric| Column::number(metric.name)));
    Table::folded(&columns, rows)
}

/// Returns a row that begins with a name.
fn named(name: String, cells: impl Iterator<Item = String>) -> Vec<String> {
    [name].into_iter().chain(cells).collect()
}

/// Returns the rate and failures of each path, and the resources of its proxy or server.
fn resources(paths: &Paths<'_>) -> String {
    // In an open loop the rate is planned, and a proxy does not change it.
    let is_closed = paths.rate().is_none();
    let mut columns = vec![Column::text("path"), Column::number("req/s")];
    if is_closed {
        columns.extend([
            Column::number("95% interval").spare(2),
            Column::number("to direct").spare(3),
            Column::number("95% interval").spare(1),
            Column::text("shown"),
        ]);
    }
    let cpu = MetricColumn::of(&metric::SERVER_CPU, paths.all());
    let cpu_title = cpu.times().map_or("", TimeUnit::name);
    columns.extend([
        Column::number("failed"),
        Column::number("").titled(format!("cpu {cpu_title}")),
        Column::number("RSS MiB"),
    ]);
    let reading = metric::RATE.reading([]);
    let row = |path: &Measurement<'_>| {
        let rate = estimate(&metric::RATE, path);
        let mut row = vec![marked(path, path.unserved()), value(reading, rate)];
        if is_closed {
            let pair = pair_of(&paths.proxies, path);
            row.push(interval(reading, rate));
            row.extend(change_cells(pair.and_then(|own| own.by(&metric::RATE))));
        }
        let servers = path
            .trials
            .iter()
            .filter_map(|step| step.cost.server.as_ref());
        let resident = servers.filter_map(|server| server.resident_bytes).max();
        row.extend([
            thousands(path.unserved() as f64),
            cpu.cell(path),
            optional(resident.map(|bytes| bytes as f64 / MIB)),
        ]);
        row
    };
    Table::whole(&columns, &paths.all().map(row).collect::<Vec<_>>())
}

/// Returns an overhead in this unit and as a share, after `~` where no difference is shown by a metric on
/// which a claim is made.
fn overhead(by: &Comparison, unit: TimeUnit) -> Option<String> {
    let (added, _) = added(by, |time| unit.signed(time))?;
    let is_claimed_none = matches!(
        by.finding(),
        Some(Finding::NoDifference | Finding::Equivalent)
    );
    let mark = if is_claimed_none { "~ " } else { "" };
    Some(format!("{mark}{added} ({})", change(by)))
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
            value(metric::RATE.reading([]), rate),
            interval(metric::RATE.reading([]), rate),
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

/// Returns the legend of the tables of the highest rate and of closed loops, if there are such.
fn legend(run: &Run, has_overheads: bool, has_closed: bool) -> String {
    let family = run.family();
    let trust = match most_trials(run) {
        0 | 1 => "One trial of each path: the intervals are those from within it, and do not cover what varies from trial to trial; \
                  --trials 6 or more show it.\n"
            .to_owned(),
        trials => {
            let claimed = match (has_overheads, has_closed) {
                (true, true) => "p50 and p99 at this rate, and on rates in closed loops",
                (true, false) => "p50 and p99 at this rate",
                _ => "rates",
            };
            let others = if has_overheads {
                " The other measures have intervals of the same kind, without a claim. ~: no difference shown."
            } else {
                ""
            };
            format!(
                "{trials} trials of each path, in random order: differences are taken within each trial (Student's t-test on \
                 logarithms). Claims are made on {claimed}: {}.{others}\n",
                hold_together(family.claims)
            )
        }
    };
    let added = if has_overheads {
        "Added: the difference of the two paths' quantiles (or of another measure), not a quantile of differences. Response \
         times begin when a request was due.\n"
    } else {
        ""
    };
    format!(
        "{added}{trust}cpu: per request; RSS: at the window's end (the maximum of all trials); of the server on the direct path and of \
         the proxy on the others; '-': unknown (--server-pid, --proxy-pid, --proxy-metrics)."
    )
}

/// Returns a path's name, marked where requests failed.
fn marked(path: &Measurement<'_>, failed: u64) -> String {
    format!("{}{}", path.name(), if failed > 0 { "*" } else { "" })
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures,
        run::{Kind, Pairing},
    };

    use super::*;

    /// Response times in us, of a trial of a path.
    type Times = fn(u64) -> Vec<u64>;

    /// Half of the requests took one time, half another one; `spread` makes trials differ.
    fn times(first: u64, second: u64, spread: u64) -> Vec<u64> {
        [vec![first + spread; 1500], vec![second + spread; 500]].concat()
    }

    /// Four trials of the direct path, of a proxy that is slower, and of one whose tail varies.
    fn ramp_of(rates: &[f64]) -> Run {
        let paths: [(&str, Times); 3] = [
            ("direct", |trial| times(100, 150, trial)),
            ("slower", |trial| times(150, 300, trial)),
            ("varying", |trial| {
                times(100 + trial, [160, 900, 140, 2000][trial as usize], 0)
            }),
        ];
        let mut steps = Vec::new();
        for &rate in rates {
            for (label, times) in paths {
                for trial in 0..4 {
                    let nanos = times(trial)
                        .iter()
                        .map(|time| time * 1000)
                        .collect::<Vec<_>>();
                    let mut step = fixtures::step(1, |_| nanos.clone());
                    step.label = Some(label.to_owned());
                    step.settings.planned_rate = Some(rate);
                    steps.push(step);
                }
            }
        }
        let base = 3 * (rates.len() - 1);
        Run {
            kind: Kind::Proxy,
            pairings: Pairing::against_first(base..base + 3).collect(),
            ..fixtures::run(steps)
        }
    }

    /// Returns the rows of a path below a caption.
    fn rows<'a>(text: &'a str, caption: &str, path: &str) -> Vec<&'a str> {
        let start = text
            .find(caption)
            .unwrap_or_else(|| panic!("{caption}: {text}"));
        let below = text[start..].lines().skip(1);
        let table = below.take_while(|line| line.contains("  "));
        table.filter(|line| line.starts_with(path)).collect()
    }

    #[test]
    fn tables_fit_eighty_columns() {
        let text = text(&ramp_of(&[1000.0, 2000.0]));
        let tables = text.lines().filter(|line| line.contains("  "));
        let widest = tables.map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|width| width <= 80), "{text}");
        // Every measure is there, in each of the tables.
        for caption in ["response times in us", "added to", "95% intervals"] {
            let start = text.find(caption).unwrap();
            for metric in metric::OVERHEAD {
                let titles = text[start..]
                    .lines()
                    .filter(|line| line.starts_with("path"));
                let mut all = titles.flat_map(str::split_whitespace);
                assert!(all.any(|title| title == metric.name), "{caption}: {text}");
            }
        }
    }

    #[test]
    fn an_overhead_is_in_us_and_in_per_cent_of_the_direct_path() {
        let text = text(&ramp_of(&[2000.0]));
        let values = rows(&text, "response times", "direct");
        assert!(values[0].contains(" 102 "), "{values:?}");
        let added = rows(&text, "added to", "slower").concat();
        assert!(added.contains("+50.0 (+49.3%)"), "{added}");
    }

    #[test]
    fn only_what_is_claimed_is_marked_as_not_shown() {
        let text = text(&ramp_of(&[2000.0]));
        let varying = rows(&text, "added to", "varying").concat();
        // Of p50 and p99 alone; the other quantiles have a value and, below, an interval.
        assert_eq!(varying.matches('~').count(), 2, "{varying}");
        let ends = rows(&text, "95% intervals", "varying").concat();
        assert!(ends.matches("..").count() >= 7, "{ends}");
        assert!(!rows(&text, "added to", "slower").concat().contains('~'));
    }

    #[test]
    fn lower_rates_have_a_line_for_each_path_and_no_claims() {
        let (ramp, single) = (ramp_of(&[500.0, 1000.0, 2000.0]), ramp_of(&[2000.0]));
        assert_eq!(ramp.family(), single.family());
        let text = text(&ramp);
        let other = "open loops at other rates";
        assert_eq!(rows(&text, other, "      500  ").len(), 3, "{text}");
        assert_eq!(rows(&text, other, "    1,000  ").len(), 3, "{text}");
        assert_eq!(text.matches("req/s planned").count(), 1, "{text}");
        let added = |text: &str| rows(text, "added to", "slower").concat();
        assert_eq!(added(&text), added(&super::text(&single)));
    }
}
