//! Lines and frames, without sockets: one request in and its reply out.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use netping_protocol::{
    codec::{Codec, Limits},
    frame::{MAGIC, Reply},
    payload::Exchange,
};

const LENGTHS: [usize; 3] = [4, 581, 64 << 10];

fn codecs(c: &mut Criterion) {
    for (form, magic) in [("line", &b""[..]), ("frame", &MAGIC)] {
        let mut group = c.benchmark_group(format!("codec/{form}"));
        for length in LENGTHS {
            let exchange = Exchange::new(0, length, Reply::Echo);
            let request = if form == "line" {
                exchange.line()
            } else {
                exchange.frame()
            };
            let mut codec = Codec::new(Limits::default());
            let mut output = BytesMut::new();
            codec.next(&mut &magic[..]).expect("the magic bytes");
            group.throughput(Throughput::Bytes(length as u64));
            group.bench_function(BenchmarkId::from_parameter(length), |b| {
                b.iter(|| {
                    let mut input = black_box(request);
                    while let Ok(Some(request)) = codec.next(&mut input) {
                        let mut rest = codec.reply(request, &mut output);
                        while let Some(part) = rest.next(&mut output) {
                            black_box(part);
                        }
                    }
                    black_box(&output);
                    output.clear();
                });
            });
        }
    }
}

fn exchanges(c: &mut Criterion) {
    let mut group = c.benchmark_group("exchange");
    for length in LENGTHS {
        let mut exchange = Exchange::new(0, length, Reply::Echo);
        group.throughput(Throughput::Bytes(length as u64));
        group.bench_function(BenchmarkId::new("advance and verify", length), |b| {
            b.iter(|| {
                exchange.advance();
                black_box(exchange.verify(black_box(exchange.payload())))
            });
        });
    }
}

criterion_group!(benches, codecs, exchanges);
criterion_main!(benches);
