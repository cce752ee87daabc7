//! The failures of a step, as lines for people.

use std::collections::BTreeMap;

use netping_measure::error_kind::ErrorKind;
use netping_protocol::scheme::Scheme;
use netping_results::{format::thousands, run::Step};

/// Returns a line for each kind of failure in a step. `details` has the first failure of each kind.
pub fn troubles(step: &Step, scheme: Scheme, details: &BTreeMap<ErrorKind, String>) -> Vec<String> {
    let summary = &step.summary;
    let accounting = &summary.accounting;
    let mut lines: Vec<String> = accounting
        .errors
        .iter()
        .map(|(kind, &count)| {
            let detail = details.get(kind).map_or("", String::as_str);
            format!("{} requests failed: {kind} ({detail})", number(count))
        })
        .collect();
    let mut tell = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}", number(count)));
        }
    };
    tell(
        accounting.in_flight,
        "requests got no reply before the drain ended",
    );
    tell(
        accounting.not_sent,
        "requests were due but never sent: no caller was free, or --max-backlog was full",
    );
    // A few at the end are the ordinary course of an open loop.
    let late = summary.late * 100 > accounting.ok;
    tell(
        if late { summary.late } else { 0 },
        "replies came after the window: they count as latency samples, but not for the rate",
    );
    tell(
        summary.outside_errors,
        "requests failed outside the window (not counted)",
    );
    tell(
        step.reconnects,
        "connections were opened in place of lost ones",
    );
    tell(
        step.ended_by_server,
        "connections were opened because the server had ended the one before; opening is part of the next request's \
         time",
    );
    if accounting.ok == 0
        && accounting.failed() > 0
        && accounting.errors.keys().copied().all(is_strange)
    {
        let scheme = scheme.as_str();
        lines.push(format!(
            "no request succeeded: does the server there speak {scheme}?"
        ));
    }
    lines.iter().map(|line| format!("  {line}")).collect()
}

fn number(count: u64) -> String {
    thousands(count as f64)
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
