//! All doubts about the results of an invocation, put together.

use crate::{bulk::BulkStep, doubt::Doubt, run::Step};

/// The doubts about steps and bulk streams, each kind once.
#[derive(Debug)]
pub struct Doubts<'a> {
    /// How many results there are.
    pub results: usize,
    /// The first doubt of each kind, and how many results have one of its kind.
    pub kinds: Vec<(&'a Doubt, usize)>,
}

impl<'a> Doubts<'a> {
    /// Those about all of these.
    pub fn of(steps: &'a [Step], bulk: &'a [BulkStep]) -> Self {
        let all: Vec<&[Doubt]> = steps
            .iter()
            .map(|step| &step.doubts[..])
            .chain(bulk.iter().map(|step| &step.doubts[..]))
            .collect();
        let mut kinds: Vec<(&Doubt, usize)> = Vec::new();
        for doubt in all.iter().copied().flatten() {
            if kinds.iter().all(|(other, _)| other.name() != doubt.name()) {
                let concerned = all
                    .iter()
                    .filter(|own| own.iter().any(|other| other.name() == doubt.name()))
                    .count();
                kinds.push((doubt, concerned));
            }
        }
        Self {
            results: all.len(),
            kinds,
        }
    }

    /// Whether there are results, and no doubt about them.
    pub fn is_valid(&self) -> bool {
        self.results > 0 && self.kinds.is_empty()
    }
}
