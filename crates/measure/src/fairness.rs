//! The spread of a step's requests over its connections, and the connections that are slow.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::statistics::outliers::{Rule, median, outliers};

/// Maximum number of connections that are listed one by one.
const MOST_LISTED: usize = 1024;

/// The requests of one connection that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerConnection {
    /// Verified replies.
    pub requests: u64,
    /// Mean service time, in nanoseconds; 0 without requests.
    #[serde(rename = "mean_ns")]
    pub mean: f64,
    /// The server's address; absent where it is not known, as that of a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SocketAddr>,
    /// The port of the client's end; absent where it is not known, or shared with other connections, as
    /// over QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_port: Option<u16>,
    /// True where it was slow beside the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slow: bool,
}

/// The number and service times of verified replies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServiceSums {
    requests: u64,
    /// The sum of service times, in nanoseconds.
    sum: u64,
    /// The sum of their squares.
    squares: f64,
}

impl ServiceSums {
    /// Adds a reply after `service_time` nanoseconds.
    #[must_use]
    pub fn with(self, service_time: u64) -> Self {
        Self {
            requests: self.requests + 1,
            sum: self.sum + service_time,
            squares: self.squares + (service_time as f64).powi(2),
        }
    }

    /// Adds the replies of another caller.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Returns the mean, in nanoseconds; 0 without replies.
    fn mean(&self) -> f64 {
        self.sum as f64 / self.requests.max(1) as f64
    }

    /// Returns the standard error of the mean, in nanoseconds; there are two replies or more.
    fn error(&self) -> f64 {
        let n = self.requests as f64;
        let variance = (self.squares / n - self.mean().powi(2)) * n / (n - 1.0);
        (variance.max(0.0) / n).sqrt()
    }
}

/// The replies on one connection, and the ends of its socket.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConnectionSums {
    /// Callers that share it.
    pub callers: usize,
    /// The replies that count.
    pub served: ServiceSums,
    /// The server's address.
    pub server: Option<SocketAddr>,
    /// The port of the client's end, if it is the connection's own.
    pub local_port: Option<u16>,
}

/// The least number of connections that show which of them is slow.
const FEWEST_CONNECTIONS: usize = 8;

/// The distance of a slow connection from the median of all: five standard deviations, and a factor
/// of 3. Workers of different speed, whose connections have two levels, widen the deviation.
const FAR_OFF: Rule = Rule {
    fewest: FEWEST_CONNECTIONS,
    deviations: 5.0,
    multiple: 3.0,
};

/// The least number of requests of which a connection's mean time is judged.
const FEWEST_REQUESTS: u64 = 5;

/// A mean time exceeds the others' by more than this many of its own standard errors: then it takes more
/// than 25 slow requests, or all of them, so that a few lost packets make no slow connection.
const STANDARD_ERRORS: f64 = 5.0;

/// The least median of requests from which on connections with few are found.
const FEWEST_TO_COUNT: f64 = 30.0;

impl PerConnection {
    /// Returns the requests of each connection, of which the slow ones are marked. Where they are opened
    /// anew during the run (`are_kept` is false), no connection lasts long enough to be one.
    pub fn of_all(connections: &[ConnectionSums], are_kept: bool) -> Vec<Self> {
        let of = |own: &ConnectionSums| Self {
            requests: own.served.requests,
            mean: own.served.mean(),
            server: own.server,
            local_port: own.local_port,
            slow: false,
        };
        let mut all: Vec<Self> = connections.iter().map(of).collect();
        if are_kept {
            let slow = slow_by_time(connections);
            for at in slow.chain(slow_by_count(connections)) {
                all[at].slow = true;
            }
        }
        all
    }
}

/// Returns the places of connections whose mean service time is far longer than the others'.
fn slow_by_time(connections: &[ConnectionSums]) -> impl Iterator<Item = usize> {
    let mean = |own: &ConnectionSums| match own.served.requests {
        ..FEWEST_REQUESTS => f64::NAN,
        _ => own.served.mean(),
    };
    let means: Vec<f64> = connections.iter().map(mean).collect();
    let found = outliers(FAR_OFF, &means).into_iter();
    found.filter_map(move |outlier| {
        let excess = means[outlier.at] * (1.0 - 1.0 / outlier.ratio);
        let error = connections[outlier.at].served.error();
        (excess > STANDARD_ERRORS * error).then_some(outlier.at)
    })
}

