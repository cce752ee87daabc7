//! The limit of a step's rate: the resource that was full.

use std::fmt;

use netping_measure::cost::HostEvents;

use crate::{
    run::Step,
    warning::{SharedHost, busiest_worker},
};

/// A resource is full from this share of it on.
const FULL: f64 = 0.9;

/// The resource that limits the rate of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// CPU time that was full, in words.
    Full(String),
    /// No CPU time that is known.
    Other {
        /// The CPU times that were used, and the events on both machines, in words.
        text: String,
        /// The CPU time of the server, as a share of its cores; `None` if unknown.
        server: Option<f64>,
    },
}

impl Limit {
    /// Returns the limit of a closed loop; `None` for a single caller, whose rate is one over its
    /// response time, for an open loop, and without replies.
    pub fn of(step: &Step) -> Option<Self> {
        let (settings, cost, seconds) = (&step.settings, &step.cost, step.summary.seconds);
        let is_told = settings.planned_rate.is_none() && settings.callers > 1;
        // A window without CPU times is too short to tell.
        let is_known = !cost.client_worker_cpu_seconds.is_empty();
        if !is_told || !is_known || step.summary.accounting.arrived() == 0 || seconds <= 0.0 {
            return None;
        }
        let demand = cost.server.as_ref();
        let server = demand.and_then(|demand| Some((demand.cpu_seconds / seconds, demand.cores?)));
        let full = |text: String| Some(Self::Full(text));
        if step.warnings.contains(&SharedHost.into())
            && let (Some((used, _)), Some(cores)) = (server, cost.client_host.cores)
        {
            let own: f64 = cost.client_worker_cpu_seconds.iter().sum();
            let share = (used + own / seconds) / cores as f64;
            if share >= FULL {
                let used = percent(share);
                return full(format!(
                    "this machine's CPU: client and server used {used} of its {cores} cores"
                ));
            }
        }
        let busiest_worker = busiest_worker(cost, seconds);
        let busiest = percent(busiest_worker);
        if busiest_worker >= FULL && !settings.busy_poll {
            return full(format!(
                "client CPU: the busiest worker used {busiest} of the CPU time it could get"
            ));
        }
        let share = server.map(|(used, cores)| used / cores as f64);
        let used = share.map_or_else(|| "an unknown part".to_owned(), percent);
        if let (Some((_, cores)), Some(FULL..)) = (server, share) {
            return full(format!("server CPU: it used {used} of its {cores} cores"));
        }
        let cores = share.map_or("", |_| " of its cores");
        let server_host = demand.map(|demand| demand.host).unwrap_or_default();
        let events = [
            events(cost.client_host, "client's"),
            events(server_host, "server's"),
        ];
        let events = events.concat();
        Some(Self::Other {
            text: format!(
                "not known: the busiest client worker used {busiest}, the server {used}{cores}{events}"
            ),
            server: share,
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// Describes the events on a machine, the client's or the server's.
fn events(host: HostEvents, of: &str) -> String {
    let counts = [
        ("TCP retransmits", host.tcp_retransmits),
        ("dropped connections", host.listen_drops),
        ("dropped datagrams", host.udp_drops),
    ];
    let known = counts.into_iter().filter_map(|(name, count)| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("; {count} {name} on the {of} machine"))
    });
    known.collect()
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(text) | Self::Other { text, .. } => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::cost::ServerDemand;

    use super::*;
    use crate::{fixtures, warning::Warning};

    /// Returns the limit of a step of 2 s, with this CPU time of one worker and of the server.
    fn limit(worker: f64, server: Option<f64>, warnings: Vec<Warning>) -> Limit {
        let mut step = fixtures::step(2, |_| vec![1_000_000; 1000]);
        step.cost.client_worker_cpu_seconds = vec![worker];
        step.cost.server = server.map(|cpu_seconds| ServerDemand {
            cpu_seconds,
            cores: Some(2),
            host: HostEvents {
                tcp_retransmits: Some(7),
                ..HostEvents::default()
            },
            ..ServerDemand::default()
        });
        step.cost.client_host.cores = Some(2);
        step.warnings = warnings;
        Limit::of(&step).unwrap()
    }

    #[test]
    fn the_fullest_resource_is_the_limit() {
        let name = |limit: Limit| limit.to_string();
        assert!(
            name(limit(1.9, Some(1.0), vec![]))
                .starts_with("client CPU: the busiest worker used 95%")
        );
        assert!(
            name(limit(1.0, Some(3.8), vec![]))
                .starts_with("server CPU: it used 95% of its 2 cores")
        );
        let shared = limit(1.5, Some(2.3), vec![SharedHost.into()]);
        assert!(name(shared).starts_with("this machine's CPU: client and server used 95%"));
        let other = name(limit(1.0, Some(1.0), vec![]));
        assert!(
            other
                .contains("the server 25% of its cores; 7 TCP retransmits on the server's machine"),
            "{other}"
        );
        assert!(name(limit(1.0, None, vec![])).contains("the server an unknown part"));
    }

    #[test]
    fn a_single_caller_and_an_open_loop_have_none() {
        let mut step = fixtures::step(2, |_| vec![1_000_000; 1000]);
        step.settings.callers = 1;
        assert_eq!(Limit::of(&step), None);
        step.settings.callers = 8;
        step.settings.planned_rate = Some(10.0);
        assert_eq!(Limit::of(&step), None);
    }
}
