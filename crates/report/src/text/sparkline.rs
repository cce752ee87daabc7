//! The tail of a distribution in eight characters.

use netping_measure::{counts::Counts, distribution::is_backed};

/// Length in characters.
const LENGTH: usize = 8;

/// The levels, from the median up; each stands for twice the time of the one before, the last also
/// for more.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the tail from the median to the 99.9th percentile, at eight quantiles whose distances to 1
/// fall in equal proportions. Each level is a doubling of the median: `▁▁▁▂▂▃▅█`, or `00011247`
/// without `unicode`; a space where there are too few samples.
pub(super) fn sparkline(times: &Counts, unicode: bool) -> String {
    let count = times.len();
    let at = |q: f64| times.quantile(q).unwrap_or(0).max(1) as f64;
    let median = at(0.5);
    let character = |place: usize| {
        let tail = 0.5 * (0.001_f64 / 0.5).powf(place as f64 / (LENGTH - 1) as f64);
        let quantile = 1.0 - tail;
        if !is_backed(count, quantile * 100.0) {
            return ' ';
        }
        let doublings = (at(quantile) / median).log2();
        // A time that differs from a whole power by a bucket's width is that power.
        let level = ((doublings + 0.01).max(0.0) as usize).min(BLOCKS.len() - 1);
        if unicode {
            BLOCKS[level]
        } else {
            char::from(b'0' + level as u8)
        }
    };
    (0..LENGTH).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns so many samples of each time.
    fn of(samples: &[(u64, u64)]) -> Counts {
        samples.to_vec().into()
    }

    #[test]
    fn equal_times_are_a_flat_line() {
        let times = of(&[(1000, 20_000)]);
        assert_eq!(sparkline(&times, true), "▁▁▁▁▁▁▁▁");
        assert_eq!(sparkline(&times, false), "00000000");
    }

    #[test]
    fn each_step_up_is_a_doubling_of_the_median() {
        // The quantiles from the fifth on are 98.57, 99.41, 99.76 and 99.9 %.
        let times = of(&[(1000, 98_800), (2000, 700), (4000, 300), (128_000, 200)]);
        assert_eq!(sparkline(&times, false), "00000127");
        let longer = of(&[(1000, 99_000), (60_000_000_000, 1000)]);
        assert_eq!(sparkline(&longer, true), "▁▁▁▁▁███");
    }

    #[test]
    fn too_few_samples_leave_the_end_open() {
        assert_eq!(sparkline(&of(&[(1000, 1000)]), false), "00000   ");
        assert_eq!(sparkline(&of(&[]), true), "        ");
    }
}