/// Returns the places of connections with far fewer replies for each caller than the others.
fn slow_by_count(connections: &[ConnectionSums]) -> impl Iterator<Item = usize> {
    let requests = connections.iter().map(|own| own.served.requests as f64);
    let is_enough = median(requests) >= FEWEST_TO_COUNT;
    // None at all counts as half of one, which has a logarithm.
    let each =
        |own: &ConnectionSums| (own.served.requests as f64).max(0.5) / own.callers.max(1) as f64;
    let counts: Vec<f64> = connections.iter().filter(|_| is_enough).map(each).collect();
    let found = outliers(FAR_OFF, &counts).into_iter();
    found
        .filter(|outlier| outlier.ratio < 1.0)
        .map(|outlier| outlier.at)
}

/// The spread of requests over connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Verified replies of the connection with the fewest.
    pub min: u64,
    /// The median; between two in the middle, rounded down.
    pub median: u64,
    /// Of the connection with the most.
    pub max: u64,
    /// Jain's index: 1 where all have the same, 1/n where one has all (Jain, Chiu and Hawe, "A
    /// quantitative measure of fairness and discrimination for resource allocation in shared
    /// computer systems", 1984).
    pub jain: f64,
    /// Each connection; empty where there are more than 1024.
    pub connections: Vec<PerConnection>,
}

