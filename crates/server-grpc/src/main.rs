//! `netping-server-grpc`: gRPC on tonic.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    netping_serving::service::run(&netping_server_grpc::SERVICE, std::env::args_os())
}
