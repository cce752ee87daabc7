//! Conditions on the change of a metric, such as `p99>+5%`, `rate<-3%` or `errors>+0.1%`.

use std::{fmt, str::FromStr};

use crate::{
    comparison::{Compared, Comparison},
    condition::{Answer, Condition},
    metric::{self, Metric, Scale},
};

/// A condition on the change of a metric: the metric, a comparison, and the limit of the change as a
/// share of the base's value, or, for a share, as a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate(Condition);

impl Gate {
    /// Checks a measurement; `None` where it has no such metric. The gate holds only if a difference is
    /// shown too: without an error bar, nobody knows. Metrics on which no claims are made hold by the change alone.
    pub fn check(&self, pair: &Compared<'_>) -> Option<Answer> {
        if self.0.metric.is_bulk() != pair.base.settings().bulk.is_some() {
            return None;
        }
        Some(
            pair.by(self.0.metric)
                .map_or(Answer::Unknown, |own| self.decide(own)),
        )
    }

    fn decide(&self, comparison: &Comparison) -> Answer {
        let Some(change) = comparison.change else {
            return Answer::Unknown;
        };
        let answer = self.0.answer_within(change, comparison.may_be());
        if !self.0.metric.is_claimed() || answer == Answer::Unknown {
            return answer;
        }
        match comparison.is_shown() {
            Some(false) => Answer::Fails(change),
            // It may be chance.
            None if matches!(answer, Answer::Holds(_)) => Answer::Unknown,
            _ => answer,
        }
    }

    /// Returns a line for each pair that breaks it or cannot decide on it, and one if nothing was compared
    /// that has its metric. `name` returns the name of a pair.
    pub fn broken_by<'a, 'b: 'a>(
        &self,
        pairs: impl IntoIterator<Item = &'a Compared<'b>>,
        name: impl Fn(&Compared<'_>) -> String,
    ) -> Vec<String> {
        let metric = self.metric().name;
        let mut was_asked = false;
        let mut lines = Vec::new();
        for pair in pairs {
            let Some(answer) = self.check(pair) else {
                continue;
            };
            was_asked = true;
            let why = match answer {
                Answer::Fails(_) => continue,
                Answer::Holds(difference) => self.describe(difference),
                Answer::Unknown => self.doubt(pair),
            };
            lines.push(format!(
                "failed by --fail-if '{self}': {}: {why}",
                name(pair)
            ));
        }
        if !was_asked {
            lines.push(format!(
                "failed by --fail-if '{self}': nothing was compared that has {metric}"
            ));
        }
        lines
    }

    /// Returns true if a condition is about a change: its limit has a sign.
    pub fn is_meant(text: &str) -> bool {
        let limit = text.split_once(['<', '>']).map(|(_, limit)| limit);
        limit.is_some_and(|limit| {
            let limit = limit.strip_prefix('=').unwrap_or(limit);
            limit.trim_start().starts_with(['+', '-'])
        })
    }

    /// Says why [`Gate::check`] could not decide.
    pub fn doubt(&self, pair: &Compared<'_>) -> String {
        let own = pair.by(self.0.metric);
        let name = self.0.metric.name;
        match own.and_then(|own| own.change) {
            Some(_) if own.is_some_and(|own| own.may_be() != [false; 2]) => format!(
                "{name} cannot be decided: so many requests got no reply that it is a lower bound; measure with a \
                 longer --timeout"
            ),
            Some(change) => format!(
                "{}; without an error bar, that may be chance: measure trials (--trials 5)",
                self.describe(change)
            ),
            None => format!("{name} cannot be decided: too few samples"),
        }
    }

    /// Returns its metric.
    pub fn metric(&self) -> &'static Metric {
        self.0.metric
    }

    /// Describes a difference that [`Gate::check`] returned, and its distance beyond the limit.
    pub fn describe(&self, difference: f64) -> String {
        let unit = match self.0.metric.scale {
            Scale::Logarithmic => "%",
            Scale::Linear => " percentage points",
        };
        let beyond = (difference - self.0.limit).abs() * 100.0;
        format!(
            "{} by {:+.2}{unit}, {beyond:.2} beyond the limit",
            self.0.metric.name,
            difference * 100.0
        )
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // What may be 0 has no change in per cent.
        let metrics = metric::of_steps().chain(metric::of_bulk());
        let metrics =
            metrics.filter(|own| own.scale != Scale::Linear || own.unit == metric::Unit::Share);
        let example = "p99>+5%, rate<-3% or errors>+0.1%";
        Condition::parse(text, metrics, |_, limit| change(limit), example).map(Self)
    }
}

