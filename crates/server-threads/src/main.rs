//! `netping-server-threads`: echo over TCP with a thread per connection.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    netping_serving::service::run(&netping_server_threads::SERVICE, std::env::args_os())
}
