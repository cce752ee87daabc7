//! One worker's share of a plan.

use crate::plan::Plan;

/// One worker's share of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the worker, from 0 on.
    pub worker: usize,
    /// Number of the worker's first caller.
    pub first_caller: u32,
    /// Callers.
    pub callers: usize,
    /// Connection slots.
    pub connections: usize,
}

impl Share {
    /// Returns the share of worker number `worker`.
    pub fn of(plan: &Plan, worker: usize) -> Self {
        let share = |whole| part(whole, plan.execution.workers, worker);
        let callers_of = |worker| part(plan.load.callers, plan.execution.workers, worker);
        Self {
            worker,
            first_caller: (0..worker).map(callers_of).sum::<usize>() as u32,
            callers: callers_of(worker),
            connections: share(plan.load.connections),
        }
    }
}

/// Returns one of `parts` nearly equal parts of `whole`.
fn part(whole: usize, parts: usize, number: usize) -> usize {
    whole / parts + usize::from(number < whole % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_are_nearly_equal() {
        for (whole, count) in [(10, 3), (2, 2), (1, 4), (0, 3)] {
            let parts: Vec<_> = (0..count)
                .map(|number| part(whole, count, number))
                .collect();
            assert_eq!(parts.iter().sum::<usize>(), whole);
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
    }
}
