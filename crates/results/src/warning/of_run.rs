//! The warnings about a whole run, each kind once.

use std::collections::{BTreeMap, BTreeSet};

use netping_measure::cost::Balance;

use super::{
    ForeignLoad, Severity, Warning,
    facts::{Rival, Trial},
};
use crate::{
    metric,
    run::{Kind, Run, Step},
};

/// Windows that are shorter than this, in seconds, are judged by their balances together: ticks of 10 ms are much
/// beside a small share of them.
const SHORT: f64 = 5.0;

/// A kind of warning, and the results that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The worst of its kind.
    pub worst: Warning,
    /// True if others of its kind say something else.
    pub varies: bool,
    /// The places of the steps that it is about.
    pub steps: Vec<usize>,
    /// The numbers of the measurements that it invalidates, perhaps together with other kinds.
    pub invalid: BTreeSet<usize>,
}

impl Found {
    /// Returns true if it invalidates a measurement, and with it the run.
    pub fn is_invalid(&self) -> bool {
        !self.invalid.is_empty()
    }

    /// Returns true for what goes without saying in a ladder, which shares the machine by intent and
    /// shows no p99.
    fn is_known_of_ladders(&self) -> bool {
        let is_known = matches!(
            self.worst,
            Warning::SharedHost(_) | Warning::TooFewSamples(_)
        );
        is_known && !self.is_invalid()
    }
}

/// The warnings about steps, each kind once.
#[derive(Debug)]
pub struct Warnings {
    /// The number of results.
    pub results: usize,
    /// The kinds, in the order in which they were found.
    pub kinds: Vec<Found>,
}

impl Warnings {
    /// Collects the warnings about a run, but for what goes without saying in a run of its kind.
    pub fn of_run(run: &Run) -> Self {
        let is_ladder = run.kind == Kind::Ladder;
        let mut all = Self::of(run);
        all.kinds
            .retain(|found| !is_ladder || !found.is_known_of_ladders());
        all
    }

    /// Collects all warnings about a run. Those that invalidate a window invalidate its measurement where
    /// they are in over a fifth of its windows, unless the run allows them.
    pub fn of(run: &Run) -> Self {
        let mut warnings: Vec<(usize, Warning)> = Vec::new();
        for (at, step) in run.steps.iter().enumerate() {
            warnings.extend(step.warnings.iter().map(|own| (at, own.clone())));
        }
        warnings.extend(Self::of_several_steps(run));
        let spoils = |at: usize, own: &Warning| {
            let is_allowed = run.allowed.iter().any(|name| name == own.name());
            own.severity() == Severity::Invalid && !run.steps[at].set_aside && !is_allowed
        };
        let spoiled = warnings.iter().filter(|(at, own)| spoils(*at, own));
        let invalid = mostly_spoiled(run, &spoiled.map(|(at, _)| *at).collect());
        let mut all = Self {
            results: run.steps.len(),
            kinds: Vec::new(),
        };
        for (at, warning) in &warnings {
            let found = all.add(warning, *at);
            let measurement = run.steps[*at].measurement;
            if spoils(*at, warning) && invalid.contains(&measurement) {
                found.invalid.insert(measurement);
            }
        }
        all
    }

    /// Returns the warnings that no step shows by itself, each with the place of a step that it is about.
    /// Trials of a measurement are held against each other by the metrics on which claims are made. Windows
    /// that are short are judged together, too.
    pub fn of_several_steps(run: &Run) -> Vec<(usize, Warning)> {
        let mut all = Vec::new();
        for places in places_by(run, |step| Some(step.measurement)) {
            let metrics = run.compared_by(&run.steps[places[0]].settings);
            let trials: Vec<Trial> = places
                .iter()
                .map(|at| trial(&run.steps[*at], metrics))
                .collect();
            let found = Warning::of_trials(&trials);
            all.extend(found.into_iter().map(|(at, warning)| (places[at], warning)));
        }
        for places in held_against_each_other(run) {
            let rivals: Vec<Rival<'_>> = places.iter().map(|at| rival(&run.steps[*at])).collect();
            for warning in Warning::of_rivals(&rivals) {
                all.extend(places.iter().map(|at| (*at, warning.clone())));
            }
        }
        all.extend(Self::of_balances(run));
        all
    }

