//! `netping bulk`: the throughput of bulk streams, and the settings that matter for it.

pub mod args;

use std::collections::BTreeMap;

use netping_client::workload::bulk::{Bulk, BulkPlan, Ended};
use netping_measure::{
    statistics::{difference::Difference, estimate::Estimate},
    status::Status,
};
use netping_report::table::{Column, Table};
use netping_results::{
    bulk::{BulkSettings, BulkStep},
    format::{self, nanos_as_micros, thousands},
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::args::BulkArgs;
use super::text::columns;
use crate::{
    error::{Failed, Verdict},
    run::{
        self, Runner,
        trials::{Scale, Trials, percent, shown, shuffled},
    },
};

/// A setting that may differ between combinations: its column, and its value as text.
type Setting = (Column, fn(&BulkStep) -> String);

const SETTINGS: [Setting; 5] = [
    (Column::text("target", 0), |step| step.target.clone()),
    (Column::number("size", 0), |step| {
        BulkSettings::shown(step.settings.size_bytes)
    }),
    (Column::number("chunk", 0), |step| {
        BulkSettings::shown(step.settings.chunk_bytes)
    }),
    (Column::number("window", 0), |step| {
        optional_bytes(step.settings.window_bytes)
    }),
    (Column::number("frame", 0), |step| {
        optional_bytes(step.settings.frame_bytes)
    }),
];

const RESULTS: &str = "GiB/s|+-95%|sd|cli s/GiB|srv s/GiB|first byte us|runs|failed";

const COMPARED: &str = "to first|<shown";

pub fn run(args: &BulkArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    run::run(args.options()?, |runner| {
        let mut streams = Bulk::open(&plans, runner.interrupt())?;
        let steps = measure(runner, args.trials(), &plans, &mut streams);
        runner.say(&table(&steps));
        for (step, bulk) in steps.iter().zip(&streams) {
            if let Some(note) = bulk.server_note() {
                let target = &step.target;
                runner.remark(&format!("  {target}: server CPU time unknown: {note}"));
            }
        }
        runner.judge_bulk();
        Ok(())
    })
}

/// Measures each combination once per round, in random order, until the end or an interrupt.
fn measure(
    runner: &mut Runner,
    rounds: Trials,
    plans: &[BulkPlan],
    streams: &mut [Bulk],
) -> Vec<BulkStep> {
    let shared: Vec<bool> = plans.iter().map(|plan| plan.target.is_own_host()).collect();
    let plans = plans.iter().zip(&*streams);
    let mut steps: Vec<BulkStep> = plans.map(|(plan, bulk)| step(plan, bulk)).collect();
    // An interrupt may leave combinations without a run.
    for (step, shared) in steps.iter_mut().zip(&shared) {
        step.settle(*shared);
    }
    runner.keep_bulk(&steps);
    let mut random = ChaCha8Rng::seed_from_u64(rounds.order_seed);
    for round in 1..=rounds.count {
        runner.begin_trial(round, rounds.order_seed);
        for at in shuffled(steps.len(), &mut random) {
            if runner.is_interrupted() {
                return steps;
            }
            let step = &mut steps[at];
            let progress = format!("run {round} of {}  {}", rounds.count, name(step));
            runner.console.progress.begin(&progress);
            let outcome = streams[at].run(runner.interrupt());
            runner.console.progress.end();
            match outcome {
                Ok(run) => step.runs.push(run),
                Err(Ended::Failed(failure)) => {
                    let count = step.errors.entry(failure.kind).or_insert(0);
                    *count += 1;
                    if *count == 1 {
                        let name = name(step);
                        runner.remark(&format!(
                            "  {name}: a run failed: {} ({})",
                            failure.kind, failure.detail
                        ));
                    }
                }
                Err(Ended::Interrupted) => return steps,
            }
            if round == rounds.count {
                step.status = Status::Complete;
            }
            step.settle(shared[at]);
            runner.keep_bulk(&steps);
        }
    }
    steps
}

/// Returns a measurement without a run.
fn step(plan: &BulkPlan, bulk: &Bulk) -> BulkStep {
    let negotiated = bulk.negotiated().cloned();
    BulkStep {
        target: plan.target.url.to_string(),
        status: Status::Partial,
        settings: plan.settings.clone(),
        runs: Vec::new(),
        summary: None,
        errors: BTreeMap::new(),
        security: negotiated.map(|negotiated| plan.target.trust.security(negotiated)),
        warnings: Vec::new(),
    }
}

fn name(step: &BulkStep) -> String {
    let size = BulkSettings::shown(step.settings.size_bytes);
    let chunk = BulkSettings::shown(step.settings.chunk_bytes);
    format!("{} {size} in {chunk}", step.target)
}

fn optional_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "default".to_owned(), format::bytes)
}

