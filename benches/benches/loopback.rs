//! Round trips and pipelined requests against each server in this process, and the servers' p50 in
//! one table.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use criterion::{Criterion, Throughput, criterion_group};
use futures_util::future::join_all;
use netping_benches::{plan, run, start_all};
use netping_client::plan::Extent;
use netping_measure::{summary::Summary, times::Time};
use netping_protocol::{
    echopb::{EchoRequest, echo_client::EchoClient},
    scheme::Scheme,
    target::Target,
};
use netping_report::table::{Column, Table};
use netping_results::format::nanos_as_micros;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Outstanding requests when pipelined.
const PIPELINED: usize = 64;

fn loopback(c: &mut Criterion) {
    for (name, target) in start_all() {
        for (how, requests) in [("round trip", 1), ("pipelined", PIPELINED)] {
            let mut group = c.benchmark_group(how);
            group.throughput(Throughput::Elements(requests as u64));
            if target.scheme == Scheme::Tcp {
                let mut stream =
                    TcpStream::connect(target.authority()).expect("a server that listens");
                stream.set_nodelay(true).expect("a connected socket");
                let lines = b"0123\n".repeat(requests);
                let mut replies = vec![0; lines.len()];
                group.bench_function(name, |b| {
                    b.iter(|| {
                        stream.write_all(&lines).expect("an open connection");
                        stream.read_exact(&mut replies).expect("an open connection");
                        assert_eq!(replies, lines);
                    });
                });
            } else {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                let url = format!("http://{}", target.authority());
                let endpoint =
                    tonic::transport::Endpoint::from_shared(url).expect("a server's own URL");
                let channel = runtime
                    .block_on(endpoint.connect())
                    .expect("a server that listens");
                let client = EchoClient::new(channel);
                let call = |mut client: EchoClient<_>| async move {
                    let request = EchoRequest {
                        input: "0123".to_owned(),
                        response_bytes: 0,
                    };
                    client
                        .echo(request)
                        .await
                        .expect("an open connection")
                        .into_inner()
                        .output
                };
                group.bench_function(name, |b| {
                    b.iter(|| {
                        let calls = (0..requests).map(|_| call(client.clone()));
                        let replies = runtime.block_on(join_all(calls));
                        assert!(replies.iter().all(|reply| reply == "0123"));
                    });
                });
            }
        }
    }
}

criterion_group!(benches, loopback);

/// Returns the p50 of 10,000 round trips of the client's own engine, on one connection.
fn p50(target: &Target) -> String {
    let outcome = run(&plan(target, Extent::Requests(10_000)));
    nanos_as_micros(Summary::of(&outcome.totals).times[Time::Service].quantile(50.0))
}

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    let rows = start_all().map(|(name, target)| vec![name.to_owned(), p50(&target)]);
    println!(
        "{}",
        Table::whole(&[Column::text("server"), Column::number("p50 us")], &rows)
    );
}
