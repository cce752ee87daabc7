//! What was planted on the client's machine and what was seen of it, as text.

use netping_results::{format::plural, run::Proof};

/// Returns a sentence about a proof.
pub fn describe(proof: &Proof) -> String {
    let milliseconds = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let seen = |seconds: Option<f64>| {
        seconds.map_or_else(
            || "not seen".to_owned(),
            |seconds| format!("seen as {}", milliseconds(seconds)),
        )
    };
    let service = seen(proof.seen_service_ns.map(|time| time as f64 / 1e9));
    let stall = seen(proof.seen_stall_seconds);
    format!(
        "planted on this machine: a service time of {}, {service}; a stall of {}, {stall}; a difference of {} in {}, {}",
        milliseconds(proof.service_ns as f64 / 1e9),
        milliseconds(proof.stall_seconds),
        percent(proof.difference),
        plural(proof.trials.into(), "trial"),
        difference(proof)
    )
}

fn difference(proof: &Proof) -> String {
    let shown = |least: f64| format!("not seen: such trials show {} or more", percent(least));
    match (proof.seen_difference, proof.interval) {
        (Some(change), Some([low, high])) if proof.has_seen_difference() => {
            let ends = [low, high].map(|end| format!("{:.1}", end * 100.0));
            format!("seen as {} ({}..{})", percent(change), ends[0], ends[1])
        }
        _ => proof
            .detectable
            .map_or_else(|| "not seen".to_owned(), shown),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_is_not_seen_is_told_as_the_least_that_would_have_been() {
        let mut proof = Proof {
            service_ns: 10_000_000,
            seen_service_ns: Some(10_100_000),
            stall_seconds: 0.3,
            seen_stall_seconds: Some(0.298),
            trials: 11,
            difference: 0.02,
            seen_difference: Some(0.021),
            interval: Some([0.015, 0.027]),
            detectable: Some(0.008),
        };
        assert_eq!(
            describe(&proof),
            "planted on this machine: a service time of 10.0 ms, seen as 10.1 ms; a stall of 300.0 ms, seen as 298.0 ms; \
             a difference of 2.0% in 11 trials, seen as 2.1% (1.5..2.7)"
        );
        proof.interval = Some([-0.01, 0.04]);
        proof.detectable = Some(0.031);
        assert!(
            describe(&proof)
                .ends_with("2.0% in 11 trials, not seen: such trials show 3.1% or more")
        );
    }
}
