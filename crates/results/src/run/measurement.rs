//! The measurements of a run: steps that are trials of the same thing.

use std::{collections::BTreeMap, ops::Range, rc::Rc};

use netping_measure::status::Status;
use serde::{Deserialize, Serialize};

use super::{Run, Step, StepSettings};
use crate::format::{plural, thousands};

/// Two measurements of a run that are compared, by their numbers from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairing {
    /// The measurement that the other is compared with.
    pub base: usize,
    /// The other.
    pub new: usize,
    /// True where the other measures the base once more: their difference is noise.
    #[serde(default)]
    pub is_control: bool,
}

impl Pairing {
    /// Compares a measurement with its base.
    pub const fn new(base: usize, new: usize) -> Self {
        Self {
            base,
            new,
            is_control: false,
        }
    }

    /// Compares the measurements with these numbers: all others with the first.
    pub fn against_first(numbers: Range<usize>) -> impl Iterator<Item = Self> {
        let base = numbers.start;
        numbers.skip(1).map(move |new| Self::new(base, new))
    }
}

/// One target under one load, and each of its trials.
#[derive(Debug, Clone)]
pub struct Measurement<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its number in the run, from 0 on.
    pub number: usize,
    /// Its trials; there is at least one.
    pub trials: Vec<&'a Step>,
    /// The trials of a control, if they count as well: in each round, the value is then the mean of both.
    pub(crate) again: Vec<&'a Step>,
    /// The trials of all measurements that it is compared with, directly or by way of others, and its
    /// own.
    pub(crate) together: Rc<[&'a Step]>,
}

impl Run {
    /// Returns its measurements, ordered by number.
    pub fn measurements(&self) -> Vec<Measurement<'_>> {
        let mut trials: BTreeMap<usize, Vec<&Step>> = BTreeMap::new();
        for step in &self.steps {
            trials.entry(step.measurement).or_default().push(step);
        }
        let groups = self.groups(trials.keys().copied());
        let mut together: BTreeMap<usize, Vec<&Step>> = BTreeMap::new();
        for step in &self.steps {
            let group = groups[&step.measurement];
            together.entry(group).or_default().push(step);
        }
        let together: BTreeMap<usize, Rc<[&Step]>> = together
            .into_iter()
            .map(|(group, steps)| (group, steps.into()))
            .collect();
        trials
            .into_iter()
            .map(|(number, trials)| Measurement {
                run: self,
                number,
                trials,
                again: Vec::new(),
                together: Rc::clone(&together[&groups[&number]]),
            })
            .collect()
    }

    /// Returns the group of each measurement: those that are compared with each other, directly or
    /// by way of others, are in one group, which has the least of their numbers.
    pub(crate) fn groups(
        &self,
        measurements: impl Iterator<Item = usize>,
    ) -> BTreeMap<usize, usize> {
        let mut groups: BTreeMap<usize, usize> =
            measurements.map(|number| (number, number)).collect();
        for pairing in &self.pairings {
            let known = groups.get(&pairing.base).zip(groups.get(&pairing.new));
            if let Some((&a, &b)) = known {
                for group in groups.values_mut() {
                    if *group == a.max(b) {
                        *group = a.min(b);
                    }
                }
            }
        }
        groups
    }
}

impl<'a> Measurement<'a> {
    /// Returns the first trial, which has the settings and the target of all.
    pub fn first(&self) -> &'a Step {
        self.trials[0]
    }

    /// Returns its label, or its target where it has none.
    pub fn name(&self) -> &'a str {
        self.first().name()
    }

    /// Returns its name, and that of the control that counts as well.
    pub fn names(&self) -> String {
        let mut names = self.name().to_owned();
        if let Some(control) = self.again.first() {
            names.extend([" and ", control.name()]);
        }
        names
    }

    /// Returns the settings, which all trials share.
    pub fn settings(&self) -> &'a StepSettings {
        &self.first().settings
    }

    /// Returns false where the other is another target with another number of connections: a difference
    /// may then be that of connections alone. Measurements of one target may differ in connections on
    /// purpose, and streams are a setting of bulk streams.
    pub fn has_connections_like(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(Self::settings);
        own.connections == others.connections || own.bulk.is_some() || self.name() == other.name()
    }

    /// Returns true if both were measured to the end in one trial at least: what was cut short is not compared.
    pub(crate) fn has_whole_trial_with(&self, other: &Self) -> bool {
        let whole = |own: &&&Step| own.status == Status::Complete;
        let mut trials = self.trials.iter().filter(whole);
        trials.any(|own| {
            let mut others = other.trials.iter().filter(whole);
            others.any(|other| other.trial == own.trial)
        })
    }

    /// Returns the number of requests without a verified reply, over all trials.
    pub fn unserved(&self) -> u64 {
        let all = self.trials.iter().chain(&self.again);
        all.map(|step| step.summary.unserved()).sum()
    }

    /// Returns its label or target, and its load.
    pub fn short_name(&self) -> String {
        format!("{}, {}", self.names(), self.settings().load_in_words())
    }

    /// Returns its label or target, and its settings, as people read them.
    pub fn long_name(&self) -> String {
        format!("{}  {}", self.names(), self.settings().in_words())
    }
}

