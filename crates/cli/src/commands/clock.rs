//! `netping clock`: the offset of this host's clock from those of servers.

use std::{fmt::Write, time::Duration};

use clap::Args;
use netping_client::{plan::Destination, probe::metrics::ServerSource};
use netping_protocol::target::Target;
use netping_report::table::{Column, Table};
use netping_results::run::Clock;

use super::text::print_text;
use crate::{
    args::{in_step::tells_time, secure::SecureArgs, time::positive},
    error::{Failed, PlanError, Verdict, tell},
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
    pub max_clock_error: Option<Duration>,
    #[command(flatten)]
    secure: SecureArgs,
}

impl ClockArgs {
    /// Returns the servers.
    pub fn servers(&self) -> Result<Vec<Destination>, PlanError> {
        self.secure.check(&self.targets)?;
        let server = |target: &Target| {
            tells_time(target)?;
            let secured = self.secure.connector(target)?;
            Ok(Destination::new(
                target.clone(),
                ServerSource::Nowhere,
                secured,
            ))
        };
        self.targets.iter().map(server).collect()
    }
}

const COLUMNS: [Column; 4] = [
    Column::text("server", 0),
    Column::number("offset us", 0),
    Column::number("+-us", 0),
    Column::number("round trip us", 0),
];

/// Nanoseconds in a microsecond.
const MICROS: f64 = 1e3;

pub fn run(args: &ClockArgs) -> Result<Verdict, Failed> {
    let mut clocks = Vec::new();
    for server in args.servers()? {
        let demand = ClockDemand {
            server: Some(server),
            max_error: None,
        };
        clocks.push(demand.check()?);
    }
    print_text(&describe(&clocks))?;
    let mut verdict = Verdict::Success;
    for offset in clocks.iter().filter_map(|clock| clock.offset.as_ref()) {
        if let Some(max) = args.max_clock_error
            && let Err(error) = check_offset(offset, max)
        {
            tell(&format!("error: {error}"));
            verdict = Verdict::Condition;
        }
    }
    Ok(verdict)
}

fn describe(clocks: &[Clock]) -> String {
    let mut text = String::new();
    if let Some(clock) = clocks.first() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "this host's clock: {}", quality(clock));
    }
    let row = |clock: &Clock| {
        let offset = clock.offset.as_ref()?;
        let micros = |nanos: f64| format!("{:.1}", nanos / MICROS);
        Some(vec![
            offset.server.clone(),
            micros(offset.offset_ns as f64),
            micros(offset.uncertainty_ns() as f64),
            micros(offset.round_trip_ns as f64),
        ])
    };
    let rows: Vec<_> = clocks.iter().filter_map(row).collect();
    text.push_str(&Table::whole(&COLUMNS, &rows));
    text.push_str("\noffset: the server's clock less this host's\n");
    text
}

/// Describes how well a clock is kept.
pub(super) fn quality(clock: &Clock) -> String {
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
