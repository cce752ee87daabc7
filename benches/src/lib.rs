//! Servers in this process, for the benchmarks.

use std::thread;

use clap::Parser;
use netping_protocol::target::Target;
use netping_serving::{CommonArgs, Listening, Service, Shutdown};

/// Starts a server on a free port, on one worker where it has workers; it runs until the process ends.
///
/// # Panics
/// When the system refuses a port or a thread: there is nothing to measure then.
pub fn start<A>(service: &Service<A>, flags: &[&str]) -> Target
where
    A: Parser + AsRef<CommonArgs> + Send + 'static,
{
    let base = ["server", "--listen", "127.0.0.1:0", "--metrics", "off", "--idle-timeout", "0s"];
    let args = A::parse_from(base.iter().chain(flags));
    let listening = Listening::bind(args.as_ref(), 0).expect("a free port");
    let address = listening.service.local_addr().expect("a bound port");
    let target = format!("{}://{address}", service.scheme).parse().expect("a server's own URL");
    let serve = service.serve;
    thread::spawn(move || serve(listening, &args, &Shutdown::new()).expect("a server that starts"));
    target
}

/// Every server, with its name.
pub fn start_all() -> [(&'static str, Target); 3] {
    [
        ("threads", start(&netping_server_threads::SERVICE, &[])),
        ("tokio", start(&netping_server_tokio::SERVICE, &["--workers", "1"])),
        ("grpc", start(&netping_server_grpc::SERVICE, &["--workers", "1"])),
    ]
}
