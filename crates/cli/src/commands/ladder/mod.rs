//! `netping ladder`: every server on this machine, from the plainest up.
//!
//! All servers run from the beginning to the end. A round measures every rung under the load of every
//! block once, in random order, and rungs are compared within rounds. In every other round, round trips are also taken
//! apart. Since that costs time, it is done in windows of their own, of which nothing else is kept.

pub mod args;
mod checks;
mod pace;
mod rungs;
mod started;

use std::{env, fs, path::Path, time::Duration};

use anyhow::Context;
use netping_client::{
    clock::{Clock, Deadline, Monotonic},
    plan::{Destination, Extent, Plan, Warmup},
    transport,
};
use netping_protocol::{frame::Reply, message, pki};
use netping_results::{
    run::{Kind, Pairing, Step},
    warning::{ForeignLoad, Subject},
};
use netping_system::cores;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::{
    args::LadderArgs,
    checks::{leave_out_wrong, of_rung, require_replies, require_running, with_rung},
    pace::Pace,
    rungs::{AGAIN, Block, Rung},
};
use crate::{
    args::secure::CredentialArgs, commands::measure, credentials, environment, error::Verdict,
    run::Runner, server_process::ServerProcess,
};

/// The time for a server to settle under a load, and the window after it.
const SETTLING: Duration = Duration::from_millis(50);
const WINDOW: Duration = Duration::from_millis(150);

/// The window in which round trips are taken apart.
const ANATOMY_WINDOW: Duration = Duration::from_millis(100);

/// The stem of the files' names, unless others are given.
const STEM: &str = "netping-ladder";
const PARTIAL_STEM: &str = "netping-ladder-partial";

/// A rung under the load of a block, measured once in each round.
struct RungUnderLoad<'a> {
    rung: &'a Rung,
    block: &'a Block,
    plan: Plan,
    /// The place of the cell that it is compared with.
    base: Option<usize>,
}

/// Runs the ladder.
///
/// # Errors
/// If it cannot start.
pub fn run(args: &LadderArgs) -> anyhow::Result<Verdict> {
    args.check()?;
    let options = args.output.options()?;
    let sides = args.sides()?;
    measure(Kind::Ladder, options, |runner| {
        // A container with nothing but the program has no folder for temporary files.
        let folder = fs::create_dir_all(env::temp_dir()).and_then(|()| tempfile::tempdir());
        let folder = folder.context("cannot create a folder for certificates")?;
        let folder = folder.path();
        make_credentials(folder)?;
        let (rungs, mut servers) = start(args, folder, &sides.servers)?;
        runner.place(&sides);
        let blocks = Block::all(args.callers.into(), args.connections.into(), args.full);
        let cells = cells(&rungs, &servers, &blocks, folder)?;
        // The first block has all rungs, with one caller, and those of the user's come last.
        for at in rungs.len() - args.started.len()..rungs.len() {
            started::await_answer(
                runner,
                &mut servers[at],
                &cells[at].plan,
                args.start_timeout,
            )
            .with_context(|| of_rung(&rungs[at].name))?;
        }
        let climbed = climb(runner, args.rounds(), &cells, &rungs, &mut servers);
        // What came to no end replaces nothing that is complete.
        let is_partial = climbed.is_err() || runner.is_interrupted();
        runner.save_as(if is_partial { PARTIAL_STEM } else { STEM });
        climbed
    })
}

/// Starts the servers of all rungs on these CPUs, or on any if there are none. Those of the user's come last, and may not
/// listen yet.
fn start(
    args: &LadderArgs,
    folder: &Path,
    cpus: &[usize],
) -> anyhow::Result<(Vec<Rung>, Vec<ServerProcess>)> {
    // They take longest, and so begin first.
    let started = started::start_all(&args.started, folder, cpus)?;
    let own = args.own_rungs().map(|own| own.start(folder, cpus));
    let mut servers = own.collect::<anyhow::Result<Vec<_>>>()?;
    let own = args.own_rungs().zip(&servers);
    let mut rungs: Vec<Rung> = own.map(|(own, server)| own.rung(server)).collect();
    rungs.extend(args.started.iter().map(|own| args.rung(own)));
    servers.extend(started);
    Ok((rungs, servers))
}

