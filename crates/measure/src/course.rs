//! The course of a run on its clock: when replies came, and how long the requests took that were due
//! then.

use crate::{
    error_kind::ErrorKind,
    sample::Sample,
    window::{SLOT, Window},
};

/// The length of a tick, in nanoseconds: 1 ms. Replies within one tick are not told apart.
const TICK: u64 = 1_000_000;

/// Ticks in a word of the bitmap of replies.
const IN_WORD: u64 = u64::BITS as u64;

/// The shortest stretch without a reply that is listed, in nanoseconds: 20 ms.
pub const SHORTEST_GAP: u64 = 20_000_000;

/// What happened in 100 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// Successes that ended in it.
    pub ok: u64,
    /// Requests that were due in it, and were answered or timed out.
    pub due: u64,
    /// The sum of their response times, in nanoseconds.
    pub response: u64,
}

/// A stretch of a window in which no reply came, in nanoseconds since the window's start. Either end
/// is known to half a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last reply before it, or the window's start if there was none in the window.
    pub from: u64,
    /// The next reply, which may have come after the window, or the window's end if there was none.
    pub to: u64,
    /// True if no reply came after it.
    pub is_last: bool,
}

impl Gap {
    /// Returns its length, in nanoseconds.
    pub fn length(self) -> u64 {
        self.to - self.from
    }
}

/// The course of one worker's requests, or of several workers' added up: a slot for each 100 ms and a
/// bit for each millisecond since the run's clock began, warm-up and all.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// The slots.
    slots: Vec<Slot>,
    /// The ticks in which a success ended, one bit for each.
    replies: Vec<u64>,
    /// The time within the window for which requests were out that were answered or failed, in
    /// nanoseconds.
    outstanding: u64,
}

impl Course {
    /// Returns an empty course with room for the first seven minutes.
    pub fn new() -> Self {
        Self {
            slots: Vec::with_capacity(4096),
            replies: Vec::with_capacity(6400),
            outstanding: 0,
        }
    }

