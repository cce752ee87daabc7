//! `netping ab`: two servers by turns, until it is known whether the new one is worse.
//!
//! A round calls all servers by turns, request by request in random order, and then measures the highest rate
//! of each in a window of its own. The base and the new server are there twice, as controls. After each
//! round, intervals that hold at all rounds together say whether it is known.

pub mod args;

use std::time::Duration;

use netping_client::{
    clock::Deadline,
    error::StartError,
    interrupt::Interrupt,
    plan::{Extent, Plan, Warmup, shuffled, together},
};
use netping_protocol::target::Target;
use netping_results::{
    ab::Decision,
    run::{Kind, Pairing, Place, Step},
    warning::Subject,
};
use netping_system::cores;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use self::args::{AbArgs, Servers};
use crate::{
    commands::measure,
    environment,
    error::{Verdict, usage},
    launcher::{Values, await_listening, free_addresses},
    run::Runner,
    server_process::ServerProcess,
    sides::Sides,
};

/// The servers of a round, in the order of their measurements, and which each is the control of.
const SERVERS: [(&str, Option<usize>); 4] = [
    ("base", None),
    ("base again", Some(0)),
    ("new", None),
    ("new again", Some(NEW)),
];

/// The place of the new server among them.
const NEW: usize = 2;

/// The shortest window by turns.
const WINDOW: Duration = Duration::from_millis(300);

/// Requests to each server that a window by turns should have: p99 takes 1,000, and counts vary.
const REQUESTS: f64 = 1500.0;

/// The windows by turns of this many rounds fit the budget.
const LEAST_ROUNDS: u32 = 20;

/// The length of the windows of the highest rate, and the time before them.
const CAPACITY_WINDOW: Duration = Duration::from_millis(150);
const SETTLING: Duration = Duration::from_millis(50);

/// Seconds of the budget for each disturbed window that may be measured again.
const SECONDS_PER_REPEAT: u32 = 2;

/// Rounds before the first look.
pub const FEWEST: u32 = 5;

/// The time in which servers that have been started must listen, and then answer a first request.
const LISTENING: Duration = Duration::from_secs(30);
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// More rounds than there can be: intervals hold whenever they end.
const MOST: usize = 1_000_000;

/// Measures the servers until it is known whether the new one is worse.
///
/// # Errors
/// If a server cannot be started, or does not answer.
pub fn run(args: &AbArgs) -> anyhow::Result<Verdict> {
    let servers = args.servers()?;
    let sides = match servers {
        Servers::Commands(..) if !args.no_pin => Sides::split(&cores::by_core(&cores::own())),
        // Servers that run already are where they are.
        _ => Sides::unpinned(""),
    };
    measure(Kind::Ab, args.options()?, |runner| {
        let seed = environment::random_seed();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut rounds = Rounds {
            servers: &servers,
            cpus: &sides.servers,
            started: Vec::new(),
        };
        runner.place(&sides);
        let run = &mut runner.store.run;
        (run.margin, run.looks) = (Some(args.margin), MOST);
        run.allowed = args.allowed();
        runner.allow_repeats(args.budget.as_secs() as u32 / SECONDS_PER_REPEAT);
        let deadline = Deadline::after(args.budget);
        let mut window = WINDOW;
        for trial in 1.. {
            let targets = rounds.targets(&runner.interrupt, &mut random)?;
            let (mut calls, mut capacity) = args.plans(&targets)?;
            rounds.complete(&mut calls);
            if let Some(plans) = &mut capacity {
                rounds.complete(plans);
            }
            if trial == 1 {
                runner.design(seed, pairings(capacity.is_some()));
            }
            if trial == 1 || !rounds.started.is_empty() {
                rounds.call_first(runner, &calls, &mut random)?;
            }
            let capacity = capacity.as_deref_mut().unwrap_or_default();
            for plan in &mut calls {
                plan.execution.extent = Extent::Time(window);
                plan.execution.warmup = Warmup::Time(args.warmup);
            }
            if deadline.left().is_zero() {
                runner.allow_repeats(0);
            }
            let begun = runner.steps().len();
            measure_round(runner, &calls, capacity, trial, &mut random)?;
            runner.judge_from(begun);
            runner.plant();
            window = next_window(window, runner.steps(), args.budget);
            let decision = || runner.store.run.decided().decision;
            let is_decided = || decision() != Decision::Undecided;
            let may_end = trial >= FEWEST && (deadline.left().is_zero() || is_decided());
            if runner.is_interrupted() || may_end {
                break;
            }
        }
        match runner.store.run.decided().decision {
            Decision::NotWorse => {}
            Decision::Worse => runner.judge.decide(Verdict::Condition),
            Decision::Undecided => runner.judge.decide(Verdict::Undecided),
        }
        Ok(())
    })
}