/// Returns every rung under the load of every block that it belongs to.
fn cells<'a>(
    rungs: &'a [Rung],
    servers: &[ServerProcess],
    blocks: &'a [Block],
    folder: &Path,
) -> anyhow::Result<Vec<RungUnderLoad<'a>>> {
    let mut cells: Vec<RungUnderLoad<'a>> = Vec::new();
    for block in blocks {
        for (rung, server) in rungs.iter().zip(servers) {
            let Some(kind) = rung.form.kind(block) else {
                continue;
            };
            if block.shared.is_some() && !kind.multiplexes() {
                continue;
            }
            let is_base = |other: &RungUnderLoad<'_>| match block.shared {
                Some(_) => other.rung.name == rung.name && other.block.is_unshared(block),
                None => Some(&other.rung.name) == rung.over.as_ref() && other.block == block,
            };
            cells.push(RungUnderLoad {
                rung,
                block,
                plan: plan(rung, kind, block, server, folder)?,
                base: cells.iter().position(is_base),
            });
        }
    }
    Ok(cells)
}

/// Windows in which round trips are taken apart.
struct Anatomies {
    /// The place of the cell that each belongs to.
    places: Vec<usize>,
    plans: Vec<Plan>,
}

impl Anatomies {
    /// Returns one for each rung over TCP with one caller; none where the kernel has no time stamps.
    fn of(cells: &[RungUnderLoad<'_>]) -> Self {
        let is_alone = |cell: &RungUnderLoad<'_>| {
            cell.block.callers == 1 && !cell.block.is_message && cell.plan.load.kind.is_over_tcp()
        };
        let alone = cells.iter().enumerate().filter(|(_, cell)| is_alone(cell));
        let wanted = alone.filter(|_| transport::has_stamps());
        let apart = |(place, cell): (usize, &RungUnderLoad<'_>)| {
            let mut plan = cell.plan.clone();
            plan.execution.anatomy = true;
            plan.execution.extent = Extent::Time(ANATOMY_WINDOW);
            (place, plan)
        };
        let (places, plans) = wanted.map(apart).unzip();
        Self { places, plans }
    }

    /// Moves the parts of round trips from the windows behind the cells' own to those that they belong to, unless
    /// others disturbed them.
    fn attach(&self, steps: &mut Vec<Step>) {
        let first = steps.len() - self.places.len();
        for (place, apart) in self.places.iter().zip(steps.split_off(first)) {
            if ForeignLoad::of_window(&apart).is_none() {
                steps[*place].anatomy = apart.anatomy;
            }
        }
    }
}

fn plan(
    rung: &Rung,
    kind: transport::Kind,
    block: &Block,
    server: &ServerProcess,
    folder: &Path,
) -> anyhow::Result<Plan> {
    let target = &server.target;
    let secured = CredentialArgs::of(folder, rung.mutual).connector(target)?;
    let mut destination = Destination::new(target.clone(), server.source.clone(), secured);
    destination.label = Some(rung.name.clone());
    destination.reply_length = Some(rung.reply_length.clone());
    let mut plan = Plan::new(destination, kind);
    let load = &mut plan.load;
    if block.is_message {
        load.payload = message::LENGTH;
        load.reply = Reply::Message;
    } else {
        load.payload = 16;
    }
    load.callers = block.callers;
    load.connections = block.shared.unwrap_or(block.callers);
    plan.execution.subject = Subject::Both;
    plan.execution.workers = cores::own().len().clamp(1, plan.load.connections);
    plan.execution.warmup = Warmup::Time(SETTLING);
    plan.execution.extent = Extent::Time(WINDOW);
    Ok(plan)
}

