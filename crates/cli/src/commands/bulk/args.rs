//! Flags of `netping bulk`.

use std::{num::NonZeroU64, ops::RangeInclusive, time::Duration};

use clap::Args;
use netping_client::{plan::Destination, workload::bulk::BulkPlan};
use netping_measure::bulk::Direction;
use netping_protocol::{scheme::Protocol, target::Target};
use netping_results::{
    bulk::{BulkSettings, SERVERS_CHOICE},
    condition::Condition,
};

use crate::{
    args::{
        choice::one_of,
        output::{CounterArgs, Options, ResultArgs},
        range::{Range, count, optional, within},
        secure::CredentialArgs,
        target::{NamedTarget, check_names, urls},
        time::positive,
    },
    error::require,
};

/// Flags of `netping bulk`.
#[derive(Debug, Clone, Args)]
pub struct BulkArgs {
    /// Servers, such as tcp://HOST:8004 or grpc://HOST:8005
    #[arg(required = true, value_name = "URL")]
    targets: Vec<NamedTarget>,
    /// Bytes of each run, over all streams: 1GiB, 64MiB,1GiB, 1MiB..1GiB (doubling) or
    /// 1MiB..1GiBx4; or 'server' for what a gRPC server chooses
    #[arg(long, default_value = "1GiB", value_name = "RANGE", value_parser = amount)]
    size: Range,
    /// Bytes of each message; a stream's last message has the rest. Or 'server'
    #[arg(long, default_value = "256KiB", value_name = "RANGE", value_parser = within(amount, CHUNKS))]
    chunk: Range,
    /// Rounds; each measures every combination once, in random order
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Direction of the data: from the server, or to it
    #[arg(long, default_value = "down", value_name = "DIRECTION", value_parser = one_of(&DIRECTIONS))]
    direction: Direction,
    /// Parallel streams: over TCP each has a connection, over gRPC and QUIC they share one
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    streams: u16,
    /// Flow-control window of each stream; over TCP the socket's buffers, which the kernel may cap
    /// [default: 4MiB, over TCP the kernel's own]
    #[arg(long, value_name = "RANGE", value_parser = within(Range::of_bytes, WINDOWS))]
    window: Option<Range>,
    /// The largest HTTP/2 frame accepted, from 16KiB to 16777215 bytes [default: 1MiB]
    #[arg(long, value_name = "RANGE", value_parser = within(Range::of_bytes, FRAMES))]
    frame: Option<Range>,
    /// Compare every byte that comes down; without this flag, bytes are only counted
    #[arg(long)]
    verify: bool,
    /// Longest time without any byte, and longest time to open a connection or stream
    #[arg(long, default_value = "5s", value_parser = positive, value_name = "TIME")]
    timeout: Duration,
    /// Send N small requests per second on connections of their own, for 1 s before each run and beside it, and compare
    /// their times
    #[arg(long, value_name = "N", value_parser = count)]
    probe: Option<NonZeroU64>,
    /// Seed of the random order, to have the same one again [default: random; in the JSON]
    #[arg(long, value_name = "N")]
    pub order_seed: Option<u64>,
    #[command(flatten)]
    secure: CredentialArgs,
    #[command(flatten)]
    server: CounterArgs,
    #[command(flatten)]
    results: ResultArgs,
    /// Exit with 4 if this holds for a run: 'bulk-rate<2', 'first-byte>5ms'; with 5 if the results are
    /// NOT VALID; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Condition::of_bulk, help_heading = "Results")]
    fail_if: Vec<Condition>,
}

/// Reads sizes or lengths, or `server` for the server's own choice.
fn amount(text: &str) -> Result<Range, String> {
    match text {
        "server" => Ok(Range::of(SERVERS_CHOICE)),
        _ => Range::of_bytes(text),
    }
}

/// The directions of the data.
static DIRECTIONS: [(&str, Direction); 2] = [("down", Direction::Down), ("up", Direction::Up)];

/// Lengths of messages, in bytes: either side holds one in memory. 0 is [`SERVERS_CHOICE`].
const CHUNKS: RangeInclusive<u64> = 0..=1 << 30;

/// Windows that every transport can have, in bytes.
const WINDOWS: RangeInclusive<u64> = 1..=(1 << 31) - 1;

/// Valid limits of HTTP/2 frames, in bytes (RFC 9113, section 4.2).
const FRAMES: RangeInclusive<u64> = 16 << 10..=(1 << 24) - 1;

