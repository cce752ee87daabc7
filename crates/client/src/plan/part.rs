//! One client's part of a load that several clients share.

use std::{fmt, str::FromStr};

use netping_results::format::plural;

use super::{Arrival, Assign, Plan};
use crate::probe::metrics::ServerSource;

/// The number of one client, or of one of its workers, among those that share a load, and how many they are: `2/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartNumber {
    /// From 1 on.
    pub number: usize,
    /// Clients, at least one.
    pub of: usize,
}

/// One client's part of a load that several clients share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClientPart {
    /// The number of the client.
    pub client: PartNumber,
    /// Callers of all clients.
    pub callers: usize,
    /// Connections of all clients.
    pub connections: usize,
    /// The arrivals of all clients.
    pub arrival: Arrival,
}

/// A reason why a load cannot be shared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{clients} clients cannot share {}: give at least one for each", plural(*has as u64, what))]
pub struct TooFewToShare {
    clients: usize,
    has: usize,
    what: &'static str,
}

impl Default for PartNumber {
    /// The only client.
    fn default() -> Self {
        Self { number: 1, of: 1 }
    }
}

impl PartNumber {
    /// Returns the number of things that those before this one have of `whole`, and that of its own: nearly equal
    /// parts.
    pub(crate) fn share(self, whole: usize) -> (usize, usize) {
        let own = self.number - 1;
        let before = own * (whole / self.of) + own.min(whole % self.of);
        (before, whole / self.of + usize::from(own < whole % self.of))
    }
}

impl Plan {
    /// Turns a plan of what all clients do into that of one of them. The first reads the server's counters for all.
    ///
    /// # Errors
    /// [`TooFewToShare`].
    pub fn take_part(&mut self, client: PartNumber) -> Result<(), TooFewToShare> {
        let load = &mut self.load;
        let whole = [("caller", load.callers), ("connection", load.connections)];
        for (what, has) in whole {
            if has < client.of {
                let clients = client.of;
                return Err(TooFewToShare { clients, has, what });
            }
        }
        self.execution.part = Some(ClientPart {
            client,
            callers: load.callers,
            connections: load.connections,
            arrival: load.arrival,
        });
        let connections = client.share(load.connections).1;
        let share = match load.assign {
            Assign::Any => 1.0 / client.of as f64,
            Assign::Fixed => connections as f64 / load.connections as f64,
        };
        load.callers = client.share(load.callers).1;
        load.connections = connections;
        load.max_backlog = load.max_backlog.div_ceil(client.of);
        if let Arrival::Constant(rate) | Arrival::Poisson { rate, .. } = &mut load.arrival {
            *rate *= share;
        }
        self.execution.workers = self.execution.workers.min(load.connections);
        if client.number > 1 {
            self.target.server = ServerSource::Nowhere;
        }
        Ok(())
    }

    /// Returns the load of all clients, and which of them this is.
    pub(crate) fn whole(&self) -> ClientPart {
        self.execution.part.unwrap_or(ClientPart {
            client: PartNumber::default(),
            callers: self.load.callers,
            connections: self.load.connections,
            arrival: self.load.arrival,
        })
    }
}

impl FromStr for PartNumber {
    type Err = &'static str;

    /// Reads `2/8`, or `1+1/8` where what starts the clients numbers them from 0 on.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            let from_zero = text.strip_suffix("+1");
            let number: usize = from_zero.unwrap_or(text).parse().ok()?;
            number.checked_add(usize::from(from_zero.is_some()))
        };
        let numbers = text.split_once('/');
        match numbers.and_then(|(own, of)| number(own).zip(of.parse().ok())) {
            Some((number @ 1.., of)) if number <= of => Ok(Self { number, of }),
            _ => Err("not a client's number and the number of clients, such as 2/8"),
        }
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use netping_protocol::secure::Connector;

    use super::*;
    use crate::{
        plan::{Destination, Trust},
        transport::Kind,
    };

    #[test]
    fn parts_are_numbered_from_one() {
        for text in ["1/1", "1/8", "8/8"] {
            assert_eq!(text.parse::<PartNumber>().unwrap().to_string(), text);
        }
        for text in [
            "0/8",
            "9/8",
            "1",
            "1/",
            "/2",
            "1/0",
            "-1/2",
            "1/2/3",
            "0+2/8",
            "8+1/8",
            "+1/8",
            "1/7+1",
            "18446744073709551615+1/8",
        ] {
            assert!(text.parse::<PartNumber>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_counts_from_zero_is_told_so() {
        for (text, number) in [("0+1/8", 1), ("7+1/8", 8)] {
            let of = 8;
            assert_eq!(text.parse(), Ok(PartNumber { number, of }), "{text}");
        }
    }

    #[test]
    fn the_rate_of_a_client_is_that_of_its_connections_where_each_has_its_own() {
        let rates = |assign| {
            [1, 2].map(|number| {
                let url = "grpc://localhost".parse().unwrap();
                let clear = (Connector::Plain, Trust::default());
                let target = Destination::new(url, ServerSource::Nowhere, clear);
                let mut plan = Plan::new(target, Kind::GrpcH2);
                plan.load.callers = 3;
                plan.load.connections = 3;
                plan.load.arrival = Arrival::Constant(3000.0);
                plan.load.assign = assign;
                plan.take_part(PartNumber { number, of: 2 }).unwrap();
                plan.load.arrival
            })
        };
        let constant = |rates: [f64; 2]| rates.map(Arrival::Constant);
        assert_eq!(rates(Assign::Any), constant([1500.0, 1500.0]));
        assert_eq!(rates(Assign::Fixed), constant([2000.0, 1000.0]));
    }

    #[test]
    fn parts_add_up_and_are_nearly_equal() {
        for (whole, of) in [(10, 3), (2, 2), (1, 4), (0, 3)] {
            let mut before = 0;
            let mut parts = Vec::new();
            for number in 1..=of {
                let (first, own) = PartNumber { number, of }.share(whole);
                assert_eq!(first, before, "{number} of {of}");
                before += own;
                parts.push(own);
            }
            assert_eq!(before, whole);
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
    }
}
