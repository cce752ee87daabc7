//! The kernel's time stamps on the run's clock, and the parts of requests by them.

use netping_measure::{
    anatomy::{Anatomy, Served, parts},
    sample::Sample,
};

use crate::{
    clock::{Clock, time_of_day},
    transport::Stamps,
};

/// A difference between two readings of the clocks above which the time of day was set meanwhile, in nanoseconds.
/// Slewing moves both clocks alike, and reading them is far more exact.
const SET: i128 = 1_000;

/// The times of a request that are not its caller's, in nanoseconds since 1970: the kernel's time stamps, and when the
/// server received it and replied. Either may be missing.
pub(super) type Times = (Option<Stamps>, Option<(u64, u64)>);

/// Takes requests apart.
#[derive(Debug)]
pub(super) struct Dissection<C> {
    clock: C,
    relation: Relation,
    /// When it was found that the time of day had been set, on the run's clock; 0 until then.
    set_at: u64,
    anatomy: Anatomy,
}

impl<C: Clock> Dissection<C> {
    /// Reads both clocks for the first time.
    pub(super) fn new(clock: C) -> Self {
        let mut relation = Relation::default();
        relation.observe(read(&clock));
        Self {
            clock,
            relation,
            set_at: 0,
            anatomy: Anatomy::default(),
        }
    }

    /// Takes a request apart that has ended; one that does not count shows only whether the time of day was set.
    pub(super) fn add(&mut self, sample: Sample, times: Times, counts: bool) {
        let readings = read(&self.clock);
        self.add_at(readings, sample, times, counts);
    }

    fn add_at(&mut self, readings: Readings, sample: Sample, (stamps, told): Times, counts: bool) {
        if !self.relation.observe(readings) {
            self.set_at = readings.after;
        }
        if !counts {
            return;
        }
        let parts = stamps.and_then(|own| {
            let on_clock = |time| self.relation.on_clock(time);
            let (sent, arrived) = (on_clock(own.sent)?, on_clock(own.arrived)?);
            let Some((received, replied)) = told else {
                return parts(sample, sent, arrived, None);
            };
            let between = || {
                let served = Served::Between(on_clock(received)?, on_clock(replied)?);
                parts(sample, sent, arrived, Some(served))
            };
            let time = Served::For(replied.checked_sub(received)?);
            // Behind the same address may be a relay to a host with another clock.
            let divided = own.is_local.then(between).flatten();
            divided.or_else(|| parts(sample, sent, arrived, Some(time)))
        });
        match parts {
            // So was that of other callers' requests which were out at that time.
            _ if sample.start < self.set_at => self.anatomy.clock_set += 1,
            Some(parts) => self.anatomy.record(parts),
            None => self.anatomy.without_stamps += 1,
        }
    }

    /// Returns the parts of the requests that counted.
    pub(super) fn finish(self) -> Anatomy {
        self.anatomy
    }
}

/// The time of day, in nanoseconds since 1970, between two readings of the run's clock.
#[derive(Debug, Clone, Copy)]
struct Readings {
    before: u64,
    time_of_day: u64,
    after: u64,
}

fn read(clock: &impl Clock) -> Readings {
    Readings {
        before: clock.now(),
        time_of_day: time_of_day(),
        after: clock.now(),
    }
}

/// The time of day less the run's clock, in nanoseconds: at least and at most.
///
/// Both are one clock to the kernel, `CLOCK_REALTIME` and `CLOCK_MONOTONIC`: their difference changes only when the
/// time of day is set. So every reading narrows it down.
#[derive(Debug, Default)]
struct Relation(Option<[i128; 2]>);

impl Relation {
    /// Takes readings in. Returns false if the time of day was set since the last ones.
    fn observe(&mut self, readings: Readings) -> bool {
        let time = i128::from(readings.time_of_day);
        let [least, most] = [readings.after, readings.before].map(|now| time - i128::from(now));
        let Some([low, high]) = self.0 else {
            self.0 = Some([least, most]);
            return true;
        };
        let narrowed = [low.max(least), high.min(most)];
        let is_consistent = narrowed[0] <= narrowed[1];
        self.0 = Some(if is_consistent {
            narrowed
        } else {
            [least, most]
        });
        narrowed[0] - narrowed[1] <= SET
    }

