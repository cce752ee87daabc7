//! Values that lie far off the others, found by statistics that they do not move themselves.

/// The standard deviation of a normal distribution, as a multiple of its median absolute deviation.
const PER_MEDIAN_DEVIATION: f64 = 1.4826;

/// The distance from which on a value is far off.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The least number of values that show which of them is the odd one.
    pub fewest: usize,
    /// The least distance from the median of all, in standard deviations.
    pub deviations: f64,
    /// The least multiple of that median, or of its inverse.
    pub multiple: f64,
}

/// A value that lies far off the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its place among the values.
    pub at: usize,
    /// The value, as a multiple of the median of the others.
    pub ratio: f64,
}

/// Returns the values that are far off, in their order. Deviations are those of logarithms, of which
/// those that are not finite are left out. Their scale is the median absolute deviation, which a few
/// values do not widen, however far off they are (Hampel, "The influence curve and its role in robust
/// estimation", 1974).
pub fn outliers(rule: Rule, values: &[f64]) -> Vec<Outlier> {
    let all = values.iter().map(|value| value.ln()).enumerate();
    let all: Vec<(usize, f64)> = all.filter(|(_, x)| x.is_finite()).collect();
    if all.len() < rule.fewest {
        return Vec::new();
    }
    let sorted = sorted(all.iter().map(|(_, x)| *x));
    let middle = middle(&sorted);
    let spread = median(all.iter().map(|(_, x)| (x - middle).abs()));
    let far = (rule.deviations * PER_MEDIAN_DEVIATION * spread).max(rule.multiple.ln());
    let outliers = all.into_iter().filter(|(_, x)| (x - middle).abs() > far);
    outliers
        .map(|(at, x)| {
            // The others, but for one at the end on its side, which moves their middle as it does.
            let others = if x > middle {
                &sorted[..sorted.len() - 1]
            } else {
                &sorted[1..]
            };
            let ratio = (x - self::middle(others)).exp();
            Outlier { at, ratio }
        })
        .collect()
}

/// Returns the middle value, or the mean of the two in the middle; 0 without any.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    middle(&sorted(values))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n => f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        fewest: 4,
        deviations: 10.0,
        multiple: 1.5,
    };

    #[test]
    fn a_value_is_far_off_by_a_multiple_and_by_deviations() {
        let places = |values: &[f64]| -> Vec<usize> {
            let found = outliers(RULE, values).into_iter();
            found.map(|outlier| outlier.at).collect()
        };
        assert_eq!(places(&[1.0, 1.6, 1.0, 1.0]), [1]);
        assert_eq!(places(&[1.0, 1.4, 1.0, 1.0]), [0; 0]);
        assert_eq!(places(&[1.0, 1.0 / 1.6, 1.0, 1.0]), [1]);
        assert_eq!(places(&[1.0, 9.0, 1.0]), [0; 0]);
        assert_eq!(places(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), [0; 0]);
        // What has no logarithm is none of the values.
        assert_eq!(places(&[0.0, 1.0, 1.0, 9.0]), [0; 0]);
        assert_eq!(places(&[0.0, 1.0, 1.0, 1.0, 9.0]), [4]);
    }

    #[test]
    fn a_ratio_is_to_the_median_of_the_others() {
        let ratios = |values: &[f64]| -> Vec<f64> {
            let found = outliers(RULE, values).into_iter();
            found.map(|outlier| outlier.ratio).collect()
        };
        let is_near = |found: Vec<f64>, expected: f64| {
            assert!(
                found.len() == 1 && (found[0] - expected).abs() < 1e-9,
                "{found:?}"
            );
        };
        is_near(ratios(&[1.0, 1.1, 1.2, 99.0]), 99.0 / 1.1);
        is_near(ratios(&[1.0, 1.1, 1.1, 1.2, 0.01]), 0.01 / 1.1);
        assert!((median([3.0, 1.0].into_iter()) - 2.0).abs() < f64::EPSILON);
    }
}
