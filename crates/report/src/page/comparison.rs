//! The page of runs that were compared with a base.

use maud::{Markup, html};
use netping_results::{
    compare::{FileComparison, compare_runs},
    environment_diff::EnvironmentDiff,
    metric,
    run::{Kind, Run},
    warning::Warnings,
};

use super::{
    chart::Chart,
    charts::{forest, shift},
    document, figures, headline, settings, table,
};
use crate::{table::Column, text::APART, words::changes};

/// Returns the page: what changed, in words and in charts, what differs besides, and what each run
/// was. `text` is the comparison as the terminal shows it.
pub fn comparison(base: &Run, others: &[Run], text: &str) -> String {
    let runs: Vec<Run> = [base].into_iter().chain(others).cloned().collect();
    let compared: Vec<FileComparison<'_>> = others
        .iter()
        .map(|new| compare_runs(base, new, &[]))
        .collect();
    let mut charts = Vec::new();
    for (new, compared) in others.iter().zip(&compared) {
        charts.push(Chart {
            leads: true,
            ..forest::compared(compared)
        });
        // The windows of a ladder are too short for curves.
        if new.kind != Kind::Ladder {
            charts.push(shifts(base, new));
        }
    }
    charts.retain(|chart| !chart.panels.is_empty());
    document(
        "netping compare",
        &html! {
            header {
                h1 { "netping compare" }
                (verdict(&runs))
                @for (at, compared) in compared.iter().enumerate() { (section(compared, at + 2)) }
            }
            (figures(&charts))
            section."details" aria-label="Comparison" {
                h2 { "All metrics" }
                pre."scroll" tabindex="0" { (text) }
            }
            @for (at, run) in runs.iter().enumerate() { (headline::of_run(run, Some(at + 1))) }
            (settings::section(&runs))
        },
    )
}

/// Returns the chart of the differences at every quantile.
fn shifts(base: &Run, new: &Run) -> Chart {
    let comparison = compare_runs(base, new, metric::CURVE);
    let pairs = comparison.pairs.iter();
    let requests = pairs.filter(|pair| pair.base.settings().bulk.is_none());
    let named = requests.map(|pair| (comparison.short_name(pair), pair));
    shift::compared(&named.collect::<Vec<_>>())
}

/// Says whether the runs are valid; differences to one that is not are not to be relied on.
fn verdict(runs: &[Run]) -> Markup {
    let all = runs.iter().map(|run| Warnings::of_run(run).invalidating());
    let all = all.enumerate().filter(|(_, names)| !names.is_empty());
    let lines: Vec<String> = all
        .map(|(at, names)| format!(": run {}: {}", at + 1, names.join(", ")))
        .collect();
    html! {
        ul."verdict" aria-label="Verdict" {
            @for line in &lines { li."invalid" { b { "NOT VALID" } (line) } }
            @if lines.is_empty() { li."valid" { b { "VALID" } ": all runs" } }
        }
    }
}

/// Says what changed from a base to a new run, and what differs between their environments.
fn section(comparison: &FileComparison<'_>, number: usize) -> Markup {
    html! {
        section."run" {
            h2 { "Run " (number) " against run 1, the base" }
            ul."words" { @for sentence in changes(comparison) { li { (sentence) } } }
            @if comparison.pairs.is_empty() {
                p."warning" { "Nothing to compare: no measurement of one run has the settings of one of the other." }
            }
            @if comparison.is_apart { p."warning" { (APART) } }
            (differing(&comparison.diffs))
        }
    }
}

/// Lists what differs between two environments.
fn differing(diffs: &[EnvironmentDiff]) -> Markup {
    if diffs.is_empty() {
        return html! { p { "Same machine, same settings." } };
    }
    let columns = ["what", "base", "new"].map(Column::text);
    let row = |diff: &EnvironmentDiff| {
        [&diff.what, &diff.base, &diff.new]
            .map(String::clone)
            .into()
    };
    let rows: Vec<Vec<String>> = diffs.iter().map(row).collect();
    html! {
        h3 { "What differs besides, and may explain a change" }
        (table::render(&columns, &rows))
    }
}
