//! The load beyond which times grow and the rate does not.

/// Minimum growth of a rate, as a share, that counts as growth.
const GROWTH: f64 = 0.05;

/// Returns the index of the knee among the steps of a closed-loop sweep, each given as its rate in
/// requests/s and its 99th percentile, in ascending order of callers: the first step that no later
/// one beats by 5 % in rate, while the 99th percentile of the next is higher. `None` where the rate
/// still grows at the end.
pub fn knee(steps: &[(f64, Option<u64>)]) -> Option<usize> {
    let full = |at: usize| {
        let best = steps[at + 1..]
            .iter()
            .map(|(rate, _)| *rate)
            .fold(0.0, f64::max);
        best < steps[at].0 * (1.0 + GROWTH)
    };
    let slower = |at: usize| {
        steps[at]
            .1
            .zip(steps[at + 1].1)
            .is_some_and(|(p99, next)| next > p99)
    };
    (0..steps.len().saturating_sub(1)).find(|&at| full(at) && slower(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(steps: &[(f64, u64)]) -> Option<usize> {
        knee(
            &steps
                .iter()
                .map(|&(rate, p99)| (rate, Some(p99)))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_knee_is_where_the_rate_stops_growing_and_times_do_not() {
        assert_eq!(
            of(&[(10.0, 1), (90.0, 2), (100.0, 4), (102.0, 8), (101.0, 16)]),
            Some(2)
        );
    }

    #[test]
    fn a_dip_in_a_rising_sweep_is_no_knee() {
        assert_eq!(
            of(&[
                (8.0, 1),
                (94.0, 2),
                (90.0, 3),
                (117.0, 5),
                (140.0, 8),
                (120.0, 16)
            ]),
            Some(4)
        );
    }

    #[test]
    fn a_growing_rate_has_no_knee() {
        assert_eq!(of(&[(10.0, 1), (20.0, 2), (40.0, 3)]), None);
        assert_eq!(of(&[(10.0, 1)]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn times_that_do_not_grow_or_are_unknown_make_no_knee() {
        assert_eq!(of(&[(100.0, 9), (100.0, 9)]), None);
        assert_eq!(knee(&[(100.0, None), (100.0, Some(9))]), None);
    }
}
