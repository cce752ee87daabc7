//! The overlap of several clients' windows, and the replies in it.

use netping_measure::{interval::IntervalSummary, status::Status, window::INTERVAL};

use super::MergeError;
use crate::run::Step;

/// So much of a client's second, a hundredth, may lie outside the common time: clocks never agree
/// to the nanosecond.
const TOLERANCE: u64 = INTERVAL / 100;

/// The time that all clients' windows have in common.
#[derive(Debug)]
pub(super) struct Common {
    /// Start, in nanoseconds since 1970.
    pub start: u64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Verified replies per second: the sum of the clients' rates.
    pub rate: f64,
    /// The number of its whole seconds.
    whole: u64,
    /// The seconds of each client before the first of those.
    shifts: Vec<u64>,
}

impl Common {
    /// Of the `number`th step, whose clients are given with the names of their files and the times
    /// by which their clocks are behind, in nanoseconds. Clients whose windows have less than
    /// `min_overlap` of the longest in common are refused: files have the times of whole windows, and
    /// what one client had while another was not there cannot be taken out of them.
    pub fn of(
        number: usize,
        parts: &[(&str, &Step, i64)],
        min_overlap: f64,
    ) -> Result<Self, MergeError> {
        let mut windows = Vec::new();
        for (name, step, behind) in parts {
            let [start, end] = window(step, *behind).ok_or_else(|| MergeError::NoTime {
                step: number,
                name: (*name).to_owned(),
            })?;
            windows.push((*name, start, end));
        }
        let all = || 0..windows.len();
        let longest = all().max_by_key(|at| windows[*at].2 - windows[*at].1);
        let last = all().max_by_key(|at| windows[*at].1);
        let first = all().min_by_key(|at| windows[*at].2);
        let [longest, last, first] = [longest, last, first].map(Option::unwrap_or_default);
        let (start, end) = (windows[last].1, windows[first].2);
        let common = end.saturating_sub(start) as f64;
        let length = (windows[longest].2 - windows[longest].1).max(1) as f64;
        if common == 0.0 || common < min_overlap * length {
            // One that began last and ended first is too short for the longest.
            let second = if last == first { longest } else { last };
            return Err(MergeError::Apart {
                step: number,
                first: windows[first].0.to_owned(),
                second: windows[second].0.to_owned(),
                overlap: common / length,
                needed: min_overlap,
                is_cut_short: parts[first].1.status == Status::Partial,
            });
        }
        let shifts: Vec<u64> = windows
            .iter()
            .map(|(_, own, _)| (start - own).saturating_sub(TOLERANCE).div_ceil(INTERVAL))
            .collect();
        let until = end.saturating_add(TOLERANCE);
        let whole = windows
            .iter()
            .zip(&shifts)
            .map(|((_, own, end), shift)| {
                ((until.min(*end) - own) / INTERVAL).saturating_sub(*shift)
            })
            .min()
            .unwrap_or(0);
        let rates = parts.iter().map(|(_, step, _)| step.summary.rate);
        Ok(Self {
            start,
            seconds: common / 1e9,
            rate: rates.sum(),
            whole,
            shifts,
        })
    }

    /// Returns its whole seconds, in which nothing has ended yet.
    pub fn idle(&self) -> Vec<IntervalSummary> {
        let starts = (0..self.whole).map(|at| at * INTERVAL);
        starts.map(IntervalSummary::idle).collect()
    }

    /// Adds the seconds of the client with this number, from 0 on, after those of all before it. A second in which
    /// nothing ended is one too.
    pub fn add_seconds(&self, number: usize, step: &Step, seconds: &mut [IntervalSummary]) {
        let own = step.intervals.iter();
        for own in own.filter(|own| own.length_ns == INTERVAL) {
            let at = (own.start_ns / INTERVAL).checked_sub(self.shifts[number]);
            let Some(second) = at.and_then(|at| seconds.get_mut(usize::try_from(at).ok()?)) else {
                continue;
            };
            second.ok = second.ok.saturating_add(own.ok);
            second.errors = second.errors.saturating_add(own.errors);
            // Of quantiles there is no sum; the longest of all is the longest of each.
            second.service_max = second.service_max.max(own.service_max);
            second.response_max = second.response_max.max(own.response_max);
            second.response_buckets.add(&own.response_buckets);
            // What one client does not know is not known of all.
            second.path = match number {
                0 => own.path,
                _ => second.path.zip(own.path).map(|(sum, own)| sum.and(own)),
            };
        }
    }
}

/// Returns the start and the end of a step's window, in nanoseconds since 1970, by a clock that is so
/// many nanoseconds behind.
pub(super) fn window(step: &Step, behind: i64) -> Option<[u64; 2]> {
    let start = step.window_started_at?.saturating_add_signed(behind);
    let length = (step.summary.seconds * 1e9).round() as u64;
    Some([start, start.saturating_add(length)])
}
