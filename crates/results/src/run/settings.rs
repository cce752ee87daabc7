//! The settings of one step.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{bulk::BulkSettings, burst::BurstSettings};

/// The threads of a client and a server in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InProcess {
    /// The server is on the thread of the client's only worker, so that no request wakes another thread
    /// or core. The worker's CPU time is that of both, and there is none per request.
    OneThread,
    /// The server has a thread of its own.
    TwoThreads,
}

/// One client's part of a load that several clients shared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartSettings {
    /// The number of the client, from 1 on.
    pub number: usize,
    /// Clients.
    pub of: usize,
    /// Callers of all clients.
    pub callers: usize,
    /// Connections of all clients.
    pub connections: usize,
    /// The planned rate of all clients, in requests per second.
    #[serde(
        rename = "planned_rate_per_s",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub planned_rate: Option<f64>,
}

impl fmt::Display for PartSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {}", self.number, self.of)
    }
}

/// The settings of one step.
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that do not depend on one another"
)]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepSettings {
    /// The arrivals: `closed` for a closed loop, `constant` or `poisson` for the arrivals of an
    /// open one.
    pub arrivals: String,
    /// The planned rate of an open loop, in requests per second.
    #[serde(rename = "planned_rate_per_s")]
    pub planned_rate: Option<f64>,
    /// Bursts, which the planned rate is the mean of; absent where the rate was to stay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstSettings>,
    /// The seed of random arrivals.
    pub seed: Option<u64>,
    /// The callers that each due request of an open loop was for: `fixed`, those of one connection, known
    /// beforehand; `any`, which it was in files that do not have it, too. Absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assign: Option<String>,
    /// Callers, each with one request outstanding.
    pub callers: usize,
    /// Connections that the callers share, or one for each.
    pub connections: usize,
    /// Worker threads of the client.
    pub workers: usize,
    /// True where workers were pinned to cores.
    pub pinned: bool,
    /// True where workers polled all the time.
    pub busy_poll: bool,
    /// Which of several clients for this protocol was used: how requests were put on the wire.
    pub client: String,
    /// Bytes of payload in each request.
    pub payload_bytes: usize,
    /// Bytes of reply asked for; absent where the payload is echoed, or the server decides.
    pub response_bytes: Option<u32>,
    /// The message that requests carry; absent where they carry bytes.
    #[serde(default)]
    pub message: Option<String>,
    /// The threads of client and server where they are one process; absent where the server is a process
    /// of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_process: Option<InProcess>,
    /// The Unix domain socket that was connected to instead of the target's host; an abstract one
    /// begins with `@`.
    #[serde(default)]
    pub unix_socket: Option<String>,
    /// The method of HTTP requests.
    #[serde(default)]
    pub http_method: Option<String>,
    /// True where replies were streams of events.
    #[serde(default, skip_serializing_if = "is_false")]
    pub events: bool,
    /// Hash of the data that requests carry, before placeholders are filled in (FNV-1a, 64 bits,
    /// hexadecimal); absent where there is none.
    #[serde(default)]
    pub data_hash: Option<String>,
    /// Different bodies or messages that were prepared before the run; absent where there is one.
    #[serde(default)]
    pub bodies: Option<usize>,
    /// The order in which each caller used them: `turn` or `random`.
    #[serde(default)]
    pub body_order: Option<String>,
    /// Names of the headers or metadata that the user added.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Time limit that gRPC servers were told, in seconds.
    #[serde(default)]
    pub deadline_seconds: Option<f64>,
    /// Warm-up, in seconds; found by the run itself where `auto` was asked for.
    pub warmup_seconds: f64,
    /// The window's planned length, in seconds, unless requests were counted.
    pub duration_seconds: Option<f64>,
    /// Requests asked for, unless time was.
    pub requests: Option<u64>,
    /// Timeout of a request, in seconds.
    pub timeout_seconds: f64,
    /// Requests on each connection before it is opened anew; absent where connections are kept.
    pub requests_per_connection: Option<u64>,
    /// Streams on each connection, which its callers share; absent where each caller has its own, or requests are no
    /// messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_per_connection: Option<u32>,
    /// Messages on each stream before it is opened anew; absent where streams are kept, or requests are no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_per_stream: Option<u64>,
    /// The field by which replies belonged to messages, or `FIELD=REPLY_FIELD`; absent where they came in the messages'
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<String>,
    /// The number of targets that were measured at the same time on the same workers; absent where this one
    /// alone was. In a closed loop each caller called them by turns, in random order, one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<usize>,
    /// The part that this client had of what several did together; absent where it did all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartSettings>,
    /// True where each request was taken apart by the kernel's time stamps, which costs time itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub anatomy: bool,
    /// True where instructions and system calls were counted, which costs time itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub perf_events: bool,
    /// The settings of bulk streams; absent where requests were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<BulkSettings>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl StepSettings {
    /// Returns true if callers of a closed loop called several targets by turns.
    pub fn is_by_turns(&self) -> bool {
        self.together.is_some() && self.planned_rate.is_none()
    }

    /// Returns true if each request of an open loop belonged to a connection beforehand.
    pub fn is_fixed(&self) -> bool {
        self.assign.as_deref() == Some("fixed")
    }

    /// Returns true if each request was a message on a stream that stays open.
    pub fn are_messages(&self) -> bool {
        matches!(&*self.client, "h2 chat" | "h2 messages")
    }
}
