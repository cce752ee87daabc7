//! Means and their 95 % confidence intervals, by Student's t.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::statistics::together::Together;

/// The number, mean and variance of some independent values.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    /// The number of values.
    pub n: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their sample variance; absent with fewer than two.
    pub variance: Option<f64>,
}

impl Moments {
    /// Returns the moments of `values`; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = (n > 0.0).then(|| values.iter().sum::<f64>() / n)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            n,
            mean,
            variance: (n > 1.0).then(|| squares / (n - 1.0)),
        })
    }

    /// Returns the standard error of the mean.
    pub fn error(&self) -> Option<f64> {
        self.variance.map(|variance| (variance / self.n).sqrt())
    }

    /// Returns half the width of the mean's interval, as one that holds its value together with others;
    /// `None` with fewer than two values.
    pub fn half_width(&self, together: Together) -> Option<f64> {
        Some(self.error()? * together.factor(self.n - 1.0)?)
    }
}

/// Returns the factor that makes a standard error half a 95 % interval.
pub fn t_quantile(freedom: f64) -> Option<f64> {
    Together::ONE.factor(freedom)
}

/// Returns the quantile `q`, from 0 to 1, of Student's t.
pub(super) fn t_at(freedom: f64, q: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom)
        .ok()
        .map(|t| t.inverse_cdf(q))
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::{exponential, normal, uniform};

    #[test]
    fn a_mean_has_students_interval() {
        // t(0.975, 4) = 2.7764, and the standard error is 0.7071.
        let moments = Moments::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let half = moments.half_width(Together::ONE).unwrap();
        assert!((moments.mean - 3.0).abs() < 1e-9 && (half - 1.9632).abs() < 1e-3);
        // t(0.9875, 4) = 3.4954: two intervals hold together.
        let among = moments.half_width(Together::fixed(2)).unwrap();
        assert!((among - 2.4716).abs() < 1e-3, "{among}");
        assert_eq!(Moments::of(&[1.0]).unwrap().half_width(Together::ONE), None);
        assert!(Moments::of(&[]).is_none());
    }

    /// The share of simulated sets of 3, 5, 6 and 10 trials whose interval holds the mean of their
    /// logarithms, in per cent: the table of docs/methodology.md.
    #[test]
    fn few_trials_with_heavy_tails_are_covered_as_documented() {
        type Logarithm = fn(&mut ChaCha8Rng) -> f64;
        let cases: [(&str, Logarithm, [u32; 4]); 4] = [
            ("lognormal", normal, [95, 95, 95, 95]),
            (
                "Pareto",
                |random| exponential(random) - 1.0,
                [88, 88, 88, 90],
            ),
            (
                "slow in one of four",
                |random| {
                    let slow = f64::from(u8::from(uniform(random) < 0.25));
                    0.1 * normal(random) + slow - 0.25
                },
                [71, 76, 81, 93],
            ),
            (
                "slow in one of ten",
                |random| {
                    let slow = f64::from(u8::from(uniform(random) < 0.1));
                    0.1 * normal(random) + slow - 0.1
                },
                [87, 75, 72, 71],
            ),
        ];
        for (name, logarithm, expected) in cases {
            let mut random = ChaCha8Rng::seed_from_u64(1);
            let found = [3, 5, 6, 10].map(|trials| {
                let held = (0..10_000).filter(|_| {
                    let values: Vec<f64> = (0..trials).map(|_| logarithm(&mut random)).collect();
                    let moments = Moments::of(&values).unwrap();
                    moments.mean.abs() <= moments.half_width(Together::ONE).unwrap()
                });
                (held.count() as u32 + 50) / 100
            });
            assert_eq!(found, expected, "{name}");
        }
    }
}
