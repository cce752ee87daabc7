//! One worker's part of a step: its assignment and its results.

use std::{collections::BTreeMap, sync::Arc};

use netping_measure::{
    anatomy::Anatomy,
    connect::PhaseTimes,
    cost::Cost,
    error_kind::ErrorKind,
    fairness::ConnectionSums,
    messages::{HeldBack, Messages},
    recorder::Remainder,
    sample::Sample,
};
use netping_protocol::tls::Negotiated;

use crate::{
    engine::{backlog::Backlog, rate_meter::ReplyCounter, share::Share, timeline::Timeline},
    plan::Plan,
};

/// The part of a step that one worker has to run.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub plan: Arc<Plan>,
    pub share: Share,
    pub timeline: Arc<Timeline>,
    pub replies: Arc<ReplyCounter>,
    pub backlog: Arc<Backlog>,
}

/// The results of a worker, besides the intervals that its recorder has handed on, or those of
/// several workers added up.
#[derive(Debug, Default)]
pub struct WorkerReport {
    /// The records that belong to no interval.
    pub remainder: Remainder,
    /// Successes on each connection slot.
    pub connections: Vec<ConnectionSums>,
    /// Time to open connections within the window, by phase.
    pub phases: PhaseTimes,
    /// Messages of calls that stream; `None` without such.
    pub messages: Option<Messages>,
    /// Successes that the server held back.
    pub held_back: HeldBack,
    /// The parts of requests; `None` unless the plan asks for them.
    pub anatomy: Option<Anatomy>,
    /// Security of connections with a limited number of requests; `None` in the clear, or without
    /// any.
    pub negotiated: Option<Negotiated>,
    /// The first failure of each kind, for people.
    pub details: BTreeMap<ErrorKind, String>,
    /// Every success, warm-up included, if the plan asks for them.
    pub samples: Vec<Sample>,
    /// Time of the callers of a closed loop between a reply and the next request, within the window,
    /// in nanoseconds.
    pub between: u64,
    /// The resources that it used over the window.
    pub cost: Cost,
}

impl WorkerReport {
    /// Adds another worker's.
    pub fn add(&mut self, other: Self) {
        // All by name, so that the compiler finds a part that is missing here.
        let Self {
            remainder,
            connections,
            phases,
            messages,
            held_back,
            anatomy,
            negotiated,
            details,
            samples,
            between,
            cost,
        } = other;
        self.remainder.add(&remainder);
        self.connections.extend(connections);
        self.phases.merge(&phases);
        if let Some(messages) = &messages {
            self.messages.get_or_insert_default().merge(messages);
        }
        self.held_back.add(held_back);
        if let Some(anatomy) = &anatomy {
            self.anatomy.get_or_insert_default().merge(anatomy);
        }
        self.negotiated = self.negotiated.take().or(negotiated);
        for (kind, detail) in details {
            self.details.entry(kind).or_insert(detail);
        }
        self.samples.extend(samples);
        self.between += between;
        self.cost.add_workers(&cost);
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::{connect::ConnectPhase, course::Course, window::Window};

    use super::*;

    #[test]
    fn every_part_of_the_workers_reports_is_in_their_sum() {
        let window = Window {
            start: 0,
            end: 1_000_000_000,
        };
        let sample = |end| Sample {
            intended: 0,
            free: 0,
            start: 0,
            end,
        };
        let one = |number: u64| {
            let mut course = Course::default();
            course.record(window, sample(number), Ok(()));
            let mut phases = PhaseTimes::default();
            phases.record(ConnectPhase::Tcp, number);
            let mut messages = Messages::default();
            (messages.sent, messages.received) = (number, 10 * number);
            let anatomy = Anatomy {
                without_stamps: number,
                ..Anatomy::default()
            };
            WorkerReport {
                anatomy: Some(anatomy),
                remainder: Remainder {
                    course,
                    ..Remainder::default()
                },
                connections: vec![ConnectionSums::default()],
                phases,
                messages: Some(messages),
                held_back: HeldBack {
                    requests: 1,
                    total_ns: number,
                },
                negotiated: Some(Negotiated {
                    protocol: format!("protocol {number}"),
                    cipher_suite: String::new(),
                    key_exchange: String::new(),
                    resumed: None,
                }),
                details: BTreeMap::from([
                    (ErrorKind::Eof, format!("detail {number}")),
                    (ErrorKind::Http(number as u16), String::new()),
                ]),
                samples: vec![sample(number)],
                between: number,
                cost: Cost {
                    client_worker_moves: vec![number],
                    client_worker_context_switches: vec![10 * number],
                    client_worker_system_seconds: vec![number as f64],
                    ..Cost::default()
                },
            }
        };
        let mut sum = WorkerReport::default();
        sum.add(one(1));
        sum.add(one(2));
        assert_eq!((sum.connections.len(), sum.between), (2, 3));
        assert_eq!(sum.remainder.course.slots(window)[0].ok, 2);
        assert_eq!(sum.cost.client_worker_moves, [1, 2]);
        assert_eq!(sum.cost.client_worker_context_switches, [10, 20]);
        assert_eq!(sum.cost.client_worker_system_seconds, [1.0, 2.0]);
        let opened = sum.phases.histograms().map(|(_, times)| times.len());
        assert_eq!(opened.collect::<Vec<_>>(), [2]);
        let messages = sum.messages.unwrap();
        assert_eq!((messages.sent, messages.received), (3, 30));
        assert_eq!((sum.held_back.requests, sum.held_back.total_ns), (2, 3));
        assert_eq!(sum.anatomy.unwrap().without_stamps, 3);
        assert_eq!(sum.negotiated.unwrap().protocol, "protocol 1");
        assert_eq!(
            (sum.details.len(), sum.details[&ErrorKind::Eof].as_str()),
            (3, "detail 1")
        );
        let ends = sum.samples.iter().map(|sample| sample.end);
        assert_eq!(ends.collect::<Vec<_>>(), [1, 2]);
    }
}
