//! The head of a page: targets, what came out, warnings, time and place.

use std::collections::BTreeSet;

use maud::{Markup, html};
use netping_measure::status::Status;
use netping_results::{run::Run, warning::Warnings};

use super::unit::counted;
use crate::words::sentences;

/// The page's title.
pub(super) fn title(runs: &[Run]) -> String {
    match runs {
        [run] => format!("netping {}", run.kind.name()),
        _ => format!("netping, {} runs", runs.len()),
    }
}

/// Returns the head of the page.
pub(super) fn section(runs: &[Run]) -> Markup {
    html! {
        header {
            h1 { (title(runs)) }
            @for (at, run) in runs.iter().enumerate() {
                (of_run(run, (runs.len() > 1).then_some(at + 1)))
            }
        }
    }
}

/// Returns the head of one run, with its number where there are several.
pub(super) fn of_run(run: &Run, number: Option<usize>) -> Markup {
    html! {
        section."run" {
            @if let Some(number) = number { h2 { "Run " (number) ": " (run.kind.name()) } }
            p."targets" {
                @for target in targets(run) { code { (target) } " " }
            }
            (findings(run))
            (verdict(run))
            p."where" {
                (run.started_at) ", on " strong { (run.environment.host) } " (" (run.environment.cpu_model) ", "
                (counted(run.environment.cpus as f64, "cores")) ", Linux " (run.environment.kernel) "), "
                (run.tool.name) " " (run.tool.version)
                @if let Some(commit) = &run.tool.commit { " (" (commit) ")" }
            }
        }
    }
}

/// Returns the targets, each once, in order.
fn targets(run: &Run) -> Vec<&str> {
    let all = run.steps.iter().map(|step| step.target.as_str());
    let mut seen = BTreeSet::new();
    all.filter(|target| seen.insert(*target)).collect()
}

/// Says what came out.
fn findings(run: &Run) -> Markup {
    let sentences = sentences(run);
    html! {
        @if !sentences.is_empty() {
            ul."words" { @for sentence in &sentences { li { (sentence) } } }
        }
    }
}

/// Lists every warning once, with its remedy.
fn verdict(run: &Run) -> Markup {
    let warnings = Warnings::of_run(run);
    html! {
        ul."verdict" aria-label="Warnings" {
            @if run.status == Status::Partial {
                li."warning" { b { "PARTIAL" } ": it was interrupted, or is still going on; run it to its end for the rest" }
            }
            @if warnings.results == 0 {
                li."warning" { b { "EMPTY" } ": no step was done; see what the command said, and run it again" }
            } @else if warnings.is_valid() {
                @let notes = if warnings.kinds.is_empty() { "no warnings" } else { "the warnings below are notes" };
                li."valid" { b { "VALID" } ": " (notes) }
            } @else {
                li."warning" { b { "NOT VALID" } ": " (warnings.invalidating().join(", ")) }
            }
            @for found in &warnings.kinds {
                li."warning" {
                    b { (found.worst.name()) }
                    @if warnings.results > 1 { " (" (found.steps.len()) " of " (warnings.results) " steps)" }
                    ": " (found.worst.to_string()) "; " (found.worst.remedy_with(|_| false))
                }
            }
        }
    }
}
