//! Flags about bursts of an open loop.

use std::time::Duration;

use clap::Args;
use netping_client::plan::{Arrival, Bursts, Warmup};

use super::{range::count, time::positive};
use crate::error::require;

/// Flags about bursts of an open loop. A command with these flags has a flag `rate`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct BurstArgs {
    /// Open loop: from half of each --every on, send RATE requests per second for TIME, such as 20k:3s, and say how long
    /// the server takes to recover
    #[arg(long, value_name = "RATE:TIME", requires_all = ["rate", "every"], conflicts_with_all = ["trials", "until", "requests"], value_parser = burst)]
    burst: Option<Burst>,
    /// The time from one --burst to the next, an even number of seconds; -d is a multiple of it
    #[arg(long, value_name = "TIME", requires = "burst", value_parser = positive)]
    every: Option<Duration>,
}

/// A burst of an open loop.
#[derive(Debug, Clone, Copy)]
struct Burst {
    /// In requests per second.
    rate: f64,
    length: Duration,
}

/// Reads a burst.
fn burst(text: &str) -> Result<Burst, String> {
    let parts = text.split_once(':');
    let (rate, length) = parts.ok_or("a burst looks like 20k:3s")?;
    Ok(Burst {
        rate: count(rate)?.get() as f64,
        length: positive(length)?,
    })
}

/// The shortest time from one burst to the next: half of it before the first one tells what is usual.
const SHORTEST_CYCLE: Duration = Duration::from_secs(10);

/// The shortest time after a burst in which a recovery can be seen.
const SHORTEST_RECOVERY: Duration = Duration::from_secs(2);

impl BurstArgs {
    /// Rejects bursts that do not fit windows of this length.
    pub fn check(&self, window: Duration, warmup: Warmup) -> anyhow::Result<()> {
        let Some((burst, every)) = self.burst.zip(self.every) else {
            return Ok(());
        };
        let is_whole =
            |time: Duration, of: u64| time.subsec_nanos() == 0 && time.as_secs().is_multiple_of(of);
        require(
            every >= SHORTEST_CYCLE && is_whole(every, 2),
            "--every is an even number of seconds from 10 on: the p99 of the seconds before a burst tells what is usual",
        )?;
        require(
            is_whole(burst.length, 1) && burst.length + SHORTEST_RECOVERY <= every / 2,
            "--burst lasts whole seconds, and ends 2 s or more before the end of its --every: the rest is the time to \
             recover",
        )?;
        require(
            is_whole(window, every.as_secs()),
            "-d has to be a multiple of --every, each of which has a burst",
        )?;
        require(
            warmup != Warmup::Auto,
            "--burst needs a warm-up of a known length: leave out --warmup auto",
        )
    }

    /// Returns the bursts of an open loop after a warm-up.
    pub fn bursts(&self, arrival: Arrival, warmup: Warmup) -> Option<Bursts> {
        let (burst, every) = self.burst.zip(self.every)?;
        Some(Bursts {
            factor: burst.rate / arrival.rate()?,
            length: burst.length,
            every,
            after: warmup.duration()?,
        })
    }
}
