//! SIGINT and SIGTERM, received and sent.

use std::{
    io, process,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        prctl,
        signal::{SigSet, Signal, kill, killpg},
    },
    unistd::Pid,
};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Held while something is done that is done wholly or not at all.
static WHOLE: Mutex<()> = Mutex::new(());

/// The time between looks for the second signal.
const LOOK: Duration = Duration::from_millis(20);

/// The longest wait of the second signal for what is done wholly: a disk may never answer.
const WHOLE_LIMIT: Duration = Duration::from_secs(1);

/// Keeps SIGINT and SIGTERM from ending the process.
#[derive(Debug)]
pub struct Whole {
    _alone: MutexGuard<'static, ()>,
    /// The signals that this thread did not receive before either.
    before: Option<SigSet>,
}

/// Has neither SIGINT nor SIGTERM end the process until the result is dropped: in a process of one thread that
/// handles neither, or by way of [`on_stop`].
pub fn whole() -> Whole {
    let alone = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    let ends = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    let before = SigSet::thread_get_mask().ok();
    Whole {
        _alone: alone,
        before: before.filter(|_| ends.thread_block().is_ok()),
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // A signal that came meanwhile ends the process here.
        let _ = self.before.as_ref().map(SigSet::thread_set_mask);
    }
}

/// Ends the process if the thread that has it panics: nobody else would do that thread's work.
#[derive(Debug)]
pub struct Vital {
    /// The exit code.
    pub exit_code: i32,
}

impl Drop for Vital {
    fn drop(&mut self) {
        if thread::panicking() {
            process::exit(self.exit_code);
        }
    }
}

/// Calls `stop` with the number of the first SIGINT or SIGTERM, on a thread of its own. The second signal ends the
/// process with `exit_code`, once nothing is [`whole`], and so does the end of `limit` after the first.
///
/// # Errors
/// Fails if the handlers cannot be installed.
pub fn on_stop(
    exit_code: i32,
    limit: Option<Duration>,
    stop: impl FnOnce(i32) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let _vital = Vital { exit_code };
            if let Some(signal) = signals.forever().next() {
                stop(signal);
            }
            let end = limit.map(|limit| now() + limit);
            let is_over = || end.is_some_and(|end| now() >= end);
            while signals.pending().next().is_none() && !is_over() {
                thread::sleep(LOOK);
            }
            let end = now() + WHOLE_LIMIT;
            let mut whole = WHOLE.try_lock();
            while whole.is_err() && now() < end {
                thread::sleep(LOOK);
                whole = WHOLE.try_lock();
            }
            process::exit(exit_code);
        })?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the end of a process is no measurement"
)]
fn now() -> Instant {
    Instant::now()
}

/// Sends SIGTERM to a process. Does nothing if it has ended.
pub fn terminate(pid: u32) {
    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
}

/// Sends SIGTERM to all processes of a group; does nothing if all have ended.
pub fn terminate_group(group: u32) {
    let _ = killpg(Pid::from_raw(group.cast_signed()), Signal::SIGTERM);
}

/// Ends all processes of a group at once.
pub fn kill_group(group: u32) {
    let _ = killpg(Pid::from_raw(group.cast_signed()), Signal::SIGKILL);
}

/// Stops a process until [`resume`].
pub fn stop(pid: u32) {
    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGSTOP);
}

/// Lets a stopped process go on.
pub fn resume(pid: u32) {
    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT);
}

/// Asks the kernel to send SIGTERM to this process when its parent ends. If the kernel refuses,
/// this process merely outlives its parent.
pub fn terminate_with_parent() {
    let _ = prctl::set_pdeathsig(Signal::SIGTERM);
}
