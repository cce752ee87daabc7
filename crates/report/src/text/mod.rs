//! A run as text for a terminal: what its command prints, and what is read from its file.

mod bulk;
mod compare;
mod connect;
mod ladder;
mod merge;
mod proxy;
mod published;
mod rows;
mod sparkline;
mod steps;
mod trials;

use netping_measure::status::Status;
use netping_results::{
    format::on_one_line,
    run::{Kind, Run},
};

pub(crate) use merge::table as contributions;

pub use compare::{comparison, comparison_in_full};
pub use published::{Published, PublishedRow, published, setting_names};
pub use rows::{Rows, of_sweep};

/// Returns the tables of a run, and in words what they show.
pub fn tables(run: &Run) -> String {
    match run.kind {
        _ if !run.parts.is_empty() => merge::text(run),
        Kind::Ladder => ladder::text(run),
        Kind::Proxy => proxy::text(run),
        Kind::Bulk => bulk::text(run),
        _ if run.order_seed.is_some() => trials::text(run),
        _ => rows::text(run),
    }
}

/// Returns the tables of a run from a file. Texts in it are made safe for a terminal.
pub fn tables_of_file(mut run: Run) -> String {
    for step in &mut run.steps {
        step.target = on_one_line(&step.target);
        step.label = step.label.as_deref().map(on_one_line);
        step.settings.arrivals = on_one_line(&step.settings.arrivals);
    }
    let mut text = tables(&run);
    if run.status == Status::Partial {
        text.push_str("\nPARTIAL: it was interrupted, or is still going on");
    }
    text
}