/// Most combinations of a sweep: more are a slip of the finger.
const MOST_COMBINATIONS: usize = 1000;

impl BulkArgs {
    /// Returns the options of the run.
    pub fn options(&self) -> anyhow::Result<Options> {
        self.results.options(&self.fail_if)
    }

    /// Returns true if the server chooses sizes or lengths.
    fn is_chosen(&self) -> bool {
        let mut amounts = self.size.values().iter().chain(self.chunk.values());
        amounts.any(|amount| *amount == SERVERS_CHOICE)
    }

    /// Returns a plan for each combination of targets and settings.
    pub fn plans(&self) -> anyhow::Result<Vec<BulkPlan>> {
        self.check()?;
        let settings = self.settings();
        require(
            settings.len() * self.targets.len() <= MOST_COMBINATIONS,
            format!("more than {MOST_COMBINATIONS} combinations of targets and settings"),
        )?;
        let mut plans = Vec::new();
        for NamedTarget { name, url: target } in &self.targets {
            // A server that chooses is not netping's own, whatever its URL looks like.
            let secured = if self.is_chosen() {
                let alpn = target.scheme.alpn();
                self.secure.connector_with(target, alpn, true)?
            } else {
                self.secure.connector(target)?
            };
            let mut target = Destination::new(target.clone(), self.server.source(target), secured);
            target.label.clone_from(name);
            plans.extend(settings.iter().map(|settings| BulkPlan {
                target: target.clone(),
                settings: settings.clone(),
                timeout: self.timeout,
            }));
        }
        Ok(plans)
    }

    /// Returns every combination of the settings that are ranges.
    fn settings(&self) -> Vec<BulkSettings> {
        let [windows, frames] = [&self.window, &self.frame].map(|range| optional(range.as_ref()));
        let mut all = Vec::new();
        for &size_bytes in self.size.values() {
            for &chunk_bytes in self.chunk.values() {
                for &window_bytes in &windows {
                    all.extend(frames.iter().map(|&frame_bytes| BulkSettings {
                        direction: self.direction,
                        size_bytes,
                        chunk_bytes,
                        streams: usize::from(self.streams),
                        window_bytes,
                        frame_bytes,
                        verify: self.verify,
                        probes_per_s: self.probe.map(|rate| rate.get() as f64),
                    }));
                }
            }
        }
        all
    }

    /// Rejects flags that do not go together.
    fn check(&self) -> anyhow::Result<()> {
        check_names(&self.targets)?;
        let targets = urls(&self.targets);
        self.secure.check(&targets)?;
        require(
            !self.verify || self.direction == Direction::Down,
            "--verify compares bytes that come down; the server always counts the bytes that go up",
        )?;
        targets
            .iter()
            .try_for_each(|target| self.check_target(target))?;
        let streams = u64::from(self.streams);
        let mut sizes = self.size.values().iter();
        require(
            sizes.all(|&size| size == SERVERS_CHOICE || size >= streams),
            "--size: there are fewer bytes than --streams, each of which needs one",
        )
    }

    fn check_target(&self, target: &Target) -> anyhow::Result<()> {
        let (scheme, protocol) = (target.scheme.as_str(), target.scheme.protocol());
        let is_down = self.direction == Direction::Down;
        require(
            !target.scheme.is_http(),
            format!("bulk streams do not go over {scheme}://; use tcp://, grpc:// or quic://"),
        )?;
        require(
            target.path.is_empty(),
            format!(
                "bulk streams are those of grpc_bench.DataService/GiveMeData: leave out {} of {target}",
                target.path
            ),
        )?;
        require(
            self.frame.is_none() || (protocol == Protocol::Grpc && is_down),
            "--frame limits the HTTP/2 frames that the client accepts, from grpc:// and grpc+tls://: for --direction up, \
             use the server's --http2-frame",
        )?;
        require(
            !self.is_chosen() || (protocol == Protocol::Grpc && is_down && !self.verify),
            "--size server and --chunk server are for bytes that come down from grpc:// and grpc+tls://, without --verify, \
             which knows netping's own messages only",
        )?;
        require(
            !self.is_chosen() || self.probe.is_none(),
            "--probe sends the requests of netping's own servers: leave it out where the server chooses",
        )?;
        require(
            self.window.is_none() || is_down || protocol == Protocol::Tcp,
            format!(
                "--window limits the bytes that the client accepts: for --direction up over {scheme}://, use the server's \
             --stream-window"
            ),
        )
    }
}