    /// Returns those that the balances of several steps show together, each with the place of a step.
    pub(crate) fn of_balances(run: &Run) -> Vec<(usize, Warning)> {
        let mut all = Vec::new();
        for places in judged_together(run) {
            let steps = places.iter().map(|at| &run.steps[*at]);
            if let Some(load) = ForeignLoad::of_windows(steps) {
                all.extend(places.iter().map(|at| (*at, load.clone().into())));
            }
        }
        all
    }

    /// Adds a warning about the step at this place, and returns its kind.
    fn add(&mut self, warning: &Warning, at: usize) -> &mut Found {
        let mut kinds = self.kinds.iter();
        let known = kinds.position(|found| found.worst.name() == warning.name());
        let place = known.unwrap_or(self.kinds.len());
        if known.is_none() {
            self.kinds.push(Found {
                worst: warning.clone(),
                varies: false,
                steps: Vec::new(),
                invalid: BTreeSet::new(),
            });
        }
        let found = &mut self.kinds[place];
        found.varies |= found.worst != *warning;
        if warning.is_worse_than(&found.worst) {
            found.worst = warning.clone();
        }
        // A step may have a kind twice: of clients that were merged, or of its round.
        if let Err(place) = found.steps.binary_search(&at) {
            found.steps.insert(place, at);
        }
        found
    }

    /// Returns true if there are results and no warning that invalidates them.
    pub fn is_valid(&self) -> bool {
        self.results > 0 && self.invalidating().is_empty()
    }

    /// Returns the names of the warnings that invalidate the results.
    pub fn invalidating(&self) -> Vec<&'static str> {
        let invalid = self.kinds.iter().filter(|found| found.is_invalid());
        invalid.map(|found| found.worst.name()).collect()
    }

    /// Returns the names of the warnings that invalidate the measurement with this number.
    pub fn invalidating_one(&self, measurement: usize) -> Vec<&'static str> {
        let kinds = self.kinds.iter();
        let own = kinds.filter(|found| found.invalid.contains(&measurement));
        own.map(|found| found.worst.name()).collect()
    }
}

impl ForeignLoad {
    /// Returns the load that disturbed a window by itself.
    pub fn of_window(step: &Step) -> Option<&Self> {
        step.warnings.iter().find_map(|own| match own {
            Warning::ForeignLoad(load) => Some(load),
            _ => None,
        })
    }

    /// Returns the load that disturbed windows that are too short to be judged one by one: that of all of
    /// them together.
    pub fn of_windows<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<Self> {
        let balances = steps.flat_map(|step| step.cost.balances.iter().cloned());
        Self::of_balances(&balances.collect::<Vec<Balance>>())
    }
}

/// Returns the numbers of the measurements of which over a fifth of the windows that are relied on are
/// spoiled: those of the steps at these places.
fn mostly_spoiled(run: &Run, spoiled: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut windows: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
    let steps = run.steps.iter().enumerate();
    for (at, step) in steps.filter(|(_, step)| !step.set_aside) {
        let [all, own] = windows.entry(step.measurement).or_default();
        *all += 1;
        *own += usize::from(spoiled.contains(&at));
    }
    let windows = windows.into_iter();
    let mostly = windows.filter(|(_, [all, own])| own * 5 > *all);
    mostly.map(|(number, _)| number).collect()
}

