//! One worker's share of a plan.

use crate::plan::{PartNumber, Plan};

/// One worker's share of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the worker, from 0 on.
    pub worker: usize,
    /// Number of the worker's first caller, among those of all clients of the run.
    pub first_caller: u32,
    /// Callers.
    pub callers: usize,
    /// Number of the worker's first connection slot, likewise.
    pub first_connection: usize,
    /// Connection slots.
    pub connections: usize,
}

impl Share {
    /// Returns the share of the worker with this number, from 0 on.
    pub fn of(plan: &Plan, number: usize) -> Self {
        let whole = plan.whole();
        let (first_caller, _) = whole.client.share(whole.callers);
        let (first_connection, _) = whole.client.share(whole.connections);
        let worker = PartNumber {
            number: number + 1,
            of: plan.execution.workers,
        };
        let (callers_before, callers) = worker.share(plan.load.callers);
        let (connections_before, connections) = worker.share(plan.load.connections);
        Self {
            worker: number,
            first_caller: (first_caller + callers_before) as u32,
            callers,
            first_connection: first_connection + connections_before,
            connections,
        }
    }
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
    fn clients_of_one_run_number_theirs_on() {
        let url = "grpc://localhost".parse().unwrap();
        let clear = (Connector::Plain, Trust::default());
        let target = Destination::new(url, ServerSource::Nowhere, clear);
        let mut whole = Plan::new(target, Kind::GrpcH2);
        (whole.load.callers, whole.load.connections) = (11, 5);
        whole.execution.workers = 2;
        let (mut callers, mut connections) = (0, 0);
        for number in 1..=3 {
            let mut plan = whole.clone();
            plan.take_part(PartNumber { number, of: 3 }).unwrap();
            for worker in 0..plan.execution.workers {
                let share = Share::of(&plan, worker);
                assert_eq!(
                    (share.first_caller, share.first_connection),
                    (callers, connections)
                );
                callers += share.callers as u32;
                connections += share.connections;
            }
        }
        assert_eq!((callers, connections), (11, 5));
        let refused = whole
            .take_part(PartNumber { number: 1, of: 6 })
            .unwrap_err();
        let told = "6 clients cannot share 5 connections: give at least one for each";
        assert_eq!(refused.to_string(), told);
    }
}
