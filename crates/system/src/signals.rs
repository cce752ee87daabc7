//! SIGINT and SIGTERM, received and sent.

use std::{io, process, thread};

use nix::{
    sys::{
        prctl,
        signal::{Signal, kill, killpg},
    },
    unistd::Pid,
};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Calls `stop` with the number of the first SIGINT or SIGTERM, on a thread of its own. The second
/// signal ends the process at once with `exit_code`.
///
/// # Errors
/// Fails if the handlers cannot be installed.
pub fn on_stop(exit_code: i32, stop: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut signals = signals.forever();
            if let Some(signal) = signals.next() {
                stop(signal);
            }
            if signals.next().is_some() {
                process::exit(exit_code);
            }
        })?;
    Ok(())
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
