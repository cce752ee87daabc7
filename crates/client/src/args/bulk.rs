//! Flags of `netping bulk`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use netping_measure::bulk::Direction;
use netping_protocol::target::{Scheme, Target};
use netping_results::{bulk::BulkSettings, format};

use super::{ByteRange, OutputArgs, PlanError, SecureArgs, UsageError, request::positive};
use crate::workload::bulk::{BulkPlan, is_carried};

/// Flags of `netping bulk`.
#[derive(Debug, Clone, Args)]
pub struct BulkArgs {
    /// Servers, such as tcp://HOST:8004 or grpc://HOST:8005
    #[arg(required = true, value_name = "URL")]
    targets: Vec<Target>,
    /// Bytes of each run, over all streams: 1GiB, 64MiB,1GiB, 1MiB..1GiB (doubling) or 1MiB..1GiBx4
    #[arg(long, default_value = "1GiB", value_name = "RANGE")]
    size: ByteRange,
    /// Bytes of each message; a stream's last one has what is left, and its only one may be all there is
    #[arg(long, default_value = "256KiB", value_name = "RANGE")]
    chunk: ByteRange,
    /// How often each combination is measured; all of them in turns, in a random order each time
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Which way the bytes go: from the server, or to it
    #[arg(long, default_value = "down", value_name = "WAY")]
    direction: Way,
    /// Streams side by side: over TCP each has a connection, over gRPC and QUIC they share one
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    streams: u16,
    /// Flow-control window of each stream; over TCP the socket's buffers, which the kernel may cap
    /// [default: 4MiB, over TCP the kernel's own]
    #[arg(long, value_name = "RANGE")]
    window: Option<ByteRange>,
    /// The largest HTTP/2 frame taken, from 16KiB to 16777215 bytes [default: 1MiB]
    #[arg(long, value_name = "RANGE")]
    frame: Option<ByteRange>,
    /// Compare every byte that comes down; without it, bytes are counted
    #[arg(long)]
    verify: bool,
    /// How long streams may stand still; opening each connection or stream may take as long
    #[arg(long, default_value = "5s", value_parser = positive, value_name = "TIME")]
    timeout: Duration,
    /// Where the randomness of the order begins
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub order_seed: u64,
    #[command(flatten)]
    secure: SecureArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// From the server
    Down,
    /// To the server
    Up,
}

/// The longest message: either side holds one of it in memory.
const LONGEST_CHUNK: u64 = 1 << 30;

/// The largest window of any transport.
const LARGEST_WINDOW: u64 = (1 << 31) - 1;

/// The largest frame has to be one of these (RFC 9113, section 4.2).
const FRAMES: std::ops::RangeInclusive<u64> = (16 << 10)..=((1 << 24) - 1);

/// The format of what a bulk stream does not have: the times of requests.
const OF_REQUESTS: [&str; 1] = ["hlog"];

/// A sweep of more is a slip of the finger.
const MOST_COMBINATIONS: usize = 1000;

impl BulkArgs {
    /// The combinations of targets and settings.
    ///
    /// # Errors
    /// [`PlanError`].
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
            let (connector, trust) = self.secure.connector(target)?;
            plans.extend(settings.iter().map(|settings| BulkPlan {
                target: target.clone(),
                server: self.output.server(target),
                connector: connector.clone(),
                trust,
                settings: settings.clone(),
                timeout: self.timeout,
            }));
        }
        Ok(plans)
    }

    /// Every combination of the settings that are ranges.
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
                    for &frame_bytes in &frames {
                        all.push(BulkSettings {
                            size_bytes,
                            chunk_bytes,
                            window_bytes,
                            frame_bytes,
                            ..base.clone()
                        });
                    }
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

    /// Refuses what does not go together.
    fn check(&self) -> Result<(), PlanError> {
        self.secure.check(&self.targets)?;
        if !self.output.fail_if.is_empty() {
            return Err(usage(
                "--fail-if is about requests, and a bulk stream has none: compare its GiB/s yourself",
            ));
        }
        if self.output.prometheus_push.is_some() {
            return Err(usage(
                "--prometheus-push is about requests, and a bulk stream has none: use --json",
            ));
        }
        if let Some(name) = OF_REQUESTS
            .into_iter()
            .find(|name| self.output.export.has(name))
        {
            return Err(usage(format!(
                "--{name} has the times of requests, and a bulk stream has none: use --json"
            )));
        }
        if self.verify && self.direction == Way::Up {
            return Err(usage(
                "--verify compares what comes down; what goes up is counted by the server, always",
            ));
        }
        for target in &self.targets {
            self.check_target(target)?;
        }
        let most = |range: &ByteRange| range.values().iter().copied().max().unwrap_or_default();
        if most(&self.chunk) > LONGEST_CHUNK {
            return Err(usage(format!(
                "--chunk: a message has at most {}",
                format::bytes(LONGEST_CHUNK)
            )));
        }
        if self
            .size
            .values()
            .iter()
            .any(|&size| size < u64::from(self.streams))
        {
            return Err(usage(
                "--size: there are fewer bytes than --streams, each of which needs one",
            ));
        }
        if self
            .window
            .as_ref()
            .is_some_and(|windows| most(windows) > LARGEST_WINDOW)
        {
            return Err(usage(format!(
                "--window: a window has at most {LARGEST_WINDOW} bytes"
            )));
        }
        if self
            .frame
            .as_ref()
            .is_some_and(|frames| frames.values().iter().any(|frame| !FRAMES.contains(frame)))
        {
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
        if self.frame.is_some() && !matches!(target.scheme, Scheme::Grpc | Scheme::GrpcTls) {
            return Err(usage(format!(
                "--frame is for grpc://: over {scheme}:// there are no HTTP/2 frames"
            )));
        }
        if self.direction == Way::Up && self.frame.is_some() {
            return Err(usage(
                "--frame is for what the client takes: for --direction up, use the server's --http2-frame",
            ));
        }
        let has_own_window = matches!(target.scheme, Scheme::Grpc | Scheme::GrpcTls | Scheme::Quic);
        if self.direction == Way::Up && self.window.is_some() && has_own_window {
            return Err(usage(format!(
                "--window is for what the client takes: for --direction up over {scheme}://, use the server's \
                 --stream-window"
            )));
        }
        Ok(())
    }
}

/// The values of a range; without one, the transport's own.
fn optional(range: Option<&ByteRange>) -> Vec<Option<u64>> {
    range.map_or_else(
        || vec![None],
        |range| range.values().iter().copied().map(Some).collect(),
    )
}

fn usage(message: impl Into<String>) -> PlanError {
    UsageError(message.into()).into()
}
