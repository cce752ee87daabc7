//! `netping merge`: the results of several clients of one run, added up.

use std::path::PathBuf;

use clap::Args;
use netping_protocol::units::number_in;
use netping_report::text;
use netping_results::{
    file::load::LoadError,
    merge::{MergeRules, merge},
    run::Run,
};

use super::validity;
use crate::{
    args::{
        export::{JsonTo, say},
        output::AllowArgs,
        paths::apart,
        share::share_in_percent,
    },
    error::{Verdict, tell},
    run::{command_line::command_line, store::tool},
};

/// Flags of `netping merge`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("allow", |flag| flag.help(ALLOW)),
    after_long_help = "The clients must have run the same command against the same server at the same time: all but a hundredth of \
                  their windows must overlap, by the server's clock if the results have the offsets from it (--clock-server), \
                  else by clocks that agree (NTP). Histograms and counts are added, and so are the rates of the windows.\n\n\
                  Exit codes: 0 ok, 2 wrong usage, 3 a file could not be read, or the files do not \
                  belong together, 6 the sum could not be written."
)]
pub struct MergeArgs {
    /// Result files, one of each client; '-': standard input
    #[arg(required = true, num_args = 2.., value_name = "CLIENT.json")]
    files: Vec<PathBuf>,
    /// Write the sum as JSON; '-': to standard output, with the table on stderr
    #[arg(long, value_name = "FILE")]
    json: JsonTo,
    /// Number of clients: fewer results are refused, and more
    #[arg(long, value_name = "N", value_parser = number_in::<usize>(2..))]
    clients: Option<usize>,
    /// Number of clients of a load shared with --part that may be missing; the sum says what is lost
    #[arg(long, value_name = "N", default_value_t)]
    allow_missing: usize,
    /// Least share of the longest window that the windows of all clients have in common
    #[arg(long, default_value = "99%", value_name = "SHARE%", value_parser = share_in_percent)]
    min_overlap: f64,
    #[command(flatten)]
    accepted: AllowArgs,
}

const ALLOW: &str = "Accept clients with these warnings, such as CLIENT_BOUND, which says that they were the limit \
                     themselves, or 'all'; may be repeated";

pub fn run(args: &MergeArgs) -> anyhow::Result<Verdict> {
    apart(&args.files, args.json.file().map(|file| ("json", file)))?;
    let names: Vec<String> = args
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    // Standard input can be read once.
    let mut piped: Option<Run> = None;
    let load = |at: usize| match (&args.files[at], &piped) {
        (file, Some(run)) if file.as_os_str() == "-" => Ok(run.clone()),
        (file, _) => {
            let run = Run::load(file)?;
            if file.as_os_str() == "-" {
                piped = Some(run.clone());
            }
            Ok::<_, LoadError>(run)
        }
    };
    let rules = MergeRules {
        clients: args.clients,
        missing: args.allow_missing,
        min_overlap: args.min_overlap,
        allowed: args.accepted.names(),
    };
    let merged = merge(&names, load, &rules, tool(), command_line())??;
    if let Err(error) = args.json.write(&merged.to_json()?) {
        tell(&format!("error: {error:#}"));
        return Ok(Verdict::Unsaved);
    }
    let text = format!("{}\n{}", text::tables(&merged), validity::describe(&merged));
    say(Some(&args.json), &text)?;
    Ok(Verdict::Success)
}
