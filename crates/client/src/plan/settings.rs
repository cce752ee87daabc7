//! Plans as result files have them.

use std::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use netping_protocol::{frame::Reply, tls::Negotiated};
use netping_results::{
    burst::BurstSettings,
    connect::ChannelSecurity,
    run::{PartSettings, StepSettings},
};

use crate::{
    plan::{Arrival, Assign, Load, OwnServer, Plan, Trust},
    transport::connect::socket_name,
};

impl Plan {
    /// Returns the settings of a step whose warm-up took `warmup`.
    pub fn settings(&self, warmup: Duration) -> StepSettings {
        let (load, execution) = (&self.load, &self.execution);
        let (prepared, streams) = (&self.target.prepared, self.target.streams);
        let bodies = prepared.bodies.bodies().len();
        let is_http = self.target.url.scheme.is_http();
        StepSettings {
            arrivals: load.arrival.name().to_owned(),
            planned_rate: load.mean_rate(load.arrival),
            bursts: burst_settings(load),
            seed: match load.arrival {
                Arrival::Poisson { seed, .. } => Some(seed),
                Arrival::Closed | Arrival::Constant(_) => None,
            },
            assign: match (load.arrival, load.assign) {
                (Arrival::Closed, _) => None,
                (_, Assign::Any) => Some("any".to_owned()),
                (_, Assign::Fixed) => Some("fixed".to_owned()),
            },
            callers: load.callers,
            connections: load.connections,
            workers: execution.workers,
            pinned: execution.pin,
            busy_poll: execution.busy_poll,
            client: load.kind.name().to_owned(),
            payload_bytes: self.payload_bytes(),
            response_bytes: match load.reply {
                Reply::Bytes(length) => Some(length),
                Reply::Echo | Reply::Message | Reply::Times => None,
            },
            message: match load.reply {
                Reply::Message => Some("benchmark".to_owned()),
                Reply::Times => Some("times".to_owned()),
                Reply::Echo | Reply::Bytes(_) => None,
            },
            in_process: self.target.in_process.as_ref().map(OwnServer::threads),
            unix_socket: self.target.unix_socket.as_deref().map(socket_name),
            http_method: is_http.then(|| prepared.method.to_string()),
            events: prepared.has_events,
            data_hash: prepared.data_hash.map(|hash| format!("{hash:016x}")),
            bodies: (bodies > 1).then_some(bodies),
            body_order: (bodies > 1).then(|| prepared.bodies.order().name().to_owned()),
            headers: prepared.headers.keys().map(ToString::to_string).collect(),
            deadline_seconds: prepared.deadline.map(|limit| limit.as_secs_f64()),
            warmup_seconds: warmup.as_secs_f64(),
            duration_seconds: execution.extent.duration().map(|time| time.as_secs_f64()),
            requests: execution.extent.requests(),
            timeout_seconds: load.timeout.as_secs_f64(),
            requests_per_connection: load.requests_per_connection.map(NonZeroU64::get),
            streams_per_connection: streams.per_connection.map(NonZeroU32::get),
            messages_per_stream: streams.messages.map(NonZeroU64::get),
            matching: prepared.matching.as_ref().map(|own| own.text.clone()),
            together: execution.together.map(|together| together.targets),
            part: execution.part.map(|part| PartSettings {
                number: part.client.number,
                of: part.client.of,
                callers: part.callers,
                connections: part.connections,
                planned_rate: load.mean_rate(part.arrival),
            }),
            anatomy: execution.anatomy,
            perf_events: execution.perf_events,
            bulk: None,
        }
    }
}

fn burst_settings(load: &Load) -> Option<BurstSettings> {
    let (bursts, base_rate) = load.bursts.zip(load.arrival.rate())?;
    Some(BurstSettings {
        base_rate,
        rate: base_rate * bursts.factor,
        length: bursts.length.as_secs(),
        every: bursts.every.as_secs(),
    })
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
