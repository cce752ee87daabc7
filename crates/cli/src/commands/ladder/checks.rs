//! Looks at rungs while the ladder is measured: servers that ended, and replies that were wrong.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use netping_client::error::StartError;
use netping_measure::error_kind::ErrorKind;
use netping_results::{format::plural, run::Step};

use super::rungs::Rung;
use crate::{error::Verdict, run::Runner, server_process::ServerProcess};

/// Fails if the server of a rung has ended.
pub fn require_running(rungs: &[Rung], servers: &mut [ServerProcess]) -> anyhow::Result<()> {
    for (rung, server) in rungs.iter().zip(servers) {
        let running = server.require_running("while it was measured");
        running.with_context(|| of_rung(&rung.name))?;
    }
    Ok(())
}

/// Returns the failure of a window with the name of its rung.
pub fn with_rung(failure: StartError, rungs: &[Rung], servers: &[ServerProcess]) -> anyhow::Error {
    let (StartError::Server(target, _) | StartError::Speaks { target, .. }) = &failure else {
        return failure.into();
    };
    let at = servers.iter().position(|own| own.target == *target);
    match at.and_then(|at| rungs.get(at)) {
        Some(rung) => {
            let name = of_rung(&rung.name);
            anyhow::Error::from(failure).context(name)
        }
        None => failure.into(),
    }
}

/// Fails if a rung has no good reply in a round: a web server that answers every request with 404 answers the first
/// call too.
pub fn require_replies(round: &[Step]) -> anyhow::Result<()> {
    for step in round {
        let accounting = &step.summary.accounting;
        if accounting.ok == 0 && accounting.failed() > 0 {
            let kinds: Vec<String> = accounting
                .errors
                .iter()
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            bail!(
                "{}: with {} callers, no reply is good ({})",
                of_rung(step.name()),
                step.settings.callers,
                kinds.join(", ")
            );
        }
    }
    Ok(())
}

/// Compares no rung that has answered with wrong bytes, however few of its replies were wrong.
pub fn leave_out_wrong(runner: &mut Runner) {
    let mut wrong: BTreeMap<String, u64> = BTreeMap::new();
    for step in runner.steps() {
        let count = step.summary.accounting.errors.get(&ErrorKind::Mismatch);
        if let Some(count) = count.filter(|count| **count > 0) {
            *wrong.entry(step.name().to_owned()).or_default() += count;
        }
    }
    for (name, count) in wrong {
        let steps = runner.steps().iter();
        let own: BTreeSet<usize> = steps
            .filter(|step| step.name() == name)
            .map(|step| step.measurement)
            .collect();
        let pairings = &mut runner.store.run.pairings;
        pairings.retain(|pair| !own.contains(&pair.new) && !own.contains(&pair.base));
        let line = format!(
            "{} is not compared: it answered {} with wrong bytes",
            of_rung(&name),
            plural(count, "request")
        );
        runner.fail(Verdict::Requests, &line);
    }
}

/// Returns the words for a rung.
pub fn of_rung(name: &str) -> String {
    format!("rung '{name}'")
}
