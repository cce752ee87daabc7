//! Plans as result files have them.

use std::{num::NonZeroU64, time::Duration};

use netping_protocol::{frame::Reply, tls::Negotiated};
use netping_results::{connect::ChannelSecurity, run::StepSettings};

use crate::plan::{Arrival, Plan, Trust};

impl Plan {
    /// Returns the settings of a step whose warm-up took `warmup`.
    pub fn settings(&self, warmup: Duration) -> StepSettings {
        let (load, execution) = (&self.load, &self.execution);
        StepSettings {
            arrivals: load.arrival.name().to_owned(),
            planned_rate: load.arrival.rate(),
            seed: match load.arrival {
                Arrival::Poisson { seed, .. } => Some(seed),
                Arrival::Closed | Arrival::Constant(_) => None,
            },
            callers: load.callers,
            connections: load.connections,
            workers: execution.workers,
            pinned: execution.pin,
            busy_poll: execution.busy_poll,
            client: load.kind.name().to_owned(),
            payload_bytes: load.payload,
            response_bytes: match load.reply {
                Reply::Bytes(length) => Some(length),
                Reply::Echo | Reply::Message => None,
            },
            message: (load.reply == Reply::Message).then(|| "benchmark".to_owned()),
            warmup_seconds: warmup.as_secs_f64(),
            duration_seconds: execution.extent.duration().map(|time| time.as_secs_f64()),
            requests: execution.extent.requests(),
            timeout_seconds: load.timeout.as_secs_f64(),
            requests_per_connection: load.requests_per_connection.map(NonZeroU64::get),
        }
    }
}

impl Trust {
    /// Returns the security of a channel for which `negotiated` was agreed on.
    pub fn security(self, negotiated: Negotiated) -> ChannelSecurity {
        ChannelSecurity {
            protocol: negotiated.protocol,
            cipher_suite: negotiated.cipher_suite,
            key_exchange: negotiated.key_exchange,
            resumed: negotiated.resumed,
            server_verified: self.server_verified,
            client_certificate: self.client_certificate,
        }
    }
}
