//! `netping latency`: sequential round trips on one connection.

mod addresses;
mod in_process;

use std::{mem, num::NonZeroU64, time::Duration};

use clap::Args;
use netping_client::{
    clock,
    error::StartError,
    plan::{Extent, Plan, Warmup},
    probe::metrics::ServerSource,
};
use netping_measure::distribution::samples_for;
use netping_protocol::units;
use netping_report::text::Rows;
use netping_results::{
    run::{Kind, Place},
    warning::Subject,
};
use netping_serving::shutdown::Shutdown;

use self::{
    addresses::{Addresses, every_address},
    in_process::Echo,
};
use crate::{
    args::{
        range::{CountLimit, count, count_or},
        shared::ComparedArgs,
        target::NamedTarget,
        time::{positive, warmup},
        trials::{Alternate, Trials},
    },
    commands::measure,
    error::{Verdict, require},
    run::{Runner, trials},
};

/// Flags of `netping latency`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("trials", |arg| arg.help(format!(
    "Measure everything N times, and compare the targets [default: 1; of several targets, {TRIALS} parts of -n or -d]"
))))]
pub struct LatencyArgs {
    /// Servers, such as tcp://HOST:8004, grpc://HOST:8005 or http://HOST:80/PATH
    #[arg(required_unless_present = "in_process", value_name = "URL")]
    pub targets: Vec<NamedTarget>,
    /// Measure echoes with client and server in one process, instead of URLs: first on one thread, so
    /// that no request wakes another core, then with the server on a thread of its own
    #[arg(
        long, num_args = 0..=1, value_name = "tcp,grpc", value_delimiter = ',', default_missing_value = "tcp,grpc",
        conflicts_with_all = ["targets", "all_addresses", "unix_socket", "server_metrics", "server_pid"]
    )]
    in_process: Vec<Echo>,
    /// Round trips to measure
    #[arg(short = 'n', long, alias = "requests", default_value = "10000", value_parser = count, value_name = "N")]
    samples: NonZeroU64,
    /// Measure for this long instead
    #[arg(short, long, value_parser = positive, value_name = "TIME", conflicts_with = "samples")]
    duration: Option<Duration>,
    /// Warm up for this long; these round trips do not count
    #[arg(long, default_value = "200ms", value_parser = warmup, value_name = "TIME|auto")]
    warmup: Warmup,
    /// Repeat the measurement N times, or 'forever'
    #[arg(long, default_value = "1", value_name = "N|forever", value_parser = count_or("forever"), conflicts_with_all = ["trials", "until"])]
    repeat: CountLimit,
    /// Time from the start of one measurement to the start of the next
    #[arg(long, default_value = "10s", value_parser = units::time, value_name = "TIME", requires = "repeat")]
    every: Duration,
    /// Measure each address that a name resolves to, except this pod's own
    #[arg(long)]
    all_addresses: bool,
    /// Environment variable that has this pod's own address
    #[arg(
        long,
        default_value = "POD_IP",
        value_name = "NAME",
        requires = "all_addresses"
    )]
    pod_ip_env: String,
    #[command(flatten)]
    compared: ComparedArgs,
}

/// Trials of several targets, unless a flag gives their number; each has this part of the round trips or the time.
const TRIALS: u32 = 5;

impl LatencyArgs {
    /// Returns a plan for each of these targets, for one of the trials.
    pub fn plans(&self, targets: &[NamedTarget]) -> anyhow::Result<Vec<Plan>> {
        let parts = self.parts(targets.len());
        let request = &self.compared.shared.request;
        let mut plans = request.named_plans(targets)?;
        for plan in &mut plans {
            plan.execution.warmup = self.warmup;
            plan.execution.extent = match self.duration {
                None => Extent::Requests(self.samples.get().div_ceil(parts.into())),
                Some(duration) => Extent::Time(duration / parts),
            };
            self.compared.in_step.apply(plan)?;
            self.compared.anatomy.apply(plan)?;
        }
        Ok(plans)
    }

    /// Returns the trials of these groups: by turns, if no flag says otherwise and the servers are no part of this
    /// process.
    fn trials(&self, groups: &[Vec<Plan>]) -> anyhow::Result<Trials> {
        let alternate = if self.in_process.is_empty() {
            Alternate::Requests
        } else {
            Alternate::Windows
        };
        let targets = groups.iter().map(Vec::len).sum();
        let trials = self
            .compared
            .trials(targets, self.parts(targets), alternate)?;
        require(
            !trials.by_turns || self.in_process.is_empty(),
            "the servers of --in-process are measured in windows of their own: leave out --alternate requests",
        )?;
        Ok(trials)
    }

    /// Returns true if the measurement is not repeated.
    fn is_once(&self) -> bool {
        self.repeat.0.is_some_and(|times| times.get() == 1)
    }

    /// Returns the number of trials into which the measurement of this many targets is divided: several are compared,
    /// unless flags decide on that, or there are too few round trips.
    fn parts(&self, targets: usize) -> u32 {
        let is_compared = targets > 1
            && self.in_process.is_empty()
            && !self.all_addresses
            && self.is_once()
            && (self.duration.is_some()
                || self.samples.get() >= samples_for(99.0) * u64::from(TRIALS))
            && !self.compared.has_trials();
        if is_compared { TRIALS } else { 1 }
    }

