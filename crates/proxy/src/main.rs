//! `netping-proxy`: a plain TCP relay.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    netping_serving::service::run(&netping_proxy::SERVICE, std::env::args_os())
}
