//! Conditions on the change of a metric, such as `p99>+5%`, `rate<-3%` or `errors>+0.1%`.

use std::{fmt, str::FromStr};

use super::Pair;
use crate::{
    condition::{Answer, Relation},
    metric::{self, Metric},
};

/// A condition on the change of a metric: the metric, a comparison, and the limit of the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    text: String,
    metric: &'static Metric,
    comparison: Relation,
    /// A share of the base's value, or, for a share, a difference.
    limit: f64,
}

impl Gate {
    /// Checks a measurement; `None` where it has no such metric. Where there is an error bar, the
    /// gate holds only if a difference is shown too.
    pub fn check(&self, pair: &Pair) -> Option<Answer> {
        if self.metric.is_bulk() != pair.is_bulk {
            return None;
        }
        let change = pair
            .changes
            .iter()
            .find(|change| change.metric == self.metric);
        let Some((change, difference)) =
            change.and_then(|change| Some((change, change.difference?)))
        else {
            return Some(Answer::Unknown);
        };
        let supported = change.is_shown().unwrap_or(true);
        let holds = supported && self.comparison.holds(difference, self.limit);
        Some(if holds {
            Answer::Holds(difference)
        } else {
            Answer::Fails(difference)
        })
    }

    /// Returns its metric.
    pub fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Describes a difference that [`Gate::check`] returned, and its distance beyond the limit.
    pub fn describe(&self, difference: f64) -> String {
        let unit = if self.metric.is_relative() {
            "%"
        } else {
            " percentage points"
        };
        let beyond = (difference - self.limit).abs() * 100.0;
        format!(
            "{} by {:+.2}{unit}, {beyond:.2} beyond the limit",
            self.metric.name,
            difference * 100.0
        )
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "'{text}': {what}; a condition on a change looks like p99>+5%, rate<-3% or errors>+0.1%"
            )
        };
        let (name, comparison, limit) =
            Relation::split(text).ok_or_else(|| wrong("no comparison"))?;
        let all = metric::of_steps().chain(metric::BULK.iter().copied());
        let metric = metric::named(name, all).map_err(|error| wrong(&error))?[0];
        // Without a sign it would look like a limit of the value itself.
        let signed = limit.starts_with(['+', '-']);
        let percent = limit
            .strip_suffix('%')
            .and_then(|percent| percent.parse::<f64>().ok());
        let percent = percent.filter(|percent| signed && percent.is_finite());
        let limit =
            percent.ok_or_else(|| wrong("the limit is not a signed change in per cent"))? / 100.0;
        Ok(Self {
            text: text.to_owned(),
            metric,
            comparison,
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Change;

    fn pair(metric: &'static Metric, difference: f64, p_value: Option<f64>) -> Pair {
        let change = Change {
            metric,
            base: Some(1.0),
            new: Some(2.0),
            difference: Some(difference),
            interval: p_value.map(|p| match p {
                ..0.05 => [difference - 0.01, difference + 0.01],
                _ => [difference - 1.0, difference + 1.0],
            }),
            p_value,
        };
        Pair {
            name: String::new(),
            short_name: String::new(),
            is_bulk: false,
            base_trials: 1,
            new_trials: 1,
            changes: vec![change],
        }
    }

    #[test]
    fn a_gate_holds_beyond_its_limit_where_the_difference_is_shown() {
        let p99 = &metric::P99;
        let gate: Gate = "p99 > +5%".parse().unwrap();
        assert_eq!(
            gate.check(&pair(p99, 0.06, Some(0.01))),
            Some(Answer::Holds(0.06))
        );
        assert_eq!(
            gate.check(&pair(p99, 0.06, Some(0.2))),
            Some(Answer::Fails(0.06))
        );
        assert_eq!(
            gate.check(&pair(p99, 0.04, Some(0.01))),
            Some(Answer::Fails(0.04))
        );
        // Without an error bar the difference alone decides.
        assert_eq!(
            gate.check(&pair(p99, 0.06, None)),
            Some(Answer::Holds(0.06))
        );
        assert_eq!(
            gate.check(&pair(&metric::RATE, 0.06, None)),
            Some(Answer::Unknown)
        );
        assert_eq!(
            "bulk-rate<-3%"
                .parse::<Gate>()
                .unwrap()
                .check(&pair(p99, 0.06, None)),
            None
        );
        let rate: Gate = "rate<-3%".parse().unwrap();
        assert_eq!(
            rate.check(&pair(&metric::RATE, -0.04, None)),
            Some(Answer::Holds(-0.04))
        );
        assert_eq!(
            rate.describe(-0.04),
            "rate by -4.00%, 1.00 beyond the limit"
        );
        let errors: Gate = "errors>+0.1%".parse().unwrap();
        assert_eq!(
            errors.check(&pair(&metric::ERROR_SHARE, 0.002, None)),
            Some(Answer::Holds(0.002))
        );
        assert!(errors.describe(0.002).contains("+0.20 percentage points"));
    }

    #[test]
    fn an_invalid_gate_is_rejected_with_an_example() {
        for text in [
            "",
            "p99",
            "p99>5%",
            "p99>+5",
            "p98>+5%",
            "speed>+5%",
            "rate<-x%",
            "rate<-inf%",
            "p99>+%",
        ] {
            let error = text.parse::<Gate>().unwrap_err();
            assert!(error.contains("looks like p99>+5%"), "{error}");
        }
    }
}
