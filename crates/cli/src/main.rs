//! `netping`: measures what a small request costs.

use std::process::ExitCode;

use netping::commands;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::run(commands::help::parse())
}
