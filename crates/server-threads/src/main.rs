//! `netping-server-threads`: echo over TCP with a thread per connection.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    netping_serving::service::run(&netping_server_threads::SERVICE, std::env::args_os())
}
