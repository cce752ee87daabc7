//! Callers of a closed loop that call several targets by turns.

use std::{
    cell::RefCell,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::plan::shuffle;

/// The turns of one worker's callers: caller number n of every party takes them with the others of that number.
#[derive(Debug)]
pub struct Turns(Vec<RefCell<Cycle>>);

/// A cycle in which each party has its turn once, in random order.
#[derive(Debug)]
struct Cycle {
    order: Vec<usize>,
    /// The place of the party whose turn it is.
    at: usize,
    /// That party has taken its turn.
    is_taken: bool,
    /// The waker of each party that waits for its turn.
    wakers: Vec<Option<Waker>>,
    random: ChaCha8Rng,
}

/// One party's part in the turns.
#[derive(Debug, Clone)]
pub struct Turn {
    turns: Rc<Turns>,
    party: usize,
}

impl Turns {
    /// Returns the turns of this number of callers of each of the parties. The order of the first has this seed, those
    /// of the others the numbers that follow.
    pub fn new(callers: usize, parties: usize, seed: u64) -> Self {
        let cycle = |caller: usize| {
            let mut cycle = Cycle {
                order: (0..parties).collect(),
                at: 0,
                is_taken: false,
                wakers: vec![None; parties],
                random: ChaCha8Rng::seed_from_u64(seed.wrapping_add(caller as u64)),
            };
            shuffle(&mut cycle.order, &mut cycle.random);
            RefCell::new(cycle)
        };
        Self((0..callers).map(cycle).collect())
    }

    /// Returns a party's part.
    pub fn of(self: &Rc<Self>, party: usize) -> Turn {
        Turn {
            turns: Rc::clone(self),
            party,
        }
    }
}

impl Turn {
    /// Ends a caller's turn, if it has it, and waits for the next.
    pub async fn next(&self, caller: usize) {
        let cycle = &self.turns.0[caller];
        cycle.borrow_mut().pass(self.party);
        poll_fn(|context| cycle.borrow_mut().poll(self.party, context)).await;
    }

    /// Ends a caller's turn, which it has; the others wait for it no more.
    pub fn leave(&self, caller: usize) {
        self.turns.0[caller].borrow_mut().leave(self.party);
    }

    /// Lets a caller that has left take turns again.
    pub fn rejoin(&self, caller: usize) {
        self.turns.0[caller].borrow_mut().order.push(self.party);
    }
}

impl Cycle {
    fn poll(&mut self, party: usize, context: &Context<'_>) -> Poll<()> {
        if self.order[self.at] == party && !self.is_taken {
            self.is_taken = true;
            return Poll::Ready(());
        }
        self.wakers[party] = Some(context.waker().clone());
        Poll::Pending
    }

    /// Gives the turn to the next party if this one has it.
    fn pass(&mut self, party: usize) {
        if self.is_taken && self.order[self.at] == party {
            self.at += 1;
            self.give();
        }
    }

    fn leave(&mut self, party: usize) {
        self.order.retain(|other| *other != party);
        self.give();
    }

    /// Gives the turn to the party at the current place, or that of a new cycle.
    fn give(&mut self) {
        self.is_taken = false;
        if self.at >= self.order.len() {
            shuffle(&mut self.order, &mut self.random);
            self.at = 0;
        }
        let next = self.order.get(self.at);
        if let Some(waker) = next.and_then(|party| self.wakers[*party].take()) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::pin};

    use futures_util::poll;
    use tokio::task::{LocalSet, yield_now};

    use super::*;

    /// Lets three parties take turns until each has had its number of them; returns whose turn each was.
    async fn taken(counts: [usize; 3]) -> Vec<usize> {
        let turns = Rc::new(Turns::new(1, counts.len(), 7));
        let taken: Rc<RefCell<Vec<usize>>> = Rc::default();
        let is_out = Rc::new(Cell::new(false));
        let local = LocalSet::new();
        for (party, count) in counts.into_iter().enumerate() {
            let (turn, taken) = (turns.of(party), Rc::clone(&taken));
            let is_out = Rc::clone(&is_out);
            local.spawn_local(async move {
                for _ in 0..count {
                    turn.next(0).await;
                    assert!(!is_out.replace(true), "two have the turn");
                    yield_now().await;
                    taken.borrow_mut().push(party);
                    is_out.set(false);
                }
                turn.next(0).await;
                turn.leave(0);
            });
        }
        local.await;
        taken.take()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn every_party_has_one_turn_in_each_cycle_and_one_at_a_time() {
        let taken = taken([100; 3]).await;
        assert_eq!(taken.len(), 300);
        let mut firsts = [0; 3];
        for cycle in taken.chunks(3) {
            let mut sorted = cycle.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            firsts[cycle[0]] += 1;
        }
        // Each comes first in a third of the cycles, to within four standard deviations.
        assert!(
            firsts.iter().all(|count| (14..=52).contains(count)),
            "{firsts:?}"
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_party_that_has_left_is_waited_for_no_more() {
        let taken = taken([1, 20, 5]).await;
        let count = |party| taken.iter().filter(|own| **own == party).count();
        assert_eq!([0, 1, 2].map(count), [1, 20, 5]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_party_that_pauses_holds_up_nobody() {
        let turns = Rc::new(Turns::new(1, 2, 3));
        let (one, other) = (turns.of(0), turns.of(1));
        let (mut one_taken, mut other_taken) = (pin!(one.next(0)), pin!(other.next(0)));
        let has_one = poll!(&mut one_taken).is_ready();
        let (has, waits) = if has_one {
            (&one, &other)
        } else {
            (&other, &one)
        };
        if !has_one {
            assert!(poll!(&mut other_taken).is_ready());
        }
        has.leave(0);
        for _ in 0..5 {
            assert!(poll!(pin!(waits.next(0))).is_ready());
        }
        has.rejoin(0);
        assert!(
            poll!(pin!(has.next(0))).is_pending(),
            "the other has its turn"
        );
        assert!(poll!(pin!(waits.next(0))).is_pending());
        assert!(poll!(pin!(has.next(0))).is_ready());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_caller_that_was_replaced_gives_its_turn_away() {
        let turns = Rc::new(Turns::new(1, 2, 1));
        let (one, other) = (turns.of(0), turns.of(1));
        let first = turns.0[0].borrow().order[0];
        let (has, waits) = if first == 0 {
            (one, other)
        } else {
            (other, one)
        };
        has.next(0).await;
        // Its request took too long: another task goes on in its place.
        let again = has.next(0);
        let (again, next) = (pin!(again), pin!(waits.next(0)));
        let ended = futures_util::future::select(again, next).await;
        // Either may come first in a new cycle, but not before the other had its turn in this one.
        assert!(matches!(ended, futures_util::future::Either::Right(_)));
    }
}
