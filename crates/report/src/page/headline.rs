//! The head of a page: targets, warnings, main figures, time and place.

use std::collections::BTreeSet;

use maud::{Markup, html};
use netping_measure::status::Status;
use netping_results::{
    format::{micros, thousands},
    metric,
    run::{Run, Step},
    validity::Warnings,
};

use super::{series::load, unit::counted};
use crate::ladder::in_words;

/// The page's title.
pub(super) fn title(runs: &[Run]) -> String {
    match runs {
        [run] => format!("netping {}", command(run)),
        _ => format!("netping, {} runs", runs.len()),
    }
}

pub(super) fn section(runs: &[Run]) -> Markup {
    html! {
        header {
            h1 { (title(runs)) }
            @for (at, run) in runs.iter().enumerate() {
                section."run" {
                    @if runs.len() > 1 { h2 { "Run " (at + 1) ": " (command(run)) } }
                    p."targets" {
                        @for target in targets(run) { code { (target) } " " }
                    }
                    (verdict(run))
                    (figures(run))
                    p."where" {
                        (run.started_at) ", on " strong { (run.environment.host) } " (" (run.environment.cpu_model) ", "
                        (counted(run.environment.cpus as f64, "cores")) ", Linux " (run.environment.kernel) "), "
                        (run.tool.name) " " (run.tool.version)
                        @if let Some(commit) = &run.tool.commit { " (" (commit) ")" }
                    }
                }
            }
        }
    }
}

/// The command's name: the first word after the program's that is no flag.
pub(super) fn command(run: &Run) -> &str {
    run.command_line
        .iter()
        .skip(1)
        .find(|word| !word.starts_with('-'))
        .map_or("run", String::as_str)
}

/// Returns the targets, each once, in order.
fn targets(run: &Run) -> Vec<&str> {
    let all = run
        .steps
        .iter()
        .map(|step| step.target.as_str())
        .chain(run.bulk.iter().map(|step| step.target.as_str()));
    let mut seen = BTreeSet::new();
    all.filter(|target| seen.insert(*target)).collect()
}

/// Lists every warning once, with its remedy.
fn verdict(run: &Run) -> Markup {
    let warnings = Warnings::of(&run.steps, &run.bulk);
    html! {
        ul."verdict" aria-label="Warnings" {
            @if run.status == Status::Partial {
                li."warning" { b { "PARTIAL" } ": it was interrupted, or is still going on; run it to its end for the rest" }
            }
            @if warnings.results == 0 {
                li."warning" { b { "EMPTY" } ": no step was done; see what the command said, and run it again" }
            } @else if warnings.is_valid() {
                li."valid" { b { "VALID" } ": no warnings" }
            }
            @for (warning, concerned) in &warnings.kinds {
                li."warning" {
                    b { (warning.name()) }
                    @if warnings.results > 1 { " (" (concerned) " of " (warnings.results) " steps)" }
                    ": " (warning.to_string()) "; " (warning.remedy())
                }
            }
        }
    }
}

/// The numbers most asked for.
fn figures(run: &Run) -> Markup {
    let peak = run
        .steps
        .iter()
        .max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate));
    let bulk = run
        .bulk
        .iter()
        .filter_map(|step| step.summary)
        .max_by(|a, b| a.gib_per_second.mean.total_cmp(&b.gib_per_second.mean));
    let words = in_words(&run.differences.iter().collect::<Vec<_>>());
    html! {
        @if !run.differences.is_empty() {
            // The highest of all rates is no result of a ladder.
            ul."words" { @for sentence in &words { li { (sentence) } } }
        } @else if peak.is_some() || bulk.is_some() {
            dl."figures" {
                @if let Some(step) = peak { (of_peak(step)) }
                @if let Some(bulk) = bulk {
                    div { dt { "highest bulk rate" } dd { (micros(bulk.gib_per_second.mean)) small { " GiB/s" } } }
                }
            }
        }
    }
}

fn of_peak(step: &Step) -> Markup {
    html! {
        div {
            dt { "highest rate" }
            dd {
                (thousands(step.summary.rate)) small { " req/s" }
                @if let Some(half) = step.summary.precision.rate_half_width { small { " ± " (thousands(half)) } }
            }
        }
        div { dt { "at" } dd { (load(step)) } }
        @for metric in [&metric::P50, &metric::P99] {
            div { dt { "its " (metric.name) } dd { (metric.cell_of_step(step)) small { " µs" } } }
        }
        div { dt { "failed" } dd { (format!("{:.3}", step.summary.accounting.error_rate() * 100.0)) small { " %" } } }
    }
}
