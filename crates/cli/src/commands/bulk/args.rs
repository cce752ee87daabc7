//! Flags of `netping bulk`.

use std::{str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use netping_client::{
    plan::Destination,
    workload::bulk::{BulkPlan, is_carried},
};
use netping_measure::bulk::Direction;
use netping_protocol::{scheme::Protocol, target::Target};
use netping_results::{
    bulk::{BulkSettings, SERVERS_CHOICE},
    condition::Condition,
    format,
};

use crate::{
    args::{
        output::{ResultArgs, ServerArgs},
        range::ByteRange,
        secure::SecureArgs,
        time::positive,
    },
    environment,
    error::{PlanError, UsageError},
    run::{options::Options, trials::Trials},
};

/// Flags of `netping bulk`.
#[derive(Debug, Clone, Args)]
pub struct BulkArgs {
    /// Servers, such as tcp://HOST:8004 or grpc://HOST:8005
    #[arg(required = true, value_name = "URL")]
    targets: Vec<Target>,
    /// Bytes of each run, over all streams: 1GiB, 64MiB,1GiB, 1MiB..1GiB (doubling) or
    /// 1MiB..1GiBx4; or 'server' for what a gRPC server chooses
    #[arg(long, default_value = "1GiB", value_name = "RANGE")]
    size: Amount,
    /// Bytes of each message; a stream's last message has the rest. Or 'server'
    #[arg(long, default_value = "256KiB", value_name = "RANGE")]
    chunk: Amount,
    /// Rounds; each measures every combination once, in random order
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Direction of the data: from the server, or to it
    #[arg(long, default_value = "down", value_name = "DIRECTION")]
    direction: Way,
    /// Parallel streams: over TCP each has a connection, over gRPC and QUIC they share one
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    streams: u16,
    /// Flow-control window of each stream; over TCP the socket's buffers, which the kernel may cap
    /// [default: 4MiB, over TCP the kernel's own]
    #[arg(long, value_name = "RANGE")]
    window: Option<ByteRange>,
    /// The largest HTTP/2 frame accepted, from 16KiB to 16777215 bytes [default: 1MiB]
    #[arg(long, value_name = "RANGE")]
    frame: Option<ByteRange>,
    /// Compare every byte that comes down; without this flag, bytes are only counted
    #[arg(long)]
    verify: bool,
    /// Longest time without any byte, and longest time to open a connection or stream
    #[arg(long, default_value = "5s", value_parser = positive, value_name = "TIME")]
    timeout: Duration,
    /// Seed of the random order, to have the same one again [default: random; in the JSON]
    #[arg(long, value_name = "N")]
    order_seed: Option<u64>,
    #[command(flatten)]
    secure: SecureArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    results: ResultArgs,
    /// Exit with 4 if this holds for a run: 'bulk-rate<2', 'first-byte>5ms'; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Condition::of_bulk, help_heading = "Results")]
    fail_if: Vec<Condition>,
}

/// Sizes or lengths, or the server's own choice.
#[derive(Debug, Clone)]
enum Amount {
    Server,
    Bytes(ByteRange),
}

impl Amount {
    /// Returns true if the server chooses.
    fn is_chosen(&self) -> bool {
        matches!(self, Self::Server)
    }

    fn values(&self) -> &[u64] {
        match self {
            Self::Server => &[SERVERS_CHOICE],
            Self::Bytes(range) => range.values(),
        }
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "server" => Ok(Self::Server),
            _ => text.parse().map(Self::Bytes),
        }
    }
}

/// The direction of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// From the server
    Down,
    /// To the server
    Up,
}

/// Longest message, in bytes: either side holds one in memory.
const LONGEST_CHUNK: u64 = 1 << 30;

/// Largest window of any transport, in bytes.
const LARGEST_WINDOW: u64 = (1 << 31) - 1;

/// Valid limits of HTTP/2 frames, in bytes (RFC 9113, section 4.2).
const FRAMES: std::ops::RangeInclusive<u64> = (16 << 10)..=((1 << 24) - 1);

/// Most combinations of a sweep: more are a slip of the finger.
const MOST_COMBINATIONS: usize = 1000;

impl BulkArgs {
    /// Returns the options of the run.
    pub fn options(&self) -> Result<Options, UsageError> {
        self.results.options(&self.fail_if)
    }

    /// Returns the runs of each combination, and the seed of their order.
    pub fn trials(&self) -> Trials {
        let order_seed = self.order_seed.unwrap_or_else(environment::random_seed);
        Trials::new(self.runs, order_seed)
    }

    /// Returns a plan for each combination of targets and settings.
    pub fn plans(&self) -> Result<Vec<BulkPlan>, PlanError> {
        self.check()?;
        let settings = self.settings();
        if settings.len() * self.targets.len() > MOST_COMBINATIONS {
            return Err(usage(format!(
                "more than {MOST_COMBINATIONS} combinations of targets and settings"
            )));
        }
        let mut plans = Vec::new();
        for target in &self.targets {
            let is_chosen = [&self.size, &self.chunk]
                .iter()
                .any(|amount| amount.is_chosen());
            let (connector, trust) = if is_chosen {
                self.secure.connector_of_another(target)?
            } else {
                self.secure.connector(target)?
            };
            plans.extend(settings.iter().map(|settings| BulkPlan {
                target: Destination::new(
                    target.clone(),
                    self.server.source(target),
                    (connector.clone(), trust),
                ),
                settings: settings.clone(),
                timeout: self.timeout,
            }));
        }
        Ok(plans)
    }

