//! Positions of values and ticks on an axis.

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisScale {
    /// Evenly, with 0.
    Linear,
    /// Evenly, from the least value to the greatest.
    Close,
    /// By their logarithm.
    Log,
    /// Quantiles in per cent, by the logarithm of their odds: both tails are as wide as they are rare.
    Odds,
}

/// The nearest that a quantile is to an end of its scale, in per cent.
const RAREST: f64 = 1e-6;

/// The least length of an axis that does not begin at 0, as a share of its values.
const CLOSEST: f64 = 0.01;

impl AxisScale {
    fn transform(self, value: f64) -> f64 {
        match self {
            Self::Linear | Self::Close => value,
            // A time of 0 is below the resolution of the clock.
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Odds => (value.max(RAREST) / (100.0 - value).max(RAREST)).log10(),
        }
    }
}

/// Returns the ends of intervals that an axis has room for beside these marks: those that are not many times as far
/// from the middle as the marks and most other ends are. The others are drawn as arrows.
pub fn within_reach(scale: AxisScale, marks: &[f64], ends: &[f64]) -> Vec<f64> {
    let place = |value: &f64| scale.transform(*value);
    let places = || marks.iter().map(place).filter(|place| place.is_finite());
    let middle = match scale {
        AxisScale::Linear => 0.0,
        _ => places().sum::<f64>() / places().count().max(1) as f64,
    };
    let away = |place: f64| (place - middle).abs();
    let mut distances: Vec<f64> = ends.iter().map(|end| away(place(end))).collect();
    distances.sort_by(f64::total_cmp);
    let typical = distances.get(distances.len() / 2).copied().unwrap_or(0.0);
    let reach = places()
        .map(away)
        .fold(3.0 * typical, |reach, own| reach.max(4.0 * own));
    let is_within = |end: &&f64| end.is_finite() && away(place(end)) <= reach;
    ends.iter().filter(is_within).copied().collect()
}

/// An axis that is laid out: values over a distance in the drawing's units.
#[derive(Debug, Clone)]
pub struct Span {
    scale: AxisScale,
    /// The ends, in values.
    ends: [f64; 2],
    /// Where they are drawn.
    places: [f64; 2],
    ticks: Vec<f64>,
}

impl Span {
    /// An axis with room for all `values`, drawn from the first to the second of `places`, with
    /// about `most` ticks.
    pub fn new(
        scale: AxisScale,
        values: impl Iterator<Item = f64>,
        places: [f64; 2],
        most: usize,
    ) -> Self {
        let usable = |value: &f64| value.is_finite() && (scale != AxisScale::Log || *value > 0.0);
        let [low, high] = values
            .filter(usable)
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
                [low.min(value), high.max(value)]
            });
        let (ends, ticks) = match scale {
            AxisScale::Linear => linear(low.min(0.0), high.max(0.0), most),
            AxisScale::Close if low > high => ([0.0, 1.0], vec![0.0, 1.0]),
            AxisScale::Close => {
                // Values that are all alike are no reason for an axis of their rounding.
                let least = (low.abs().max(high.abs()) * CLOSEST).max(1e-9);
                let wider = ((least - (high - low)) / 2.0).max(0.0);
                linear(low - wider, high + wider, most)
            }
            AxisScale::Log if low > high => ([1.0, 10.0], vec![1.0, 10.0]),
            AxisScale::Log => {
                let [low, high] = [low, high].map(|end| end.clamp(1e-300, 1e300));
                logarithmic(low * 0.9, high * 1.1, most)
            }
            AxisScale::Odds => odds(low, high),
        };
        Self {
            scale,
            ends,
            places,
            ticks,
        }
    }

    /// Returns the position of `value`.
    pub fn place(&self, value: f64) -> f64 {
        let [low, high] = self.ends.map(|end| self.scale.transform(end));
        let share = ((self.scale.transform(value) - low) / (high - low)).clamp(0.0, 1.0);
        self.places[0] + share * (self.places[1] - self.places[0])
    }

    /// Returns true for a value that lies beyond the end of the axis.
    pub fn is_beyond(&self, value: f64) -> bool {
        let [low, high] = self.ends.map(|end| self.scale.transform(end));
        let hair = (high - low) * 1e-9;
        let place = self.scale.transform(value);
        place < low - hair || place > high + hair
    }

    /// The values at the ticks.
    pub fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Begins the axis, and its first tick, at `least` where that is above them.
    pub fn begin_at(&mut self, least: f64) {
        self.ends[0] = self.ends[0].max(least);
        if let Some(first) = self.ticks.first_mut() {
            *first = first.max(least);
        }
    }

    /// Ends a linear axis at its values, not at the next ticks.
    pub fn tighten(&mut self, values: impl Iterator<Item = f64>) {
        let [low, high] = values.fold([0.0, 0.0], |[low, high]: [f64; 2], value| {
            [low.min(value), high.max(value)]
        });
        if low < high {
            self.ends = [low, high];
            self.ticks.retain(|tick| (low..=high).contains(tick));
        }
    }

    /// Puts the ticks at values that occur, where they are at least `apart` from each other; of fewer
    /// than three, it leaves the ticks as they are.
    pub fn tick_at(&mut self, mut values: Vec<f64>, apart: f64) {
        values.sort_unstable_by(f64::total_cmp);
        let mut last = f64::NEG_INFINITY;
        values.retain(|&value| {
            let place = self.place(value);
            let kept = place - last >= apart;
            if kept {
                last = place;
            }
            kept
        });
        if values.len() >= 3 {
            self.ticks = values;
        }
    }
}

