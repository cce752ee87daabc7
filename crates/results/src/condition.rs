//! Conditions on a step's numbers, such as `p99<1ms`, `errors<0.1%` or `rate>=100k`.

use std::{fmt, str::FromStr};

use netping_measure::{
    distribution::{QUANTILES, samples_for},
    summary::Summary,
};

/// A condition on a step: a measure, a comparison, and a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    measure: Measure,
    comparison: Relation,
    limit: f64,
}

/// What is compared. Times are response times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Quantile(f64),
    Mean,
    Max,
    /// The share of requests without a verified reply, from 0 to 1.
    ErrorShare,
    /// Requests without a verified reply.
    Errors,
    /// Verified replies per second.
    Rate,
}

/// How a value is to stand to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// The name before a comparison, the comparison, and the limit behind it; `None` without one.
    pub fn split(text: &str) -> Option<(&str, Self, &str)> {
        let at = text.find(['<', '>'])?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (comparison, limit) = if let Some(limit) = rest.strip_prefix("<=") {
            (Self::LessOrEqual, limit)
        } else if let Some(limit) = rest.strip_prefix(">=") {
            (Self::GreaterOrEqual, limit)
        } else if let Some(limit) = rest.strip_prefix('<') {
            (Self::Less, limit)
        } else {
            (Self::Greater, &rest[1..])
        };
        Some((name, comparison, limit.trim()))
    }

    /// Whether `value` stands to `limit` so.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Less => value < limit,
            Self::LessOrEqual => value <= limit,
            Self::Greater => value > limit,
            Self::GreaterOrEqual => value >= limit,
        }
    }
}

/// How a condition stands to a step's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// It holds; this is the number.
    Holds(f64),
    /// It does not hold; this is the number.
    Fails(f64),
    /// There are too few samples for the number.
    Unknown,
}

impl Condition {
    /// Whether `summary` fulfils it.
    pub fn check(&self, summary: &Summary) -> Answer {
        let time = &summary.response_time;
        let value = match self.measure {
            Measure::Quantile(percent) => time.quantile(percent).map(|time| time as f64),
            Measure::Mean => time.mean,
            Measure::Max => time.max.map(|time| time as f64),
            Measure::ErrorShare => Some(summary.accounting.error_rate()),
            Measure::Errors => Some((summary.scheduled - summary.accounting.ok) as f64),
            Measure::Rate => Some(summary.rate),
        };
        let Some(value) = value else {
            return Answer::Unknown;
        };
        if self.comparison.holds(value, self.limit) {
            Answer::Holds(value)
        } else {
            Answer::Fails(value)
        }
    }

    /// How many samples it takes to tell.
    pub fn samples(&self) -> u64 {
        match self.measure {
            Measure::Quantile(percent) => samples_for(percent),
            _ => 1,
        }
    }

    /// `value`, which [`Condition::check`] gave, as people read it, and how far it is from the limit.
    pub fn describe(&self, value: f64) -> String {
        let number = |value: f64| match self.measure {
            Measure::Quantile(_) | Measure::Mean | Measure::Max => {
                format!("{} us", crate::format::micros(value / 1e3))
            }
            Measure::ErrorShare => crate::format::share(value),
            Measure::Errors | Measure::Rate => crate::format::thousands(value),
        };
        let far = if self.limit == 0.0 {
            String::new()
        } else {
            format!(
                ", {:+.1}% from the limit",
                (value / self.limit - 1.0) * 100.0
            )
        };
        format!("it is {}{far}", number(value))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "'{text}': {what}; a condition looks like p99<1ms, mean<=80us, errors<0.1%, errors>0 or rate>=100k"
            )
        };
        let (name, comparison, limit) =
            Relation::split(text).ok_or_else(|| wrong("no comparison"))?;
        let (measure, limit) = match name {
            "errors" => match limit.strip_suffix('%') {
                Some(percent) => (
                    Measure::ErrorShare,
                    number(percent).map(|percent| percent / 100.0),
                ),
                None => (Measure::Errors, number(limit)),
            },
            "rate" => (Measure::Rate, number(limit)),
            "mean" => (Measure::Mean, time(limit)),
            "max" => (Measure::Max, time(limit)),
            _ => {
                let percent = name
                    .strip_prefix('p')
                    .and_then(|percent| percent.parse().ok());
                let known = percent.filter(|percent| QUANTILES.contains(percent));
                let percent = known.ok_or_else(|| {
                    let names: Vec<_> = QUANTILES
                        .iter()
                        .map(|percent| format!("p{percent}"))
                        .collect();
                    wrong(&format!(
                        "'{name}' is none of {}, mean, max, errors, rate",
                        names.join(", ")
                    ))
                })?;
                (Measure::Quantile(percent), time(limit))
            }
        };
        let limit = limit.ok_or_else(|| wrong("the limit is not a number with its unit"))?;
        Ok(Self {
            text: text.to_owned(),
            measure,
            comparison,
            limit,
        })
    }
}

