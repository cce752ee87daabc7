//! `netping-proxy`: a plain TCP relay.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    netping_serving::service::run(&netping_proxy::SERVICE, std::env::args_os())
}