/// From 0, or below it, to a tick at or beyond `high`.
fn linear(low: f64, high: f64, most: usize) -> ([f64; 2], Vec<f64>) {
    let (low, high) = if (1e-9..=1e300).contains(&(high - low)) {
        (low, high)
    } else {
        (0.0, 1.0)
    };
    let step = nice((high - low) / most.max(1) as f64);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    let ticks: Vec<f64> = (first..=last).map(|tick| tick as f64 * step).collect();
    ([first as f64 * step, last as f64 * step], ticks)
}

/// 1, 2, 2.5 or 5 times a power of ten, not below `rough`.
fn nice(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0]
        .iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(power * 10.0)
}

/// 1, 2 and 5 times the powers of ten; where these are too many, fewer of them; where they are too few,
/// what is nice.
fn logarithmic(low: f64, high: f64, most: usize) -> ([f64; 2], Vec<f64>) {
    let ends = [low, high];
    let inside = |tick: &f64| (low..=high).contains(tick);
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let of = |factors: &[f64], every: usize| -> Vec<f64> {
        let powers = (first..=last)
            .step_by(every)
            .map(|power| 10_f64.powi(power));
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * power))
            .filter(inside)
            .collect()
    };
    let (fine, powers) = (of(&[1.0, 2.0, 5.0], 1), of(&[1.0], 1));
    let ticks = if fine.len() < 3 {
        // Round numbers, three at least.
        let evenly = |parts: usize| -> Vec<f64> {
            let step = nice((high - low) / parts as f64);
            let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
            (first..=last).map(|tick| tick as f64 * step).collect()
        };
        let most = most.clamp(1, 4);
        let mut choices = (most..most * 3).map(evenly);
        let ticks = choices.find(|ticks| ticks.len() >= 3);
        ticks.unwrap_or_else(|| evenly(most))
    } else if fine.len() <= most + 1 {
        fine
    } else if powers.len() < 3 {
        of(&[1.0, 3.0], 1)
    } else {
        of(&[1.0], powers.len().div_ceil(most + 1))
    };
    (ends, ticks)
}

