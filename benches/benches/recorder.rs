//! The cost of recording one sample.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use netping_measure::{
    recorder::{Interval, Recorder, Sink},
    sample::{LoopKind, Sample},
    window::Window,
};

/// Returns every interval at once.
#[derive(Default)]
struct Reuse(Option<Interval>);

impl Sink for Reuse {
    fn hand_on(&mut self, interval: Interval) {
        self.0 = Some(interval);
    }

    fn spare(&mut self) -> Option<Interval> {
        self.0.take()
    }
}

fn record(c: &mut Criterion) {
    let window = Window {
        start: 0,
        end: u64::MAX,
    };
    for (name, kind) in [
        ("closed loop", LoopKind::Closed),
        ("open loop", LoopKind::Open),
    ] {
        c.bench_function(&format!("recorder/{name}"), |b| {
            let mut recorder = Recorder::new(kind, 0, Reuse::default());
            let mut step = 0_u64;
            b.iter(|| {
                // Times from 10 to 74 us, all in one second.
                step = (step + 7919) % 65_536;
                let sample = Sample {
                    intended: step,
                    free: step + 20,
                    start: step + 50,
                    end: step + 10_000,
                };
                recorder.record(window, black_box(sample), Ok(()));
            });
        });
    }
}

criterion_group!(benches, record);
criterion_main!(benches);