/// Reads a change in per cent. Without a sign it would look like a limit of the value itself.
fn change(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
    (text.starts_with(['+', '-']) && percent.is_finite()).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// A change, with an interval of this half width.
    fn changed(metric: &'static Metric, change: f64, half_width: Option<f64>) -> Comparison {
        let ends = half_width.map(|half| [change - half, change + half]);
        fixtures::comparison(metric, change, ends)
    }

    #[test]
    fn a_gate_holds_beyond_its_limit_where_the_difference_is_shown() {
        let p99 = &metric::P99;
        let gate: Gate = "p99 > +5%".parse().unwrap();
        let decided = |change, half| gate.decide(&changed(p99, change, half));
        assert_eq!(decided(0.06, Some(0.01)), Answer::Holds(0.06));
        assert_eq!(decided(0.06, Some(1.0)), Answer::Fails(0.06));
        assert_eq!(decided(0.04, Some(0.01)), Answer::Fails(0.04));
        // Without an error bar it may be chance.
        assert_eq!(decided(0.06, None), Answer::Unknown);
        assert_eq!(decided(0.04, None), Answer::Fails(0.04));
        let missing = Comparison {
            change: None,
            ..changed(p99, 0.0, None)
        };
        assert_eq!(gate.decide(&missing), Answer::Unknown);
        // Not more than the control differs from itself.
        let noise = Comparison {
            noise: Some(-0.07),
            ..changed(p99, 0.06, Some(0.01))
        };
        assert_eq!(gate.decide(&noise), Answer::Fails(0.06));
        // The rise may be larger where the new value is a lower bound, and none where the base's is.
        let open = |bounds: [bool; 2], change| {
            let mut own = changed(p99, change, Some(0.01));
            for (side, is_bound) in [&mut own.base, &mut own.new].into_iter().zip(bounds) {
                side.as_mut().unwrap().is_bound = is_bound;
            }
            gate.decide(&own)
        };
        assert_eq!(open([false, true], 0.06), Answer::Holds(0.06));
        assert_eq!(open([false, true], 0.04), Answer::Unknown);
        assert_eq!(open([true, false], 0.06), Answer::Unknown);
        assert_eq!(open([true, false], 0.04), Answer::Fails(0.04));
        assert_eq!(open([true, true], 0.0), Answer::Unknown);
        let rate: Gate = "rate<-3%".parse().unwrap();
        let decided = rate.decide(&changed(&metric::RATE, -0.04, Some(0.01)));
        assert_eq!(decided, Answer::Holds(-0.04));
        assert_eq!(
            rate.describe(-0.04),
            "rate by -4.00%, 1.00 beyond the limit"
        );
        // It may be 0, so that there is no share of it.
        for may_be_0 in ["recovery>+5%", "bulk-softirq>+5%", "retransmits>+5%"] {
            assert!(may_be_0.parse::<Gate>().is_err(), "{may_be_0}");
        }
        // Nothing is claimed of errors: their change alone decides, whatever error bar trials give.
        let errors: Gate = "errors>+0.1%".parse().unwrap();
        for half in [None, Some(0.01)] {
            let decided = errors.decide(&changed(&metric::ERROR_SHARE, 0.002, half));
            assert_eq!(decided, Answer::Holds(0.002));
        }
        assert!(errors.describe(0.002).contains("+0.20 percentage points"));
    }

    #[test]
    fn a_limit_with_a_sign_is_one_of_a_change() {
        for change in ["p50>+10%", "rate < -3%", "p99>= +5%", "errors<=-1%"] {
            assert!(Gate::is_meant(change), "{change}");
        }
        for value in ["p50>10ms", "errors>0.1%", "rate<100k", "p99", "+5%"] {
            assert!(!Gate::is_meant(value), "{value}");
        }
    }

    #[test]
    fn a_change_of_exactly_the_limit_is_not_beyond_it() {
        let half = |text: &str| {
            let gate: Gate = text.parse().unwrap();
            gate.decide(&changed(&metric::P99, 0.5, Some(0.1)))
        };
        assert_eq!(half("p99>+50%"), Answer::Fails(0.5));
        assert_eq!(half("p99>=+50%"), Answer::Holds(0.5));
        assert_eq!(half("p99<+50%"), Answer::Fails(0.5));
        assert_eq!(half("p99<=+50%"), Answer::Holds(0.5));
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