impl Fairness {
    /// Summarizes the connections; `None` with fewer than two.
    pub fn of(mut connections: Vec<PerConnection>) -> Option<Self> {
        if connections.len() < 2 {
            return None;
        }
        let mut counts: Vec<u64> = connections
            .iter()
            .map(|connection| connection.requests)
            .collect();
        counts.sort_unstable();
        let sum: f64 = counts.iter().map(|&count| count as f64).sum();
        let squares: f64 = counts.iter().map(|&count| (count as f64).powi(2)).sum();
        let n = counts.len();
        if n > MOST_LISTED {
            connections.clear();
        }
        let jain = if squares > 0.0 {
            sum * sum / (n as f64 * squares)
        } else {
            1.0
        };
        Some(Self {
            min: counts[0],
            median: u64::midpoint(counts[(n - 1) / 2], counts[n / 2]),
            max: counts[n - 1],
            jain,
            connections,
        })
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;
    use crate::statistics::simulation::exponential;

    fn of(counts: &[u64]) -> Option<Fairness> {
        let connection = |&requests: &u64| PerConnection {
            requests,
            mean: 1.0,
            ..PerConnection::default()
        };
        Fairness::of(counts.iter().map(connection).collect())
    }

    #[test]
    fn the_index_is_one_for_equals_and_one_nth_for_a_hog() {
        assert!((of(&[5, 5, 5]).unwrap().jain - 1.0).abs() < 1e-12);
        let hog = of(&[0, 9, 0, 0]).unwrap();
        assert!((hog.jain - 0.25).abs() < 1e-12);
        assert_eq!((hog.min, hog.max), (0, 9));
        assert_eq!(of(&[7]), None);
    }

    /// A connection of one caller with these service times.
    fn connection(times: impl IntoIterator<Item = u64>) -> ConnectionSums {
        let served = times.into_iter();
        ConnectionSums {
            callers: 1,
            served: served.fold(ServiceSums::default(), ServiceSums::with),
            ..ConnectionSums::default()
        }
    }

    /// Returns the places of the slow ones.
    fn slow(connections: &[ConnectionSums]) -> Vec<usize> {
        let all = PerConnection::of_all(connections, true).into_iter();
        let slow = all.enumerate().filter(|(_, own)| own.slow);
        slow.map(|(at, _)| at).collect()
    }

    /// Returns the places of the slow ones among so many connections with 100 requests of 1,000 ns each
    /// and this one.
    fn beside(others: usize, odd: ConnectionSums) -> Vec<usize> {
        let mut all = vec![connection([1000; 100]); others];
        all.insert(1, odd);
        slow(&all)
    }

    #[test]
    fn a_connection_is_slow_by_its_mean_time() {
        assert_eq!(beside(7, connection([3010; 100])), [1]);
        assert_eq!(beside(7, connection([2990; 100])), [0; 0]);
        // Too few connections tell which of them is the odd one, and too few requests how long they take.
        assert_eq!(beside(6, connection([3010; 100])), [0; 0]);
        assert_eq!(beside(7, connection([3010; 5])), [1]);
        assert_eq!(beside(7, connection([9000; 34])), [1]);
        // A fast one is not.
        assert_eq!(beside(7, connection([100; 100])), [0; 0]);
    }

    #[test]
    fn a_slow_connection_is_found_beside_two_levels() {
        let mut all =
            [175, 180, 185, 190, 410, 420, 430, 440].map(|mean| connection([mean * 1000; 100]));
        assert_eq!(slow(&all), [0; 0]);
        all[5] = connection([60_000_000; 100]);
        assert_eq!(slow(&all), [5]);
    }

    #[test]
    fn connections_that_are_all_different_are_not_slow() {
        let all = [1, 2, 4, 8, 16, 32, 64, 128].map(|mean| connection([mean * 1000; 100]));
        assert_eq!(slow(&all), [0; 0]);
    }

    #[test]
    fn a_few_long_requests_make_no_slow_connection() {
        let with_long = |long| {
            let times = (0..1000).map(|at| if at < long { 1_000_000 } else { 1000 });
            beside(15, connection(times))
        };
        assert_eq!(with_long(20), [0; 0]);
        assert_eq!(with_long(30), [1]);
    }

    #[test]
    fn a_connection_is_slow_by_its_number_of_replies() {
        let with = |requests: usize| beside(15, connection(vec![1000; requests]));
        assert_eq!([0, 1, 32].map(|count| with(count).len()), [1, 1, 1]);
        assert_eq!(with(34), [0; 0]);
        // Where all have few, chance decides.
        let mut few = vec![connection([1000; 29]); 15];
        few.push(connection([]));
        assert_eq!(slow(&few), [0; 0]);
        few[0] = connection([1000; 30]);
        assert_eq!(slow(&few), [0; 0]);
    }

    #[test]
    fn replies_are_counted_for_each_caller() {
        let mut shared = connection([1000; 400]);
        shared.callers = 4;
        let mut all = vec![shared; 15];
        all.push(connection([1000; 100]));
        assert_eq!(slow(&all), [0; 0]);
        all[15].callers = 4;
        assert_eq!(slow(&all), [15]);
    }

    #[test]
    fn connections_that_are_opened_anew_are_not_judged() {
        let mut all = vec![connection([1000; 100]); 16];
        all[3] = connection([9000; 100]);
        assert!(PerConnection::of_all(&all, true)[3].slow);
        assert!(!PerConnection::of_all(&all, false)[3].slow);
    }

    /// Returns a connection with Poisson arrivals, as many as `mean` on average, and exponential times in
    /// nanoseconds, to which a lost packet in a thousand adds 2 ms.
    fn random_connection(random: &mut ChaCha8Rng, mean: f64, mean_time: f64) -> ConnectionSums {
        let mut times = Vec::new();
        let mut at = exponential(random);
        while at < mean {
            let is_lost = random.next_u64().is_multiple_of(1000);
            let lost = if is_lost { 2e6 } else { 0.0 };
            times.push((exponential(random) * mean_time + lost) as u64);
            at += exponential(random);
        }
        connection(times)
    }

    #[test]
    fn connections_that_differ_by_chance_are_seldom_slow() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let (mut alarms, mut misses) = (0, 0);
        for set in 0..1000 {
            let mean = f64::from(5 + set % 40 * 10);
            let draw = |_| random_connection(&mut random, mean, 1e3);
            let mut all: Vec<ConnectionSums> = (0..64).map(draw).collect();
            alarms += usize::from(!slow(&all).is_empty());
            all[7] = random_connection(&mut random, mean, 1e6);
            // Of fewer exponential times, the mean is too uncertain.
            misses += usize::from(mean > 50.0 && !slow(&all).contains(&7));
        }
        assert!(alarms < 10 && misses < 10, "{alarms} and {misses} of 1,000");
    }
}
