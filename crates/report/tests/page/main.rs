//! Pages of every kind of report. They are left in `target/tmp/page` for the test that opens them
//! in a browser.

mod fixture;
mod one_number;
mod terminal;

use std::{fs, path::Path};

use fixture::HOSTILE;
use netping_measure::{anatomy::Part, times::Time};
use netping_report::{
    page::{self, Chart, Exact, Mark},
    text,
};
use netping_results::{
    estimate::estimate,
    fixtures, metric,
    run::{Kind, Run},
    warning::{ForeignLoad, Warning},
};

fn kinds(runs: &[Run]) -> Vec<String> {
    page::charts(runs).iter().map(Chart::file_stem).collect()
}

#[test]
fn a_ramp_is_drawn_over_its_rates_and_compared_at_the_highest() {
    let charts = page::charts(&[fixture::proxies()]);
    let find = |kind: &str| charts.iter().find(|chart| chart.kind == kind).unwrap();
    let p50 = &find("load").panels[0];
    for name in ["direct", "netping-proxy", "nginx"] {
        let mut series = p50.series.iter();
        let own = series.find(|series| series.name == name).unwrap();
        let rates: Vec<f64> = own.points.iter().map(|point| point.x.value()).collect();
        assert_eq!(rates, [5_000.0, 10_000.0], "{name}");
    }
    let overhead = find("overhead").panels.iter();
    let rows: Vec<usize> = overhead.map(|panel| panel.series.len()).collect();
    assert!(
        rows.len() > 6 && rows.iter().all(|own| *own == 2),
        "{rows:?}"
    );
}

/// Returns the charts that lead a page of this run, and the others.
fn leads(run: Run) -> [Vec<String>; 2] {
    let charts = page::charts(&[run]);
    let (leads, others): (Vec<&Chart>, Vec<&Chart>) = charts.iter().partition(|chart| chart.leads);
    [leads, others].map(|charts| charts.iter().map(|chart| chart.file_stem()).collect())
}

#[test]
fn each_kind_of_run_leads_with_the_chart_that_answers_its_question() {
    let distribution = ["quantiles", "heatmap", "fairness"];
    let after = |first: &[&'static str], then: &[&'static str]| [first, then].concat();
    for (run, lead, others) in [
        (
            fixture::sweep(80_000.0),
            vec!["sweep"],
            after(&["load"], &distribution),
        ),
        (
            fixture::open(),
            vec!["sweep-open"],
            after(&["load-open"], &distribution),
        ),
        (
            fixture::one(),
            vec!["quantiles", "heatmap"],
            vec!["fairness"],
        ),
        (
            fixture::anatomy(),
            vec!["anatomy", "trials"],
            vec!["quantiles", "heatmap"],
        ),
        (fixture::quick(), vec!["histogram"], vec![]),
        (
            fixture::trials(),
            vec!["trials", "shift"],
            after(&["differences-trials"], &distribution),
        ),
        (
            fixture::ab(),
            vec!["trials", "shift"],
            vec!["differences-trials", "quantiles", "fairness"],
        ),
        (fixture::ladder(), vec!["ladder"], vec![]),
        (fixture::ladder_apart(), vec!["anatomy", "ladder"], vec![]),
        (
            fixture::connect(),
            vec!["connect"],
            vec!["trials", "quantiles", "heatmap"],
        ),
        (fixture::bulk(), vec!["bulk"], vec![]),
        (
            fixture::bulk_targets(),
            vec!["bulk"],
            vec!["differences-trials"],
        ),
        (
            fixture::balances(),
            vec!["trials"],
            after(&distribution, &["balance"]),
        ),
        (
            fixture::proxies(),
            vec!["overhead"],
            after(&["load-open"], &distribution),
        ),
        (fixture::empty(), vec![], vec![]),
    ] {
        let name = run.command_line.join(" ");
        assert_eq!(leads(run), [lead, others], "{name}");
    }
    let mut rungs = fixture::balances();
    rungs.kind = Kind::Ladder;
    assert_eq!(leads(rungs), [["ladder"], ["balance"]]);
}

