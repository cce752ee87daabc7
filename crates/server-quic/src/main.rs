//! `netping-server-quic`: echo over QUIC.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    netping_serving::service::run(&netping_server_quic::SERVICE, std::env::args_os())
}
