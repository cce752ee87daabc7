//! A run as text for a terminal: what its command prints, and what is read from its file.

mod anatomy;
mod bulk;
mod compare;
mod connect;
mod ladder;
mod merge;
mod per_request;
mod proxy;
mod published;
mod rows;
mod sparkline;
mod steps;
mod trials;

use netping_results::run::{Kind, PLACEMENT, Run};

use crate::{ab, balance::remarks, verdict};

pub(crate) use merge::tables as contributions;

pub use anatomy::largest_part;
pub(crate) use compare::APART;
pub use compare::{comparison, comparison_in_full};
pub use published::{Published, PublishedRow, published, setting_names};
pub use rows::{Rows, of_sweep};

/// Returns the tables of a run, and in words what they show; above them, that it is not valid, where it is
/// not, and which CPUs both sides had, where the command chose them.
pub fn tables(run: &Run) -> String {
    let text = match run.kind {
        _ if !run.parts.is_empty() => merge::text(run),
        Kind::Ladder => ladder::text(run),
        Kind::Proxy => proxy::text(run),
        Kind::Bulk => bulk::text(run),
        Kind::Ab => ab::text(run),
        _ if run.order_seed.is_some() => trials::text(run),
        _ => rows::text(run),
    };
    let mut lines: Vec<String> = verdict::above(run).into_iter().collect();
    lines.extend(run.environment.system.get(PLACEMENT).cloned());
    lines.push(text);
    lines.extend(remarks_below(run));
    lines.join("\n")
}

/// Returns true for a run whose tables are printed at its end: one of rounds or trials. The rows of others are
/// printed as they are measured.
pub fn has_rounds(run: &Run) -> bool {
    run.order_seed.is_some()
}

/// Returns who had the CPUs over the whole run, where others had a part. Rows of steps have their own.
fn remarks_below(run: &Run) -> Vec<String> {
    let is_summed = matches!(run.kind, Kind::Ladder | Kind::Proxy | Kind::Bulk);
    let steps = if is_summed || run.order_seed.is_some() {
        &run.steps[..]
    } else {
        &[]
    };
    remarks(steps.iter().flat_map(|step| &step.cost.balances))
}
