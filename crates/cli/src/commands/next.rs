//! `netping next`: the next window of a search whose windows are runs of their own, as of clients on several hosts.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use netping_results::{condition::Condition, run::Run};

use super::text::print;
use crate::{
    args::{output::ToleranceArgs, time::positive},
    error::{Verdict, usage},
    run::search::{End, Outcome, Search, least_rate},
};

/// Flags of `netping next`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("max_error_rate", |arg| arg.help("Windows in which a larger share of requests fails do not keep the condition, from 0 to 1")),
    mut_arg("allow", |arg| arg.help("Windows with these warnings are not disturbed, or 'all'; may be repeated")),
    after_long_help = "Exit codes: 0 there is a next window, or the rate was found; 2 wrong usage, 3 a file could not be \
                  read, 4 no rate keeps the condition, 5 higher rates could not be measured on these clients."
)]
pub struct NextArgs {
    /// Result files of the windows so far, in their order; none before the first
    #[arg(value_name = "RUN.json")]
    files: Vec<PathBuf>,
    /// Search for the highest rate at which this condition holds, such as 'p99<1ms'
    #[arg(long, value_name = "CONDITION")]
    find: Condition,
    /// Measured time of each window
    #[arg(short, long, default_value = "10s", value_parser = positive, value_name = "TIME")]
    duration: Duration,
    #[command(flatten)]
    tolerated: ToleranceArgs,
}

/// The share by which the rate of a window may be off that which was asked for: rates are whole numbers.
const ROUNDED: f64 = 0.01;

pub fn run(args: &NextArgs) -> anyhow::Result<Verdict> {
    let mut search = Search::new(least_rate(args.duration, &args.find));
    for file in &args.files {
        let run = Run::load(file)?;
        let name = file.display();
        let [step] = &run.steps[..] else {
            let steps = run.steps.len();
            return Err(usage(format!(
                "{name} has {steps} steps, and a window is one: give its own file"
            )));
        };
        let Some(rate) = search.next() else {
            return Err(usage(format!(
                "the search is over before {name}: leave it out, or give the files in the order in which they were measured"
            )));
        };
        let measured = step.settings.planned_rate.unwrap_or(0.0);
        if (measured - rate).abs() > (rate * ROUNDED).max(1.0) {
            return Err(usage(format!(
                "{name} has {measured} requests per second, and the search came to {rate:.0}: give the files in the order in \
                 which they were measured, with the --find and -d of then"
            )));
        }
        search.tried(rate, &Outcome::of(step, &args.find, &args.tolerated));
    }
    if let Some(rate) = search.next() {
        print(format!("--rate {rate:.0}\n"))?;
        return Ok(Verdict::Success);
    }
    print(search.result(&args.find) + "\n")?;
    Ok(match search.end() {
        End::Found => Verdict::Success,
        End::NotFound => Verdict::Condition,
        End::Machine => Verdict::Warnings,
    })
}
