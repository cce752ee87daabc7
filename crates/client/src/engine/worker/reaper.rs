//! Replaces callers whose request takes too long.

use std::{collections::BTreeSet, time::Duration};

use netping_measure::{
    cost::Cost, error_kind::ErrorKind, recorder::Sink, sample::Sample, window::Window,
};
use netping_system::{
    cores::current,
    cpu,
    perf_events::{PerfCounts, PerfEvents},
};
use tokio::{task::JoinHandle, time};

use super::state::Shared;
use crate::clock::Clock;

/// Longest time between looks at whether the callers are done: an idle worker wakes up for them alone. Shorter than the
/// time by which the start of a window is known beforehand.
const LOOK: Duration = Duration::from_millis(15);

/// Looks for overdue requests in each time limit, which is so kept to within 2 %.
const LOOKS_PER_TIMEOUT: u32 = 50;

/// Waits until all callers are done or the drain is over, and meanwhile replaces each caller whose
/// request takes too long: so no request pays for a timer. Returns the CPU time that the thread used
/// over the window, and the cores on which it was seen.
pub(super) async fn watch<C: Clock, S: Sink>(
    shared: &Shared<C, S>,
    callers: &mut [JoinHandle<()>],
    start: impl Fn(usize) -> JoinHandle<()>,
) -> Cost {
    let is_counting = shared.assignment.plan.execution.perf_events;
    let mut events = is_counting.then(PerfEvents::of_this_thread);
    let mut spent = || {
        let times = [cpu::thread_time(), cpu::thread_run_delay()];
        let events = events.as_mut().map(PerfEvents::read);
        (times, cpu::thread_usage(), events)
    };
    let (mut cores, mut core, mut moves) = (BTreeSet::new(), None, 0);
    let timeout = shared.assignment.plan.load.timeout;
    let look = (timeout / LOOKS_PER_TIMEOUT).min(LOOK);
    let timeout = timeout.as_nanos() as u64;
    let mut next_look = 0;
    let (mut at_start, mut at_end) = (None, None);
    loop {
        time::sleep(until_next(look, shared.clock.now(), shared.window())).await;
        let now = shared.clock.now();
        let window = shared.window();
        let done = shared.active.get() == 0;
        if now >= window.start {
            at_start.get_or_insert_with(&mut spent);
        }
        if window.contains(now) {
            let before = core;
            core = current();
            cores.extend(core);
            moves += u64::from(before.is_some() && before != core);
        }
        if done || now >= window.end {
            at_end.get_or_insert_with(&mut spent);
        }
        if done || now >= shared.assignment.timeline.drain_until() {
            let (end, usage, events) = at_end.unwrap_or_else(&mut spent);
            let (start, before, events_before) = at_start.unwrap_or((end, usage, events));
            let used = |at: usize| vec![end[at].saturating_sub(start[at]).as_secs_f64()];
            let counted = |of: fn(PerfCounts) -> Option<u64>| -> Vec<u64> {
                let both = events.and_then(of).zip(events_before.and_then(of));
                let gained = both.map(|(end, start)| end.saturating_sub(start));
                gained.into_iter().collect()
            };
            let system = usage.system_time.saturating_sub(before.system_time);
            return Cost {
                client_worker_cpu_seconds: used(0),
                client_worker_run_delay_seconds: used(1),
                client_worker_system_seconds: vec![system.as_secs_f64()],
                client_worker_context_switches: vec![
                    usage
                        .context_switches
                        .saturating_sub(before.context_switches),
                ],
                client_worker_instructions: counted(|own| own.instructions),
                client_worker_system_calls: counted(|own| own.system_calls),
                client_worker_cores: vec![cores.into_iter().collect()],
                client_worker_moves: vec![moves],
                ..Cost::default()
            };
        }
        if now < next_look {
            continue;
        }
        next_look = now + timeout / u64::from(LOOKS_PER_TIMEOUT);
        for (number, caller) in shared.callers.iter().enumerate() {
            if let Some(request) = caller.request.get()
                && now.saturating_sub(request.start) >= timeout
            {
                callers[number].abort();
                let sample = Sample {
                    end: now,
                    ..request
                };
                record_timeout(shared, number, sample);
                callers[number] = start(number);
            }
        }
    }
}

/// Returns the time to the next look: at the latest after `look`, and as soon as the window begins or ends.
fn until_next(look: Duration, now: u64, window: Window) -> Duration {
    let edges = [window.start, window.end].into_iter();
    let next = edges.filter_map(|edge| edge.checked_sub(now).filter(|left| *left > 0));
    next.map(Duration::from_nanos).fold(look, Duration::min)
}

/// Records that a caller's request took too long.
fn record_timeout<C: Clock, S: Sink>(shared: &Shared<C, S>, number: usize, sample: Sample) {
    let connected = &shared.callers[number].connected;
    let (kind, detail) = if connected.replace(false) {
        (ErrorKind::Timeout, "no whole reply within --timeout")
    } else {
        (ErrorKind::ConnectTimeout, "no connection within --timeout")
    };
    shared.record(number, sample, Err(kind));
    shared.note(kind, detail.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_comes_as_soon_as_the_window_begins_or_ends() {
        let look = Duration::from_nanos(100);
        let (start, end) = (1000, 2000);
        let until = |now| until_next(look, now, Window { start, end }).as_nanos();
        assert_eq!([0, 900, 999, 1000].map(until), [100, 100, 1, 100]);
        assert_eq!([1950, 1999, 2000, 5000].map(until), [50, 1, 100, 100]);
        let unknown = Window {
            start: u64::MAX,
            end: u64::MAX,
        };
        assert_eq!(until_next(look, 7, unknown), look);
    }
}
