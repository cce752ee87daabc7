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
    /// Number of the worker's first connection slot.
    pub first_connection: usize,
    /// Connection slots.
    pub connections: usize,
}

impl Share {
    /// Returns the share of worker number `worker`.
    pub fn of(plan: &Plan, worker: usize) -> Self {
        let callers = |worker| part(plan.load.callers, plan.execution.workers, worker);
        let connections = |worker| part(plan.load.connections, plan.execution.workers, worker);
        Self {
            worker,
            first_caller: (0..worker).map(callers).sum::<usize>() as u32,
            callers: callers(worker),
            first_connection: (0..worker).map(connections).sum(),
            connections: connections(worker),
        }
    }
}

/// Returns one of `parts` nearly equal parts of `whole`.
fn part(whole: usize, parts: usize, number: usize) -> usize {
    whole / parts + usize::from(number < whole % parts)
}

#[cfg(test)]
mod tests {
    use netping_protocol::secure::Connector;

    use super::*;
    use crate::{
        plan::{Destination, Trust},
        probe::metrics::ServerSource,
        transport::Kind,
    };

    #[test]
    fn every_caller_and_connection_has_a_number_of_its_own() {
        let url = "grpc://localhost".parse().unwrap();
        let clear = (Connector::Plain, Trust::default());
        let target = Destination::new(url, ServerSource::Nowhere, clear);
        let mut plan = Plan::new(target, Kind::GrpcH2);
        (plan.load.callers, plan.load.connections) = (11, 5);
        plan.execution.workers = 3;
        let shares = [0, 1, 2].map(|worker| Share::of(&plan, worker));
        assert_eq!(shares.map(|share| share.callers), [4, 4, 3]);
        assert_eq!(shares.map(|share| share.first_caller), [0, 4, 8]);
        assert_eq!(shares.map(|share| share.first_connection), [0, 2, 4]);
        assert_eq!(shares.map(|share| share.connections), [2, 2, 1]);
    }

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
