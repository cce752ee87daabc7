//! The failures of a step, as lines for people.

use std::collections::BTreeMap;

use netping_measure::error_kind::ErrorKind;
use netping_protocol::scheme::Scheme;
use netping_results::{format::thousands, run::Step};

const REQUESTS: [&str; 2] = ["request", "requests"];
const CONNECTIONS: [&str; 2] = ["connection was", "connections were"];

/// Returns a line for each kind of failure in a step. `details` has the first failure of each kind.
pub fn troubles(step: &Step, scheme: Scheme, details: &BTreeMap<ErrorKind, String>) -> Vec<String> {
    let summary = &step.summary;
    let accounting = &summary.accounting;
    let mut lines = Vec::new();
    for (kind, &count) in &accounting.errors {
        let detail = details.get(kind).map_or("", String::as_str);
        let requests = counted(count, REQUESTS);
        lines.push(format!("{requests} failed: {kind} ({detail})"));
    }
    // A few at the end are the ordinary course of an open loop.
    let many_late = accounting.late * 100 > accounting.ok;
    let late = if many_late { accounting.late } else { 0 };
    let no_reply = "got no reply before the drain ended";
    let not_sent = "due but never sent: no caller was free, or --max-backlog was full";
    let came_late = "came after the window: counted as latency samples, but not for the rate";
    let outside = "failed before or after the window, and are not in the column 'failed'";
    let lost = "opened in place of lost ones";
    let ended = "opened because the server had ended the one before; closing that and opening one is part of the next request's time";
    let others = [
        (accounting.in_flight, REQUESTS, no_reply),
        (
            accounting.not_sent,
            ["request was", "requests were"],
            not_sent,
        ),
        (late, ["reply", "replies"], came_late),
        (accounting.outside_errors, REQUESTS, outside),
        (accounting.reconnects, CONNECTIONS, lost),
        (accounting.ended_by_server, CONNECTIONS, ended),
    ];
    let others = others.into_iter().filter(|(count, ..)| *count > 0);
    lines.extend(others.map(|(count, nouns, what)| format!("{} {what}", counted(count, nouns))));
    let strange = accounting.errors.keys().copied().all(is_strange);
    if accounting.ok == 0 && accounting.failed() > 0 && strange {
        let scheme = scheme.as_str();
        lines.push(format!(
            "no request succeeded: does the server speak {scheme}?"
        ));
    }
    lines.iter().map(|line| format!("  {line}")).collect()
}

/// Returns a number of things, whose name is given for one and for several.
fn counted(count: u64, [one, several]: [&str; 2]) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", thousands(count as f64))
}

/// Returns true for failures that are typical of two sides with different protocols.
fn is_strange(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Protocol
            | ErrorKind::Eof
            | ErrorKind::Reset
            | ErrorKind::Timeout
            | ErrorKind::Mismatch
    )
}
