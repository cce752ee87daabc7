//! `netping-server-tokio`: echo over TCP with tokio.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    netping_serving::service::run(&netping_server_tokio::SERVICE, std::env::args_os())
}
