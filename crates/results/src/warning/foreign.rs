//! A warning about other programs on the CPUs that client or server needed.

use netping_measure::cost::{Balance, Program, SideUse};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};
use crate::{
    balance::{self, Shares},
    format::{on_one_line, percent},
};

/// Other programs, or the hypervisor, had CPU time that client or server needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ForeignLoad {
    /// The side whose CPUs they were.
    pub side: SideOfCpus,
    /// The share of the time of these CPUs that other programs had.
    pub others: f64,
    /// The share that the hypervisor had.
    pub steal: f64,
    /// The time for which threads of that side waited for a CPU because of others, as a share of the time
    /// for which they were ready to run, or of the window where that is less.
    pub waited: f64,
    /// The other program that had the most.
    pub busiest: Option<Program>,
}

/// What helps against other programs, with no flag of netping's.
const STOP: (&str, &[&str]) = (
    "stop the other programs, or give client and server CPUs of their own",
    &[],
);

/// A side, by the CPUs that it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SideOfCpus {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Client and server, which may use the same CPUs.
    Both,
}

impl ForeignLoad {
    /// Others may have this share of CPUs that a side uses fully, and a side may wait for this share of
    /// the time because of them.
    const SHARE: f64 = 0.02;

    /// CPUs that are idle for less than this share of the time are used fully.
    const IDLE: f64 = 0.05;

    /// Returns the worst case among the balances of one or several windows. Balances of the same CPUs
    /// are added up before they are judged.
    pub fn of_balances(balances: &[Balance]) -> Option<Self> {
        let sums = balance::sums(balances);
        let found = sums.iter().filter_map(Self::of_balance);
        found.max_by(|a, b| a.extent().total_cmp(&b.extent()))
    }

    fn of_balance(balance: &Balance) -> Option<Self> {
        let shares = Shares::of(balance).filter(|_| !balance.has_server_among_others)?;
        let side = match (balance.client, balance.server) {
            (Some(_), Some(_)) => SideOfCpus::Both,
            (None, _) => SideOfCpus::Server,
            (Some(_), None) => SideOfCpus::Client,
        };
        let found = Self {
            side,
            others: shares.others,
            steal: shares.steal,
            waited: waited(balance, shares.foreign() * balance.total_seconds),
            busiest: balance.busiest_other.clone(),
        };
        let is_full = shares.idle < Self::IDLE.max(shares.error);
        let is_taken = is_full && shares.foreign() > Self::SHARE;
        (is_taken || found.waited > Self::SHARE).then_some(found)
    }

    fn extent(&self) -> f64 {
        (self.others + self.steal).max(self.waited)
    }
}

/// Returns the time for which threads of a side waited because of others, as a share of the time for which they
/// were ready to run, or of the window where that is less. A thread cannot know who ran in its place: others, which
/// had `foreign` seconds, are taken to be at fault by their share of the CPU time that was used. Nobody waits for
/// them longer than they ran: a cgroup's limit makes threads wait, too. Where the waiting of a side is not known,
/// that of any thread of the host is the most that it can be.
fn waited(balance: &Balance, foreign: f64) -> f64 {
    let sides = || [balance.client, balance.server].into_iter().flatten();
    let used: f64 = sides().map(|side: SideUse| side.cpu_seconds).sum();
    if foreign <= 0.0 {
        return 0.0;
    }
    let waited = sides().filter_map(|side| {
        let waited = side.waited_seconds.or(balance.pressure_seconds)?;
        // Of many threads, each waits for a part of the window. Of a few that seldom run, each wake-up takes a
        // moment, which is much beside their CPU time.
        let of_ready = waited / (waited + side.cpu_seconds);
        Some((waited / balance.window_seconds).min(of_ready))
    });
    let blamed = waited.fold(0.0, f64::max) * foreign / (foreign + used);
    blamed.min(foreign / balance.window_seconds)
}

impl WarningKind for ForeignLoad {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        Self::of_balances(&facts.cost.balances)
    }

    fn tell(&self) -> Told {
        let whose = match self.side {
            SideOfCpus::Client => "the client's CPUs",
            SideOfCpus::Server => "the server's CPUs",
            SideOfCpus::Both => "the CPUs of client and server",
        };
        let mut parts = Vec::new();
        if self.others > 0.0 {
            let named = self.busiest.as_ref().map_or_else(String::new, |program| {
                format!(", most of it {}", on_one_line(&program.name))
            });
            parts.push(format!(
                "other programs had {} of {whose}{named}",
                percent(self.others)
            ));
        }
        if self.steal > 0.0 {
            parts.push(format!(
                "the hypervisor kept {} of {whose}",
                percent(self.steal)
            ));
        }
        if self.waited > ForeignLoad::SHARE {
            parts.push(format!(
                "its threads waited for a CPU for {} of the time because of that",
                percent(self.waited)
            ));
        }
        Told {
            severity: Severity::Invalid,
            extent: self.extent(),
            sentence: parts.join("; "),
            // Where the CPUs are the server's too, its processes are known.
            remedy: match self.side {
                SideOfCpus::Client => &[
                    STOP,
                    (
                        "; if they belong to the server, name them",
                        &["--server-pid"],
                    ),
                ],
                SideOfCpus::Server | SideOfCpus::Both => &[STOP],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_to_be_named_only_where_it_is_not_known() {
        for (side, is_unknown) in [
            (SideOfCpus::Client, true),
            (SideOfCpus::Server, false),
            (SideOfCpus::Both, false),
        ] {
            let told = ForeignLoad {
                side,
                others: 0.5,
                steal: 0.0,
                waited: 0.0,
                busiest: None,
            }
            .tell();
            let mut flags = told.remedy.iter().flat_map(|(_, flags)| *flags);
            assert_eq!(flags.next().is_some(), is_unknown, "{side:?}");
        }
    }
}
