//! A warning about a trial that is unlike the others of its measurement.

use std::collections::BTreeSet;

use netping_measure::statistics::outliers::{Outlier, Rule, outliers};
use serde::{Deserialize, Serialize};

use super::{Severity, Told, WarningKind, facts::Trial};

/// One trial lies far off the others of its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct UnlikeTrials {
    /// The trial's number.
    pub trial: u32,
    /// The name of the metric in which it is furthest off.
    pub metric: String,
    /// Its value, as a multiple of the median of the others.
    pub ratio: f64,
}

impl UnlikeTrials {
    /// A trial is far off beyond ten standard deviations of the others, and beyond 1.5 times their median,
    /// or its inverse.
    const FAR_OFF: Rule = Rule {
        fewest: 4,
        deviations: 10.0,
        multiple: 1.5,
    };

    /// Returns the trials that are far off in one metric, by their places.
    fn in_metric(metric: &str, trials: &[Trial]) -> Vec<(usize, Self)> {
        let value = |trial: &Trial| {
            let mut values = trial.values.iter();
            let own = values.find(|(name, _)| *name == metric);
            own.map_or(f64::NAN, |(_, value)| *value)
        };
        let values: Vec<f64> = trials.iter().map(value).collect();
        let found = outliers(Self::FAR_OFF, &values).into_iter();
        let warning = |Outlier { at, ratio }| {
            let kind = Self {
                trial: trials[at].number,
                metric: metric.to_owned(),
                ratio,
            };
            (at, kind)
        };
        found.map(warning).collect()
    }

    /// Returns how far off it is, in either direction.
    fn distance(&self) -> f64 {
        self.ratio.ln().abs()
    }
}

impl WarningKind for UnlikeTrials {
    fn of_trials(trials: &[Trial]) -> Vec<(usize, Self)> {
        let names = trials.iter().flat_map(|trial| &trial.values);
        let names: BTreeSet<&str> = names.map(|(name, _)| *name).collect();
        let mut found: Vec<(usize, Self)> = names
            .into_iter()
            .flat_map(|metric| Self::in_metric(metric, trials))
            .collect();
        // Of each trial, the metric in which it is furthest off.
        found.sort_by(|(at, kind), (other_at, other)| {
            at.cmp(other_at)
                .then(other.distance().total_cmp(&kind.distance()))
        });
        found.dedup_by_key(|(at, _)| *at);
        found
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.distance(),
            sentence: format!(
                "the {} of trial {} is {} times the median of the others",
                self.metric,
                self.trial,
                times(self.ratio)
            ),
            remedy: &[
                (
                    "look for what disturbed that trial and measure again, or give more trials",
                    &["--trials"],
                ),
                (", so that one weighs less", &[]),
            ],
        }
    }
}

/// Returns a ratio with three significant digits.
fn times(ratio: f64) -> String {
    let digits = (2.0 - ratio.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{ratio:.digits$}")
}
