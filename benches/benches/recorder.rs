//! The cost of recording one sample.

use criterion::{Criterion, criterion_group, criterion_main};
use netping_benches::recording::Recording;
use netping_measure::sample::LoopKind;

fn record(c: &mut Criterion) {
    for (name, kind) in [
        ("closed loop", LoopKind::Closed),
        ("open loop", LoopKind::Open),
    ] {
        c.bench_function(&format!("recorder/{name}"), |b| {
            let mut recording = Recording::new(kind);
            b.iter(|| recording.record());
        });
    }
}

criterion_group!(benches, record);
criterion_main!(benches);
