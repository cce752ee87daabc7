//! Ctrl-C.

use std::io;

use netping_client::interrupt::Interrupt;
use netping_system::signals;

/// Returns a flag that the first SIGINT or SIGTERM sets; the second ends the process, with exit
/// code 130, once no file is half written.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn on_signals() -> io::Result<Interrupt> {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::on_stop(130, None, move |_| flag.set())?;
    Ok(interrupt)
}
