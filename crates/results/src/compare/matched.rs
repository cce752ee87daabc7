//! The pairing of two runs' measurements.

use netping_measure::status::Status;

use crate::run::Measurement;

/// The measurements of both runs, and of one alone.
pub(super) struct Matched<'a> {
    pub pairs: Vec<(Measurement<'a>, Measurement<'a>)>,
    pub only_base: Vec<Measurement<'a>>,
    pub only_new: Vec<Measurement<'a>>,
}

/// Pairs like measurements: those of one target first, then those of one port; then the others in
/// their order, where both sides have the same number of them. Measurements of which no trial came to
/// its end are left out.
pub(super) fn matched<'a>(base: Vec<Measurement<'a>>, new: Vec<Measurement<'a>>) -> Matched<'a> {
    let [base, new] = [base, new].map(whole);
    let mut partners: Vec<Option<usize>> = vec![None; base.len()];
    let mut taken = vec![false; new.len()];
    let ways: [for<'b> fn(&Measurement<'b>) -> &'b str; 2] = [target, port];
    for way in ways {
        for (own, partner) in base.iter().zip(&mut partners) {
            if partner.is_none() {
                *partner = (0..new.len())
                    .find(|&at| !taken[at] && is_like(own, &new[at]) && way(own) == way(&new[at]));
                if let Some(at) = *partner {
                    taken[at] = true;
                }
            }
        }
    }
    for own in &base {
        let left: Vec<usize> = (0..base.len())
            .filter(|&at| partners[at].is_none() && is_like(&base[at], own))
            .collect();
        let free: Vec<usize> = (0..new.len())
            .filter(|&at| !taken[at] && is_like(&new[at], own))
            .collect();
        if left.len() == free.len() {
            for (at, other) in left.into_iter().zip(free) {
                partners[at] = Some(other);
                taken[other] = true;
            }
        }
    }
    let mut new: Vec<Option<Measurement<'a>>> = new.into_iter().map(Some).collect();
    let (mut pairs, mut only_base) = (Vec::new(), Vec::new());
    for (own, partner) in base.into_iter().zip(partners) {
        match partner.and_then(|at| new[at].take()) {
            Some(other) => pairs.push((own, other)),
            None => only_base.push(own),
        }
    }
    Matched {
        pairs,
        only_base,
        only_new: new.into_iter().flatten().collect(),
    }
}

fn whole(mut all: Vec<Measurement<'_>>) -> Vec<Measurement<'_>> {
    all.retain(|own| {
        let mut trials = own.trials.iter();
        trials.any(|step| step.status == Status::Complete)
    });
    all
}

/// Returns true if the other is the same measurement, perhaps of another server.
fn is_like(own: &Measurement<'_>, other: &Measurement<'_>) -> bool {
    own.first().label == other.first().label
        && own.settings().in_words() == other.settings().in_words()
        && scheme(own) == scheme(other)
}

fn target<'a>(own: &Measurement<'a>) -> &'a str {
    &own.first().target
}

fn scheme<'a>(own: &Measurement<'a>) -> &'a str {
    let target = target(own);
    target.split("://").next().unwrap_or_default()
}

fn port<'a>(own: &Measurement<'a>) -> &'a str {
    let target = target(own);
    target.rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixtures::{self, step},
        run::{Run, Step},
    };

    fn of(targets: &[&str]) -> Run {
        let one = |target: &&str| Step {
            target: (*target).to_owned(),
            ..step(1, |_| vec![1000])
        };
        fixtures::run(targets.iter().map(one).collect())
    }

    fn pairs(base: &[&str], new: &[&str]) -> Vec<(String, String)> {
        let (base, new) = (of(base), of(new));
        let matched = matched(base.measurements(), new.measurements());
        let targets = |own: &Measurement<'_>| own.first().target.clone();
        let pairs = matched.pairs.iter();
        pairs.map(|(a, b)| (targets(a), targets(b))).collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    #[test]
    fn targets_go_together_by_name_then_by_port_then_in_order() {
        let base = ["tcp://a:1", "tcp://a:2"];
        assert_eq!(
            pairs(&base, &["tcp://a:2", "tcp://a:1"]),
            owned(&[("tcp://a:1", "tcp://a:1"), ("tcp://a:2", "tcp://a:2")])
        );
        assert_eq!(
            pairs(&base, &["tcp://b:2"]),
            owned(&[("tcp://a:2", "tcp://b:2")])
        );
        assert_eq!(
            pairs(&base, &["tcp://b:3", "tcp://b:4"]),
            owned(&[("tcp://a:1", "tcp://b:3"), ("tcp://a:2", "tcp://b:4")])
        );
        // Either of the two would match.
        assert!(pairs(&base, &["tcp://b:3"]).is_empty());
        assert!(pairs(&base, &["grpc://a:1", "grpc://a:2"]).is_empty());
    }
}
