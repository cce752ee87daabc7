//! Sentences about the differences that a ladder shows.

use netping_results::{format::micros, metric, round_difference::RoundDifference};

/// Returns what the differences under loads with small requests show, a sentence for each rung; none
/// where there are too few rounds.
pub fn in_words(all: &[&RoundDifference]) -> Vec<String> {
    let small = || {
        let own = all.iter().filter(|own| own.interval.is_some());
        own.filter(|own| own.message.is_none() && !own.is_noise)
    };
    let times = small().filter(|own| own.metric == metric::P50.name);
    let stacked = times.map(|time| {
        let mut rates = small().filter(|own| own.metric == metric::RATE.name);
        let rate = rates.find(|rate| rate.target == time.target && rate.base == time.base);
        if !time.is_shown() && !rate.is_some_and(|rate| rate.is_shown()) {
            return format!("{} over {} shows no difference.", time.target, time.base);
        }
        let rate = rate.map_or_else(String::new, |rate| format!(" and {}", rate_in_words(rate)));
        format!(
            "{} over {} {}{rate}.",
            time.target,
            time.base,
            time_in_words(time)
        )
    });
    let shared = small().filter(|own| own.target == own.base).map(|own| {
        let [few, many] = own.connections;
        format!(
            "{} on {few} connections instead of {many} {}.",
            own.target,
            rate_in_words(own)
        )
    });
    stacked.chain(shared).collect()
}

fn time_in_words(difference: &RoundDifference) -> String {
    if !difference.is_shown() {
        return "shows no difference in a round trip".to_owned();
    }
    let (added, [low, high]) = difference.absolute();
    let us = |time: f64| micros(time.abs() / 1e3);
    if added > 0.0 {
        format!(
            "adds {} us ({}..{}) to a round trip",
            us(added),
            us(low),
            us(high)
        )
    } else {
        format!(
            "saves {} us ({}..{}) of a round trip",
            us(added),
            us(high),
            us(low)
        )
    }
}

fn rate_in_words(difference: &RoundDifference) -> String {
    let Some([low, high]) = difference.interval.filter(|_| difference.is_shown()) else {
        return "shows no difference in the rate".to_owned();
    };
    let relative = difference.relative;
    let percent = |share: f64| format!("{:.0}", share.abs() * 100.0);
    if relative < 0.0 {
        let [taken, least, most] = [relative, high, low].map(percent);
        format!("takes {taken}% ({least}..{most}) of the rate")
    } else {
        let [times, low, high] = [relative, low, high].map(|share| format!("{:.2}", 1.0 + share));
        format!("has {times} ({low}..{high}) times the rate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(target: &str, base: &str, metric: &str, interval: [f64; 2]) -> RoundDifference {
        RoundDifference {
            target: target.to_owned(),
            base: base.to_owned(),
            callers: 64,
            connections: [4, 64],
            message: None,
            is_noise: false,
            metric: metric.to_owned(),
            rounds: 10,
            base_value: 50_000.0,
            relative: f64::midpoint(interval[0], interval[1]),
            interval: Some(interval),
            range: interval,
            noise_floor: 0.01,
        }
    }

    #[test]
    fn a_rung_has_a_sentence_with_what_is_shown() {
        let all = [
            difference("TLS", "TCP", "p50", [0.05, 0.07]),
            difference("PSK", "TCP", "p50", [-0.01, 0.03]),
            difference("gRPC", "TCP", "p50", [-0.1, 0.3]),
            difference("TLS", "TCP", "rate", [-0.17, -0.11]),
            difference("PSK", "TCP", "rate", [0.0, 0.01]),
            difference("gRPC", "TCP", "rate", [-0.6, -0.4]),
            difference("QUIC", "QUIC", "rate", [3.0, 5.0]),
        ];
        assert_eq!(
            in_words(&all.iter().collect::<Vec<_>>()),
            [
                "TLS over TCP adds 3.00 us (2.50..3.50) to a round trip and takes 14% (11..17) of the rate.",
                "PSK over TCP shows no difference.",
                "gRPC over TCP shows no difference in a round trip and takes 50% (40..60) of the rate.",
                "QUIC on 4 connections instead of 64 has 5.00 (4.00..6.00) times the rate.",
            ]
        );
        let noise = RoundDifference {
            is_noise: true,
            ..all[0].clone()
        };
        assert!(in_words(&[&noise]).is_empty());
    }
}
