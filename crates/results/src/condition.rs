//! Conditions on a step's numbers, such as `p99<1ms`, `errors<0.1%` or `rate>=100k`.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::{
    metric::{self, Metric, Unit},
    run::Step,
};

/// A condition on a step: a metric, a comparison, and a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    pub(crate) metric: &'static Metric,
    /// True for `<` and `<=`.
    is_upper: bool,
    /// True for `<=` and `>=`.
    includes_limit: bool,
    /// In the metric's unit.
    pub(crate) limit: f64,
}

/// The outcome of checking a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// It holds for this value.
    Holds(f64),
    /// It does not hold for this value.
    Fails(f64),
    /// There are too few samples, or the value is unknown.
    Unknown,
}

impl Condition {
    /// Returns the metric that it is on.
    pub fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Checks a step.
    pub fn check(&self, step: &Step) -> Answer {
        let Some(value) = self.metric.of_step(step) else {
            return Answer::Unknown;
        };
        self.answer_within(value, [false, self.metric.is_bound_of(step)])
    }

    /// Compares a value with the limit, where the true value may be smaller, or larger, and thus on its other side.
    pub(crate) fn answer_within(&self, value: f64, [smaller, larger]: [bool; 2]) -> Answer {
        let answer = self.answer(value);
        let is_open = if matches!(answer, Answer::Holds(_)) == self.is_upper {
            larger
        } else {
            smaller
        };
        if is_open { Answer::Unknown } else { answer }
    }

    /// Compares a value with the limit.
    fn answer(&self, value: f64) -> Answer {
        let holds = match value.partial_cmp(&self.limit) {
            Some(Ordering::Less) => self.is_upper,
            Some(Ordering::Equal) => self.includes_limit,
            Some(Ordering::Greater) => !self.is_upper,
            None => false,
        };
        if holds {
            Answer::Holds(value)
        } else {
            Answer::Fails(value)
        }
    }

    /// Returns the number of samples that a decision takes.
    pub fn samples(&self) -> u64 {
        self.metric.samples()
    }

    /// Describes a value that [`Condition::check`] returned, and its distance from the limit.
    pub fn describe(&self, value: f64) -> String {
        let ratio = value / self.limit;
        let far = match ratio {
            _ if self.limit == 0.0 => String::new(),
            2.0.. => format!(", {ratio:.1} times the limit"),
            _ => format!(", {:+.1}% from the limit", (ratio - 1.0) * 100.0),
        };
        format!("it is {}{far}", self.metric.unit.tell(value))
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
        let example = "p99<1ms, mean<=80us, errors<0.1%, errors>0 or rate>=100k";
        Self::parse(text, metric::of_steps(), Unit::parse, example)
    }
}

impl Condition {
    /// Reads a condition on bulk streams.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn of_bulk(text: &str) -> Result<Self, String> {
        Self::parse(
            text,
            metric::of_bulk(),
            Unit::parse,
            "bulk-rate<2 or first-byte>5ms",
        )
    }

    /// Reads a condition on one of `metrics`, whose limit `limit` reads.
    pub(crate) fn parse(
        text: &str,
        metrics: impl Iterator<Item = &'static Metric> + Clone,
        limit: fn(Unit, &str) -> Option<f64>,
        example: &str,
    ) -> Result<Self, String> {
        let wrong = |what: &str| format!("'{text}': {what}; a condition looks like {example}");
        let at = text.find(['<', '>']);
        let (name, rest) = text.split_at(at.ok_or_else(|| wrong("no comparison"))?);
        let (is_upper, rest) = (rest.starts_with('<'), &rest[1..]);
        let included = rest.strip_prefix('=');
        let number = included.unwrap_or(rest).trim();
        let name = name.trim();
        let found = metric::named(name, metrics.clone()).map_err(|error| {
            // The name is all that is wrong, so that there is no need for an example.
            let meant = metric::meant(name, metrics).map(|meant| format!("'{text}': {meant}"));
            meant.unwrap_or_else(|| wrong(&error))
        })?;
        // Errors have two units, a share and a number.
        let (metric, limit) = found
            .into_iter()
            .find_map(|metric| Some((metric, limit(metric.unit, number)?)))
            .ok_or_else(|| wrong("the limit cannot be read"))?;
        Ok(Self {
            text: text.to_owned(),
            metric,
            is_upper,
            includes_limit: included.is_some(),
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::{
        aggregate::Aggregate,
        error_kind::ErrorKind,
        recorder::{Interval, Recorder, Sink},
        sample::{LoopKind, Sample},
        window::Window,
    };

    use super::*;
    use crate::fixtures;

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
    fn step() -> Step {
        let window = Window {
            start: 0,
            end: 1_000_000_000,
        };
        let mut aggregate = Aggregate::new(LoopKind::Closed);
        let mut recorder = Recorder::new(LoopKind::Closed, Keep(&mut aggregate));
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
                    free: 0,
                    start: 0,
                    end: 1_000_000,
                },
                outcome,
            );
        }
        recorder.finish();
        fixtures::of(&aggregate.finish(window))
    }

    #[test]
    fn conditions_hold_or_fail() {
        let step = step();
        let check = |text: &str| text.parse::<Condition>().unwrap().check(&step);
        for text in [
            "p50<2ms",
            "p95 <= 1001us",
            "max<1s",
            "errors<2%",
            "errors>9",
            "rate>=0.99k",
            "mean>900us",
            "sd<1us",
            "tm99.9>=999us",
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
        // 990 samples are too few, and the server's CPU time is unknown.
        assert_eq!(check("server-cpu<5us"), Answer::Unknown);
        assert_eq!(check("p99<1s"), Answer::Unknown);
        let samples = |text: &str| text.parse::<Condition>().unwrap().samples();
        assert_eq!(samples("first-message-p99<5ms"), samples("p99<5ms"));
        assert_eq!(samples("message-gap-p50<5ms"), samples("p50<5ms"));
        assert_eq!(
            ["p50<1s", "p1<1s", "p99<1s", "p99.99<1s", "mean<1s"].map(samples),
            [20, 1000, 1000, 100_000, 1]
        );
        let condition: Condition = "errors>5".parse().unwrap();
        assert_eq!(condition.describe(10.0), "it is 10, 2.0 times the limit");
    }

    #[test]
    fn an_invalid_condition_is_rejected_with_an_example() {
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
