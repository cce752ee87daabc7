//! The rounds, or trials, of a run, of which only whole ones count.

use std::collections::{BTreeMap, BTreeSet};

use netping_measure::status::Status;

use super::{Kind, Run, Step};

/// The rounds of a run, or, where it measures one load after the other, the trials of the last load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRounds {
    /// Rounds in which everything that is compared was measured to its end.
    pub whole: usize,
    /// The round that was left out because it is not whole, if any.
    pub cut: Option<CutRound>,
}

/// A round that is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutRound {
    /// Its number, from 1 on.
    pub number: u32,
    /// Measurements that came to their end in it.
    pub measured: usize,
    /// Measurements that a whole round has.
    pub all: usize,
}

impl Run {
    /// Returns its rounds; `None` for a run without rounds, or before the first measurement.
    pub fn whole_rounds(&self) -> Option<WholeRounds> {
        self.order_seed?;
        let last = self.steps.last()?;
        let all = self.in_a_round(last);
        let mut measured: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for step in &self.steps {
            if all.contains(&step.measurement) {
                let own = measured.entry(step.trial).or_default();
                own.extend((step.status == Status::Complete).then_some(step.measurement));
            }
        }
        let whole = measured.values().filter(|own| **own == all).count();
        let of_last = measured.get(&last.trial).map_or(0, BTreeSet::len);
        Some(WholeRounds {
            whole,
            cut: (of_last < all.len()).then_some(CutRound {
                number: last.trial,
                measured: of_last,
                all: all.len(),
            }),
        })
    }

    /// Returns the measurements of a whole round like that of `step`, those that were not made yet among
    /// them.
    fn in_a_round(&self, step: &Step) -> BTreeSet<usize> {
        let pairings = self.pairings.iter().flat_map(|own| [own.base, own.new]);
        let measured = self.steps.iter().map(|own| own.measurement);
        let all: BTreeSet<usize> = pairings.chain(measured).collect();
        // Their rounds go through all loads.
        if matches!(self.kind, Kind::Ladder | Kind::Ab | Kind::Bulk) {
            return all;
        }
        let groups = self.groups(all.iter().copied());
        let own = groups[&step.measurement];
        all.into_iter()
            .filter(|number| groups[number] == own)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures, run::Pairing};

    /// Returns a run of two groups of two targets, each step given by its measurement and its trial.
    fn run(kind: Kind, steps: &[(usize, u32)]) -> Run {
        let step = |(measurement, trial): &(usize, u32)| Step {
            measurement: *measurement,
            trial: *trial,
            ..fixtures::step(1, |_| vec![1000])
        };
        Run {
            kind,
            order_seed: Some(1),
            pairings: vec![Pairing::new(0, 1), Pairing::new(2, 3)],
            steps: steps.iter().map(step).collect(),
            ..fixtures::run(Vec::new())
        }
    }

    fn cut(number: u32, measured: usize, all: usize) -> CutRound {
        CutRound {
            number,
            measured,
            all,
        }
    }

    #[test]
    fn only_whole_rounds_count() {
        let rounds = |kind, steps: &[(usize, u32)]| {
            let WholeRounds { whole, cut } = run(kind, steps).whole_rounds().unwrap();
            (whole, cut)
        };
        let trials = |steps: &[(usize, u32)]| rounds(Kind::Throughput, steps);
        assert_eq!(trials(&[(0, 1), (1, 1)]), (1, None));
        assert_eq!(trials(&[(1, 1)]), (0, Some(cut(1, 1, 2))));
        assert_eq!(trials(&[(0, 1), (1, 1), (1, 2)]), (1, Some(cut(2, 1, 2))));
        // Of the second load, no trial is whole yet.
        assert_eq!(trials(&[(0, 1), (1, 1), (2, 1)]), (0, Some(cut(1, 1, 2))));
        // A round of a ladder has all loads.
        let round = [(0, 1), (1, 1), (2, 1), (3, 1)];
        assert_eq!(rounds(Kind::Ladder, &round), (1, None));
        assert_eq!(rounds(Kind::Ladder, &round[..3]), (0, Some(cut(1, 3, 4))));
        assert_eq!(run(Kind::Ladder, &[]).whole_rounds(), None);
    }

    #[test]
    fn a_window_that_was_cut_short_makes_no_whole_round() {
        let mut run = run(Kind::Throughput, &[(0, 1), (1, 1)]);
        run.steps[1].status = Status::Partial;
        let rounds = run.whole_rounds().unwrap();
        assert_eq!((rounds.whole, rounds.cut), (0, Some(cut(1, 1, 2))));
        assert!(run.compared().is_empty());
        run.steps[1].status = Status::Complete;
        assert_eq!(run.compared().len(), 1);
        run.order_seed = None;
        assert_eq!(run.whole_rounds(), None);
    }
}
