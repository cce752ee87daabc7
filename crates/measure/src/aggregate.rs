//! Adds up what all workers recorded.

use std::collections::BTreeMap;

use crate::{
    accounting::{Accounting, arrived},
    buckets::Buckets,
    counts::Counts,
    histogram::{Histogram, histogram},
    interval::IntervalSummary,
    recorder::{Interval, Outside},
    sample::LoopKind,
    statistics::precision::Precision,
    window::{INTERVAL, SLOT, Window},
};

/// The sums while a step runs.
#[derive(Debug)]
pub struct Aggregate {
    kind: LoopKind,
    total: Interval,
    intervals: BTreeMap<u64, Second>,
    outside: Outside,
    slots: Vec<u64>,
}

/// The sums of one interval.
#[derive(Debug, Default)]
struct Second {
    service: Counts,
    response: Counts,
    early: u64,
    errors: u64,
}

impl Aggregate {
    /// Returns empty sums.
    pub fn new(kind: LoopKind) -> Self {
        Self {
            kind,
            total: Interval::new(0),
            intervals: BTreeMap::new(),
            outside: Outside::default(),
            slots: Vec::new(),
        }
    }

    /// Adds one worker's interval and returns it empty.
    pub fn add(&mut self, mut interval: Interval) -> Interval {
        add(&mut self.total.service, &interval.service);
        add(&mut self.total.response, &interval.response);
        add(&mut self.total.lag, &interval.lag);
        add(&mut self.total.no_caller, &interval.no_caller);
        add(&mut self.total.client_late, &interval.client_late);
        add(&mut self.total.censored, &interval.censored);
        add(&mut self.total.failed, &interval.failed);
        let second = self.intervals.entry(interval.index).or_default();
        second.service.add_histogram(&interval.service);
        second.response.add_histogram(match self.kind {
            LoopKind::Open => &interval.response,
            LoopKind::Closed => &interval.service,
        });
        second.response.add_histogram(&interval.censored);
        self.total.late += interval.late;
        self.total.early += interval.early;
        second.early += interval.early;
        for (kind, count) in &interval.errors {
            *self.total.errors.entry(*kind).or_default() += count;
            second.errors += count;
        }
        interval.clear();
        interval
    }

    /// Adds one worker's requests outside the window, and its successes in each 100 ms.
    pub fn add_rest(&mut self, outside: Outside, slots: &[u32]) {
        self.outside.ok += outside.ok;
        self.outside.errors += outside.errors;
        if self.slots.len() < slots.len() {
            self.slots.resize(slots.len(), 0);
        }
        for (sum, count) in self.slots.iter_mut().zip(slots) {
            *sum += u64::from(*count);
        }
    }

    /// Returns the sums over `window`, which has ended. `in_flight` holds the age of every request
    /// without a reply; `not_sent` that of those that were due but never handed to the transport.
    pub fn finish(mut self, window: Window, in_flight: &Histogram, not_sent: &Histogram) -> Totals {
        add(&mut self.total.censored, in_flight);
        add(&mut self.total.censored, not_sent);
        let (mut response, lag) = match self.kind {
            LoopKind::Open => (self.total.response, self.total.lag),
            LoopKind::Closed => {
                let mut lag = histogram();
                lag.saturating_record_n(0, self.total.service.len());
                (self.total.service.clone(), lag)
            }
        };
        add(&mut response, &self.total.censored);
        let accounting = Accounting {
            ok: self.total.service.len(),
            errors: self.total.errors,
            in_flight: in_flight.len(),
            not_sent: not_sent.len(),
        };
        // A second in which nothing ended is one too.
        let length = window.end.saturating_sub(window.start);
        for index in 0..length.div_ceil(INTERVAL) {
            self.intervals.entry(index).or_default();
        }
        // The same goes for slots: a server that dies leaves them empty to the end.
        let slots = self.slots.len().max((window.end / SLOT) as usize);
        self.slots.resize(slots, 0);
        let (precision, quantile_intervals) = precision(
            window_slots(&self.slots, window),
            &self.intervals,
            length / INTERVAL,
            [in_flight, not_sent],
        );
        let intervals = self
            .intervals
            .iter()
            .map(|(&index, second)| second.summary(index, window))
            .collect();
        Totals {
            window,
            accounting,
            late: self.total.late,
            early: self.total.early,
            service: self.total.service,
            response,
            censored: Counts::from(&self.total.censored),
            lag,
            no_caller: self.total.no_caller,
            client_late: self.total.client_late,
            failed: self.total.failed,
            intervals,
            precision,
            quantile_intervals,
            outside: self.outside,
            slots: self.slots,
        }
    }
}

