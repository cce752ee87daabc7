//! The unit in which text shows times: the one that fits them, unless the user chose one.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::format::figures;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `ns`.
    Nanos,
    /// `us`.
    Micros,
    /// `ms`.
    Millis,
    /// `s`.
    Seconds,
}

/// The place in [`TimeUnit::ALL`] of the unit that the user chose; beyond its end: none.
static CHOSEN: AtomicUsize = AtomicUsize::new(usize::MAX);

/// A number from here on is shown in the next larger unit, as far as that leaves two digits of the smallest
/// number beside it.
const LARGE: f64 = 99_999.5;

/// The smallest number that is shown with three decimals, and the smallest with two digits.
const ONE: f64 = 0.9995;
const TENTH: f64 = 0.0995;

impl TimeUnit {
    /// Every unit, from the smallest on.
    pub const ALL: [Self; 4] = [Self::Nanos, Self::Micros, Self::Millis, Self::Seconds];

    /// Has all text of this process show times in one unit.
    pub fn choose(self) {
        CHOSEN.store(self as usize, Ordering::Relaxed);
    }

    /// Returns the unit of times, in nanoseconds, that are shown together: that which the user chose, or the
    /// one that fits. No unit is smaller than a microsecond unless it is chosen.
    pub fn of(times: impl IntoIterator<Item = f64>) -> Self {
        let chosen = Self::ALL.get(CHOSEN.load(Ordering::Relaxed)).copied();
        chosen.unwrap_or_else(|| Self::fitting(times))
    }

    fn fitting(times: impl IntoIterator<Item = f64>) -> Self {
        let times = times.into_iter().map(f64::abs);
        let times = times.filter(|time| time.is_finite() && *time > 0.0);
        let ends = times.fold(None, |ends: Option<[f64; 2]>, time| {
            Some(ends.map_or([time; 2], |[least, most]| [least.min(time), most.max(time)]))
        });
        let Some([least, most]) = ends else {
            return Self::Micros;
        };
        let fits = |unit: &Self| {
            least >= unit.nanos() * ONE
                || (most >= unit.below() * LARGE && least >= unit.nanos() * TENTH)
        };
        let larger = [Self::Seconds, Self::Millis];
        larger.into_iter().find(fits).unwrap_or(Self::Micros)
    }

    /// Returns this unit for times beside others that have it, unless they would have more than five digits
    /// before the decimal point, or fewer than two at all; then the one that fits them.
    #[must_use]
    pub fn beside(self, time: Option<f64>) -> Self {
        match time {
            Some(time) if !self.suits(time, LARGE) => Self::of([time]),
            _ => self,
        }
    }

    /// Returns false for a time that is hard to read in this unit: below a tenth of it, or with more than six
    /// digits.
    pub fn is_readable(self, time: f64) -> bool {
        self.suits(time, LARGE * 10.0) || Self::of([time]) == self
    }

    fn suits(self, time: f64, most: f64) -> bool {
        let number = time.abs() / self.nanos();
        number == 0.0 || (TENTH..most).contains(&number)
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }

    /// Returns its length, in nanoseconds.
    const fn nanos(self) -> f64 {
        match self {
            Self::Nanos => 1.0,
            Self::Micros => 1e3,
            Self::Millis => 1e6,
            Self::Seconds => 1e9,
        }
    }

    /// Returns the length of the next smaller unit, in nanoseconds.
    const fn below(self) -> f64 {
        self.nanos() / 1e3
    }

    /// Returns a time, in nanoseconds, without the unit's name.
    pub fn show(self, time: f64) -> String {
        figures(time / self.nanos())
    }

    /// Returns a time, in nanoseconds, as [`TimeUnit::show`] does, with its sign.
    pub fn signed(self, time: f64) -> String {
        let sign = if time < 0.0 { "" } else { "+" };
        sign.to_owned() + &self.show(time)
    }
}

/// Returns a time, in nanoseconds, with its unit, as it stands in a sentence: `782 ms`.
pub fn time(nanoseconds: f64) -> String {
    let unit = TimeUnit::of([nanoseconds]);
    format!("{} {}", unit.show(nanoseconds), unit.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_a_sentence_has_the_unit_that_fits() {
        let shown = [
            0.0,
            50.0,
            7516.0,
            999_400.0,
            999_700.0,
            -1_234_000.0,
            781_713_000.0,
            5e9,
            90e9,
        ];
        assert_eq!(
            shown.map(time),
            [
                "0.00 us", "0.050 us", "7.52 us", "999 us", "1.00 ms", "-1.23 ms", "782 ms",
                "5.00 s", "90.0 s"
            ]
        );
    }

    #[test]
    fn times_that_are_shown_together_have_one_unit_in_which_each_has_two_digits() {
        let of = |times: &[f64]| TimeUnit::fitting(times.iter().copied());
        assert_eq!(of(&[]), TimeUnit::Micros);
        assert_eq!(of(&[0.0, 2e6]), TimeUnit::Millis);
        assert_eq!(of(&[59e3, 20e6]), TimeUnit::Micros);
        assert_eq!(of(&[120e3, 781e6]), TimeUnit::Millis);
        // In milliseconds, the first would be 0.06.
        assert_eq!(of(&[59e3, 781e6]), TimeUnit::Micros);
        assert_eq!(of(&[-3e6, 4e6]), TimeUnit::Millis);
        assert_eq!(of(&[2e9, 70e9]), TimeUnit::Seconds);
    }

    #[test]
    fn a_column_beside_others_has_their_unit_while_that_reads_well() {
        let us = TimeUnit::Micros;
        assert_eq!(us.beside(Some(12_345e3)), us);
        assert_eq!(us.beside(Some(0.0)), us);
        assert_eq!(us.beside(None), us);
        assert_eq!(us.beside(Some(781_713e3)), TimeUnit::Millis);
        assert_eq!(TimeUnit::Millis.beside(Some(50e3)), us);
        assert!(us.is_readable(781_713e3) && !us.is_readable(7e9));
        // There is no smaller unit.
        assert!(us.is_readable(2.0) && !TimeUnit::Millis.is_readable(59e3));
    }

    #[test]
    fn the_sign_is_shown_where_it_is_a_difference() {
        assert_eq!(TimeUnit::Micros.signed(7516.0), "+7.52");
        assert_eq!(TimeUnit::Millis.signed(-7.516e6), "-7.52");
    }
}
