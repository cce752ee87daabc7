//! `netping URL...`: a quick look at servers, first with one caller, then with many.

use std::time::Duration;

use clap::Args;
use netping_client::plan::{Extent, Plan, Warmup};
use netping_report::text::Rows;
use netping_results::run::Kind;

use crate::{
    args::{
        load::with_callers, output::OutputArgs, request::RequestArgs, target::NamedTarget,
        time::positive,
    },
    commands::measure,
    error::Verdict,
};

/// Flags of a command line without a command.
#[derive(Debug, Clone, Args)]
pub struct QuickArgs {
    /// Servers for a quick look, such as tcp://HOST:8004, grpc://HOST:8005 or http://HOST:80/PATH
    #[arg(value_name = "URL", value_parser = target, required = true)]
    targets: Vec<NamedTarget>,
    /// Time for each server
    #[arg(short, long, default_value = "10s", value_parser = positive, value_name = "TIME")]
    duration: Duration,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The steps of a quick look: callers, and the warm-up's and the window's shares of its time.
const STEPS: [(u64, f64, f64); 2] = [(1, 0.05, 0.3), (64, 0.1, 0.55)];

impl QuickArgs {
    /// Returns the steps of each target.
    pub fn plans(&self) -> anyhow::Result<Vec<Vec<Plan>>> {
        let bases = self.request.named_plans(&self.targets)?;
        let steps = |base: &Plan| {
            let step = |(callers, warmup, window)| {
                let mut plan = with_callers(base.clone(), callers, None, None);
                plan.execution.warmup = Warmup::Time(self.duration.mul_f64(warmup));
                plan.execution.extent = Extent::Time(self.duration.mul_f64(window));
                plan
            };
            STEPS.into_iter().map(step).collect()
        };
        Ok(bases.iter().map(steps).collect())
    }
}

/// Reads a target, which may be a misspelt command.
fn target(text: &str) -> Result<NamedTarget, String> {
    if text.contains(['/', ':', '.']) {
        return text.parse();
    }
    Err("neither a command, which --help lists, nor a URL such as http://HOST/".to_owned())
}

pub fn run(args: &QuickArgs) -> anyhow::Result<Verdict> {
    let plans = args.plans()?;
    measure(Kind::Quick, args.output.options()?, |runner| {
        for steps in &plans {
            runner.call_all(&steps[..1])?;
        }
        runner.console.progress.outline(plans.iter().flatten(), 1);
        let mut rows = Rows::new(Kind::Quick);
        for steps in &plans {
            for plan in steps {
                if runner.is_interrupted() {
                    return Ok(());
                }
                let place = runner.next_place();
                runner.measure(plan, place, |step| Some(rows.show(step)))?;
            }
            if let Some(text) = runner.steps().last().and_then(|step| rows.end(step)) {
                runner.console.say(&text);
            }
        }
        Ok(())
    })
}