/// Ticks at 50 % and at each further nine, on both sides.
fn odds(low: f64, high: f64) -> ([f64; 2], Vec<f64>) {
    let mut ticks = vec![
        0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999,
    ];
    let (low, high) = (low.clamp(0.05, 10.0), high.clamp(90.0, 99.9999));
    ticks.retain(|tick| (low..=high).contains(tick));
    ([low, high], ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(scale: AxisScale, values: &[f64]) -> Vec<f64> {
        Span::new(scale, values.iter().copied(), [0.0, 100.0], 5)
            .ticks()
            .to_vec()
    }

    #[test]
    fn ticks_are_round_numbers_around_the_values() {
        assert_eq!(
            ticks(AxisScale::Linear, &[80_016.0, 12.0]),
            [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0]
        );
        assert_eq!(
            ticks(AxisScale::Linear, &[-3.0, 7.0]),
            [-4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0]
        );
        assert_eq!(ticks(AxisScale::Log, &[1.0, 900.0]), [1.0, 10.0, 100.0]);
        assert_eq!(ticks(AxisScale::Log, &[2.0, 9.0]), [2.5, 5.0, 7.5]);
        let tenths = ticks(AxisScale::Log, &[0.17, 40.0]);
        let tenths = tenths.iter().map(|tick| (tick * 10.0).round() as u32);
        assert_eq!(tenths.collect::<Vec<_>>(), [3, 10, 30, 100, 300]);
        assert_eq!(
            ticks(AxisScale::Odds, &[1.0, 99.9]),
            [1.0, 10.0, 50.0, 90.0, 99.0, 99.9]
        );
        let alike = ticks(AxisScale::Close, &[9.03, 9.03 + 1e-14]);
        assert!(
            alike.len() > 2 && alike[0] < 9.03 && *alike.last().unwrap() > 9.03,
            "{alike:?}"
        );
        assert_eq!(
            ticks(AxisScale::Close, &[97.0, 104.0]),
            [96.0, 98.0, 100.0, 102.0, 104.0]
        );
    }

    #[test]
    fn an_axis_of_logarithms_has_three_ticks_at_least() {
        for exponent in -9..9 {
            for spread in [1.0, 1.01, 1.3, 2.0, 3.5, 7.0, 12.0, 60.0, 900.0, 1e5, 1e9] {
                for start in [1.0, 1.7, 2.9, 4.4, 7.7, 9.9] {
                    let low = start * 10_f64.powi(exponent);
                    let found = ticks(AxisScale::Log, &[low, low * spread]);
                    let count = found.len();
                    assert!((3..=8).contains(&count), "{low} x {spread}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn an_interval_without_an_end_does_not_stretch_the_axis() {
        let reach = |ends: &[f64]| within_reach(AxisScale::Linear, &[-1.0, 2.0], ends);
        assert_eq!(
            reach(&[-2.0, 3.0, 7.0, 90.0, f64::INFINITY]),
            [-2.0, 3.0, 7.0]
        );
        // Where all are wide, most are shown.
        assert_eq!(reach(&[-60.0, 50.0, 70.0, 900.0]), [-60.0, 50.0, 70.0]);
        let span = Span::new(AxisScale::Linear, [-2.0, 7.0].into_iter(), [0.0, 100.0], 5);
        assert!(span.is_beyond(90.0) && !span.is_beyond(7.0));
    }

    #[test]
    fn values_that_no_axis_has_room_for_do_no_harm() {
        let extreme: [&[f64]; 4] = [&[5e-324], &[1e-12, 5e-324], &[f64::MAX], &[5e-324, 1e308]];
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[5.0, 5.0]]
            .into_iter()
            .chain(extreme)
        {
            for scale in [
                AxisScale::Linear,
                AxisScale::Close,
                AxisScale::Log,
                AxisScale::Odds,
            ] {
                let span = Span::new(scale, values.iter().copied(), [10.0, 20.0], 5);
                assert!(span.ticks().len() < 20);
                assert!(
                    (10.0..=20.0).contains(&span.place(5.0)),
                    "{scale:?} {values:?}"
                );
                assert!(
                    (10.0..=20.0).contains(&span.place(0.0)),
                    "{scale:?} {values:?}"
                );
            }
        }
    }

    #[test]
    fn the_middle_of_quantiles_is_the_median_and_each_nine_is_as_wide_as_the_one_before() {
        let span = Span::new(AxisScale::Odds, [1.0, 99.0].into_iter(), [0.0, 400.0], 5);
        let places =
            [1.0, 9.0909, 50.0, 90.909_1, 99.0].map(|percent| span.place(percent).round() as u32);
        assert_eq!(places, [0, 100, 200, 300, 400]);
    }
}