/// Returns what is compared: the new server with the base, and each with itself; by turns, and by the highest
/// rate.
fn pairings(has_capacity: bool) -> Vec<Pairing> {
    let of = |block: usize| {
        let first = block * SERVERS.len();
        let controls = SERVERS.iter().enumerate();
        let controls = controls.filter_map(move |(at, (_, control_of))| {
            Some(Pairing {
                is_control: true,
                ..Pairing::new(first + (*control_of)?, first + at)
            })
        });
        controls.chain([Pairing::new(first, first + NEW)])
    };
    (0..=usize::from(has_capacity)).flat_map(of).collect()
}

/// Returns the length of the next window by turns, so that each server gets enough requests, and the windows of
/// [`LEAST_ROUNDS`] fit the budget.
fn next_window(window: Duration, steps: &[Step], budget: Duration) -> Duration {
    let last = steps
        .iter()
        .rev()
        .filter(|step| step.settings.together.is_some());
    let counts = last
        .take(SERVERS.len())
        .map(|step| step.summary.accounting.ok);
    let fewest = counts.min().unwrap_or(0).max(1) as f64;
    let longest = (budget / LEAST_ROUNDS).max(WINDOW);
    window.mul_f64(REQUESTS / fewest).clamp(WINDOW, longest)
}

/// Measures a round: all servers by turns, and then the highest rate of each, if there are plans for that.
fn measure_round(
    runner: &mut Runner,
    calls: &[Plan],
    capacity: &mut [Plan],
    trial: u32,
    random: &mut ChaCha8Rng,
) -> Result<(), StartError> {
    let calls = together(calls, random.next_u64());
    let first = Place {
        measurement: 0,
        trial,
    };
    runner.explore_together(&calls, first)?;
    for at in shuffled(capacity.len(), random) {
        if runner.is_interrupted() {
            break;
        }
        let plan = &mut capacity[at];
        plan.execution.warmup = Warmup::Time(SETTLING);
        plan.execution.extent = Extent::Time(CAPACITY_WINDOW);
        plan.execution.subject = Subject::Both;
        let measurement = calls.len() + at;
        runner.explore(plan, Place { measurement, trial }, |_| None)?;
    }
    Ok(())
}

/// The servers of the rounds.
struct Rounds<'a> {
    servers: &'a Servers,
    /// The CPUs of servers that commands start; empty: any.
    cpus: &'a [usize],
    started: Vec<ServerProcess>,
}

impl Rounds<'_> {
    /// Returns the targets of a round, in the order of [`SERVERS`]. Where commands start them, they are started
    /// anew, in random order: a start that is lucky, or a little earlier, counts once.
    fn targets(
        &mut self,
        interrupt: &Interrupt,
        random: &mut ChaCha8Rng,
    ) -> anyhow::Result<Vec<Target>> {
        let (builds, url) = match self.servers {
            Servers::Running([base, new]) => {
                return Ok([base, base, new, new].map(|own| own.url.clone()).to_vec());
            }
            Servers::Commands(builds, url) => (builds, url),
        };
        // The old ones make room first.
        for server in &mut self.started {
            server.terminate();
        }
        self.started.clear();
        let addresses = free_addresses(SERVERS.len())?;
        let mut started = Vec::new();
        for at in shuffled(SERVERS.len(), random) {
            let values = Values::of(&addresses[at]);
            let target = values.put_in(url).parse::<Target>();
            let target = target.map_err(|error| usage(format!("--url: {error}")))?;
            started.push((at, builds[at / NEW].start(target, &values, self.cpus)?));
        }
        started.sort_by_key(|(at, _)| *at);
        self.started = started.into_iter().map(|(_, server)| server).collect();
        for server in &mut self.started {
            await_listening(server, interrupt, LISTENING)?;
        }
        Ok(self.started.iter().map(|own| own.target.clone()).collect())
    }

    /// Sends each server its first request, in random order, so that a server that does not answer is told before
    /// anything is measured. A server that has just been started may take a while to answer.
    fn call_first(
        &mut self,
        runner: &mut Runner,
        calls: &[Plan],
        random: &mut ChaCha8Rng,
    ) -> anyhow::Result<()> {
        let order = shuffled(calls.len(), random);
        let calls: Vec<Plan> = order.into_iter().map(|at| calls[at].clone()).collect();
        let deadline = Deadline::after(FIRST_ANSWER);
        runner.call_started(&calls, |_| {
            for server in &mut self.started {
                server.require_running("before it answered")?;
            }
            Ok(!self.started.is_empty() && !deadline.left().is_zero())
        })
    }

    /// Names the servers of plans, and says where their CPU time is known from.
    fn complete(&self, plans: &mut [Plan]) {
        let given = match self.servers {
            Servers::Running([base, new]) => [&base.name, &new.name].map(Option::as_deref),
            Servers::Commands(..) => [None; 2],
        };
        for (at, (plan, (side, control_of))) in plans.iter_mut().zip(SERVERS).enumerate() {
            let name = given[at / NEW].map(|name| match control_of {
                None => name.to_owned(),
                Some(_) => format!("{name} again"),
            });
            plan.target.label = Some(name.unwrap_or_else(|| side.to_owned()));
            if let Some(started) = self.started.get(at) {
                plan.target.server.clone_from(&started.source);
            }
        }
    }
}
