//! `netping`: measures what a small request costs over TCP, gRPC and QUIC.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    netping::commands::run(netping::args::parse())
}
