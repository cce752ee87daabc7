//! Histograms of times.

/// Times in nanoseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// The longest time that is recorded exactly, in nanoseconds: 60 s. A longer one counts as 60 s.
pub const LONGEST: u64 = 60_000_000_000;

/// Values are kept to this many significant digits: a relative error of at most 0.1 %.
pub const DIGITS: u8 = 3;

/// Returns an empty histogram of nanoseconds: 1 ns to 60 s, 3 significant digits.
#[expect(
    clippy::missing_panics_doc,
    reason = "the bounds are constants that hdrhistogram accepts"
)]
pub fn histogram() -> Histogram {
    Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("1 <= LONGEST / 2 and DIGITS <= 5")
}

/// Records one time in nanoseconds.
pub fn record(histogram: &mut Histogram, nanoseconds: u64) {
    histogram.saturating_record(nanoseconds);
}

/// Records one time in nanoseconds `count` times.
pub fn record_n(histogram: &mut Histogram, nanoseconds: u64, count: u64) {
    histogram.saturating_record_n(nanoseconds, count);
}

/// Adds the times of `part`.
pub fn add(sum: &mut Histogram, part: &Histogram) {
    if !part.is_empty() {
        // Both have the same bounds, so that nothing can lie outside.
        let _ = sum.add(part);
    }
}
