//! The priority of threads.

use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Has the calling thread run only where a CPU has nothing else to do (`SCHED_IDLE`). Where the
/// system refuses, it runs as before.
pub fn run_when_idle() {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // The caller has asked for a favour to others, and nothing of its own depends on it.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
}

#[cfg(test)]
mod tests {
    use thread_priority::thread_schedule_policy;

    use super::*;

    #[test]
    fn a_thread_may_leave_the_cpus_to_all_others() {
        let policy = std::thread::spawn(|| {
            run_when_idle();
            thread_schedule_policy().unwrap()
        });
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert_eq!(policy.join().unwrap(), idle);
    }
}
