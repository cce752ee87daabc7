//! The waiting of threads, in a process that has no other threads than these.

use std::{fs, process, time::Duration};

use netping_system::cpu::run_delay;

#[test]
fn the_waiting_of_all_threads_is_summed() {
    let sum = || {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let files = threads.map(|thread| fs::read_to_string(thread.path().join("schedstat")));
        let delays = files.map(|text| {
            let text = text.unwrap();
            let delay = text.split(' ').nth(1).unwrap();
            Duration::from_nanos(delay.parse().unwrap())
        });
        delays.sum::<Duration>()
    };
    let (before, told, after) = (sum(), run_delay(process::id()).unwrap(), sum());
    assert!(
        before <= told && told <= after,
        "{before:?} {told:?} {after:?}"
    );
}