/// Everything that a step recorded.
#[derive(Debug, Clone)]
pub struct Totals {
    /// The span in which requests counted.
    pub window: Window,
    /// The outcome of each of them.
    pub accounting: Accounting,
    /// Successes that came after the window's end.
    pub late: u64,
    /// Successes within the window that had been due before it.
    pub early: u64,
    /// `end - start` of successes.
    pub service: Histogram,
    /// `end - intended` of successes, and what is in `censored`.
    pub response: Histogram,
    /// Response times that are at least this: of requests that timed out, were in flight at the
    /// end, or were never sent.
    pub censored: Counts,
    /// `start - intended` of successes.
    pub lag: Histogram,
    /// The part of an open loop's lag in which no caller was free.
    pub no_caller: Histogram,
    /// The part of an open loop's lag in which a caller was free.
    pub client_late: Histogram,
    /// `end - start` of failures.
    pub failed: Histogram,
    /// Second by second: all of the window, and what came after it.
    pub intervals: Vec<IntervalSummary>,
    /// The precision of the numbers.
    pub precision: Precision,
    /// The intervals of p50 and p99 of the response time.
    pub quantile_intervals: [Option<[u64; 2]>; 2],
    /// Requests that ended outside the window.
    pub outside: Outside,
    /// Successes in each 100 ms since the run's clock began.
    pub slots: Vec<u64>,
}

impl Totals {
    /// Returns the successes in each 100 ms that lies wholly in the window.
    pub fn window_slots(&self) -> &[u64] {
        window_slots(&self.slots, self.window)
    }

    /// Returns the successes in each 100 ms after the window, up to the last of them.
    pub fn drain_slots(&self) -> &[u64] {
        let end = (self.window.end / SLOT) as usize;
        self.slots.get(end..).unwrap_or_default()
    }

    /// Returns the successes that came within the window.
    pub fn arrived(&self) -> u64 {
        arrived(self.accounting.ok, self.late, self.early)
    }
}

impl Second {
    /// Returns the successes that ended in it.
    fn arrived(&self) -> u64 {
        self.early + self.service.len()
    }

    fn summary(&self, index: u64, window: Window) -> IntervalSummary {
        let start = index * INTERVAL;
        let length = (start + INTERVAL)
            .min(window.end.saturating_sub(window.start))
            .saturating_sub(start);
        let ok = self.arrived();
        let response = &self.response;
        IntervalSummary {
            start_ns: start,
            length_ns: length,
            ok,
            errors: self.errors,
            service_p50: self.service.quantile(0.5),
            service_p99: self.service.quantile(0.99),
            service_max: self.service.max(),
            response_p50: response.quantile(0.5),
            response_p99: response.quantile(0.99),
            response_max: response.max(),
            response_buckets: Buckets::of(response),
        }
    }
}

/// Returns those slots that lie wholly in the window.
fn window_slots(slots: &[u64], window: Window) -> &[u64] {
    let first = window.start.div_ceil(SLOT) as usize;
    let last = ((window.end / SLOT) as usize).min(slots.len());
    slots.get(first..last).unwrap_or_default()
}

/// Estimates the run's precision from its slots, its first `whole` seconds, and from the ages of
/// the requests that got no reply.
fn precision(
    slots: &[u64],
    intervals: &BTreeMap<u64, Second>,
    whole: u64,
    unanswered: [&Histogram; 2],
) -> (Precision, [Option<[u64; 2]>; 2]) {
    let rates: Vec<f64> = slots
        .iter()
        .map(|&count| count as f64 * 1e9 / SLOT as f64)
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
        for ages in unanswered {
            last.add_histogram(ages);
        }
    }
    times.extend(&last);
    Precision::of(&rates, &times)
}

