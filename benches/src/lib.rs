//! Servers in this process, for the benchmarks; processes of their own, for the programs that check
//! netping as a user runs it.

pub mod processes;
pub mod recording;
pub mod strays;

use std::{thread, time::Duration};

use clap::Args;
use netping_client::{
    engine::{self, Measured, Silent},
    interrupt::Interrupt,
    plan::{Destination, Extent, Plan, Trust, Warmup},
    probe::metrics::ServerSource,
    transport::Kind,
};
use netping_protocol::{scheme::Scheme, secure::Connector, target::Target};
use netping_serving::service::Service;

/// Starts a server on a free port, on one worker where it has workers; it runs until the process
/// ends.
///
/// # Panics
/// If the system refuses a port or a thread.
pub fn start<A: Args + Send + 'static>(service: &Service<A>, flags: &[&str]) -> Target {
    let base = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "off",
        "--idle-timeout",
        "0s",
    ];
    let args = service
        .parse(base.iter().chain(flags))
        .expect("valid flags");
    let listening = service.bind(&args).expect("a free port");
    let address = listening.address().expect("a bound port");
    let target = format!("{}://{address}", (service.scheme)(&args.own).as_str())
        .parse()
        .expect("a server's own URL");
    let serve = service.serve;
    thread::spawn(move || {
        serve(listening, &args).expect("a server that starts");
    });
    target
}

/// Starts every server; returns their names and URLs.
pub fn start_all() -> [(&'static str, Target); 3] {
    [
        ("threads", start(&netping_server_threads::SERVICE, &[])),
        (
            "tokio",
            start(&netping_server_tokio::SERVICE, &["--workers", "1"]),
        ),
        (
            "grpc",
            start(&netping_server_grpc::SERVICE, &["--workers", "1"]),
        ),
    ]
}

/// Returns a plan for one caller on one connection.
pub fn plan(target: &Target, extent: Extent) -> Plan {
    let kind = if target.scheme == Scheme::Grpc {
        Kind::GrpcH2
    } else {
        Kind::Line
    };
    let clear = (Connector::Plain, Trust::default());
    let destination = Destination::new(target.clone(), ServerSource::Nowhere, clear);
    let mut plan = Plan::new(destination, kind);
    plan.load.max_backlog = 100_000;
    plan.execution.warmup = Warmup::Time(Duration::from_millis(100));
    plan.execution.extent = extent;
    plan
}

/// Runs a plan against a server of this process.
///
/// # Panics
/// If it cannot start.
pub fn run(plan: &Plan) -> Measured {
    engine::run(plan, &Interrupt::default(), &Silent).expect("a server that listens")
}
