//! `netping connect`: a new connection for each sample, timed part by part.

use std::num::NonZeroU64;

use clap::Args;
use netping_client::plan::{Extent, Plan, Warmup};
use netping_protocol::units::number_in;
use netping_report::text::Rows;
use netping_results::run::Kind;
use netping_system::cores;
use url::Host;

use crate::{
    args::{
        output::OutputArgs, range::count, request::RequestArgs, target::NamedTarget, time::warmup,
    },
    commands::measure,
    error::Verdict,
};

/// Flags of `netping connect`.
#[derive(Debug, Clone, Args)]
pub struct ConnectArgs {
    /// Servers, such as tcp+tls://HOST:8004, quic://HOST:8006 or https://HOST/PATH
    #[arg(required = true, value_name = "URL")]
    targets: Vec<NamedTarget>,
    /// Connections to open, one for each sample
    #[arg(short = 'n', long, alias = "requests", default_value = "10000", value_parser = count, value_name = "N")]
    samples: NonZeroU64,
    /// Callers, each with one connection at a time
    #[arg(short = 'c', long, alias = "concurrency", default_value = "1", value_name = "N", value_parser = number_in::<u32>(1..))]
    callers: u32,
    /// Warm up for this long; these connections do not count
    #[arg(long, default_value = "200ms", value_parser = warmup, value_name = "TIME|auto")]
    warmup: Warmup,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ConnectArgs {
    /// Returns a plan for each target.
    pub fn plans(&self) -> anyhow::Result<Vec<Plan>> {
        let callers = self.callers as usize;
        let mut plans = self.request.named_plans(&self.targets)?;
        for plan in &mut plans {
            plan.target.resolve_each = matches!(plan.target.url.host, Host::Domain(_));
            plan.load.callers = callers;
            plan.load.connections = callers;
            plan.load.requests_per_connection = Some(NonZeroU64::MIN);
            plan.execution.workers = cores::own().len().clamp(1, callers);
            plan.execution.warmup = self.warmup;
            plan.execution.extent = Extent::Requests(self.samples.get());
        }
        Ok(plans)
    }
}

pub fn run(args: &ConnectArgs) -> anyhow::Result<Verdict> {
    let plans = args.plans()?;
    measure(Kind::Connect, args.output.options()?, |runner| {
        runner.call_all(&plans)?;
        let mut rows = Rows::new(Kind::Connect);
        for plan in &plans {
            if runner.is_interrupted() {
                break;
            }
            let place = runner.next_place();
            runner.measure(plan, place, |step| Some(rows.show(step)))?;
        }
        Ok(())
    })
}
