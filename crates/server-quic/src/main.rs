//! `netping-server-quic`: echo over QUIC.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    netping_serving::service::run(&netping_server_quic::SERVICE, std::env::args_os())
}