/// Returns the settings that all share, a table of the others, and the mean for each value of a
/// setting.
pub(super) fn table(steps: &[BulkStep]) -> String {
    let differs =
        |value: fn(&BulkStep) -> String| steps.iter().any(|step| value(step) != value(&steps[0]));
    let (varied, fixed): (Vec<Setting>, Vec<Setting>) =
        SETTINGS.into_iter().partition(|(_, value)| differs(*value));
    let mut title = vec![steps[0].settings.direction.name().to_owned()];
    title.extend(
        fixed
            .iter()
            .map(|(column, value)| format!("{} {}", column.title, value(&steps[0]))),
    );
    title.push(format!("streams {}", steps[0].settings.streams));
    if steps[0].settings.verify {
        title.push("verified".to_owned());
    }
    let compared = steps.len() > 1;
    let mut all: Vec<Column> = varied
        .iter()
        .map(|(column, _)| column.clone())
        .chain(columns(RESULTS))
        .collect();
    if compared {
        all.extend(columns(COMPARED));
    }
    let row = |step: &BulkStep| {
        let mut cells: Vec<String> = varied.iter().map(|(_, value)| value(step)).collect();
        cells.extend(results(step));
        if compared {
            cells.extend(comparison(&steps[0], step, steps.len() - 1));
        }
        cells
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    let mut lines = vec![title.join(", "), Table::whole(&all, &rows)];
    lines.extend(steps.iter().filter_map(choice));
    if varied.len() > 1 {
        lines.push("mean GiB/s over all other settings:".to_owned());
        lines.extend(varied.iter().map(|setting| alone(setting, steps)));
    }
    if compared {
        lines.push(
            "Every combination was measured in each round, in random order. A difference to the first row is shown \
             where its interval, one of as many as there are rows, leaves out 0 (Welch's test on logarithms)."
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// Says what the server chose, if anything was its choice.
fn choice(step: &BulkStep) -> Option<String> {
    let (sizes, longest) = step.chosen()?;
    let exact = |bytes: u64| format!("{} bytes", thousands(bytes as f64));
    let sizes = match &*sizes {
        [size] => exact(*size),
        [least, .., most] => format!("{} to {}", exact(*least), exact(*most)),
        [] => return None,
    };
    let messages = longest.map_or_else(String::new, |longest| {
        format!(", in messages of at most {}", exact(longest))
    });
    Some(format!("{}: each run had {sizes}{messages}", step.target))
}

fn results(step: &BulkStep) -> Vec<String> {
    let summary = step.summary;
    let rate = summary.map(|summary| summary.gib_per_second);
    let first_byte = summary.map(|summary| (summary.first_byte_seconds * 1e9) as u64);
    let (made, failed) = step.attempts();
    vec![
        three_decimals(rate.map(|rate| rate.mean)),
        three_decimals(rate.and_then(|rate| rate.half_width)),
        three_decimals(summary.and_then(|summary| summary.sd)),
        three_decimals(summary.and_then(|summary| summary.client_cpu_seconds_per_gib)),
        three_decimals(summary.and_then(|summary| summary.server_cpu_seconds_per_gib)),
        nanos_as_micros(first_byte),
        made.to_string(),
        failed.to_string(),
    ]
}

fn three_decimals(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// Returns the difference to the first combination, one of `comparisons`.
fn comparison(first: &BulkStep, step: &BulkStep, comparisons: usize) -> [String; 2] {
    if std::ptr::eq(first, step) {
        return Default::default();
    }
    match Difference::of_means(&rates(first), &rates(step), comparisons) {
        Some(difference) => [
            percent(difference.relative),
            shown(difference, true, Scale::default()),
        ],
        None => ["-".to_owned(), "too few runs".to_owned()],
    }
}

fn rates(step: &BulkStep) -> Vec<f64> {
    step.runs.iter().map(|run| run.gib_per_second).collect()
}

/// Returns the rate for each value of one setting over all other settings: the mean of the
/// combinations' means, so that failed runs change no weight. A value with a combination without
/// runs has no comparable mean.
fn alone((column, value): &Setting, steps: &[BulkStep]) -> String {
    let mut values: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for step in steps {
        let own = value(step);
        let mean = Estimate::of(&rates(step)).map(|estimate| estimate.mean);
        match values.iter_mut().find(|(other, _)| *other == own) {
            Some((_, all)) => all.push(mean),
            None => values.push((own, vec![mean])),
        }
    }
    let shown = values.into_iter().map(|(name, means)| {
        let means: Option<Vec<f64>> = means.into_iter().collect();
        let mean = means.and_then(|means| Some(Estimate::of(&means)?.mean));
        format!("{name} {}", three_decimals(mean))
    });
    let shown: Vec<_> = shown.collect();
    format!("  {}: {}", column.title, shown.join(", "))
}

#[cfg(test)]
mod tests {
    use netping_measure::bulk::{BulkRun, Direction};

    use super::*;

    /// A combination with runs of these rates, in GiB/s.
    fn combination(chunk_bytes: u64, window_bytes: u64, rates: &[f64]) -> BulkStep {
        let run = |&gib_per_second: &f64| BulkRun {
            seconds: 1.0 / gib_per_second,
            first_byte_seconds: 0.001,
            bytes: 1 << 30,
            message_bytes: None,
            gib_per_second,
            client_cpu_seconds_per_gib: None,
            server_cpu_seconds_per_gib: None,
            client_resident_bytes: None,
            server_resident_bytes: None,
        };
        BulkStep {
            target: "tcp://127.0.0.1:8004".to_owned(),
            status: Status::Complete,
            settings: netping_results::bulk::BulkSettings {
                direction: Direction::Down,
                size_bytes: 1 << 30,
                chunk_bytes,
                streams: 1,
                window_bytes: Some(window_bytes),
                frame_bytes: None,
                verify: false,
            },
            runs: rates.iter().map(run).collect(),
            summary: None,
            errors: BTreeMap::new(),
            security: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn failed_runs_do_not_change_a_combinations_weight() {
        let chunk = &SETTINGS[2];
        let steps = [
            combination(1024, 4096, &[1.0, 1.0, 1.0]),
            combination(1024, 8192, &[3.0]),
            combination(2048, 4096, &[5.0]),
            combination(2048, 8192, &[7.0, 7.0]),
        ];
        assert_eq!(alone(chunk, &steps), "  chunk: 1KiB 2.000, 2KiB 6.000");
        let gone = [&steps[..3], &[combination(2048, 8192, &[])]].concat();
        assert_eq!(alone(chunk, &gone), "  chunk: 1KiB 2.000, 2KiB -");
    }
}
