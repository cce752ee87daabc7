//! Instructions of the code on the way of a request, and of that which reads and writes results.
//!
//! Counts are the same in every run on a machine, whatever else it does. It needs valgrind and
//! gungraun-runner:
//!
//! ```text
//! cargo bench -p netping-benches --features instructions --bench instructions
//! ```

use std::{convert::Infallible, hint::black_box, time::Duration};

use bytes::BytesMut;
use gungraun::{library_benchmark, library_benchmark_group, main};
use netping_benches::recording::Recording;
use netping_client::engine::simulated;
use netping_http2::{
    Config,
    client::{Body, Client, Event},
    head::{Head, Target},
};
use netping_measure::sample::LoopKind;
use netping_protocol::{
    codec::{Codec, Limits, Rest},
    frame::{MAGIC, Reply},
    http1::ReplyReader,
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

/// A head of a reply such as nginx sends, and a body.
const HTTP1_REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: \
    text/plain\r\nContent-Length: 16\r\nConnection: keep-alive\r\nETag: \"65f2b0c0-64\"\r\nAccept-Ranges: \
    bytes\r\n\r\n0123456789abcdef";

/// Reads replies, and adds up the lengths of their bodies.
fn replies() -> usize {
    let mut reader = ReplyReader::new("GET");
    let mut length = 0;
    for _ in 0..REQUESTS {
        let progress = reader.read(black_box(HTTP1_REPLY), |part| length += part.len());
        assert!(progress.expect("a reply").is_whole);
    }
    length
}

#[library_benchmark]
fn http1() -> usize {
    replies()
}

/// The frames of a gRPC reply of 16 bytes: the head, a message, and the trailers. The last four bytes of each
/// frame's first nine are its stream.
const GRPC_REPLY: [&[u8]; 3] = [
    b"\0\0\x14\x01\x04\0\0\0\0\x88\x0f\x10\x10application/grpc",
    b"\0\0\x15\0\0\0\0\0\0\0\0\0\0\x100123456789abcdef",
    b"\0\0\x0f\x01\x05\0\0\0\0\0\x0bgrpc-status\x010",
];

type Http2 = (Client, Head);

fn introduced() -> Http2 {
    let mut client = Client::new(Config {
        stream_window: 4 << 20,
        connection_window: 64 << 20,
        ..Config::default()
    });
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    client.receive(settings, |_, _| {}).expect("no violation");
    let target = Target {
        method: "POST",
        scheme: "http",
        authority: "localhost:8005",
        path: "/echopb.Echo/Echo",
    };
    let headers: [(&[u8], &[u8]); 2] =
        [(b"te", b"trailers"), (b"content-type", b"application/grpc")];
    (client, Head::new(target, headers))
}

/// Makes one gRPC call after the other; returns the bytes of the replies' messages.
fn calls((client, head): &mut Http2) -> usize {
    let mut length = 0;
    let mut input = Vec::new();
    for stream in (1_u32..).step_by(2).take(REQUESTS) {
        let slot = client.request(head, Body::Short(&[b'x'; 21]));
        let slot = slot.expect("a stream");
        client.written(client.output().len());
        input.clear();
        for frame in GRPC_REPLY {
            let at = input.len();
            input.extend(frame);
            input[at + 5..at + 9].copy_from_slice(&stream.to_be_bytes());
        }
        let mut is_whole = false;
        let mut took = 0;
        let taken = client.receive(&input, |_, event| match event {
            Event::Data(data) => took += data.len(),
            Event::End => is_whole = true,
            _ => {}
        });
        assert!(taken == Ok(input.len()) && is_whole);
        length += took;
        client.close(slot);
    }
    length
}

#[library_benchmark]
#[bench::grpc(introduced())]
fn http2(mut connection: Http2) -> (usize, Http2) {
    (calls(&mut connection), connection)
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
    let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let load = |at: usize| Ok::<_, Infallible>(parts[at].1.clone());
    let Ok(merged) = merge(&names, load, &rules, fixtures::tool(), Vec::new());
    merged.expect("parts of one run")
}

library_benchmark_group!(
    name = request,
    benchmarks = [codec, psk, http1, http2, record, engine]
);
library_benchmark_group!(name = results, benchmarks = [write, read, page, merging]);

main!(library_benchmark_groups = [request, results]);
