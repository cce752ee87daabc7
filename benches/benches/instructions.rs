//! Instructions of the code on the way of a request, and of that which reads and writes results.
//!
//! Counts are the same in every run on a machine, whatever else it does. It needs valgrind and
//! gungraun-runner:
//!
//! ```text
//! cargo bench -p netping-benches --features instructions --bench instructions
//! ```

use std::{hint::black_box, time::Duration};

use bytes::BytesMut;
use gungraun::{library_benchmark, library_benchmark_group, main};
use netping_benches::recording::Recording;
use netping_client::engine::simulated;
use netping_measure::sample::LoopKind;
use netping_protocol::{
    codec::{Codec, Limits, Rest},
    frame::{MAGIC, Reply},
    payload::Exchange,
    psk::{Key, Noise},
};
use netping_results::{
    fixtures,
    merge::{MergeRules, merge},
    run::Run,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    runtime::{Builder, Runtime},
};

/// Requests of each benchmark of the protocol.
const REQUESTS: usize = 1000;

/// Length of their payloads, in bytes.
const PAYLOAD: usize = 581;

/// Encodes requests, decodes and answers them, and verifies the replies.
fn echo(lines: bool) {
    let mut exchange = Exchange::new(0, PAYLOAD, Reply::Echo);
    let mut codec = Codec::new(Limits::default());
    let mut output = BytesMut::new();
    if !lines {
        codec.next(&mut &MAGIC[..]).expect("the magic bytes");
    }
    for _ in 0..REQUESTS {
        exchange.advance();
        let (mut input, header) = if lines {
            (exchange.line(), 0)
        } else {
            (exchange.frame(), 4)
        };
        let request = codec.next(&mut input).expect("no violation");
        let request = request.expect("a whole request");
        let rest = codec.reply(request, &mut output);
        assert_eq!(rest, Rest::default());
        assert!(exchange.verify(black_box(&output[header..][..PAYLOAD])));
        output.clear();
    }
}

#[library_benchmark]
#[bench::line(true)]
#[bench::frame(false)]
fn codec(lines: bool) {
    echo(lines);
}

type Pair = (Runtime, Noise<DuplexStream>, Noise<DuplexStream>);

fn connected() -> Pair {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let key = Key::generate().expect("a key");
    let (near, far) = duplex(64 << 10);
    let (near, far) = runtime.block_on(async {
        tokio::try_join!(Noise::connect(near, &key), Noise::accept(far, &key)).expect("a handshake")
    });
    (runtime, near, far)
}

/// Sends records from one end to the other. (Counting begins and ends with functions within a benchmark
/// as with the benchmark itself: what has closures stands outside.)
fn records(pair: &mut Pair) {
    let (runtime, near, far) = pair;
    let mut bytes = [b'x'; PAYLOAD];
    runtime.block_on(async {
        for _ in 0..REQUESTS {
            near.write_all(&bytes).await.expect("a write");
            near.flush().await.expect("a write");
            far.read_exact(&mut bytes).await.expect("a read");
        }
    });
}

#[library_benchmark]
#[bench::record(setup = connected)]
fn psk(mut pair: Pair) -> Pair {
    records(&mut pair);
    pair
}

#[library_benchmark]
#[bench::closed_loop(Recording::new(LoopKind::Closed))]
#[bench::open_loop(Recording::new(LoopKind::Open))]
fn record(mut recording: Recording) -> Recording {
    for _ in 0..REQUESTS {
        recording.record();
    }
    recording
}

#[library_benchmark]
#[bench::closed_loop(75, false)]
#[bench::open_loop(100, true)]
fn engine(milliseconds: u64, open: bool) -> u64 {
    simulated::requests(16, Duration::from_millis(milliseconds), open)
}

/// Returns a run of so many equal steps of three seconds, with a thousand replies in each second.
fn run(steps: usize) -> Run {
    run_from(10_000, steps)
}

/// Returns one whose shortest time is so many nanoseconds.
fn run_from(shortest: u64, steps: usize) -> Run {
    let times = |second| {
        (0..1000)
            .map(|at| shortest + at * 97 + second * 13)
            .collect()
    };
    fixtures::run(vec![fixtures::step(3, times); steps])
}

fn file(steps: usize) -> String {
    run(steps).to_json().expect("JSON")
}

#[library_benchmark]
#[bench::of_20_steps(run(20))]
fn write(run: Run) -> String {
    run.to_json().expect("JSON")
}

#[library_benchmark]
#[bench::of_20_steps(file(20))]
fn read(file: String) -> Run {
    Run::from_json(file.as_bytes()).expect("a run")
}

#[library_benchmark]
#[bench::of_20_steps(vec![run(20)])]
fn page(runs: Vec<Run>) -> String {
    netping_report::page::html(&runs)
}

fn parts() -> Vec<(String, Run)> {
    let part = |at: u64| {
        let mut part = run_from(10_000 + at * 1000, 10);
        part.environment.host = format!("client-{at}");
        (part.environment.host.clone(), part)
    };
    (0..4).map(part).collect()
}

#[library_benchmark]
#[bench::of_4_clients(parts())]
fn merging(parts: Vec<(String, Run)>) -> Run {
    let rules = MergeRules::default();
    merge(&parts, &rules, fixtures::tool(), Vec::new()).expect("parts of one run")
}

library_benchmark_group!(name = request, benchmarks = [codec, psk, record, engine]);
library_benchmark_group!(name = results, benchmarks = [write, read, page, merging]);

main!(library_benchmark_groups = [request, results]);
