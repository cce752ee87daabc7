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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// The CPU time of the client's workers.
    Client {
        /// The CPU time of the busiest worker, as a share of what it could get.
        busiest_worker: f64,
    },
    /// The CPU time of the server.
    Server {
        /// Its CPU time, as a share of its cores.
        share: f64,
        /// Its cores.
        cores: u64,
    },
    /// The CPU time of the machine that client and server share.
    Machine {
        /// The CPU time of both, as a share of the machine's cores.
        share: f64,
        /// These cores.
        cores: u64,
    },
    /// No CPU time that is known.
    Other {
        /// The CPU time of the client's busiest worker, as a share of what it could get.
        busiest_worker: f64,
        /// The CPU time of the server, as a share of its cores; `None` if unknown.
        server: Option<f64>,
        /// The events on both machines, the client's first.
        events: [HostEvents; 2],
    },
}

impl Limit {
    /// Returns the limit of a closed loop; `None` for a single caller, whose rate is one over its
    /// response time, for an open loop, and without replies.
    pub fn of(step: &Step) -> Option<Self> {
        let (settings, seconds) = (&step.settings, step.summary.seconds);
        let is_told = settings.planned_rate.is_none() && settings.callers > 1;
        let cost = &step.cost;
        // A window without CPU times is too short to tell.
        let is_known = !cost.client_worker_cpu_seconds.is_empty();
        if !is_told || !is_known || step.summary.accounting.arrived() == 0 || seconds <= 0.0 {
            return None;
        }
        let busiest_worker = busiest_worker(cost, seconds);
        let demand = cost.server.as_ref();
        let server = demand.and_then(|demand| Some((demand.cpu_seconds / seconds, demand.cores?)));
        let server_share = server.map(|(used, cores)| used / cores as f64);
        if step.warnings.contains(&SharedHost.into())
            && let (Some((used, _)), Some(cores)) = (server, cost.client_host.cores)
        {
            let own: f64 = cost.client_worker_cpu_seconds.iter().sum();
            let share = (used + own / seconds) / cores as f64;
            if share >= FULL {
                return Some(Self::Machine { share, cores });
            }
        }
        if busiest_worker >= FULL && !settings.busy_poll {
            return Some(Self::Client { busiest_worker });
        }
        if let (Some((_, cores)), Some(share)) = (server, server_share)
            && share >= FULL
        {
            return Some(Self::Server { share, cores });
        }
        Some(Self::Other {
            busiest_worker,
            server: server_share,
            events: [
                cost.client_host,
                demand.map(|demand| demand.host).unwrap_or_default(),
            ],
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Client { busiest_worker } => write!(
                f,
                "client CPU: the busiest worker used {:.0}% of the CPU time it could get",
                busiest_worker * 100.0
            ),
            Self::Server { share, cores } => write!(
                f,
                "server CPU: it used {:.0}% of its {cores} cores",
                share * 100.0
            ),
            Self::Machine { share, cores } => write!(
                f,
                "this machine's CPU: client and server used {:.0}% of its {cores} cores",
                share * 100.0
            ),
            Self::Other {
                busiest_worker,
                server,
                events,
            } => {
                write!(
                    f,
                    "not known: the busiest client worker used {:.0}%, the server ",
                    busiest_worker * 100.0
                )?;
                match server {
                    Some(share) => write!(f, "{:.0}% of its cores", share * 100.0)?,
                    None => f.write_str("an unknown part")?,
                }
                for (events, of) in events.iter().zip(["client's", "server's"]) {
                    let counts = [
                        ("TCP retransmits", events.tcp_retransmits),
                        ("dropped connections", events.listen_drops),
                        ("dropped datagrams", events.udp_drops),
                    ];
                    for (name, count) in counts {
                        if let Some(count @ 1..) = count {
                            write!(f, "; {count} {name} on the {of} machine")?;
                        }
                    }
                }
                Ok(())
            }
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
