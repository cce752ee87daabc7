//! A recorder on its own, for the benchmarks of recording.

use netping_measure::{
    recorder::{Interval, Recorder, Sink},
    sample::{LoopKind, Sample},
    window::Window,
};

/// Returns every interval at once.
#[derive(Debug, Default)]
struct Reuse(Option<Interval>);

impl Sink for Reuse {
    fn hand_on(&mut self, interval: Interval) {
        self.0 = Some(interval);
    }

    fn spare(&mut self) -> Option<Interval> {
        self.0.take()
    }
}

/// A recorder that is given times from 10 to 74 us, all in one second.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder<Reuse>,
    step: u64,
}

impl Recording {
    /// Returns one without samples.
    pub fn new(kind: LoopKind) -> Self {
        let recorder = Recorder::new(kind, Reuse::default());
        Self { recorder, step: 0 }
    }

    /// Records the next sample.
    pub fn record(&mut self) {
        const WINDOW: Window = Window {
            start: 0,
            end: u64::MAX,
        };
        self.step = (self.step + 7919) % 65_536;
        let sample = Sample {
            intended: self.step,
            free: self.step + 20,
            start: self.step + 50,
            end: self.step + 10_000,
        };
        self.recorder
            .record(WINDOW, std::hint::black_box(sample), Ok(()));
    }
}
