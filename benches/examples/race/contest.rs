//! The measurements of a row, and their description.

use netping_measure::statistics::{difference::Difference, moments::Moments, together::Together};

/// Measures once.
pub type Side = Box<dyn FnMut() -> f64>;

/// One side alone, or the first one against the second.
pub struct Contest {
    pub sides: Vec<Side>,
    /// Unit of the values.
    pub unit: &'static str,
}

impl Contest {
    /// Returns the contest of netping's side with another one.
    pub fn of(ours: Side, theirs: Side, unit: &'static str) -> Self {
        let sides = vec![ours, theirs];
        Self { sides, unit }
    }

    /// Returns a measurement without a peer.
    pub fn alone(ours: Side, unit: &'static str) -> Self {
        let sides = vec![ours];
        Self { sides, unit }
    }

    /// Returns the ratio of the sides, or the mean of the only one, with its 95 % interval.
    pub fn describe(&self, values: &[Vec<f64>]) -> String {
        let unit = self.unit;
        if values
            .iter()
            .flatten()
            .any(|value| !value.is_finite() || *value <= 0.0)
        {
            return "failed".to_owned();
        }
        let described = match values {
            [ours, theirs] => ratio(ours, theirs),
            [alone] => mean(alone),
            _ => None,
        };
        described.map_or_else(
            || "too few rounds".to_owned(),
            |text| format!("{text} {unit}"),
        )
    }
}

/// Describes the ratio of values that were measured in pairs.
fn ratio(ours: &[f64], theirs: &[f64]) -> Option<String> {
    let [ours, theirs] = [ours, theirs].map(logarithms);
    let difference = Difference::paired(&theirs, &ours, 0.0)?;
    let [low, high] = difference.interval(Together::ONE)?.map(f64::exp);
    let ratio = difference.value.exp();
    let mean = |logarithms: &[f64]| Some(short(Moments::of(logarithms)?.mean.exp()));
    Some(format!(
        "{ratio:.3} ({low:.3}..{high:.3}); {} and {}",
        mean(&ours)?,
        mean(&theirs)?
    ))
}

/// Describes the geometric mean of independent values.
fn mean(values: &[f64]) -> Option<String> {
    let moments = Moments::of(&logarithms(values))?;
    let (mean, half) = (moments.mean, moments.half_width(Together::ONE)?);
    let [low, mean, high] = [mean - half, mean, mean + half].map(|log| short(log.exp()));
    Some(format!("{mean} ({low}..{high})"))
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

/// Formats a value with three digits.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-6).log10().floor() as i32;
    format!("{value:.*}", digits.max(0) as usize)
}