    /// Returns the plans of a group for each echo in this process: with one thread and with two.
    /// `shutdown` ends the servers.
    fn plans_in_process(&self, shutdown: &Shutdown) -> anyhow::Result<Vec<Vec<Plan>>> {
        let mut groups = Vec::new();
        for echo in &self.in_process {
            let servers = echo.servers(shutdown)?;
            let targets = [0, 1].map(|at| NamedTarget {
                name: Some(servers[at].label.to_owned()),
                url: servers[at].target.clone(),
            });
            let mut plans = self.plans(&targets)?;
            for (plan, own) in plans.iter_mut().zip(servers) {
                plan.target.in_process = Some(own.server);
                // This process's counters are those of both.
                plan.target.server = ServerSource::Nowhere;
                if plan.target.is_on_worker() {
                    plan.execution.subject = Subject::Both;
                }
            }
            groups.push(plans);
        }
        Ok(groups)
    }
}

pub fn run(args: &LatencyArgs) -> anyhow::Result<Verdict> {
    let shutdown = Shutdown::default();
    let outcome = run_until(args, &shutdown);
    shutdown.trigger();
    outcome
}

/// Measures; `shutdown` ends the servers in this process.
fn run_until(args: &LatencyArgs, shutdown: &Shutdown) -> anyhow::Result<Verdict> {
    let mut warning = None;
    let mut groups = if !args.in_process.is_empty() {
        args.plans_in_process(shutdown)?
    } else if args.all_addresses {
        let found: Addresses = every_address(&args.targets, &args.pod_ip_env)?;
        warning = found.warning;
        vec![args.plans(&found.targets)?]
    } else {
        vec![args.plans(&args.targets)?]
    };
    let trials = args.trials(&groups)?;
    measure(Kind::Latency, args.compared.options()?, |runner| {
        if let Some(warning) = warning {
            runner.console.remark(&warning);
        }
        for plans in &mut groups {
            if args.all_addresses {
                *plans = answering(runner, mem::take(plans))?;
            } else {
                runner.call_all(plans)?;
            }
        }
        if let Some(times) = args.repeat.0 {
            let times = u32::try_from(times.get()).unwrap_or(u32::MAX);
            let plans = groups.iter().flatten();
            runner.console.progress.outline(plans, times);
        }
        let targets = groups.iter().map(Vec::len).sum();
        if trials.have_order(targets) && args.is_once() {
            Ok(trials::run(runner, trials, &groups, |_| None)?)
        } else {
            repeat(runner, args, &groups.concat())
        }
    })
}

/// Returns the plans whose targets answer a first call, and names the others, which fail the command.
///
/// # Errors
/// The first [`StartError`] if none answers, and those that are not a target's.
fn answering(runner: &mut Runner, plans: Vec<Plan>) -> Result<Vec<Plan>, StartError> {
    let (mut answering, mut failures) = (Vec::new(), Vec::new());
    for plan in plans {
        match runner.call(&plan) {
            Ok(()) => answering.push(plan),
            Err(failure) if failure.is_of_server() => failures.push(failure),
            Err(error) => return Err(error),
        }
    }
    if answering.is_empty() {
        return failures.into_iter().next().map_or(Ok(answering), Err);
    }
    for failure in failures {
        leave_out(runner, &failure);
    }
    Ok(answering)
}

/// Names a target that does not answer, while others are measured.
fn leave_out(runner: &mut Runner, failure: &StartError) {
    runner.fail(
        Verdict::Unmeasured,
        &format!("error: {failure} (the other addresses are measured)"),
    );
}

fn repeat(runner: &mut Runner, args: &LatencyArgs, plans: &[Plan]) -> anyhow::Result<()> {
    let times = args.repeat.0.map(NonZeroU64::get);
    let mut rows = Rows::new(Kind::Latency).with_times(times != Some(1));
    for trial in 1.. {
        let next = clock::Deadline::after(args.every);
        for (measurement, plan) in plans.iter().enumerate() {
            if runner.is_interrupted() {
                break;
            }
            let place = Place { measurement, trial };
            match runner.measure(plan, place, |step| Some(rows.show(step))) {
                Err(failure) if failure.is_of_server() && args.all_addresses => {
                    leave_out(runner, &failure);
                }
                measured => measured?,
            }
        }
        if runner.is_interrupted() || times == Some(trial.into()) {
            break;
        }
        runner.wait(next);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: LatencyArgs,
    }

    #[test]
    fn several_targets_are_measured_in_parts_unless_flags_say_how_often() {
        let of = |flags: &str| {
            let words = ["latency", "tcp://a:1", "tcp://b:1"];
            let words = words.into_iter().chain(flags.split_whitespace());
            let args = Command::try_parse_from(words).map(|own| own.args);
            let args = args.unwrap_or_else(|error| panic!("{error}"));
            let plans = args.plans(&args.targets).unwrap_or_default();
            (args.parts(2), plans[0].execution.extent)
        };
        assert_eq!(of(""), (5, Extent::Requests(2000)));
        assert_eq!(of("-n 5000"), (5, Extent::Requests(1000)));
        assert_eq!(of("-n 4999"), (1, Extent::Requests(4999)));
        assert_eq!(of("--fail-if p50>+10%"), (5, Extent::Requests(2000)));
        assert_eq!(of("-d 10s"), (5, Extent::Time(Duration::from_secs(2))));
        let whole = (1, Extent::Requests(10_000));
        for flags in [
            "--trials 1",
            "--trials 6",
            "--repeat 2",
            "--repeat forever",
            "--all-addresses",
            "--fail-if p99.9>5ms",
        ] {
            assert_eq!(of(flags), whole, "{flags}");
        }
        let until = ["--until", "p50 +-5%"];
        let words = ["latency", "tcp://a:1", "tcp://b:1"];
        let args = Command::parse_from(words.into_iter().chain(until)).args;
        assert_eq!(args.parts(2), 1);
        let in_step = of("--start-at +10s -d 1s");
        assert_eq!(in_step, (1, Extent::Time(Duration::from_secs(1))));
        let args = Command::parse_from(words).args;
        assert_eq!(args.parts(1), 1);
    }
}