/// Returns the places of steps whose balances are judged together: of a ladder, those of each round, and all of
/// them; of another run in trials, the windows of each measurement that are shorter than [`SHORT`], but for those that
/// are known to be disturbed.
fn judged_together(run: &Run) -> Vec<Vec<usize>> {
    if run.kind == Kind::Ladder {
        let mut groups = places_by(run, |step| Some(step.trial));
        groups.push((0..run.steps.len()).collect());
        return groups;
    }
    let is_short = |step: &Step| {
        let is_relied_on = !step.set_aside && ForeignLoad::of_window(step).is_none();
        is_relied_on && step.summary.seconds < SHORT
    };
    let is_in_trials = run.order_seed.is_some();
    places_by(run, |step| {
        (is_in_trials && is_short(step)).then_some(step.measurement)
    })
}

/// Returns the places of the steps that have a key, grouped by it and in its order.
fn places_by<K: Ord>(run: &Run, key: impl Fn(&Step) -> Option<K>) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (at, step) in run.steps.iter().enumerate() {
        if let Some(key) = key(step) {
            groups.entry(key).or_default().push(at);
        }
    }
    groups.into_values().collect()
}

/// Returns the places of the steps of requests that are held against each other, ordered by measurement:
/// each base with all that is compared with it; where nothing is compared, those under one load, which a
/// reader compares. Bulk streams are told apart by their streams.
fn held_against_each_other(run: &Run) -> Vec<Vec<usize>> {
    let mut places: Vec<usize> = (0..run.steps.len()).collect();
    places.retain(|at| run.steps[*at].settings.bulk.is_none());
    places.sort_by_key(|at| run.steps[*at].measurement);
    if run.pairings.is_empty() {
        let mut loads: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for at in places {
            let own = &run.steps[at].settings;
            let load = (own.callers, own.planned_rate.map(f64::to_bits));
            loads.entry(load).or_default().push(at);
        }
        return loads.into_values().collect();
    }
    let mut compared: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for pair in &run.pairings {
        let group = compared.entry(pair.base).or_default();
        group.extend([pair.base, pair.new]);
    }
    let of = |group: &BTreeSet<usize>| {
        let mut own = places.clone();
        own.retain(|at| group.contains(&run.steps[*at].measurement));
        own
    };
    compared.values().map(of).collect()
}

/// Returns a step as one that is held against those of other targets.
fn rival(step: &Step) -> Rival<'_> {
    Rival {
        name: step.name(),
        connections: step.settings.connections,
    }
}