    /// Returns a time of day on the run's clock; `None` for one before its beginning.
    fn on_clock(&self, time_of_day: u64) -> Option<u64> {
        let [low, high] = self.0?;
        u64::try_from(i128::from(time_of_day) - i128::midpoint(low, high)).ok()
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::anatomy::Part;

    use super::*;
    use crate::clock::Manual;

    /// The time of day when the run's clock is at 0.
    const BEGUN: u64 = 1_800_000_000_000_000_000;

    /// Returns readings at this time of the run, each 20 ns after the last, with a time of day that is `ahead`.
    fn readings(at: u64, ahead: u64) -> Readings {
        Readings {
            before: at,
            time_of_day: BEGUN + at + 20 + ahead,
            after: at + 40,
        }
    }

    fn dissection() -> Dissection<Manual> {
        let mut relation = Relation::default();
        relation.observe(readings(0, 0));
        Dissection {
            clock: Manual::default(),
            relation,
            set_at: 0,
            anatomy: Anatomy::default(),
        }
    }

    fn sample(start: u64, end: u64) -> Sample {
        Sample {
            intended: start,
            free: start,
            start,
            end,
        }
    }

    fn stamps(sent: u64, arrived: u64) -> Times {
        let own = Stamps {
            sent: BEGUN + sent,
            arrived: BEGUN + arrived,
            is_local: true,
        };
        (Some(own), None)
    }

    /// Returns the requests with parts, those without stamps, and those in which the time of day was set.
    fn counts(anatomy: &Anatomy) -> [u64; 3] {
        let whole = anatomy.by_total.iter().map(|own| own.requests).sum();
        [whole, anatomy.without_stamps, anatomy.clock_set]
    }

    #[test]
    fn a_request_is_taken_apart_by_its_own_stamps() {
        let mut dissection = dissection();
        let request = sample(1_000, 9_000);
        dissection.add_at(readings(9_000, 0), request, stamps(2_000, 6_000), true);
        let anatomy = dissection.finish();
        assert_eq!(counts(&anatomy), [1, 0, 0]);
        let parts = anatomy.by_total.iter().max_by_key(|own| own.requests);
        let [whole, rest] = [Part::Away, Part::Server].map(|part| parts.unwrap().sums[part]);
        assert_eq!([whole, rest], [4_000, 0]);
    }

    #[test]
    fn the_time_away_is_divided_by_the_times_of_a_server_with_the_same_clock_and_by_their_difference_elsewhere()
     {
        for (is_local, ahead, expected) in [
            (true, 0, [0, 500, 2_000, 1_500]),
            (false, 7_000_000, [2_000, 0, 2_000, 0]),
            (true, 7_000_000, [2_000, 0, 2_000, 0]),
        ] {
            let mut dissection = dissection();
            let (own, _) = stamps(2_000, 6_000);
            let own = own.map(|own| Stamps { is_local, ..own });
            let server = [2_500, 4_500].map(|time| BEGUN + time + ahead);
            let times = (own, Some(server.into()));
            dissection.add_at(readings(9_000, 0), sample(1_000, 9_000), times, true);
            let anatomy = dissection.finish();
            assert_eq!(counts(&anatomy), [1, 0, 0]);
            let parts = [Part::Network, Part::Out, Part::Server, Part::Back];
            let sums = parts.map(|part| {
                anatomy
                    .by_total
                    .iter()
                    .map(|own| own.sums[part])
                    .sum::<u64>()
            });
            assert_eq!(sums, expected);
        }
    }

    #[test]
    fn stamps_that_are_missing_or_of_another_request_are_counted_and_not_guessed() {
        let mut dissection = dissection();
        let request = sample(1_000, 9_000);
        let (own, _) = stamps(2_000, 6_000);
        let reversed = (own, Some((BEGUN + 4_500, BEGUN + 2_500)));
        let longer = (own, Some((BEGUN + 1_500, BEGUN + 6_000)));
        let all = [
            (None, None),
            stamps(900, 6_000),
            stamps(2_000, 9_100),
            reversed,
            longer,
        ];
        for own in all {
            dissection.add_at(readings(9_000, 0), request, own, true);
        }
        dissection.add_at(readings(9_000, 0), request, (None, None), false);
        assert_eq!(counts(&dissection.finish()), [0, 5, 0]);
    }

    #[test]
    fn requests_in_which_the_time_of_day_was_set_have_no_parts_and_the_next_one_has() {
        let mut dissection = dissection();
        let ahead = 2_000;
        let interrupted = sample(1_000, 9_000);
        dissection.add_at(
            readings(9_000, ahead),
            interrupted,
            stamps(2_000, 6_000),
            true,
        );
        // Another caller's request was out then, too.
        let other = sample(5_000, 9_500);
        let beside = stamps(6_000, ahead + 9_400);
        dissection.add_at(readings(9_500, ahead), other, beside, true);
        let next = sample(11_000, 19_000);
        let after = stamps(ahead + 12_000, ahead + 16_000);
        dissection.add_at(readings(19_000, ahead), next, after, true);
        let anatomy = dissection.finish();
        assert_eq!(counts(&anatomy), [1, 0, 2]);
        let sent = &anatomy.parts[Part::Send];
        assert_eq!((sent.len(), sent.max()), (1, 1_000));
    }

    #[test]
    fn readings_narrow_the_difference_of_the_clocks_down() {
        let mut relation = Relation::default();
        let wide = Readings {
            before: 0,
            time_of_day: BEGUN + 900,
            after: 1_000,
        };
        assert!(relation.observe(wide));
        assert_eq!(relation.on_clock(BEGUN + 5_000), Some(4_600));
        assert!(relation.observe(readings(2_000, 0)));
        assert_eq!(relation.on_clock(BEGUN + 5_000), Some(5_000));
        // A reading that was interrupted takes nothing back.
        assert!(relation.observe(wide));
        assert_eq!(relation.on_clock(BEGUN + 5_000), Some(5_000));
        assert_eq!(relation.on_clock(BEGUN - 1), None);
    }
}