#[test]
fn a_ladder_begins_with_the_parts_of_round_trips_as_wide_as_the_page() {
    let run = fixture::ladder_apart();
    let tables = text::tables(&run);
    let title = "Where a round trip's time goes: one caller\n";
    let (_, below) = tables.split_once(title).unwrap();
    let (above, _) = below.split_once("\n\n").unwrap();
    let rungs = above.lines().filter(|line| line.starts_with("TCP+TLS "));
    // About p50, and beyond p99.
    assert_eq!(rungs.count(), 2, "{above}");
    assert!(!above.contains("QUIC"), "{above}");
    let charts = page::charts(std::slice::from_ref(&run));
    let names = charts[0].panels[0]
        .series
        .iter()
        .map(|row| row.name.as_str());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["TCP tokio", "TCP again", "TCP+TLS"]
    );
    let html = page::html(&[run]);
    assert_eq!(html.matches("class=\"chart wide\"").count(), 2);
}

#[test]
fn the_parts_of_round_trips_are_drawn_one_behind_the_other_for_each_target() {
    let charts = page::charts(&[fixture::anatomy()]);
    let chart = charts.iter().find(|chart| chart.kind == "anatomy").unwrap();
    let keys = chart.keys.iter().map(|key| key.name.as_str());
    assert_eq!(keys.collect::<Vec<_>>(), ["send", "away", "wake"]);
    let titles = chart.panels.iter().map(|panel| panel.title.as_str());
    assert_eq!(titles.collect::<Vec<_>>(), ["about p50", "beyond p99"]);
    for panel in &chart.panels {
        let names = panel.series.iter().map(|series| series.name.as_str());
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["tcp://server-1:8004", "grpc://server-1:8005"]
        );
        for points in panel.series.iter().map(|series| &series.points) {
            let mut end = 0.0;
            for (point, part) in points.iter().zip([Part::Send, Part::Away, Part::Wake]) {
                let (from, colour) = (end, Some(part as usize));
                assert_eq!(point.mark, Mark::Bar { from, colour });
                end += point.at;
            }
            assert_eq!(points.len(), 3);
        }
    }
    let wake = |panel: usize| chart.panels[panel].series[0].points[2].at;
    assert_eq!(
        [0, 1].map(|panel| wake(panel).round() as u64),
        [29_000, 429_000]
    );
}

#[test]
fn points_hold_their_numbers() {
    for (name, runs) in fixture::all() {
        let html = page::html(&runs);
        let mut points = 0;
        for chart in page::charts(&runs) {
            for point in chart
                .panels
                .iter()
                .flat_map(|panel| &panel.series)
                .flat_map(|series| &series.points)
            {
                points += 1;
                let (x, y) = (&point.x, &point.y);
                assert!(
                    html.contains(&format!("data-y=\"{y}\"")),
                    "{name}: {} has no {x}, {y}",
                    chart.kind
                );
            }
        }
        // A chart that is alone above the others is drawn twice: for wide and for narrow screens.
        let charts = page::charts(&runs);
        let leads: Vec<&Chart> = charts.iter().filter(|chart| chart.leads).collect();
        let twice = if let [lead] = leads[..] {
            marks(lead)
        } else {
            0
        };
        assert_eq!(
            html.matches("class=\"pt\"").count(),
            points + twice,
            "{name}"
        );
        assert_eq!(
            html.matches("<figure ").count() + usize::from(leads.len() == 1),
            html.matches("<svg ").count(),
            "{name}"
        );
    }
}

fn marks(chart: &Chart) -> usize {
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    series.map(|series| series.points.len()).sum()
}

#[test]
fn trials_of_calls_that_stream_have_rows_for_their_messages() {
    let messages = fixture::shared().steps[0].messages.clone();
    let mut run = fixture::trials();
    for step in &mut run.steps {
        step.messages.clone_from(&messages);
    }
    let table = text::tables(&run);
    for metric in metric::of_streams(&run.steps) {
        let title = metric.plain_title();
        assert!(table.contains(&format!("\n{title} ")), "{title}: {table}");
    }
    assert!(table.contains("Messages are not compared here"), "{table}");
}

