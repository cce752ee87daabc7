//! The whole rounds and trials of a run that did not come to its end.

use netping_measure::status::Status;
use netping_results::{
    format::plural,
    run::{CutRound, Run, WholeRounds},
};

/// Says what counts of a run that was interrupted, failed, or is still going on; `None` of one that is complete.
pub fn describe(run: &Run) -> Option<String> {
    if run.status == Status::Complete || run.steps.is_empty() {
        return None;
    }
    let text = match run.whole_rounds() {
        None => "these are the results up to the point at which it ended".to_owned(),
        Some(rounds) => in_rounds(rounds, run.kind.unit()),
    };
    Some(format!("PARTIAL: {text}"))
}

/// Says how many rounds count. `noun` is what a round is called.
fn in_rounds(WholeRounds { whole, cut }: WholeRounds, noun: &str) -> String {
    let cut = cut.map(|cut| {
        let CutRound {
            number,
            measured,
            all,
        } = cut;
        format!("; in {noun} {number}, {measured} of {all} measurements came to their end")
    });
    let cut = cut.unwrap_or_default();
    if whole == 0 {
        return format!("no {noun} is whole, so nothing can be compared{cut}");
    }
    let verb = if whole == 1 { "counts" } else { "count" };
    let count = plural(whole as u64, &format!("whole {noun}"));
    let left_out = if cut.is_empty() {
        ""
    } else {
        ", and it is left out"
    };
    format!("{count} {verb}{cut}{left_out}")
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures,
        run::{Kind, Pairing, Step},
    };

    use super::*;

    #[test]
    fn whole_trials_count_and_a_cut_one_does_not() {
        let said = |kind: Kind, steps: &[(usize, u32)]| {
            let step = |(measurement, trial): &(usize, u32)| Step {
                measurement: *measurement,
                trial: *trial,
                ..fixtures::step(1, |_| vec![1000])
            };
            describe(&Run {
                kind,
                status: Status::Partial,
                order_seed: Some(1),
                pairings: vec![Pairing::new(0, 1)],
                steps: steps.iter().map(step).collect(),
                ..fixtures::run(Vec::new())
            })
            .unwrap()
        };
        assert_eq!(
            said(Kind::Latency, &[(0, 1)]),
            "PARTIAL: no trial is whole, so nothing can be compared; in trial 1, 1 of 2 measurements came to their end"
        );
        assert_eq!(
            said(Kind::Ab, &[(0, 1), (1, 1), (0, 2)]),
            "PARTIAL: 1 whole round counts; in round 2, 1 of 2 measurements came to their end, and it is left out"
        );
        assert_eq!(
            said(Kind::Ladder, &[(0, 1), (1, 1), (0, 2), (1, 2)]),
            "PARTIAL: 2 whole rounds count"
        );
    }

    #[test]
    fn a_complete_run_says_nothing_of_it() {
        let mut run = fixtures::run(vec![fixtures::step(1, |_| vec![1000])]);
        assert_eq!(describe(&run), None);
        run.status = Status::Partial;
        let said = describe(&run).unwrap();
        assert!(
            said.starts_with("PARTIAL: these are the results up to"),
            "{said}"
        );
    }
}
