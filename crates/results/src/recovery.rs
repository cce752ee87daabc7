//! The time until a server has recovered from each burst.

use netping_measure::{
    interval::IntervalSummary,
    statistics::recovery::{Cycle, Recoveries},
};

use crate::{format::plural, run::Step, time_unit};

/// Returns what the bursts of a step did; `None` if it has no bursts, no burst was over, or its seconds have no 99th
/// percentiles, as in merged results. A second with failures is not a good one.
pub fn recoveries(step: &Step) -> Option<Recoveries> {
    let bursts = step.settings.bursts?;
    let whole = |second: &&IntervalSummary| second.length_ns > 0;
    let seconds = step.intervals.iter().filter(whole);
    let p99 = |second: &IntervalSummary| second.response_p99.filter(|_| second.errors == 0);
    let p99: Vec<Option<u64>> = seconds.map(p99).collect();
    let cycle = Cycle {
        burst: bursts.length,
        length: bursts.every,
    };
    Recoveries::of(&p99, cycle)
}

/// Returns what the bursts of a step did, as people read it; `None` if it has none.
pub fn in_words(step: &Step) -> Option<String> {
    let bursts = step.settings.bursts?.in_words();
    let Some(found) = recoveries(step) else {
        return Some(format!(
            "{bursts}: the recovery is not known, since none was over or seconds have no p99"
        ));
    };
    let [before, limit] = [found.before, found.limit].map(time_unit::time);
    let mut parts = vec![format!("p99 of a second {before} before (up to {limit})")];
    let highest = found.each.iter().filter_map(|own| own.highest).max();
    parts.extend(highest.map(|highest| {
        let highest = time_unit::time(highest as f64);
        format!("at worst {highest} in a burst or after it")
    }));
    let back: Vec<u64> = found.each.iter().filter_map(|own| own.after).collect();
    if let (Some(first), Some(last)) = (back.iter().min(), back.iter().max()) {
        let times = if first == last {
            format!("{last} s")
        } else {
            format!("{first} to {last} s")
        };
        parts.push(format!("back within that limit {times} after the end"));
    }
    let lost = || found.each.iter().filter(|own| own.after.is_none());
    if let Some(watched) = lost().map(|own| own.watched).max() {
        let of = plural(found.each.len() as u64, "burst");
        let lost = lost().count();
        parts.push(format!(
            "did not recover within {watched} s ({lost} of {of})"
        ));
    }
    Some(format!("{bursts}: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        burst::BurstSettings,
        condition::{Answer, Condition},
        fixtures,
    };

    /// Returns a step of 40 s with a burst of 2 s in the middle of each 20 s, whose seconds are as slow as it says.
    fn step(is_slow: fn(u64) -> bool) -> Step {
        let time = |second| {
            let usual = 1_000_000 + 10_000 * (second % 3);
            if is_slow(second) { 50_000_000 } else { usual }
        };
        let mut step = fixtures::step(40, |second| vec![time(second); 1000]);
        step.settings.bursts = Some(BurstSettings {
            base_rate: 1000.0,
            rate: 5000.0,
            length: 2,
            every: 20,
        });
        step
    }

    #[test]
    fn what_bursts_did_is_said_with_what_was_not_seen() {
        let words = |is_slow| in_words(&step(is_slow)).unwrap();
        let some = words(|second| (10..13).contains(&second) || second >= 30);
        assert!(
            some.starts_with("bursts of 5,000 req/s for 2 s every 20 s: p99 of a second 1.0"),
            "{some}"
        );
        let end =
            "back within that limit 1 s after the end; did not recover within 8 s (1 of 2 bursts)";
        assert!(some.ends_with(end), "{some}");
        let all = words(|second| (10..12).contains(&second) || (30..34).contains(&second));
        assert!(
            all.ends_with("back within that limit 0 to 2 s after the end"),
            "{all}"
        );
        let longest = recoveries(&step(|second| second >= 30)).unwrap().longest();
        assert_eq!(longest, 8);
        // It is at least as long as it was looked for.
        let check = |text: &str| {
            let condition: Condition = text.parse().unwrap();
            condition.check(&step(|second| second >= 30))
        };
        assert_eq!(check("recovery>5s"), Answer::Holds(8e9));
        assert_eq!(check("recovery>10s"), Answer::Unknown);
        let mut failing = step(|second| (10..12).contains(&second));
        failing.intervals[13].errors = 1;
        let found = recoveries(&failing).unwrap();
        assert_eq!(found.each[0].after, Some(2));
    }
}