#[test]
fn a_measurement_with_several_trials_is_drawn_at_its_estimate() {
    let run = fixture::trials();
    let charts = page::charts(std::slice::from_ref(&run));
    let trials = charts.iter().find(|chart| chart.kind == "trials").unwrap();
    assert_eq!(trials.panels.len(), metric::PAGE_TRIALS.len());
    for (metric, panel) in metric::PAGE_TRIALS.iter().zip(&trials.panels) {
        let all = run.measurements();
        let estimates = all.iter().filter_map(|own| estimate(metric, own));
        let expected: Vec<_> = estimates.map(|own| (own.value, own.interval)).collect();
        let means = panel.series.iter().map(|row| &row.points[0]);
        let drawn: Vec<_> = means.map(|own| (own.at, own.range)).collect();
        assert_eq!(drawn, expected, "{}", panel.title);
        // And each trial beside it.
        assert!(panel.series.iter().all(|row| row.points.len() == 6));
    }
    // A sweep has a point for each load.
    let run = fixture::shared();
    let charts = page::charts(std::slice::from_ref(&run));
    let sweep = charts.iter().find(|chart| chart.kind == "sweep").unwrap();
    let mut drawn: Vec<f64> = Vec::new();
    for series in &sweep.panels[0].series {
        drawn.extend(series.points.iter().map(|point| point.x.value()));
    }
    let all = run.measurements();
    let rates = all
        .iter()
        .map(|own| estimate(&metric::RATE, own).unwrap().value);
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    drawn.sort_by(f64::total_cmp);
    assert_eq!(drawn, rates);
}

#[test]
fn differences_are_those_of_the_run() {
    for run in [
        fixture::trials(),
        fixture::ladder(),
        fixture::bulk_targets(),
    ] {
        let expected: Vec<f64> = run
            .compared()
            .iter()
            .flat_map(|pair| pair.comparisons.clone())
            .filter_map(|own| match own.metric.unit {
                metric::Unit::Nanos if run.kind == Kind::Ladder => Some(own.added()?.0),
                _ => own.change,
            })
            .collect();
        let charts = page::charts(&[run]);
        let is_difference = |panel: &&page::Panel| {
            ["change of ", "added to "]
                .iter()
                .any(|start| panel.title.starts_with(start))
        };
        let panels = charts
            .iter()
            .flat_map(|chart| &chart.panels)
            .filter(is_difference);
        let points = panels.flat_map(|panel| panel.series.iter().flat_map(|own| &own.points));
        let mut drawn: Vec<f64> = points.map(|point| point.at).collect();
        let mut expected = expected;
        drawn.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
        assert!(!drawn.is_empty());
        assert_eq!(drawn, expected);
    }
}

/// Returns the panels of a chart of this run.
fn panels(run: &Run, stem: &str) -> Vec<page::Panel> {
    let charts = page::charts(std::slice::from_ref(run));
    let chart = charts.into_iter().find(|chart| chart.file_stem() == stem);
    chart.unwrap().panels
}

#[test]
fn the_shift_is_that_of_the_run_and_agrees_with_its_claims() {
    let run = fixture::ab();
    let [curves, difference] = &panels(&run, "shift")[..] else {
        panic!("other panels");
    };
    assert_eq!(curves.title, "new against base");
    let points = &difference.series[0].points;
    let at = |percent: f64| {
        points
            .iter()
            .find(|point| point.x == Exact::Number(percent))
            .unwrap()
    };
    let pairs = run.compared();
    let claimed = pairs.iter().find(|pair| !pair.is_control).unwrap();
    for (metric, percent) in [(&metric::P50, 50.0), (&metric::P99, 99.0)] {
        let by = claimed.by(metric).unwrap();
        assert_eq!(
            (Some(at(percent).at), at(percent).range),
            (by.change, by.interval)
        );
    }
    // The tail is longer, and the rest is not.
    assert!(at(10.0).range.unwrap()[1] < 0.01 && at(99.0).range.unwrap()[0] > 0.15);
    let grey = &difference.plane.as_ref().unwrap().grey;
    assert_eq!(grey.len(), points.len());
    let by = claimed.by(&metric::P50).unwrap();
    let [_, high] = grey
        .iter()
        .find(|(percent, _)| percent.total_cmp(&50.0).is_eq())
        .unwrap()
        .1;
    assert_eq!(Some(high), by.detectable);
}