/// A number; `k` and `M` stand for thousands and millions.
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => text
            .strip_suffix('M')
            .map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    plain(digits).map(|number| number * unit)
}

fn plain(digits: &str) -> Option<f64> {
    digits
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

/// A time with its unit, in nanoseconds.
fn time(text: &str) -> Option<f64> {
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        // No thousands or millions of a unit: `5Ms` is a slip for 5ms.
        .find_map(|(unit, nanoseconds)| Some(plain(text.strip_suffix(unit)?)? * nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netping_measure::{
        aggregate::Aggregate,
        error_kind::ErrorKind,
        recorder::{Interval, Recorder, Sink},
        sample::{LoopKind, Sample},
        window::Window,
    };

    struct Keep<'a>(&'a mut Aggregate);

    impl Sink for Keep<'_> {
        fn hand_on(&mut self, interval: Interval) {
            self.0.add(interval);
        }

        fn spare(&mut self) -> Option<Interval> {
            None
        }
    }

    /// 1000 requests in one second: 990 take 1 ms, the others fail.
    fn summary() -> Summary {
        let window = Window {
            start: 0,
            end: 1_000_000_000,
        };
        let mut collector = Aggregate::new(LoopKind::Closed);
        let mut recorder = Recorder::new(LoopKind::Closed, 0, Keep(&mut collector));
        for number in 0..1000 {
            let outcome = if number % 100 == 0 {
                Err(ErrorKind::Eof)
            } else {
                Ok(())
            };
            recorder.record(
                window,
                Sample {
                    intended: 0,
                    start: 0,
                    end: 1_000_000,
                },
                outcome,
            );
        }
        recorder.finish();
        netping_measure::summary::Summary::of(&collector.finish(window, &[], 0))
    }

    #[test]
    fn conditions_hold_or_fail() {
        let summary = summary();
        let check = |text: &str| text.parse::<Condition>().unwrap().check(&summary);
        for text in [
            "p50<2ms",
            "p95 <= 1001us",
            "max<1s",
            "errors<2%",
            "errors>9",
            "rate>=0.99k",
            "mean>900us",
        ] {
            assert!(
                matches!(check(text), Answer::Holds(_)),
                "{text}: {:?}",
                check(text)
            );
        }
        for text in ["p50<1us", "errors<1%", "errors>10", "rate>1M"] {
            assert!(
                matches!(check(text), Answer::Fails(_)),
                "{text}: {:?}",
                check(text)
            );
        }
        // 990 samples do not tell it.
        assert_eq!(check("p99<1s"), Answer::Unknown);
        let samples = |text: &str| text.parse::<Condition>().unwrap().samples();
        assert_eq!(
            ["p50<1s", "p1<1s", "p99<1s", "p99.99<1s", "mean<1s"].map(samples),
            [20, 1000, 1000, 100_000, 1]
        );
        let condition: Condition = "errors>5".parse().unwrap();
        assert_eq!(condition.describe(10.0), "it is 10, +100.0% from the limit");
    }

    #[test]
    fn what_is_no_condition_says_what_one_looks_like() {
        for text in [
            "",
            "p99",
            "p98<1ms",
            "p99<1",
            "p99<ms",
            "rate<x",
            "errors<-1",
            "p99<nans",
            "p99<5Ms",
            "max<1ks",
            "speed>1",
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert!(error.contains("looks like p99<1ms"), "{error}");
        }
    }
}
