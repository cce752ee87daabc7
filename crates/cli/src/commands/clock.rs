//! `netping clock`: the offset of this host's clock from those of servers.

use std::time::Duration;

use clap::Args;
use netping_client::{clock_offset, plan::Destination, probe::metrics::ServerSource};
use netping_protocol::target::Target;
use netping_report::table::{Column, Table, wrap};
use netping_results::run::{ClockOffset, HostClock};

use super::text::print;
use crate::{
    args::{in_step::tells_time, secure::CredentialArgs, time::positive},
    error::{Verdict, tell},
    run::clock_demand::{ClockDemand, check_offset},
};

/// Flags of `netping clock`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "The error of an offset is at most half of the round trip.\n\n\
                  Exit codes: 0 ok, 2 wrong usage, 3 a server did not answer, 4 an offset above --max-clock-error."
)]
pub struct ClockArgs {
    /// Servers of netping, such as tcp://HOST:8004 or quic://HOST:8006
    #[arg(required = true, value_name = "URL")]
    targets: Vec<Target>,
    /// Exit with 4 if this host's clock may be further off than this from that of a server
    #[arg(long, value_name = "TIME", value_parser = positive)]
    max_clock_error: Option<Duration>,
    #[command(flatten)]
    secure: CredentialArgs,
}

const COLUMNS: [Column; 4] = [
    Column::text("server"),
    Column::number("offset us"),
    Column::number("+-us"),
    Column::number("round trip us"),
];

pub fn run(args: &ClockArgs) -> anyhow::Result<Verdict> {
    args.secure.check(&args.targets)?;
    args.targets.iter().try_for_each(tells_time)?;
    let clock = ClockDemand::default().check()?;
    let mut offsets = Vec::new();
    for target in &args.targets {
        let secured = args.secure.connector(target)?;
        let server = Destination::new(target.clone(), ServerSource::Nowhere, secured);
        offsets.push(clock_offset::measure(&server)?);
    }
    let rows: Vec<_> = offsets.iter().map(row).collect();
    let (state, table) = (quality(&clock), Table::whole(&COLUMNS, &rows));
    let text =
        format!("this host's clock: {state}\n{table}\noffset: the server's clock less this host's");
    print(wrap(&text, usize::MAX) + "\n")?;
    let mut verdict = Verdict::Success;
    let max = args.max_clock_error.unwrap_or(Duration::MAX);
    for offset in &offsets {
        if let Err(error) = check_offset(offset, max) {
            tell(&format!("error: {error}"));
            verdict = Verdict::Condition;
        }
    }
    Ok(verdict)
}

fn row(offset: &ClockOffset) -> Vec<String> {
    let micros = |nanos: f64| format!("{:.1}", nanos / 1e3);
    vec![
        offset.server.clone(),
        micros(offset.offset_ns as f64),
        micros(offset.uncertainty_ns() as f64),
        micros(offset.round_trip_ns as f64),
    ]
}

/// Describes how well a clock is kept.
pub(super) fn quality(clock: &HostClock) -> String {
    let micros = |seconds: Option<f64>| format!("{:.0} us", seconds.unwrap_or_default() * 1e6);
    match clock.synchronized {
        Some(true) => format!(
            "synchronised, off by an estimated {} and at most {}",
            micros(clock.estimated_error_seconds),
            micros(clock.max_error_seconds)
        ),
        Some(false) => "not synchronised by an NTP client".to_owned(),
        None => "the system does not tell how well it is kept".to_owned(),
    }
}