impl StepSettings {
    /// Returns the settings that make a measurement this one and no other, as people read them.
    pub fn in_words(&self) -> String {
        if let Some(bulk) = &self.bulk {
            return bulk.in_words();
        }
        let arrivals = match self.planned_rate {
            None => format!("{} loop", self.arrivals),
            Some(rate) => format!("{rate} req/s, {} arrivals", self.arrivals),
        };
        let mut parts = vec![
            arrivals,
            plural(self.callers as u64, "caller"),
            plural(self.connections as u64, "connection"),
            plural(self.payload_bytes as u64, "byte"),
            self.client.clone(),
        ];
        // Files from before there were others have none.
        let method = self.http_method.clone().filter(|method| method != "GET");
        let others = [
            self.is_fixed().then(|| "fixed assignment".to_owned()),
            self.together
                .map(|targets| format!("{targets} targets together")),
            self.bursts.map(|bursts| bursts.in_words()),
            self.matching
                .as_ref()
                .map(|fields| format!("replies matched by {fields}")),
            self.part.map(|part| part.to_string()),
            self.anatomy.then(|| "with anatomy".to_owned()),
            self.perf_events
                .then(|| "with performance events".to_owned()),
            self.message.as_ref().map(|name| format!("message {name}")),
            method,
            self.events.then(|| "events".to_owned()),
            self.data_hash.as_ref().map(|hash| format!("data {hash}")),
            self.body_order
                .as_ref()
                .map(|order| format!("bodies in {order} order")),
            self.deadline_seconds
                .map(|limit| format!("deadline of {limit} s")),
            self.response_bytes
                .map(|bytes| format!("replies of {bytes} bytes")),
            self.requests_per_connection
                .map(|requests| format!("{requests} requests per connection")),
            self.streams_per_connection
                .map(|streams| format!("{streams} streams per connection")),
            self.messages_per_stream
                .map(|messages| format!("{messages} messages per stream")),
        ];
        parts.extend(others.into_iter().flatten());
        parts.join(", ")
    }

    /// Returns the setting that mostly tells a measurement from others of its target.
    pub fn load_in_words(&self) -> String {
        match (self.planned_rate, &self.bulk) {
            (_, Some(bulk)) => bulk.in_words(),
            (Some(rate), _) => format!("{} req/s planned", thousands(rate)),
            (None, _) => plural(self.callers as u64, "caller"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn requests_that_belong_to_connections_are_another_load() {
        let mut settings = fixtures::step(1, |_| vec![1000]).settings;
        let older = settings.in_words();
        settings.assign = Some("any".to_owned());
        assert_eq!(settings.in_words(), older);
        settings.assign = Some("fixed".to_owned());
        assert_eq!(settings.in_words(), older + ", fixed assignment");
    }

    #[test]
    fn measurements_that_are_compared_are_in_one_group() {
        let steps = (0..6).map(|port| Step {
            target: format!("tcp://h:{port}"),
            ..fixtures::step(1, |_| vec![1000])
        });
        let pairs = [(1, 2), (4, 5), (2, 4), (0, 9)];
        let run = Run {
            pairings: pairs.map(|(base, new)| Pairing::new(base, new)).to_vec(),
            ..fixtures::run(steps.collect())
        };
        let sizes: Vec<usize> = run
            .measurements()
            .iter()
            .map(|own| own.together.len())
            .collect();
        assert_eq!(sizes, [1, 4, 4, 1, 4, 4]);
    }
}
