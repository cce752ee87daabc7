//! A run from a file, as the tables that its command printed.

use netping_measure::status::Status;
use netping_report::{ladder::in_words, table::wrap};
use netping_results::{format::on_one_line, run::Run};

use super::{bulk, connect, ladder, proxy, throughput::Rows};
use crate::run::{trials, validity};

/// Returns the tables of a run, and what can be said of their validity.
pub fn table(mut run: Run) -> String {
    for step in &mut run.steps {
        step.target = on_one_line(&step.target);
        step.label = step.label.as_deref().map(on_one_line);
        step.settings.arrivals = on_one_line(&step.settings.arrivals);
    }
    for bulk in &mut run.bulk {
        bulk.target = on_one_line(&bulk.target);
    }
    let run = &run;
    let mut parts = Vec::new();
    if !run.bulk.is_empty() {
        parts.push(bulk::table(&run.bulk));
    }
    if !run.differences.is_empty() {
        parts.push(ladder::of_run(run));
    } else if !run.overheads.is_empty() {
        parts.push(proxy::table(run));
    } else if run.steps.iter().any(|step| step.trial > 1) {
        parts.push(trials::table_of(run));
    } else {
        let mut rows = Rows::new();
        parts.extend(run.steps.iter().map(|step| {
            if step.settings.requests_per_connection == Some(1) && !step.connect.is_empty() {
                connect::describe(step)
            } else {
                rows.show(step)
            }
        }));
    }
    let differences: Vec<_> = run.differences.iter().collect();
    parts.extend(in_words(&differences).iter().map(|line| on_one_line(line)));
    if run.status == Status::Partial {
        parts.push("PARTIAL: it was interrupted, or is still going on".to_owned());
    }
    parts.push(validity::describe(run));
    wrap(&parts.join("\n"), usize::MAX)
}