    /// Records a request and its outcome.
    pub fn record(&mut self, window: Window, sample: Sample, outcome: Result<(), ErrorKind>) {
        let (from, to) = (sample.start.max(window.start), sample.end.min(window.end));
        self.outstanding += to.saturating_sub(from);
        if outcome.is_err_and(|kind| !kind.is_timeout()) {
            return;
        }
        let end = (sample.end / SLOT) as usize;
        if end >= self.slots.len() {
            self.slots.resize(end + 1, Slot::default());
        }
        let due = &mut self.slots[(sample.intended / SLOT) as usize];
        due.due += 1;
        due.response += sample.end - sample.intended;
        if outcome.is_ok() {
            self.slots[end].ok += 1;
            self.mark(sample.end / TICK);
        }
    }

    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.extend(other.slots.len());
        for (sum, own) in self.slots.iter_mut().zip(&other.slots) {
            sum.ok += own.ok;
            sum.due += own.due;
            sum.response += own.response;
        }
        let words = self.replies.len().max(other.replies.len());
        self.replies.resize(words, 0);
        for (sum, own) in self.replies.iter_mut().zip(&other.replies) {
            *sum |= own;
        }
        self.outstanding += other.outstanding;
    }

    /// Makes it last until `end`: a server that dies leaves slots empty to the end.
    pub fn last_until(&mut self, end: u64) {
        self.extend((end / SLOT) as usize);
    }

    /// Returns the slots that lie wholly in the window.
    pub fn slots(&self, window: Window) -> &[Slot] {
        let first = window.start.div_ceil(SLOT) as usize;
        let last = ((window.end / SLOT) as usize).min(self.slots.len());
        self.slots.get(first..last).unwrap_or_default()
    }

    /// Returns the mean number of requests that were out in the window; those without a reply when the
    /// drain was over are not among them.
    pub fn outstanding(&self, window: Window) -> f64 {
        self.outstanding as f64 / 1e9 / window.seconds().max(f64::MIN_POSITIVE)
    }

    /// Returns the stretches of at least [`SHORTEST_GAP`] without a reply that begin in the window, in
    /// their order. One that began before it counts from the window's start.
    pub fn gaps(&self, window: Window) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut add = |from: u64, to: u64, is_last| {
            if to.saturating_sub(from) >= SHORTEST_GAP {
                gaps.push(Gap {
                    from: from - window.start,
                    to: to - window.start,
                    is_last,
                });
            }
        };
        let mut from = window.start;
        for tick in self.ticks().filter(|tick| *tick >= window.start / TICK) {
            if from >= window.end {
                break;
            }
            let reply = tick * TICK + TICK / 2;
            add(from, reply, false);
            from = from.max(reply);
        }
        add(from, window.end, true);
        gaps
    }

    fn extend(&mut self, slots: usize) {
        self.slots
            .resize(slots.max(self.slots.len()), Slot::default());
    }

    fn mark(&mut self, tick: u64) {
        let word = (tick / IN_WORD) as usize;
        if word >= self.replies.len() {
            self.replies.resize(word + 1, 0);
        }
        self.replies[word] |= 1 << (tick % IN_WORD);
    }

    /// Returns the ticks in which a reply came, in their order.
    fn ticks(&self) -> impl Iterator<Item = u64> {
        let words = (0..).step_by(IN_WORD as usize).zip(&self.replies);
        words.flat_map(|(first, word)| {
            let bits = (0..IN_WORD).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| first + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = TICK;

    const WINDOW: Window = Window {
        start: 1000 * MS,
        end: 3000 * MS,
    };

    /// A request that was due at `due`, sent 1 ms later and over at `end`, all in milliseconds.
    fn request(due: u64, end: u64) -> Sample {
        let start = (due + 1) * MS;
        Sample {
            intended: due * MS,
            free: start,
            start,
            end: end * MS,
        }
    }

    /// Returns the course of requests that succeed, spread over two workers.
    fn course(requests: &[(u64, u64)]) -> Course {
        let mut workers = [Course::new(), Course::new()];
        for (at, (due, end)) in requests.iter().enumerate() {
            workers[at % 2].record(WINDOW, request(*due, *end), Ok(()));
        }
        let [mut sum, other] = workers;
        sum.add(&other);
        sum
    }

    /// Returns the gaps in milliseconds, and whether no reply came after them.
    fn gaps(ends: &[u64]) -> Vec<(u64, u64, bool)> {
        let requests: Vec<(u64, u64)> = ends.iter().map(|end| (end - 10, *end)).collect();
        let gaps = course(&requests).gaps(WINDOW).into_iter();
        gaps.map(|gap| (gap.from / MS, gap.to / MS, gap.is_last))
            .collect()
    }

    /// Replies every 5 ms, of either worker in turn, but for those between the given times.
    fn every_5_ms(without: &[(u64, u64)]) -> Vec<u64> {
        let is_out = |at: u64| without.iter().any(|(from, to)| (*from..*to).contains(&at));
        (900..3100).step_by(5).filter(|at| !is_out(*at)).collect()
    }

    #[test]
    fn a_gap_is_one_of_all_workers() {
        assert_eq!(gaps(&every_5_ms(&[])), []);
        // Each worker alone has a reply every 10 ms.
        assert_eq!(
            gaps(&every_5_ms(&[(1503, 1512), (2001, 2050)])),
            [(1000, 1050, false)]
        );
        assert_eq!(
            gaps(&every_5_ms(&[(1501, 1520), (2001, 2050)])),
            [(500, 520, false), (1000, 1050, false)]
        );
    }

    #[test]
    fn a_gap_counts_from_the_windows_start_and_may_end_after_it() {
        assert_eq!(gaps(&every_5_ms(&[(0, 1800)])), [(0, 800, false)]);
        assert_eq!(gaps(&every_5_ms(&[(2951, 3090)])), [(1950, 2090, false)]);
        // One that begins after the window is none of it.
        assert_eq!(gaps(&every_5_ms(&[(3001, 3090)])), []);
        assert_eq!(gaps(&every_5_ms(&[(2001, 9999)])), [(1000, 2000, true)]);
        assert_eq!(gaps(&[]), [(0, 2000, true)]);
        // A reply in the millisecond in which the window begins.
        let window = Window {
            start: WINDOW.start + MS * 9 / 10,
            ..WINDOW
        };
        let found = course(&[(990, 1000), (1010, 1100)]).gaps(window);
        assert_eq!((found[0].from, found[0].to), (0, 99 * MS + MS * 6 / 10));
    }

    #[test]
    fn response_times_are_those_of_the_requests_that_were_due_then() {
        let mut course = course(&[(1010, 1020), (1090, 1350)]);
        let failed = |kind| (request(1110, 1210), Err(kind));
        for (sample, outcome) in [failed(ErrorKind::Timeout), failed(ErrorKind::Reset)] {
            course.record(WINDOW, sample, outcome);
        }
        let slot = |ok, due, response| Slot {
            ok,
            due,
            response: response * MS,
        };
        let expected = [
            slot(1, 2, 270),
            slot(0, 1, 100),
            slot(0, 0, 0),
            slot(1, 0, 0),
        ];
        assert_eq!(course.slots(WINDOW), expected);
        course.last_until(WINDOW.end);
        assert_eq!(course.slots(WINDOW).len(), 20);
    }

    #[test]
    fn outstanding_are_requests_as_far_as_they_lie_in_the_window() {
        let mut course = course(&[(99, 1500), (1999, 2500), (2499, 9000), (4000, 5000)]);
        assert!((course.outstanding(WINDOW) - 0.75).abs() < 1e-9);
        course.record(WINDOW, request(999, 3000), Err(ErrorKind::Reset));
        assert!((course.outstanding(WINDOW) - 1.75).abs() < 1e-9);
    }
}