#[test]
fn a_short_look_has_the_histogram_of_the_terminal() {
    let run = fixture::quick();
    let text = text::tables(&run);
    for (panel, drawn) in panels(&run, "histogram")
        .iter()
        .zip(text.split("response times with").skip(1))
    {
        let rows = drawn.lines().skip(2).take_while(|line| line.contains('%'));
        let counts = rows.map(|line| line.split_whitespace().nth(1).unwrap().replace(',', ""));
        let counts: Vec<f64> = counts.map(|count| count.parse().unwrap()).collect();
        let bars: Vec<f64> = panel.series[0].points.iter().map(|point| point.y).collect();
        assert!(bars.iter().eq(&counts), "{bars:?} {counts:?}");
        assert!(bars.len() > 5);
    }
}

#[test]
fn stalls_and_failures_are_marked_when_they_were() {
    let run = fixture::one();
    let events = panels(&run, "heatmap").remove(0).plane.unwrap().events;
    let at: Vec<f64> = events.iter().map(|(at, _)| at / 1e9).collect();
    assert!(
        (at[0] - 12.4).abs() < 1e-9 && (at[1] - 20.0).abs() < 1e-9,
        "{at:?}"
    );
    let html = page::html(&[run]);
    for words in ["no reply for 800 ms", "17 requests failed in this second"] {
        assert!(html.contains(&format!("<title>{words}")), "{words}");
    }
}

#[test]
fn measurements_with_different_connections_are_apart() {
    let charts = page::charts(&[fixture::shared()]);
    let rates = &charts
        .iter()
        .find(|chart| chart.kind == "sweep")
        .unwrap()
        .panels[0]
        .series;
    let names: Vec<&str> = rates.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "grpc://server-1:8005, 1 connection",
            "grpc://server-1:8005, 16 connections"
        ]
    );
    for (series, least) in rates.iter().zip([45_000.0, 120_000.0]) {
        assert_eq!(series.points.len(), 2);
        assert!(
            series
                .points
                .iter()
                .all(|point| (least..least + 1000.0).contains(&point.x.value())),
            "{series:?}"
        );
    }
}

