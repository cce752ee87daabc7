//! The parts of a balance of the CPUs, as everything shows and judges them.

use netping_measure::cost::Balance;

/// The error of a time that is known in ticks, in seconds, for each CPU and window: a tick of 10 ms at
/// either end, of which the rounding is random.
const TICK: f64 = 0.01;

/// The parts of the CPU time in a [`Balance`], each as a share of all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shares {
    /// The client's; absent where it may not use these CPUs.
    pub client: Option<f64>,
    /// The server's; absent where it may not use these CPUs, or is not known.
    pub server: Option<f64>,
    /// That of other programs: what was seen of them, but within an error of ticks no more than all others
    /// have left, and no less than that without interrupts.
    pub others: f64,
    /// The part of it that was not seen: of programs that have ended, or moved to other CPUs.
    pub unseen: f64,
    /// The hypervisor's, less the error of ticks.
    pub steal: f64,
    /// Idle time.
    pub idle: f64,
    /// What is not accounted for. Below 0 where the times of parts overlap.
    pub rest: f64,
    /// The error of what is known in ticks.
    pub error: f64,
}

impl Shares {
    /// Returns the parts of a balance; `None` of one that is empty.
    pub fn of(balance: &Balance) -> Option<Self> {
        let total = balance.total_seconds;
        if balance.window_seconds <= 0.0 || total <= 0.0 {
            return None;
        }
        let cpus = total / balance.window_seconds;
        let error = TICK * (2.0 * f64::from(balance.windows) * cpus).sqrt();
        let seen = balance.others_seconds;
        // A program that has moved between CPUs was seen with all of its time on one of them.
        let left = balance.rest_seconds() + seen;
        let least = (left - balance.interrupt_seconds - error).max(0.0);
        let others = seen.min(left + error).max(least);
        let steal = (balance.steal_seconds - error).max(0.0);
        Some(Self {
            client: balance.client.map(|side| side.cpu_seconds / total),
            server: balance.server.map(|side| side.cpu_seconds / total),
            others: others / total,
            unseen: (others - seen).max(0.0) / total,
            steal: steal / total,
            idle: balance.idle_seconds / total,
            rest: (left - others + balance.steal_seconds - steal) / total,
            error: error / total,
        })
    }

    /// Returns the part that neither side had, nor idled away: of other programs and of the hypervisor.
    pub fn foreign(&self) -> f64 {
        self.others + self.steal
    }
}

/// Returns the sum of the balances of each set of CPUs, in the order of their first. CPUs on which the
/// server is known are apart from the same CPUs where it is not.
pub fn sums<'a>(balances: impl IntoIterator<Item = &'a Balance>) -> Vec<Balance> {
    let mut sums: Vec<Balance> = Vec::new();
    for balance in balances {
        let is_same = |sum: &&mut Balance| {
            sum.cpus == balance.cpus && sum.server.is_some() == balance.server.is_some()
        };
        match sums.iter_mut().find(is_same) {
            Some(sum) => sum.add(balance),
            None => sums.push(balance.clone()),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use netping_measure::cost::SideUse;

    use super::*;

    /// Two CPUs over 10 s, of which the server had 12 s and others 5 s.
    fn balance() -> Balance {
        Balance {
            cpus: vec![2, 3],
            window_seconds: 10.0,
            total_seconds: 20.0,
            server: Some(SideUse {
                cpu_seconds: 12.0,
                waited_seconds: Some(1.0),
            }),
            others_seconds: 5.0,
            interrupt_seconds: 0.5,
            steal_seconds: 0.2,
            idle_seconds: 1.0,
            pressure_seconds: Some(2.0),
            windows: 1,
            ..Balance::default()
        }
    }

    /// Returns the sum of all parts.
    fn sum(shares: &Shares) -> f64 {
        let sides = shares.client.unwrap_or(0.0) + shares.server.unwrap_or(0.0);
        sides + shares.others + shares.steal + shares.idle + shares.rest
    }

    #[test]
    fn the_parts_are_the_whole() {
        let shares = Shares::of(&balance()).unwrap();
        // A tick at either end, on two CPUs: 10 ms times the root of 4.
        assert!((shares.error - 0.001).abs() < 1e-12, "{shares:?}");
        assert_eq!((shares.client, shares.server), (None, Some(0.6)));
        let near = |share: f64, expected: f64| (share - expected).abs() < 1e-12;
        assert!(near(shares.steal, 0.009), "{shares:?}");
        // 1.8 s are left: interrupts of 0.5 s, and the error of ticks.
        assert!(near(shares.unseen, 0.064), "{shares:?}");
        assert!(near(shares.others, 0.314), "{shares:?}");
        assert!(near(shares.rest, 0.027), "{shares:?}");
        assert!(near(sum(&shares), 1.0), "{shares:?}");
        // What was seen of others on these CPUs was partly on other ones.
        let moved = Balance {
            idle_seconds: 4.0,
            ..balance()
        };
        let shares = Shares::of(&moved).unwrap();
        assert!(shares.unseen.abs() < 1e-12, "{shares:?}");
        assert!(near(shares.others, 0.191), "{shares:?}");
        assert!(near(sum(&shares), 1.0), "{shares:?}");
        let overlapping = Balance {
            idle_seconds: 10.0,
            ..balance()
        };
        let shares = Shares::of(&overlapping).unwrap();
        assert_eq!((shares.others, shares.unseen), (0.0, 0.0));
        assert!(near(shares.rest, -0.109), "{shares:?}");
        assert!(near(sum(&shares), 1.0), "{shares:?}");
        assert_eq!(Shares::of(&Balance::default()), None);
    }

    #[test]
    fn balances_of_the_same_cpus_are_added_up() {
        let client = Balance {
            cpus: vec![0],
            ..balance()
        };
        let unknown = Balance {
            server: None,
            ..balance()
        };
        let all = [balance(), client.clone(), balance(), unknown.clone()];
        let sums = sums(&all);
        assert_eq!(sums[1..], [client, unknown]);
        assert_eq!((sums[0].total_seconds, sums[0].windows), (40.0, 2));
        assert_eq!(sums[0].pressure_seconds, Some(4.0));
    }
}
