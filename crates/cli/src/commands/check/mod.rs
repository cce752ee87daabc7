//! `netping check`: this host and servers, before an expensive run.

mod files;
mod floor;
mod machine;
mod network;
mod processors;
mod server;
mod wake;

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use netping_client::plan::Plan;
use netping_protocol::units::number_in;
use netping_report::table::{Column, Table};
use netping_results::format::on_one_line;

use crate::{
    args::{
        export::{JsonTo, say},
        request::RequestArgs,
        target::NamedTarget,
        time::positive,
    },
    error::{Verdict, tell},
    interrupt,
    observation::{Grade, Observation},
    run::clock_demand::ClockDemand,
};

/// Flags of `netping check`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "Exit codes: 0 ready, perhaps with warnings, 2 wrong usage, 4 something would spoil a run, 6 the \
                  findings could not be written."
)]
pub struct CheckArgs {
    /// Servers, such as tcp://HOST:8004; without one, only this host is looked at
    #[arg(value_name = "URL")]
    targets: Vec<NamedTarget>,
    /// Connections that the run is to open
    #[arg(long, default_value = "1024", value_name = "N", value_parser = number_in::<u64>(1..))]
    connections: u64,
    /// Largest offset of this host's clock from that of a server
    #[arg(long, value_name = "TIME", value_parser = positive)]
    max_clock_error: Option<Duration>,
    /// Write the findings as JSON; '-': to standard output, with the table on stderr
    #[arg(long, value_name = "FILE")]
    json: Option<JsonTo>,
    #[command(flatten)]
    request: RequestArgs,
}

impl CheckArgs {
    /// Returns a plan for each server.
    fn plans(&self) -> anyhow::Result<Vec<Plan>> {
        if self.targets.is_empty() {
            return Ok(Vec::new());
        }
        self.request.named_plans(&self.targets)
    }
}

pub fn run(args: &CheckArgs) -> anyhow::Result<Verdict> {
    let plans = args.plans()?;
    let interrupt = interrupt::on_signals().context("cannot handle Ctrl-C")?;
    let clock = ClockDemand::default().check()?;
    let mut found = machine::look(&clock, args.connections);
    for plan in &plans {
        if interrupt.is_set() {
            return Ok(Verdict::Interrupted);
        }
        let max_error = args.max_clock_error;
        found.extend(server::look(plan, args.connections, max_error, &interrupt));
    }
    let text = format!("{}\n{}", describe(&found), machine::verdict(&found));
    let printed = say(args.json.as_ref(), &text);
    if let Some(to) = &args.json {
        let json = serde_json::to_string_pretty(&found)? + "\n";
        if let Err(error) = to.write(&json) {
            tell(&format!("error: {error:#}"));
            return Ok(Verdict::Unsaved);
        }
    }
    printed?;
    let is_wrong = found.iter().any(|own| own.state == Grade::Wrong);
    Ok(if is_wrong {
        Verdict::Condition
    } else {
        Verdict::Success
    })
}

/// Returns the observations by the machines and servers that they are about.
fn describe(found: &[Observation]) -> String {
    let columns = ["state", "what", "value"].map(Column::text);
    let row = |own: &Observation| {
        let mut value = on_one_line(&own.value);
        if !own.remedy.is_empty() {
            value = format!("{value}: {}", own.remedy);
        }
        vec![own.state.name().to_owned(), own.what.to_owned(), value]
    };
    let each = found.chunk_by(|one, other| one.of == other.of).map(|all| {
        let rows: Vec<_> = all.iter().map(row).collect();
        format!("{}\n{}\n", all[0].of, Table::whole(&columns, &rows))
    });
    each.collect::<Vec<_>>().join("\n")
}
