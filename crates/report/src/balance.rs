//! The balance of the CPUs: its parts, and in words.

use netping_measure::cost::{Balance, SideUse};
use netping_results::{
    balance::{Shares, sums},
    format::{cpus, on_one_line, percent},
};

/// The names of the parts, in their order.
pub(crate) const PARTS: [&str; 6] = [
    "client",
    "server",
    "other programs",
    "hypervisor",
    "not accounted for",
    "idle",
];

/// The place of the other programs among the parts.
const OTHERS: usize = 2;

/// The place of what is not accounted for among the parts.
const REST: usize = 4;

/// Others may have this share of the CPU time, and this share may be not accounted for, without a word
/// about it.
const NOTABLE: f64 = 0.02;

/// A part of the CPU time of a set of CPUs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Its place among the [`PARTS`].
    pub(crate) place: usize,
    /// Its share of the CPU time.
    pub(crate) share: f64,
    /// Who other programs were; of a side, how long its threads waited.
    pub(crate) aside: Option<String>,
}

/// Returns the parts that are shown, all of which are more than `0.0%`.
pub(crate) fn parts(balance: &Balance, shares: &Shares) -> Vec<Part> {
    let waited = |side: Option<SideUse>| {
        let share = side?.waited_seconds? / balance.window_seconds;
        Some(format!("waited {} of the window", percent(share)))
    };
    let all = [
        (shares.client, waited(balance.client)),
        (shares.server, waited(balance.server)),
        (Some(shares.others), others(balance, shares)),
        (Some(shares.steal), None),
        (Some(shares.rest), None),
        (Some(shares.idle), None),
    ];
    let parts = all.into_iter().enumerate();
    let parts = parts.filter_map(|(place, (share, aside))| {
        let share = share.filter(|share| *share >= 0.0005)?;
        Some(Part {
            place,
            share,
            aside,
        })
    });
    parts.collect()
}

/// Says who other programs were.
fn others(balance: &Balance, shares: &Shares) -> Option<String> {
    let mut all = Vec::new();
    if balance.has_server_among_others {
        all.push("the server among them".to_owned());
    }
    let busiest = balance.busiest_other.as_ref();
    all.extend(busiest.map(|program| on_one_line(&program.name)));
    // Of another host, no program is seen.
    if shares.unseen > NOTABLE && !balance.cpus.is_empty() {
        let unseen = percent(shares.unseen);
        all.push(format!("{unseen} that ended or moved away meanwhile"));
    }
    (!all.is_empty()).then(|| all.join(", "))
}

/// Returns the name of the CPUs of a balance.
pub(crate) fn name(balance: &Balance) -> String {
    if balance.cpus.is_empty() {
        "CPUs of the server's host".to_owned()
    } else {
        cpus(&balance.cpus)
    }
}

/// Says who had the CPU time: `CPUs 2-3: server 61.0%, other programs 35.0% (rustc), idle 4.0%`; `None`
/// of a balance that is empty.
pub fn in_words(balance: &Balance) -> Option<String> {
    let shares = Shares::of(balance)?;
    let parts = parts(balance, &shares);
    let parts = parts.into_iter().filter(|part| part.place != REST);
    let parts = parts.map(|part| {
        let text = format!("{} {}", PARTS[part.place], percent(part.share));
        match part.aside {
            Some(who) if part.place == OTHERS => format!("{text} ({who})"),
            _ => text,
        }
    });
    let parts: Vec<String> = parts.collect();
    let missing = missing(&shares).unwrap_or_default();
    Some(format!("{}: {}{missing}", name(balance), parts.join(", ")))
}

/// Says what is missing from parts that are not the whole, or too much.
fn missing(shares: &Shares) -> Option<String> {
    let rest = shares.rest;
    if rest.abs() <= NOTABLE + shares.error {
        return None;
    }
    Some(if rest > 0.0 {
        format!(
            "; {} is not accounted for: interrupts, or programs that ended meanwhile",
            percent(rest)
        )
    } else {
        format!(
            "; the parts exceed the CPU time by {}: a side ran on other CPUs too, or was charged with the hypervisor's time",
            percent(-rest)
        )
    })
}

/// Returns what there is to say about balances: a line for each set of CPUs of which other programs or
/// the hypervisor had a part, of which the parts are not the whole, or on which the server is not known.
pub(crate) fn remarks<'a>(balances: impl IntoIterator<Item = &'a Balance>) -> Vec<String> {
    sums(balances).iter().filter_map(remark).collect()
}

