//! Adds up what all workers recorded.

use std::collections::BTreeMap;

use enum_map::EnumMap;

use crate::{
    accounting::Accounting,
    buckets::Buckets,
    counts::Counts,
    course::{Course, Gap, Slot},
    interval::IntervalSummary,
    recorder::{Interval, Remainder},
    sample::LoopKind,
    statistics::precision::Precision,
    times::{Histograms, Time},
    window::{INTERVAL, SLOT, Window},
};

/// The sums while a step runs.
#[derive(Debug)]
pub struct Aggregate {
    kind: LoopKind,
    histograms: Histograms,
    intervals: BTreeMap<u64, Second>,
    remainder: Remainder,
}

/// The sums of one interval.
#[derive(Debug, Default)]
struct Second {
    service: Counts,
    response: Counts,
    accounting: Accounting,
}

impl Aggregate {
    /// Returns empty sums.
    pub fn new(kind: LoopKind) -> Self {
        Self {
            kind,
            histograms: Histograms::default(),
            intervals: BTreeMap::new(),
            remainder: Remainder::default(),
        }
    }

    /// Adds one worker's interval and returns it empty.
    pub fn add(&mut self, mut interval: Interval) -> Interval {
        // To look through a histogram takes longer than to add what it holds.
        let times = EnumMap::from_fn(|time| Counts::from(&interval.times[time]));
        let censored = Counts::from(&interval.censored);
        self.remainder.accounting += &interval.accounting;
        let second = self.intervals.entry(interval.index).or_default();
        second.service.add(&times[Time::Service]);
        second.response.add(match self.kind {
            LoopKind::Open => &times[Time::Response],
            LoopKind::Closed => &times[Time::Service],
        });
        second.response.add(&censored);
        second.accounting += &interval.accounting;
        self.histograms.add(&Histograms { times, censored });
        interval.clear();
        interval
    }

    /// Adds the records of workers that belong to no interval.
    pub fn add_remainder(&mut self, remainder: &Remainder) {
        self.remainder.add(remainder);
    }

    /// Returns the sums over `window`, which has ended.
    pub fn finish(mut self, window: Window) -> Totals {
        let Remainder {
            mut accounting,
            in_flight: mut unanswered,
            not_sent,
            mut course,
        } = self.remainder;
        let mut histograms = self.histograms;
        let times = &mut histograms.times;
        accounting.ok = times[Time::Service].len();
        accounting.in_flight = unanswered.len();
        accounting.not_sent = not_sent.len();
        unanswered.add(&not_sent);
        if self.kind == LoopKind::Closed {
            times[Time::Response] = times[Time::Service].clone();
            if accounting.ok > 0 {
                times[Time::Lag] = vec![(0, accounting.ok)].into();
            }
        }
        histograms.censored.add(&unanswered);
        times[Time::Response].add(&histograms.censored);
        // A second in which nothing ended is one too.
        let length = window.end.saturating_sub(window.start);
        for index in 0..length.div_ceil(INTERVAL) {
            self.intervals.entry(index).or_default();
        }
        // The same goes for slots: a server that dies leaves them empty to the end.
        course.last_until(window.end);
        let (precision, quantile_intervals) = precision(
            course.slots(window),
            &self.intervals,
            length / INTERVAL,
            &unanswered,
        );
        let intervals = self
            .intervals
            .iter()
            .map(|(&index, second)| second.summary(index, window))
            .collect();
        Totals {
            window,
            accounting,
            histograms,
            intervals,
            precision,
            quantile_intervals,
            course,
        }
    }
}

/// Everything that a step recorded.
#[derive(Debug, Clone)]
pub struct Totals {
    /// The span in which requests counted.
    pub window: Window,
    /// The outcome of each of them, and other counts.
    pub accounting: Accounting,
    /// Their times.
    pub histograms: Histograms,
    /// Second by second: all of the window, and what came after it.
    pub intervals: Vec<IntervalSummary>,
    /// The precision of the numbers.
    pub precision: Precision,
    /// The intervals of p50 and p99 of the response time.
    pub quantile_intervals: [Option<[u64; 2]>; 2],
    /// The course of the requests.
    pub course: Course,
}

impl Totals {
    /// Returns what happened in each 100 ms that lies wholly in the window.
    pub fn slots(&self) -> &[Slot] {
        self.course.slots(self.window)
    }

