//! What a server says of itself, over HTTP, while it is measured.

use std::{collections::BTreeMap, time::Duration};

use netping_protocol::target::{Target, port};

/// The most that reading a server's metrics may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Reads one server's metrics.
#[derive(Debug)]
pub struct Probe {
    url: Option<String>,
    agent: ureq::Agent,
}

/// A server's counters at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading(BTreeMap<String, f64>);

/// Where the metrics of the server at `target` are unless it was told otherwise: its host, [`port::METRICS_OFFSET`]
/// higher.
pub fn default_url(target: &Target) -> Option<String> {
    let port = target.port.checked_add(port::METRICS_OFFSET)?;
    Some(format!("http://{}:{port}/metrics", target.host))
}

impl Probe {
    /// Reads the metrics at `url`, if there is one.
    pub fn new(url: Option<String>) -> Self {
        // A proxy of the environment is meant for other traffic.
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).proxy(None).build();
        Self { url, agent: config.into() }
    }

    /// The counters now; `None` where nobody serves them.
    pub fn read(&self) -> Option<Reading> {
        let text = self.agent.get(self.url.as_ref()?).call().ok()?.body_mut().read_to_string().ok()?;
        Some(Reading::parse(&text))
    }
}

impl Reading {
    /// Reads Prometheus' text format: the samples without labels.
    fn parse(text: &str) -> Self {
        let sample = |line: &str| {
            let (name, rest) = line.split_once(' ')?;
            let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
            (!name.contains(['#', '{'])).then(|| (name.to_owned(), value))
        };
        Self(text.lines().filter_map(sample).collect())
    }

    /// CPU time for each request between this reading and a later one of the same server, in microseconds.
    pub fn cpu_us_until(&self, later: &Self) -> Option<f64> {
        let cpu = later.gained(self, "process_cpu_seconds_total")?;
        let requests = later.gained(self, "netping_requests_total")?;
        (requests > 0.0).then(|| cpu * 1e6 / requests)
    }

    /// How many connections the server takes.
    pub fn max_connections(&self) -> Option<u64> {
        self.count("netping_max_connections")
    }

    /// Requests that the server has answered.
    pub fn requests(&self) -> Option<u64> {
        self.count("netping_requests_total")
    }

    /// Connections that the server has taken.
    pub fn connections_admitted(&self) -> Option<u64> {
        self.count("netping_connections_admitted_total")
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|&count| count as u64)
    }

    fn gained(&self, earlier: &Self, name: &str) -> Option<f64> {
        Some(self.0.get(name)? - earlier.0.get(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_demand_comes_from_two_readings() {
        let text = |cpu, requests| {
            format!(
                "# HELP a b\nprocess_cpu_seconds_total {cpu} 12\nnetping_requests_total {requests}\nx{{a=\"b\"}} 1\n"
            )
        };
        let (first, second) = (Reading::parse(&text(1.5, 100)), Reading::parse(&text(2.0, 100_100)));
        assert_eq!(first.cpu_us_until(&second), Some(5.0));
        assert_eq!(first.cpu_us_until(&first), None);
        assert_eq!(Reading::parse("<html>").cpu_us_until(&second), None);
    }
}
