//! The messages of calls that stream.

use netping_measure::{counts::Counts, messages::Messages};
use serde::{Deserialize, Serialize};

use crate::times::Times;

/// The messages of calls that stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageSummary {
    /// Messages sent by successful calls that ended within the window, per second of it.
    pub sent_per_s: f64,
    /// Messages received by them, per second of the window.
    pub received_per_s: f64,
    /// Time from a call's start to the first message of its reply.
    pub first_message: Times,
    /// Time from one message of a reply to the next; absent where no reply had two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_gap: Option<Times>,
}

impl MessageSummary {
    /// Describes the messages of a window of so many seconds.
    pub fn of(messages: &Messages, seconds: f64) -> Self {
        let per_second = |count: u64| count as f64 / seconds.max(f64::MIN_POSITIVE);
        Self {
            sent_per_s: per_second(messages.sent),
            received_per_s: per_second(messages.received),
            first_message: Times::of(Counts::from(&messages.first)),
            message_gap: (!messages.gap.is_empty()).then(|| Times::of(Counts::from(&messages.gap))),
        }
    }

    /// Adds up the messages of several clients; `None` without any.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        parts.cloned().reduce(|sum, part| Self {
            sent_per_s: sum.sent_per_s + part.sent_per_s,
            received_per_s: sum.received_per_s + part.received_per_s,
            first_message: Times::sum([&sum.first_message, &part.first_message].into_iter()),
            message_gap: match (sum.message_gap, part.message_gap) {
                (Some(sum), Some(part)) => Some(Times::sum([&sum, &part].into_iter())),
                (sum, part) => sum.or(part),
            },
        })
    }
}
