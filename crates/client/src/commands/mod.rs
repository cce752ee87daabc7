//! The commands, one short file each.

mod bulk;
mod certs;
mod compare;
mod connect;
mod ladder;
mod latency;
mod man;
mod merge;
mod proxy;
mod quick;
mod report;
mod serve;
mod table;
mod throughput;

use std::process::ExitCode;

use netping_report::table::Column;

use crate::{
    args::{Cli, Command},
    error::exit_code,
};

/// Runs a command, or takes a quick look, and returns the exit code.
pub fn run(cli: Cli) -> ExitCode {
    let Some(command) = cli.command else {
        return exit_code(quick::run(&cli.quick));
    };
    exit_code(match command {
        Command::Ladder(args) => ladder::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Throughput(args) => throughput::run(&args),
        Command::Connect(args) => connect::run(&args),
        Command::Bulk(args) => bulk::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Completions(args) => man::completions(&args),
        Command::Man(args) => man::run(&args),
        Command::Serve(args) => return serve::run(args),
    })
}

/// Returns the columns with these titles, separated by `|`. A title after `<` is that of a column
/// of words; the others hold numbers.
fn columns(titles: &'static str) -> Vec<Column> {
    let column = |title: &'static str| match title.strip_prefix('<') {
        Some(words) => Column::text(words, 0),
        None => Column::number(title, 0),
    };
    titles.split('|').map(column).collect()
}

/// Returns a p-value with three decimals.
fn probability(p: f64) -> String {
    if p < 0.001 {
        return "<0.001".to_owned();
    }
    format!("{p:.3}")
}