/// Returns a step as a trial that is held against the others of its measurement.
fn trial(step: &Step, metrics: metric::List) -> Trial {
    let values = metrics
        .iter()
        .filter(|metric| metric.is_claimed())
        .filter_map(|metric| Some((metric.name, metric.of_step(step)?)));
    Trial {
        number: step.trial,
        is_transferred: step.settings.bulk.as_ref().map(|_| step.bulk.is_some()),
        values: values.collect(),
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::cost::SideUse;

    use super::*;
    use crate::{
        fixtures,
        warning::{ClientBound, Errors, LittlesLaw, SharedHost, TooFewSamples},
    };

    fn littles_law() -> Warning {
        LittlesLaw {
            callers: 8.0,
            in_system: 7.0,
            between: None,
        }
        .into()
    }

    fn errors() -> Warning {
        Errors {
            share: 0.1,
            time_share: 0.0,
        }
        .into()
    }

    /// Returns a run of one measurement with these warnings about its windows.
    fn windows(warnings: &[&[Warning]]) -> Run {
        let window = |own: &&[Warning]| {
            let mut step = fixtures::step(1, |_| vec![1_000_000; 10]);
            step.warnings = own.to_vec();
            step
        };
        fixtures::run(warnings.iter().map(window).collect())
    }

    #[test]
    fn over_a_fifth_of_the_windows_invalidate_a_measurement() {
        let bound = |busiest_worker| ClientBound { busiest_worker }.into();
        let (law, failed, note): (&[_], &[_], &[_]) =
            (&[littles_law()], &[errors()], &[bound(0.8)]);
        let both: &[_] = &[littles_law(), errors()];
        let invalidating = |spoiled: &[&[Warning]], count: usize| {
            let mut all = vec![&[][..]; count - spoiled.len()];
            all.extend(spoiled);
            Warnings::of(&windows(&all)).invalidating()
        };
        assert_eq!(invalidating(&[law], 1), ["LITTLES_LAW"]);
        assert_eq!(invalidating(&[law], 4), ["LITTLES_LAW"]);
        assert_eq!(invalidating(&[law], 5), [""; 0]);
        assert_eq!(invalidating(&[law, law], 10), [""; 0]);
        assert_eq!(invalidating(&[law, law, law], 14), ["LITTLES_LAW"]);
        // Windows are counted, whatever spoils them, and each of them once.
        assert_eq!(
            invalidating(&[law, failed, law], 14),
            ["LITTLES_LAW", "ERRORS"]
        );
        assert_eq!(invalidating(&[both, both], 10), [""; 0]);
        assert_eq!(invalidating(&[note, note, note, law], 10), [""; 0]);
    }

    #[test]
    fn windows_that_a_search_does_not_rely_on_do_not_dilute_the_others() {
        let sound: &[_] = &[];
        let law: &[_] = &[littles_law()];
        let mut run = windows(&[sound, sound, sound, sound, sound, law]);
        assert!(Warnings::of(&run).is_valid());
        for step in &mut run.steps[..5] {
            step.set_aside = true;
        }
        assert_eq!(Warnings::of(&run).invalidating(), ["LITTLES_LAW"]);
    }

    #[test]
    fn what_a_search_does_not_rely_on_is_told_and_invalidates_nothing() {
        let mut run = windows(&[&[littles_law()]]);
        assert!(!Warnings::of(&run).is_valid());
        run.steps[0].set_aside = true;
        let warnings = Warnings::of(&run);
        assert!(warnings.is_valid());
        assert_eq!(warnings.kinds[0].steps, [0]);
    }

    #[test]
    fn a_measurement_does_not_answer_for_another() {
        let (law, sound) = (vec![littles_law()], Vec::new());
        let mut run = windows(&[&law, &sound, &sound, &law, &sound, &sound]);
        for step in &mut run.steps[1..] {
            step.measurement = 1;
        }
        let warnings = Warnings::of(&run);
        assert_eq!(warnings.invalidating_one(0), ["LITTLES_LAW"]);
        assert_eq!(warnings.invalidating_one(1), [""; 0]);
        assert_eq!(warnings.kinds[0].steps, [0, 3]);
        assert!(!warnings.is_valid());
    }

    #[test]
    fn a_ladder_does_not_say_that_its_machine_is_shared() {
        let few = |samples| TooFewSamples { samples }.into();
        let told = |kind, own: &[Warning]| -> Vec<&str> {
            let mut run = windows(&[own]);
            run.kind = kind;
            let kinds = Warnings::of_run(&run).kinds;
            kinds.iter().map(|found| found.worst.name()).collect()
        };
        let known = [SharedHost.into(), few(10)];
        assert_eq!(told(Kind::Ladder, &known), [""; 0]);
        assert_eq!(
            told(Kind::Throughput, &known),
            ["SHARED_HOST", "TOO_FEW_SAMPLES"]
        );
        assert_eq!(told(Kind::Ladder, &[few(0)]), ["TOO_FEW_SAMPLES"]);
        assert_eq!(told(Kind::Ladder, &[littles_law()]), ["LITTLES_LAW"]);
    }

    /// Returns three rounds of ten rungs on a CPU of which others have this many seconds in each of the
    /// 0.15 s long windows of the second round.
    fn rounds(others_seconds: f64) -> Run {
        let mut run = windows(&[&[][..]; 30]);
        run.kind = Kind::Ladder;
        for (at, step) in run.steps.iter_mut().enumerate() {
            (step.measurement, step.trial) = (at % 10, at as u32 / 10 + 1);
            let others_seconds = if step.trial == 2 { others_seconds } else { 0.0 };
            step.cost.balances = vec![Balance {
                cpus: vec![1],
                window_seconds: 0.15,
                total_seconds: 0.15,
                server: Some(SideUse {
                    cpu_seconds: 0.15 - others_seconds,
                    waited_seconds: Some(0.0),
                }),
                others_seconds,
                windows: 1,
                ..Balance::default()
            }];
        }
        run
    }

    #[test]
    fn the_windows_of_a_ladders_round_are_judged_together() {
        let found = |run: &Run| {
            let kinds = Warnings::of_run(run).kinds;
            kinds
                .into_iter()
                .map(|found| (found.worst.name(), found.steps))
        };
        assert_eq!(found(&rounds(0.0028)).count(), 0);
        let second: Vec<usize> = (10..20).collect();
        let disturbed = rounds(0.0032);
        let told: Vec<_> = found(&disturbed).collect();
        assert_eq!(told, [("FOREIGN_LOAD", second)]);
        // A round of three is over a fifth of the windows of each rung.
        assert_eq!(
            Warnings::of_run(&disturbed).invalidating(),
            ["FOREIGN_LOAD"]
        );
        // All windows together, of which no round has a part that exceeds its own error.
        let mut stolen = rounds(0.0);
        stolen.steps.extend(stolen.steps.clone());
        for (at, step) in stolen.steps.iter_mut().enumerate() {
            step.trial = at as u32 / 10 + 1;
            step.cost.balances[0].steal_seconds = 0.007;
        }
        let told: Vec<_> = found(&stolen)
            .map(|(name, steps)| (name, steps.len()))
            .collect();
        assert_eq!(told, [("FOREIGN_LOAD", 60)]);
    }

    #[test]
    fn short_windows_of_a_measurement_are_judged_together() {
        let among = |others: f64, length: f64, set_aside: usize| -> Vec<Vec<usize>> {
            let mut run = Run {
                kind: Kind::Throughput,
                order_seed: Some(1),
                ..rounds(0.0)
            };
            for step in &mut run.steps {
                // No window has a part that exceeds its own error.
                let is_first = step.measurement == 0;
                step.cost.balances[0].steal_seconds = if is_first { others } else { 0.0 };
                step.summary.seconds = length;
            }
            for step in &mut run.steps[..set_aside] {
                step.set_aside = true;
            }
            let kinds = Warnings::of_run(&run).kinds.into_iter();
            kinds.map(|found| found.steps).collect()
        };
        let found = |others, length| among(others, length, 0);
        // Three windows of 0.15 s, with an error of 24.5 ms: 2 % beyond that are 33.5 ms.
        assert_eq!(found(0.0112, 0.15), [[0, 10, 20]]);
        assert_eq!(found(0.0111, 0.15), [[0; 0]; 0]);
        assert_eq!(found(0.0112, 4.9), [[0, 10, 20]]);
        assert_eq!(found(0.0112, 5.0), [[0; 0]; 0]);
        // Of those that nothing relies on, nothing is said.
        assert_eq!(among(0.02, 0.15, 30), [[0; 0]; 0]);
    }

    #[test]
    fn windows_that_are_disturbed_themselves_spoil_no_others() {
        let mut run = Run {
            kind: Kind::Throughput,
            order_seed: Some(1),
            ..windows(&[&[][..]; 10])
        };
        for step in &mut run.steps {
            step.cost.balances = rounds(0.0).steps[0].cost.balances.clone();
        }
        let all = |run: &Run| Warnings::of_several_steps(run).len();
        for step in &mut run.steps[..2] {
            step.cost.balances[0].others_seconds = 0.075;
            step.cost.balances[0].server = Some(SideUse::default());
        }
        assert_eq!(all(&run), 10);
        // Windows that are no trials may be hours apart.
        let repeated = Run {
            order_seed: None,
            ..run.clone()
        };
        assert_eq!(all(&repeated), 0);
        for step in &mut run.steps[..2] {
            let load = ForeignLoad::of_balances(&step.cost.balances);
            step.warnings = vec![load.expect("a load").into()];
        }
        assert_eq!(all(&run), 0);
        assert!(Warnings::of(&run).is_valid());
    }
}
