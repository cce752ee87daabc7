//! The head of a page: targets, what came out, warnings, time and place.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use netping_measure::status::Status;
use netping_results::{
    format::thousands,
    run::{Kind, Run},
    warning::Warnings,
};

use super::{table, unit::counted};
use crate::{ab, distinct, verdict, words::sentences};

/// The most hosts of clients that are named.
const MOST_NAMED: usize = 4;

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
    let sentences = sentences(run);
    let all = Warnings::of_run(run);
    let is_valid = all.invalidating().is_empty();
    html! {
        section."run" {
            @if let Some(number) = number { h2 { "Run " (number) ": " (run.kind.name()) } }
            (verdict(run, &all))
            @if !is_valid { (warnings(run, &all)) }
            @if !sentences.is_empty() {
                ul."words"."doubted"[!is_valid] { @for sentence in &sentences { li { (sentence) } } }
            }
            @if run.kind == Kind::Ab { (answer(run)) }
            @if is_valid { (warnings(run, &all)) }
            // The ports of a ladder's own servers tell nothing.
            @if run.kind != Kind::Ladder {
                p."targets" {
                    @for target in distinct(run.steps.iter().map(|step| &step.target)) { code { (target) } " " }
                }
            }
            p."where" {
                (run.started_at) ", on " strong { (hosts(run)) } " (" (run.environment.cpu_model) ", "
                (cores(run)) ", Linux " (run.environment.kernel) "), "
                (run.tool.name) " " (run.tool.version)
                @if let Some(commit) = &run.tool.commit { " (" (commit) ")" }
            }
        }
    }
}

/// Returns the client's host, or of several clients' those that are few enough to be named.
fn hosts(run: &Run) -> String {
    let hosts: BTreeSet<&str> = run.parts.iter().map(|part| &*part.host).collect();
    match hosts.len() {
        0..=MOST_NAMED => run.environment.host.clone(),
        many => format!("{} hosts", thousands(many as f64)),
    }
}

/// Returns the cores of each host, where those of several are alike, or of all.
fn cores(run: &Run) -> String {
    let hosts: BTreeMap<&str, Option<usize>> = run
        .parts
        .iter()
        .map(|part| (&*part.host, part.cpus))
        .collect();
    let alike: BTreeSet<_> = hosts.values().collect();
    let counted = |cpus: usize| counted(cpus as f64, "cores");
    match (hosts.len(), alike.first()) {
        (0 | 1, _) => counted(run.environment.cpus),
        (_, Some(Some(cpus))) if alike.len() == 1 => counted(*cpus) + " each",
        _ => counted(run.environment.cpus) + " in all",
    }
}

/// Says whether the run is valid, and whether it is whole.
fn verdict(run: &Run, all: &Warnings) -> Markup {
    html! {
        ul."verdict" aria-label="Verdict" {
            @if all.results == 0 {
                li."warning" { b { "EMPTY" } ": no step was done; see what the command said, and run it again" }
            } @else if let Some([word, text]) = verdict::verdict(all) {
                li class=(if all.is_valid() { "valid" } else { "invalid" }) { b { (word) } (text) }
            }
            @if run.status == Status::Partial {
                li."warning" { b { "PARTIAL" } ": it was interrupted, or is still going on; run it to its end for the rest" }
            }
        }
    }
}

/// Returns the metrics that the verdict of a comparison of servers rests on, and how to read them.
fn answer(run: &Run) -> Markup {
    let decided = run.decided();
    let rows = ab::rows(&decided);
    html! {
        @if !rows.is_empty() {
            (table::render(ab::columns(&decided), &rows))
            @if let Some(failures) = ab::failures(run) { p."note" { (failures) } }
            p."note" { (ab::legend(run, &decided)) }
        }
    }
}

/// Lists every warning once, with its remedy.
fn warnings(run: &Run, all: &Warnings) -> Markup {
    let found = verdict::warnings(run, all, &|_| false);
    let replaced = verdict::replaced(run);
    html! {
        @if !found.is_empty() || replaced.is_some() {
            ul."verdict" aria-label="Warnings" {
                @for [name, text] in found { li."warning" { b { (name) } (text) } }
                @if let Some([windows, text]) = replaced { li."replaced" { b { (windows) } (text) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, run::Part, warning::ClientThrottled};

    use super::*;

    #[test]
    fn hosts_that_are_alike_have_so_many_cores_each() {
        let part = |(host, cpus): &(&str, Option<usize>)| Part {
            host: (*host).to_owned(),
            cpus: *cpus,
            started_at: String::new(),
            command_line: Vec::new(),
            clock: None,
            steps: Vec::new(),
        };
        let told = |hosts: &[(&str, Option<usize>)]| {
            let mut run = fixtures::run(Vec::new());
            run.environment.cpus = 200;
            run.parts = hosts.iter().map(part).collect();
            cores(&run)
        };
        assert_eq!(told(&[]), "200 cores");
        assert_eq!(told(&[("a", Some(200)), ("a", Some(200))]), "200 cores");
        assert_eq!(told(&[("a", Some(2)), ("b", Some(2))]), "2 cores each");
        assert_eq!(told(&[("a", Some(2)), ("b", Some(4))]), "200 cores in all");
        assert_eq!(told(&[("a", None), ("b", None)]), "200 cores in all");
    }

    #[test]
    fn the_verdict_comes_first() {
        let mut run = fixtures::run(vec![fixtures::step(2, |_| vec![1_000_000; 2000])]);
        let places = |run: &Run| {
            let html = of_run(run, None).into_string();
            ["VALID", "served"].map(|word| html.find(word).unwrap())
        };
        let [verdict, words] = places(&run);
        assert!(verdict < words);
        run.steps[0].warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        let [verdict, words] = places(&run);
        assert!(verdict < words);
        let html = of_run(&run, None).into_string();
        for part in [
            "<li class=\"invalid\"><b>NOT VALID</b>: CLIENT_THROTTLED</li>",
            "<ul class=\"words doubted\"><li>Not to be relied on: ",
        ] {
            assert!(html.contains(part), "{html}");
        }
    }
}
