//! Detection of the end of a run's transient.

/// Observations in a batch.
const BATCH: usize = 5;

/// Minimum number of batches.
const FEWEST: usize = 6;

/// Returns the number of first observations that belong to the transient, by the rule MSER-5: in
/// batches of five, the number whose removal minimizes the standard error of the mean of the rest
/// (White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
/// simulation", 2000). `None` where that is more than half: no steady state has been seen yet.
pub fn mser5(observations: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = observations
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    let n = batches.len();
    if n < FEWEST {
        return None;
    }
    let error = |cut: usize| {
        let rest = &batches[cut..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        rest.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count * count)
    };
    // Near the end so few are left that their agreement is chance.
    let cut = (0..=n - FEWEST / 2).min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
    (cut * 2 <= n).then_some(cut * BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small deterministic noise.
    fn noise(at: usize) -> f64 {
        ((at * 7919 + 13) % 101) as f64 / 101.0
    }

    #[test]
    fn a_transient_is_cut_and_the_rest_is_kept() {
        let rates: Vec<f64> = (0..100)
            .map(|at| if at < 20 { at as f64 * 5.0 } else { 100.0 } + noise(at))
            .collect();
        assert_eq!(mser5(&rates), Some(20));
        let steady: Vec<f64> = (0..100).map(|at| 100.0 + noise(at)).collect();
        assert!(mser5(&steady).unwrap() <= 50);
    }

    #[test]
    fn a_rising_rate_is_not_steady() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(mser5(&rising), None);
        assert_eq!(mser5(&[1.0; 29]), None);
    }
}