/// Measures the fewest rounds of all cells, and more while the budget lasts, unless the user ends it. Windows
/// that others disturbed are measured again: half as many as the fewest rounds have.
fn climb(
    runner: &mut Runner,
    (fewest, budget): (u32, Duration),
    cells: &[RungUnderLoad<'_>],
    rungs: &[Rung],
    servers: &mut [ServerProcess],
) -> anyhow::Result<()> {
    let anatomies = Anatomies::of(cells);
    let compared: Vec<&Plan> = cells.iter().map(|cell| &cell.plan).collect();
    let all: Vec<&Plan> = compared.iter().copied().chain(&anatomies.plans).collect();
    let seed = environment::random_seed();
    let pairing = |(new, cell): (usize, &RungUnderLoad<'_>)| {
        Some(Pairing {
            is_control: cell.rung.name == AGAIN && cell.block.shared.is_none(),
            ..Pairing::new(cell.base?, new)
        })
    };
    let pairings = cells.iter().enumerate().filter_map(pairing).collect();
    runner.design(seed, pairings);
    runner.allow_repeats(fewest * cells.len() as u32 / 2);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let clock = Monotonic::start();
    let mut pace = Pace::new(fewest, budget);
    while !pace.is_over() {
        let (round, begun) = (pace.next(), clock.now());
        let progress = &runner.console.progress;
        progress.begin_round(round, pace.left().map(Deadline::after));
        let is_apart = round % 2 == 1;
        let plans = if is_apart { &all } else { &compared };
        let steps = runner.round(plans, round, &mut random);
        // A round in which a server has ended is none.
        require_running(rungs, servers)?;
        let Some(mut steps) = steps.map_err(|failure| with_rung(failure, rungs, servers))? else {
            break;
        };
        if is_apart {
            anatomies.attach(&mut steps);
        }
        if round == 1 {
            require_replies(&steps)?;
        }
        runner.keep(steps);
        runner.plant();
        pace.count(Duration::from_nanos(clock.now() - begun));
    }
    leave_out_wrong(runner);
    Ok(())
}

fn make_credentials(folder: &Path) -> anyhow::Result<()> {
    let hosts = ["127.0.0.1".to_owned()];
    let mut files = credentials::certificates(&hosts, &pki::LEAF)?;
    files.push(credentials::shared_key()?);
    credentials::write(folder, &files, false)
}

#[cfg(test)]
mod tests {
    use netping_client::{
        plan::{ReplyLength, Trust},
        probe::metrics::ServerSource,
    };
    use netping_measure::anatomy::Anatomy;
    use netping_protocol::secure::Connector;
    use netping_results::{anatomy::AnatomySummary, fixtures};

    use super::{rungs::Form, *};

    #[test]
    fn round_trips_are_taken_apart_with_one_caller_and_no_message_and_over_tcp() {
        let rung = Rung {
            name: "own".to_owned(),
            over: None,
            form: Form::Fixed(transport::Kind::Frame),
            mutual: false,
            reply_length: ReplyLength::default(),
        };
        let blocks = Block::all(64, 4, true);
        let cell = |block, kind| {
            let security = (Connector::Plain, Trust::default());
            let url = "tcp://h:1".parse().unwrap();
            RungUnderLoad {
                rung: &rung,
                block,
                plan: Plan::new(Destination::new(url, ServerSource::Nowhere, security), kind),
                base: None,
            }
        };
        let over_tcp = blocks
            .iter()
            .map(|block| cell(block, transport::Kind::Frame));
        let over_quic = cell(&blocks[0], transport::Kind::Quic);
        let cells: Vec<_> = over_tcp.chain([over_quic]).collect();
        let apart = Anatomies::of(&cells).places;
        assert_eq!(apart, vec![0; usize::from(transport::has_stamps())]);
    }

    #[test]
    fn parts_of_round_trips_go_to_their_cells_unless_their_window_was_disturbed() {
        let anatomies = Anatomies {
            places: vec![0, 2, 3],
            plans: Vec::new(),
        };
        let apart = |requests| {
            let anatomy = Anatomy {
                without_stamps: requests,
                ..Anatomy::default()
            };
            let mut step = fixtures::step(1, |_| vec![1000; 10]);
            step.anatomy = Some(AnatomySummary::of(&anatomy));
            step
        };
        let mut disturbed = apart(2);
        disturbed.warnings.push(fixtures::foreign_load().into());
        let mut steps = vec![fixtures::step(1, |_| vec![1000; 10]); 4];
        steps.extend([apart(1), disturbed, apart(3)]);
        anatomies.attach(&mut steps);
        let found = steps.iter().map(|step| step.anatomy.as_ref());
        let found: Vec<_> = found.map(|own| own.map(|own| own.without_stamps)).collect();
        assert_eq!(found, [Some(1), None, None, Some(3)]);
    }
}