fn add(sum: &mut Histogram, part: &Histogram) {
    if !part.is_empty() {
        // Both have the same bounds, so that nothing can lie outside.
        let _ = sum.add(part);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        error_kind::ErrorKind,
        histogram::record,
        recorder::{Recorder, Sink},
        sample::Sample,
        summary::Summary,
    };

    /// Keeps what a recorder hands on.
    struct Kept<'a>(&'a mut Vec<Interval>);

    impl Sink for Kept<'_> {
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
            let mut recorder = Recorder::new(kind, 0, Kept(&mut kept));
            for (sample, outcome) in requests {
                recorder.record(window, *sample, *outcome);
            }
            let (outside, slots) = recorder.finish();
            aggregate.add_rest(outside, &slots);
            for interval in kept {
                aggregate.add(interval);
            }
        }
        let mut ages = histogram();
        for age in in_flight {
            record(&mut ages, *age);
        }
        aggregate.finish(window, &ages, &histogram())
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

    const WINDOW: Window = Window {
        start: 1000,
        end: 2000,
    };

    #[test]
    fn times_are_of_requests_due_in_the_window_and_the_rate_is_of_replies_in_it() {
        let requests = vec![ok(990, 999), ok(990, 1000), ok(1500, 1999), ok(1999, 9000)];
        let totals = collect(LoopKind::Closed, WINDOW, &[requests], &[]);
        assert_eq!(totals.accounting.ok, 2);
        assert_eq!(totals.outside, Outside { ok: 2, errors: 0 });
        assert_eq!((totals.early, totals.late, totals.arrived()), (1, 1, 2));
        assert_eq!((totals.lag.len(), totals.lag.max()), (2, 0));
        assert_eq!(totals.response, totals.service);
        assert!(totals.service.max() >= 7001);
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
        assert_eq!(totals.outside, Outside { ok: 0, errors: 3 });
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
        assert_eq!(totals.outside, Outside { ok: 2, errors: 0 });
        assert_eq!(totals.accounting.in_flight, 1);
        assert_eq!(totals.accounting.scheduled(), 3);
        assert_eq!((totals.lag.max(), totals.service.max()), (3001, 1000));
        assert_eq!(
            (totals.no_caller.max(), totals.client_late.max()),
            (2701, 300)
        );
        // One of them came after the window: it counts, but the server did not keep up with the
        // rate.
        assert_eq!(totals.late, 1);
        // One that was due before came within: the server's work of the window, though not the
        // window's request.
        assert_eq!(totals.early, 1);
        assert!((Summary::of(&totals).rate - 2e6).abs() < 1.0);
        assert_eq!(totals.intervals[0].ok, 3);
        // What is still out is at least as old as that.
        assert_eq!(totals.response.len(), 3);
        assert!(totals.response.max() >= 50_000);
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
        assert_eq!(totals.window_slots().len(), 45);
        assert_eq!(
            (
                totals.intervals[1].service_p50,
                totals.intervals[1].response_max
            ),
            (None, None)
        );
    }

    #[test]
    fn replies_after_an_open_window_widen_the_interval_of_its_quantiles() {
        const SECOND: u64 = 1_000_000_000;
        let window = Window {
            start: 0,
            end: 10 * SECOND,
        };
        // A hundred each second take 1 ms; the last twenty wait for half a second, and one has no
        // reply at all.
        let due = |number: u64| number * SECOND / 100;
        let slow = |number| if number < 980 { 1_000_000 } else { SECOND / 2 };
        let requests = (0..1000)
            .map(|number| ok(due(number), due(number) + slow(number)))
            .collect();
        let totals = collect(LoopKind::Open, window, &[requests], &[SECOND]);
        let [_, high] = totals.quantile_intervals[1].unwrap();
        assert!(high >= SECOND / 2, "{high}");
        assert!(totals.late > 0);
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
            prop_assert_eq!(&totals.service, &whole);
            prop_assert_eq!(totals.arrived(), arrived);
            let seconds = totals.intervals.iter().map(|second| second.ok).sum::<u64>();
            prop_assert_eq!(seconds, arrived + totals.late);
            prop_assert_eq!(totals.slots.iter().sum::<u64>(), requests.len() as u64);
        }
    }
}