fn remark(balance: &Balance) -> Option<String> {
    let shares = Shares::of(balance)?;
    if balance.has_server_among_others {
        return Some(format!(
            "{}: the server cannot be told from other programs, whose part is not judged; --server-pid names it",
            name(balance)
        ));
    }
    let mut foreign = [shares.others, shares.steal].into_iter();
    let is_notable = foreign.any(|share| share > NOTABLE) || missing(&shares).is_some();
    is_notable.then(|| in_words(balance))?
}

#[cfg(test)]
mod tests {
    use netping_measure::cost::Program;

    use super::*;

    /// The server's CPUs 2 and 3 over 10 s, which were not idle where others had them.
    fn servers(others: f64) -> Balance {
        Balance {
            cpus: vec![2, 3],
            window_seconds: 10.0,
            total_seconds: 20.0,
            server: Some(SideUse {
                cpu_seconds: 12.0,
                waited_seconds: Some(1.6),
            }),
            others_seconds: others,
            idle_seconds: 8.0 - others,
            busiest_other: Some(Program {
                name: "rustc\u{7}".to_owned(),
                cpu_seconds: others,
            }),
            windows: 1,
            ..Balance::default()
        }
    }

    #[test]
    fn a_line_says_who_had_the_cpus_where_others_did() {
        let line = "CPUs 2-3: server 60.0%, other programs 35.0% (rustc\u{fffd}), idle 5.0%";
        assert_eq!(remarks(&[servers(7.0)]), [line]);
        assert_eq!(remarks(&[servers(0.4)]), [""; 0]);
        assert_eq!(remarks(&[servers(0.42)]).len(), 1);
        // Windows count together, and each set of CPUs for itself.
        assert_eq!(remarks(&[servers(0.42), servers(0.3)]), [""; 0]);
        let own = Balance {
            cpus: vec![0],
            ..servers(0.3)
        };
        assert_eq!(remarks(&[servers(7.0), own]), [line]);
    }

    #[test]
    fn the_hypervisor_is_told_and_a_server_that_is_among_others() {
        let mut stolen = servers(0.0);
        (stolen.steal_seconds, stolen.idle_seconds) = (1.0, 7.0);
        // A tick is not told.
        let line = "CPUs 2-3: server 60.0%, hypervisor 4.9%, idle 35.0%";
        assert_eq!(remarks(&[stolen]), [line]);
        let unknown = Balance {
            server: None,
            has_server_among_others: true,
            busiest_other: None,
            others_seconds: 12.0,
            idle_seconds: 8.0,
            ..servers(0.0)
        };
        let line = "CPUs 2-3: other programs 60.0% (the server among them), idle 40.0%";
        assert_eq!(in_words(&unknown).unwrap(), line);
        let line = "CPUs 2-3: the server cannot be told from other programs, whose part is not judged; \
                    --server-pid names it";
        assert_eq!(remarks(&[unknown]), [line]);
    }

    #[test]
    fn parts_that_are_not_the_whole_say_what_is_missing() {
        let mut open = servers(0.0);
        open.idle_seconds -= 0.62;
        open.interrupt_seconds = 0.62;
        let line = "CPUs 2-3: server 60.0%, idle 36.9%; 3.1% is not accounted for: \
                    interrupts, or programs that ended meanwhile";
        assert_eq!(remarks(&[open.clone()]), [line]);
        // Beyond interrupts, it was programs.
        open.interrupt_seconds = 0.0;
        let ended = "3.0% that ended or moved away meanwhile";
        assert_eq!(
            remarks(&[open.clone()]),
            [format!(
                "CPUs 2-3: server 60.0%, other programs 3.0% (rustc\u{fffd}, {ended}), idle 36.9%"
            )]
        );
        open.cpus.clear();
        assert!(!remarks(&[open.clone()])[0].contains("ended"));
        open.idle_seconds = 9.0;
        let told = remarks(&[open]).concat();
        assert!(
            told.contains("; the parts exceed the CPU time by 5.0%: "),
            "{told}"
        );
        // The error of ticks is nothing to speak of.
        let mut near = servers(0.0);
        (near.idle_seconds, near.interrupt_seconds) = (7.585, 0.415);
        assert_eq!(remarks(&[near]), [""; 0]);
    }
}
