//! Flags of the commands that measure requests in trials.

use clap::Args;

use super::{
    output::{OutputArgs, TrialArgs},
    request::RequestArgs,
};

/// Flags of the commands that measure requests in trials.
#[derive(Debug, Clone, Args)]
pub struct SharedArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub trials: TrialArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