    /// Returns every combination of the settings that are ranges.
    fn settings(&self) -> Vec<BulkSettings> {
        let base = BulkSettings {
            direction: self.direction(),
            size_bytes: 0,
            chunk_bytes: 0,
            streams: usize::from(self.streams),
            window_bytes: None,
            frame_bytes: None,
            verify: self.verify,
        };
        let (windows, frames) = (
            optional(self.window.as_ref()),
            optional(self.frame.as_ref()),
        );
        let mut all = Vec::new();
        for &size_bytes in self.size.values() {
            for &chunk_bytes in self.chunk.values() {
                for &window_bytes in &windows {
                    all.extend(frames.iter().map(|&frame_bytes| BulkSettings {
                        size_bytes,
                        chunk_bytes,
                        window_bytes,
                        frame_bytes,
                        ..base.clone()
                    }));
                }
            }
        }
        all
    }

    fn direction(&self) -> Direction {
        match self.direction {
            Way::Down => Direction::Down,
            Way::Up => Direction::Up,
        }
    }

    /// Rejects flags that do not go together.
    fn check(&self) -> Result<(), PlanError> {
        self.secure.check(&self.targets)?;
        if self.verify && self.direction == Way::Up {
            return Err(usage(
                "--verify compares bytes that come down; the server always counts the bytes that go up",
            ));
        }
        self.targets
            .iter()
            .try_for_each(|target| self.check_target(target))?;
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<(), PlanError> {
        let has = |range: Option<&ByteRange>, bad: &dyn Fn(u64) -> bool| {
            range.is_some_and(|range| range.values().iter().any(|&value| bad(value)))
        };
        if self
            .chunk
            .values()
            .iter()
            .any(|chunk| *chunk > LONGEST_CHUNK)
        {
            return Err(usage(format!(
                "--chunk: a message has at most {}",
                format::bytes(LONGEST_CHUNK)
            )));
        }
        let too_few = |size: u64| size != SERVERS_CHOICE && size < u64::from(self.streams);
        if self.size.values().iter().any(|size| too_few(*size)) {
            return Err(usage(
                "--size: there are fewer bytes than --streams, each of which needs one",
            ));
        }
        if has(self.window.as_ref(), &|window| window > LARGEST_WINDOW) {
            return Err(usage(format!(
                "--window: a window has at most {LARGEST_WINDOW} bytes"
            )));
        }
        if has(self.frame.as_ref(), &|frame| !FRAMES.contains(&frame)) {
            return Err(usage("--frame: HTTP/2 allows 16384 to 16777215 bytes"));
        }
        Ok(())
    }

    fn check_target(&self, target: &Target) -> Result<(), PlanError> {
        let scheme = target.scheme.as_str();
        if !is_carried(target.scheme) {
            return Err(usage(format!(
                "bulk streams do not go over {scheme}://; use tcp://, grpc:// or quic://"
            )));
        }
        if !target.path.is_empty() {
            return Err(usage(format!(
                "bulk streams are those of grpc_bench.DataService/GiveMeData: leave out {} of {target}",
                target.path
            )));
        }
        if self.frame.is_some() && target.scheme.protocol() != Protocol::Grpc {
            return Err(usage(format!(
                "--frame is for grpc://: over {scheme}:// there are no HTTP/2 frames"
            )));
        }
        if self.direction == Way::Up && self.frame.is_some() {
            return Err(usage(
                "--frame limits the frames that the client accepts: for --direction up, use the server's --http2-frame",
            ));
        }
        if self.size.is_chosen() || self.chunk.is_chosen() {
            if target.scheme.protocol() != Protocol::Grpc || self.direction == Way::Up {
                return Err(usage(
                    "--size server and --chunk server are for bytes that come down from grpc:// and grpc+tls://",
                ));
            }
            if self.verify {
                return Err(usage(
                    "--verify knows the bytes of netping's own messages only: leave it out with --size server and --chunk \
                     server",
                ));
            }
        }
        let has_own_window = matches!(target.scheme.protocol(), Protocol::Grpc | Protocol::Quic);
        if self.direction == Way::Up && self.window.is_some() && has_own_window {
            return Err(usage(format!(
                "--window limits the bytes that the client accepts: for --direction up over {scheme}://, use the \
                 server's --stream-window"
            )));
        }
        Ok(())
    }
}

/// Returns the values of a range; without one, the transport's own.
fn optional(range: Option<&ByteRange>) -> Vec<Option<u64>> {
    range.map_or_else(
        || vec![None],
        |range| range.values().iter().copied().map(Some).collect(),
    )
}

fn usage(message: impl Into<String>) -> PlanError {
    UsageError(message.into()).into()
}