#[test]
fn the_cpus_of_each_side_have_a_bar_of_their_parts_over_all_trials() {
    let charts = page::charts(&[fixture::balances()]);
    let chart = charts.iter().find(|chart| chart.kind == "balance").unwrap();
    let bar = |title: &str, name: &str| -> Vec<(String, String)> {
        let mut panels = chart.panels.iter();
        let panel = panels.find(|panel| panel.title == title).unwrap();
        let series = panel.series.iter().find(|series| series.name == name);
        let points = series.unwrap().points.iter();
        points
            .map(|point| (point.x.to_string(), panel.shown(point)))
            .collect()
    };
    let expected = |parts: &[[&str; 2]]| -> Vec<(String, String)> {
        let parts = parts.iter();
        parts
            .map(|[name, text]| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    };
    let known = [
        ["server", "60.0% (waited 15.0% of the window)"],
        ["other programs", "28.0% (rustc)"],
        ["not accounted for", "5.0%"],
        ["idle", "7.0%"],
    ];
    let name = "tcp://server-1:8004";
    assert_eq!(bar("CPUs 2-3: server", name), expected(&known));
    let clients = [
        ["client", "60.0% (waited 15.0% of the window)"],
        ["other programs", "2.5%"],
        ["idle", "37.5%"],
    ];
    assert_eq!(bar("CPUs 0-1: client", name), expected(&clients));
    let unknown = bar("CPUs 0-1: client", "tcp://server-1:8005");
    assert_eq!(unknown[1].1, "30.0% (the server among them)");
    let elsewhere = bar("CPUs of the server's host: server", "tcp://server-1:8006");
    assert_eq!(elsewhere[0].1, known[0][1]);
    // Parts lie one after the other, up to the whole.
    for series in chart.panels.iter().flat_map(|panel| &panel.series) {
        let mut end = 0.0;
        for point in &series.points {
            let Mark::Bar { from, .. } = point.mark else {
                panic!("{point:?}");
            };
            assert!((from - end).abs() < 1e-9, "{series:?}");
            end = from + point.at;
        }
        assert!((end - 1.0).abs() < 1e-3, "{series:?}");
    }
}

#[test]
fn of_many_balances_the_most_disturbed_are_drawn() {
    let load = |at: u32| {
        let mut step = fixtures::step(1, |_| vec![10_000; 20]);
        step.settings.callers = 1 + at as usize;
        step.cost.balances = fixture::balances().steps[0].cost.balances.clone();
        step.cost.balances[0].others_seconds += f64::from(at % 40) / 100.0;
        step
    };
    let run = fixtures::run((0..200).map(load).collect());
    let charts = page::charts(std::slice::from_ref(&run));
    let chart = charts.iter().find(|chart| chart.kind == "balance").unwrap();
    let rows = chart.panels.iter().map(|panel| panel.series.len());
    assert_eq!(rows.collect::<Vec<_>>(), [32, 32]);
}

#[test]
fn the_terminal_the_page_and_the_warning_tell_the_same_part_of_others() {
    let run = fixture::balances();
    let text = text::tables(&run);
    let line = "CPUs 2-3: server 60.0%, other programs 28.0% (rustc), idle 7.0%; 5.0% is not accounted for: \
                interrupts, or programs that ended meanwhile";
    assert!(text.contains(line), "{text}");
    assert!(page::html(std::slice::from_ref(&run)).contains("other programs: 28.0% (rustc)"));
    let steps = run.steps.iter().step_by(3);
    let warning = ForeignLoad::of_windows(steps).unwrap();
    let told = Warning::from(warning).to_string();
    assert!(told.contains("other programs had 28.0% of"), "{told}");
}

#[test]
fn a_curve_has_the_quantiles_of_the_summary() {
    let run = fixture::run(
        Kind::Latency,
        &[],
        vec![fixture::step("tcp://h:1", 1, None, 20_000.0, 2)],
    );
    let charts = page::charts(std::slice::from_ref(&run));
    let curve = charts
        .iter()
        .find(|chart| chart.kind == "quantiles")
        .unwrap();
    let points = &curve.panels[0].series[0].points;
    for (percent, value) in run.steps[0].summary.times[Time::Service].quantiles.iter() {
        let drawn = points
            .iter()
            .find(|point| point.x == Exact::Number(percent));
        // Below the median, round quantiles are not among the points.
        if percent >= 50.0 {
            assert_eq!(
                drawn.map(|point| point.y),
                value.map(|value| value as f64),
                "{percent}"
            );
        }
    }
}

#[test]
fn text_of_a_file_stays_text() {
    let runs = [fixture::hostile(), fixture::hostile()];
    let html = page::html(&runs);
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains(HOSTILE) && !html.contains("<script>alert"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"));
    assert!(!html.contains('\u{7}'));
    for chart in page::charts(&runs) {
        let svg = chart.svg();
        assert!(
            !svg.contains("<script") && !svg.contains('\u{7}'),
            "{}",
            chart.kind
        );
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>"),
            "{}",
            chart.kind
        );
    }
}

#[test]
fn a_page_needs_nothing_from_elsewhere_and_stays_small() {
    for (name, runs) in fixture::all() {
        let html = page::html(&runs);
        assert!(html.len() < 1_000_000, "{name}: {} bytes", html.len());
        let own = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for link in ["http://", "https://", " src=", "url(", "@import"] {
            assert!(!own.contains(link), "{name}: {link}");
        }
    }
}

#[test]
fn a_sweep_of_1000_loads_stays_small_and_the_table_has_them_all() {
    let load = |at: u32| {
        let mut step = fixtures::step(3, |_| (0..200).map(|n| 10_000 + n * 497).collect());
        step.settings.callers = 1 + at as usize;
        step
    };
    let run = fixtures::run((0..1000).map(load).collect());
    let html = page::html(&[run]);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    // Marks that would cover one another are left out: on this logarithmic axis, most of them.
    let marks = html.matches("data-series=").count();
    assert!((300..800).contains(&marks), "{marks}");
    for callers in [1, 500, 999, 1000] {
        assert!(html.contains(&format!(">{callers}</t")), "{callers}");
    }
}

#[test]
fn names_within_a_page_are_unique() {
    for (name, runs) in fixture::all() {
        let html = page::html(&runs);
        let ids = html.split(" id=\"").skip(1);
        let mut ids: Vec<_> = ids.filter_map(|rest| rest.split('"').next()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}");
    }
}

#[test]
fn the_verdict_says_what_to_do() {
    let html = |run| page::html(&[run]);
    assert!(html(fixture::sweep(1e5)).contains("VALID"));
    let warned = html(fixture::warnings());
    for text in [
        "PARTIAL",
        "CLIENT_BOUND",
        "give the client more threads or faster cores",
        "(1 of 2 steps: ",
        "reset 120, grpc_14 7",
    ] {
        assert!(warned.contains(text), "{text}");
    }
    assert!(warned.contains("NOT VALID"));
    let empty = html(fixture::empty());
    assert!(empty.contains("EMPTY") && !empty.contains("VALID") && !empty.contains("<figure"));
}

#[test]
fn every_setting_is_there() {
    let html = page::html(&[fixture::open()]);
    let settings = serde_json::to_value(&fixture::open().steps[0].settings).unwrap();
    for name in settings.as_object().unwrap().keys() {
        assert!(html.contains(&name.replace('_', " ")), "{name}");
    }
    for text in [
        "client-1",
        "AMD EPYC 9B14",
        "6.18.44",
        "tsc",
        "netping throughput tcp://server-1:8004 --rate 10k..80kx2",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

/// Writes the pages that `.ci/page.py` opens in a browser, with their runs and charts.
#[test]
fn pages_are_written_for_the_browser() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    for (name, runs) in fixture::all() {
        let folder = folder.join(name);
        let written = page::save_charts(&runs, &folder).unwrap();
        assert_eq!(written, kinds(&runs).len());
        fs::write(folder.join("page.html"), page::html(&runs)).unwrap();
        assert_eq!(
            fs::read_to_string(folder.join("page.html")).unwrap(),
            page::html(&runs)
        );
        save_runs(&folder, &runs);
    }
    let runs = [fixture::sweep(80_000.0), fixture::sweep(95_000.0)];
    let folder = folder.join("comparison");
    fs::create_dir_all(&folder).unwrap();
    let html = page::comparison(&runs[0], &runs[1..], "all metrics");
    fs::write(folder.join("page.html"), html).unwrap();
    save_runs(&folder, &runs);
}

fn save_runs(folder: &Path, runs: &[Run]) {
    for (at, run) in runs.iter().enumerate() {
        run.save(&folder.join(format!("run{}.json", at + 1)))
            .unwrap();
    }
}

#[test]
fn a_comparison_says_what_changed_and_what_differs_besides() {
    let base = fixture::sweep(80_000.0);
    let mut new = fixture::sweep(95_000.0);
    new.environment.kernel = "6.19.0".to_owned();
    let html = page::comparison(&base, &[new], "all metrics");
    for text in [
        "Run 2 against run 1",
        "rate +18.8% (",
        ", better; ",
        "6.19.0",
        "data-variant=\"compared\"",
        "all metrics",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let other = page::comparison(&base, &[fixture::open()], "");
    assert!(other.contains("Nothing to compare") && !other.contains("<figure"));
}
