//! Which steps belong together: what one colour stands for.

use std::collections::BTreeMap;

use crate::{
    format::thousands,
    page::unit::counted,
    run::{Run, Step},
};

/// The steps of one target, or of one label, in one run.
#[derive(Debug)]
pub(super) struct Strand<'a> {
    /// Its name in legends.
    pub(super) name: String,
    /// Its place in the palette.
    pub(super) colour: usize,
    /// Which of the runs it is of.
    pub(super) run: usize,
    pub(super) steps: Vec<&'a Step>,
}

/// The strands of all runs, in the order of their first steps.
pub(super) fn strands(runs: &[Run]) -> Vec<Strand<'_>> {
    let mut strands: Vec<Strand<'_>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let mut known: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
        for step in &run.steps {
            let place = *known.entry((&step.target, step.label.as_deref())).or_insert_with(|| {
                let name = of_run(runs, at, &name(run, step));
                strands.push(Strand { name, colour: strands.len(), run: at, steps: Vec::new() });
                strands.len() - 1
            });
            strands[place].steps.push(step);
        }
    }
    strands
}

/// `name`, with the run that it is of where there are several.
pub(super) fn of_run(runs: &[Run], at: usize, name: &str) -> String {
    if runs.len() > 1 { format!("run {}: {name}", at + 1) } else { name.to_owned() }
}

/// Its label, with the target where the label has several; the target where it has none.
fn name(run: &Run, step: &Step) -> String {
    let Some(label) = &step.label else { return step.target.clone() };
    let alone = run.steps.iter().filter(|other| other.label == step.label).all(|other| other.target == step.target);
    if alone { label.clone() } else { format!("{label}, {}", step.target) }
}

impl<'a> Strand<'a> {
    /// The steps, trial for trial, of the load with the highest mean rate.
    pub(super) fn best(&self) -> Vec<&'a Step> {
        let mut loads: BTreeMap<(usize, Option<u64>), Vec<&'a Step>> = BTreeMap::new();
        for step in &self.steps {
            let settings = &step.settings;
            loads.entry((settings.callers, settings.planned_rate.map(f64::to_bits))).or_default().push(step);
        }
        let mean = |steps: &[&Step]| steps.iter().map(|step| step.summary.rate).sum::<f64>() / steps.len() as f64;
        loads.into_values().max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or_default()
    }
}

/// What was loaded in a step, in words: `64 callers`, `10,000 req/s planned`.
pub(super) fn load(step: &Step) -> String {
    match step.settings.planned_rate {
        Some(rate) => format!("{} req/s planned", thousands(rate)),
        None => counted(step.settings.callers as f64, "callers"),
    }
}
