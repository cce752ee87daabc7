//! `netping clock`: the offset of this host's clock from those of servers.

use std::time::Duration;

use clap::Args;
use netping_client::{clock_offset, plan::Destination, probe::metrics::ServerSource};
use netping_report::table::{Column, Table, wrap};
use netping_results::{
    run::{ClockOffset, HostClock},
    time_unit::{TimeUnit, time},
};

use crate::{
    args::{
        export::print,
        in_step::tells_time,
        secure::CredentialArgs,
        target::{NamedTarget, check_names, urls},
        time::positive,
    },
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
    targets: Vec<NamedTarget>,
    /// Exit with 4 if this host's clock may be further off than this from that of a server
    #[arg(long, value_name = "TIME", value_parser = positive)]
    max_clock_error: Option<Duration>,
    #[command(flatten)]
    secure: CredentialArgs,
}

pub fn run(args: &ClockArgs) -> anyhow::Result<Verdict> {
    check_names(&args.targets)?;
    let targets = urls(&args.targets);
    args.secure.check(&targets)?;
    targets.iter().try_for_each(tells_time)?;
    let clock = ClockDemand::default().check()?;
    let mut offsets = Vec::new();
    for (target, named) in targets.iter().zip(&args.targets) {
        let secured = args.secure.connector(target)?;
        let server = Destination::new(target.clone(), ServerSource::Nowhere, secured);
        let mut offset = clock_offset::measure(&server)?;
        if let Some(name) = &named.name {
            offset.server.clone_from(name);
        }
        offsets.push(offset);
    }
    let (state, table) = (quality(&clock), table(&offsets));
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

/// Nanoseconds of an offset.
type Nanos = fn(&ClockOffset) -> f64;

fn table(offsets: &[ClockOffset]) -> String {
    let numbers: [(&str, Nanos); 3] = [
        ("offset", |own| own.offset_ns as f64),
        ("+-", |own| own.uncertainty_ns() as f64),
        ("round trip", |own| own.round_trip_ns as f64),
    ];
    let numbers = numbers.map(|(title, of)| (title, of, TimeUnit::of(offsets.iter().map(of))));
    let titles = numbers.map(|(title, _, unit)| {
        let gap = if title == "+-" { "" } else { " " };
        Column::number("").titled(format!("{title}{gap}{}", unit.name()))
    });
    let columns: Vec<Column> = [Column::text("server")].into_iter().chain(titles).collect();
    let row = |own: &ClockOffset| {
        let cells = numbers.iter().map(|(_, of, unit)| unit.show(of(own)));
        [own.server.clone()].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = offsets.iter().map(row).collect();
    Table::whole(&columns, &rows)
}

/// Describes how well a clock is kept.
pub(super) fn quality(clock: &HostClock) -> String {
    let error = |seconds: Option<f64>| time(seconds.unwrap_or_default() * 1e9);
    match clock.synchronized {
        Some(true) => format!(
            "synchronised, off by an estimated {} and at most {}",
            error(clock.estimated_error_seconds),
            error(clock.max_error_seconds)
        ),
        Some(false) => "not synchronised by an NTP client".to_owned(),
        None => "the system does not tell how well it is kept".to_owned(),
    }
}