    /// Returns the stretches of the window without a reply.
    pub fn gaps(&self) -> Vec<Gap> {
        self.course.gaps(self.window)
    }

    /// Returns the mean number of requests that were out in the window.
    pub fn outstanding(&self) -> f64 {
        self.course.outstanding(self.window)
    }
}

impl Second {
    fn summary(&self, index: u64, window: Window) -> IntervalSummary {
        let start = index * INTERVAL;
        let length = (start + INTERVAL)
            .min(window.end.saturating_sub(window.start))
            .saturating_sub(start);
        let response = &self.response;
        IntervalSummary {
            start_ns: start,
            length_ns: length,
            ok: self.accounting.early + self.service.len(),
            errors: self.accounting.failed(),
            service_p50: self.service.quantile(0.5),
            service_p99: self.service.quantile(0.99),
            service_max: self.service.max(),
            response_p50: response.quantile(0.5),
            response_p99: response.quantile(0.99),
            response_max: response.max(),
            response_buckets: Buckets::of(response),
            path: None,
        }
    }
}

/// Estimates the run's precision from its slots, its first `whole` seconds, and from the ages of
/// the requests that got no reply.
fn precision(
    slots: &[Slot],
    intervals: &BTreeMap<u64, Second>,
    whole: u64,
    unanswered: &Counts,
) -> (Precision, [Option<[u64; 2]>; 2]) {
    let rates: Vec<f64> = slots
        .iter()
        .map(|slot| slot.ok as f64 * 1e9 / SLOT as f64)
        .collect();
    let mut times: Vec<&Counts> = intervals
        .range(..whole)
        .map(|(_, second)| &second.response)
        .collect();
    // Requests of the window whose replies came after it, or never, are in the quantiles: so the
    // bootstrap must draw them too.
    let mut last = times.pop().cloned();
    if let Some(last) = &mut last {
        for (_, second) in intervals.range(whole..) {
            last.add(&second.response);
        }
        last.add(unanswered);
    }
    times.extend(&last);
    Precision::of(&rates, &times)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        error_kind::ErrorKind,
        histogram::{histogram, record},
        recorder::{Recorder, Sink},
        sample::Sample,
        summary::Summary,
    };

    /// Keeps what a recorder hands on.
    struct IntoVec<'a>(&'a mut Vec<Interval>);

    impl Sink for IntoVec<'_> {
        fn hand_on(&mut self, interval: Interval) {
            self.0.push(interval);
        }

        fn spare(&mut self) -> Option<Interval> {
            None
        }
    }

    type Request = (Sample, Result<(), ErrorKind>);

    fn collect(
        kind: LoopKind,
        window: Window,
        workers: &[Vec<Request>],
        in_flight: &[u64],
    ) -> Totals {
        let mut aggregate = Aggregate::new(kind);
        for requests in workers {
            let mut kept = Vec::new();
            let mut recorder = Recorder::new(kind, IntoVec(&mut kept));
            for (sample, outcome) in requests {
                recorder.record(window, *sample, *outcome);
            }
            let course = recorder.finish();
            aggregate.add_remainder(&Remainder {
                course,
                ..Remainder::default()
            });
            for interval in kept {
                aggregate.add(interval);
            }
        }
        aggregate.add_remainder(&Remainder {
            in_flight: in_flight.iter().copied().collect(),
            ..Remainder::default()
        });
        aggregate.finish(window)
    }

    fn ok(start: u64, end: u64) -> Request {
        (
            Sample {
                intended: start,
                free: start,
                start,
                end,
            },
            Ok(()),
        )
    }

    /// Returns the successes and failures that were due outside the window.
    fn outside(totals: &Totals) -> (u64, u64) {
        let accounting = &totals.accounting;
        (accounting.outside_ok, accounting.outside_errors)
    }

    /// Returns the number of times of a kind, and the longest.
    fn longest(totals: &Totals, time: Time) -> (u64, u64) {
        let times = &totals.histograms.times[time];
        (times.len(), times.max().unwrap_or(0))
    }

    const WINDOW: Window = Window {
        start: 1000,
        end: 2000,
    };

    #[test]
    fn a_recorder_takes_each_interval_from_those_at_hand() {
        struct Stock(u64);
        impl Sink for Stock {
            fn hand_on(&mut self, interval: Interval) {
                assert!(interval.accounting.outside_errors > 0);
            }

            fn spare(&mut self) -> Option<Interval> {
                self.0 = self.0.checked_sub(1)?;
                let mut marked = Interval::new(0);
                marked.accounting.outside_errors = 1;
                Some(marked)
            }
        }
        let mut recorder = Recorder::new(LoopKind::Closed, Stock(2));
        let window = Window {
            start: 0,
            end: 2 * INTERVAL,
        };
        for (sample, outcome) in [ok(0, 1), ok(INTERVAL, INTERVAL)] {
            recorder.record(window, sample, outcome);
        }
        recorder.finish();
    }

    #[test]
    fn times_are_of_requests_due_in_the_window_and_the_rate_is_of_replies_in_it() {
        let requests = vec![ok(990, 999), ok(990, 1000), ok(1500, 1999), ok(1999, 9000)];
        let totals = collect(LoopKind::Closed, WINDOW, &[requests], &[]);
        assert_eq!(totals.accounting.ok, 2);
        assert_eq!(outside(&totals), (2, 0));
        let accounting = &totals.accounting;
        assert_eq!(
            (accounting.early, accounting.late, accounting.arrived()),
            (1, 1, 2)
        );
        assert_eq!(longest(&totals, Time::Lag), (2, 0));
        let times = &totals.histograms.times;
        assert_eq!(times[Time::Response], times[Time::Service]);
        assert!(times[Time::Service].max() >= Some(7001));
    }

    #[test]
    fn failures_count_where_they_were_due() {
        let failed = |start, end| {
            (
                Sample {
                    intended: start,
                    free: start,
                    start,
                    end,
                },
                Err(ErrorKind::Timeout),
            )
        };
        let requests = vec![
            failed(10, 999),
            failed(999, 1000),
            failed(1999, 9000),
            failed(2000, 9000),
        ];
        let totals = collect(LoopKind::Closed, WINDOW, &[requests], &[]);
        assert_eq!(
            totals.accounting.errors,
            BTreeMap::from([(ErrorKind::Timeout, 1)])
        );
        assert_eq!(outside(&totals), (0, 3));
        // It took at least that long.
        let histograms = &totals.histograms;
        assert_eq!(histograms.times[Time::Response], histograms.censored);
        assert_eq!(histograms.censored.len(), 1);
        assert!(histograms.censored.max() >= Some(7001));
    }

    #[test]
    fn requests_that_were_never_sent_are_in_the_response_times() {
        let mut aggregate = Aggregate::new(LoopKind::Open);
        aggregate.add_remainder(&Remainder {
            not_sent: [700, 800].into_iter().collect(),
            ..Remainder::default()
        });
        let totals = aggregate.finish(WINDOW);
        let accounting = &totals.accounting;
        assert_eq!((accounting.not_sent, accounting.in_flight), (2, 0));
        assert_eq!(longest(&totals, Time::Response), (2, 800));
        assert_eq!(totals.histograms.censored.len(), 2);
    }

    #[test]
    fn a_reply_at_the_windows_very_end_is_late() {
        let requests = vec![ok(1500, 1999), ok(1500, 2000)];
        let totals = collect(LoopKind::Closed, WINDOW, &[requests], &[]);
        assert_eq!((totals.accounting.ok, totals.accounting.late), (2, 1));
    }

    #[test]
    fn an_open_loop_counts_what_was_due_in_the_window() {
        let due = |intended, start, end| {
            (
                Sample {
                    intended,
                    // The last tenth of a lag is the client's.
                    free: start - (start - intended) / 10,
                    start,
                    end,
                },
                Ok(()),
            )
        };
        let requests = vec![
            due(999, 1500, 1600),
            due(1000, 1100, 1300),
            due(1999, 5000, 6000),
            due(2000, 2000, 2100),
        ];
        let totals = collect(LoopKind::Open, WINDOW, &[requests], &[50_000]);
        assert_eq!(totals.accounting.ok, 2);
        assert_eq!(outside(&totals), (2, 0));
        assert_eq!(totals.accounting.in_flight, 1);
        assert_eq!(totals.accounting.scheduled(), 3);
        let own = [
            (Time::Lag, 3001),
            (Time::Service, 1000),
            (Time::NoCallerFree, 2701),
            (Time::ClientLate, 300),
        ];
        for (time, expected) in own {
            assert_eq!(longest(&totals, time), (2, expected), "{}", time.name());
        }
        // One of them came after the window: it counts, but the server did not keep up with the
        // rate.
        assert_eq!(totals.accounting.late, 1);
        // One that was due before came within: the server's work of the window, though not the
        // window's request.
        assert_eq!(totals.accounting.early, 1);
        assert!((Summary::of(&totals).rate - 2e6).abs() < 1.0);
        assert_eq!(totals.intervals[0].ok, 3);
        // What is still out is at least as old as that.
        let (answered, most) = longest(&totals, Time::Response);
        assert!(answered == 3 && most >= 50_000, "{answered} {most}");
    }

    #[test]
    fn a_second_in_which_nothing_ended_is_one_too() {
        const SECOND: u64 = 1_000_000_000;
        let window = Window {
            start: SECOND,
            end: 5 * SECOND + SECOND / 2,
        };
        // The server stands still for the second and the third second, and to the end.
        let requests = vec![ok(SECOND, SECOND + 1000), ok(SECOND + 2000, 4 * SECOND + 7)];
        let totals = collect(LoopKind::Closed, window, &[requests], &[]);
        let seconds: Vec<_> = totals
            .intervals
            .iter()
            .map(|second| (second.start_ns, second.length_ns, second.ok))
            .collect();
        let whole = |index, ok| (index * SECOND, SECOND, ok);
        assert_eq!(
            seconds,
            [
                whole(0, 1),
                whole(1, 0),
                whole(2, 0),
                whole(3, 1),
                (4 * SECOND, SECOND / 2, 0)
            ]
        );
        assert_eq!(totals.slots().len(), 45);
        assert_eq!(
            (
                totals.intervals[1].service_p50,
                totals.intervals[1].response_max
            ),
            (None, None)
        );
    }

    #[test]
    fn replies_after_an_open_window_count_in_the_interval_of_its_quantiles() {
        const SECOND: u64 = 1_000_000_000;
        let window = Window {
            start: 0,
            end: 60 * SECOND,
        };
        // Of a hundred each second, up to seven take longer; the replies to the last thirty may come
        // after the window.
        let due = |number: u64| number * SECOND / 100;
        let slow = |number: u64| number % 100 < (number / 100).pow(2) * 7 % 11 % 5;
        let interval = |last: u64| {
            let requests = (0..6000)
                .map(|number| {
                    let time = match number {
                        5970.. => last,
                        _ if slow(number) => 2_000_000 + number * 7919 % 1_000_000,
                        _ => 1_000_000,
                    };
                    ok(due(number), due(number) + time)
                })
                .collect();
            collect(LoopKind::Open, window, &[requests], &[SECOND]).quantile_intervals[1]
        };
        assert!(interval(1_000_000).is_some());
        // With them, its seconds are too unequal for one.
        assert_eq!(interval(SECOND / 2), None);
    }

    proptest! {
        /// However requests are spread over workers and seconds, sums and seconds agree with the
        /// plain samples.
        #[test]
        fn nothing_is_lost_between_workers_and_intervals(
            requests in prop::collection::vec((0_usize..3, 0_u64..5_000_000_000, 1_u64..900_000_000), 1..200),
        ) {
            let window = Window { start: 1_000_000_000, end: 4_500_000_000 };
            let mut workers = vec![Vec::new(); 3];
            let (mut exact, mut arrived, mut whole) = (0, 0, histogram());
            for &(worker, start, length) in &requests {
                workers[worker].push(ok(start, start + length));
                if window.contains(start) {
                    exact += 1;
                    record(&mut whole, length);
                }
                arrived += u64::from(window.contains(start + length));
            }
            let totals = collect(LoopKind::Closed, window, &workers, &[]);
            prop_assert_eq!(totals.accounting.ok, exact);
            prop_assert_eq!(&totals.histograms.times[Time::Service], &Counts::from(&whole));
            prop_assert_eq!(totals.accounting.arrived(), arrived);
            let seconds = totals.intervals.iter().map(|second| second.ok).sum::<u64>();
            prop_assert_eq!(seconds, arrived + totals.accounting.late);
            let slots = totals.slots().iter().map(|slot| slot.ok).sum::<u64>();
            prop_assert_eq!(slots, arrived);
        }
    }
}
