//! `netping ladder`: every server on this machine, from the plainest up.
//!
//! All servers run from the beginning to the end. A round measures every rung under the load of every
//! block once, in random order, and rungs are compared within rounds.

pub mod args;
mod pace;
mod rungs;

use std::{path::Path, time::Duration};

use anyhow::Context;
use netping_client::{
    clock::{Clock, Deadline, Monotonic},
    error::StartError,
    plan::{Destination, Extent, Plan, Warmup},
    transport,
};
use netping_protocol::{frame::Reply, message, pki, scheme::Protocol};
use netping_results::{
    run::{Kind, Pairing},
    warning::Subject,
};
use netping_system::cores;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::{
    args::LadderArgs,
    pace::Pace,
    rungs::{AGAIN, Block, RUNGS, Rung},
};
use crate::{
    args::secure::CredentialArgs, commands::measure, credentials, environment, error::Verdict,
    run::Runner, server_process::ServerProcess,
};

/// The time for a server to settle under a load, and the window after it.
const SETTLING: Duration = Duration::from_millis(50);
const WINDOW: Duration = Duration::from_millis(150);

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
        let folder = tempfile::tempdir().context("cannot create a folder for certificates")?;
        let folder = folder.path();
        make_credentials(folder)?;
        let rungs = RUNGS.iter().filter(|rung| args.full || !rung.is_extra);
        let rungs: Vec<&Rung> = rungs.collect();
        let start =
            |rung: &&Rung| ServerProcess::start(rung.server, &rung.flags(folder), &sides.servers);
        let servers = rungs.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        runner.place(&sides);
        let blocks = Block::all(args.callers.into(), args.connections.into(), args.full);
        let cells = cells(&rungs, &servers, &blocks, folder)?;
        let climbed = climb(runner, args.rounds(), &cells);
        // What came to no end replaces nothing that is complete.
        let is_partial = climbed.is_err() || runner.is_interrupted();
        runner.save_as(if is_partial { PARTIAL_STEM } else { STEM });
        Ok(climbed?)
    })
}

/// Returns every rung under the load of every block that it belongs to.
fn cells<'a>(
    rungs: &[&'a Rung],
    servers: &[ServerProcess],
    blocks: &'a [Block],
    folder: &Path,
) -> anyhow::Result<Vec<RungUnderLoad<'a>>> {
    let mut cells: Vec<RungUnderLoad<'a>> = Vec::new();
    for block in blocks {
        for (rung, server) in rungs.iter().zip(servers) {
            if block.shared.is_some() && !server.target.scheme.shares_connections() {
                continue;
            }
            let is_base = |other: &RungUnderLoad<'_>| match block.shared {
                Some(_) => other.rung.name == rung.name && other.block.is_unshared(block),
                None => Some(other.rung.name) == rung.over && other.block == block,
            };
            cells.push(RungUnderLoad {
                rung,
                block,
                plan: plan(rung, block, server, folder)?,
                base: cells.iter().position(is_base),
            });
        }
    }
    Ok(cells)
}

fn plan(rung: &Rung, block: &Block, server: &ServerProcess, folder: &Path) -> anyhow::Result<Plan> {
    let target = &server.target;
    let secured = CredentialArgs::of(folder, rung.mutual).connector(target)?;
    let mut destination = Destination::new(target.clone(), server.source.clone(), secured);
    destination.label = Some(rung.name.to_owned());
    let kind = match target.scheme.protocol() {
        Protocol::Tcp if block.is_message => transport::Kind::Frame,
        Protocol::Tcp => transport::Kind::Line,
        Protocol::Grpc => transport::Kind::GrpcH2,
        Protocol::Quic => transport::Kind::Quic,
        // No rung is a web server.
        Protocol::Http => transport::Kind::Http1,
    };
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
) -> Result<(), StartError> {
    let plans: Vec<&Plan> = cells.iter().map(|cell| &cell.plan).collect();
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
        let Some(steps) = runner.round(&plans, round, &mut random)? else {
            break;
        };
        runner.keep(steps);
        runner.plant();
        pace.count(Duration::from_nanos(clock.now() - begun));
    }
    Ok(())
}

fn make_credentials(folder: &Path) -> anyhow::Result<()> {
    let hosts = ["127.0.0.1".to_owned()];
    let mut files = credentials::certificates(&hosts, &pki::LEAF)?;
    files.push(credentials::shared_key()?);
    credentials::write(folder, &files, false)
}
