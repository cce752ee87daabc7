//! The moments at which steps begin, so that clients with the same steps stay in step without talking.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use humantime::format_duration;
use netping_client::{
    clock::{Deadline, Moment},
    error::StartError,
    interrupt::Interrupt,
    plan::Plan,
};

use super::console::Console;

/// The time before the moment of a step in which its connections are opened. Servers close connections
/// on which nothing comes.
const CONNECTING: Duration = Duration::from_secs(5);

/// The time between two looks at a file that will have the moment.
const LOOK: Duration = Duration::from_millis(20);

/// The moment before which no further step of this process begins: those of a scenario follow each
/// other through several commands.
static NEXT: Mutex<Option<Moment>> = Mutex::new(None);

/// A file that will have the moment at which the first step begins, once all clients are ready.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// The file; the client makes another beside it, whose name ends in `.ready`.
    pub file: PathBuf,
    /// The longest time to wait for it.
    pub timeout: Duration,
}

/// Returns the moment at which a step begins, and the earlier one from which on its connections are
/// opened; `None` if it begins when it is ready. The moment of the first step was given, or `announced` returns it.
/// That of each further one follows from the lengths of those before.
///
/// # Errors
/// Those of `announced`.
pub(super) fn turn(
    plan: &Plan,
    announced: impl FnOnce() -> Result<Moment, StartError>,
) -> Result<Option<(Moment, Moment)>, StartError> {
    if !plan.execution.in_step {
        return Ok(None);
    }
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let moment = match (plan.execution.start_at, *next) {
        (Some(given), Some(next)) => next.max(given),
        (Some(moment), None) | (None, Some(moment)) => moment,
        (None, None) => announced()?,
    };
    let length = plan.execution.longest(plan.load.timeout);
    *next = Some(moment.after(length + CONNECTING));
    Ok(Some((moment, moment.before(CONNECTING))))
}

impl Announcement {
    /// Takes back what an earlier process said, before the first step of this one.
    ///
    /// # Errors
    /// [`StartError::Announced`] if it cannot.
    pub(super) fn withdraw(&self) -> Result<(), StartError> {
        if NEXT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
        {
            return Ok(());
        }
        let ready = self.ready();
        match fs::remove_file(&ready) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StartError::Announced(
                format!("cannot remove {}: {error}", ready.display()),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the file that says that this client is ready.
    fn ready(&self) -> PathBuf {
        let mut ready = self.file.clone().into_os_string();
        ready.push(".ready");
        ready.into()
    }

    /// Says that this client is ready, and waits for the moment.
    ///
    /// # Errors
    /// [`StartError::Announced`] if it does not come in time, or is none, and [`StartError::Interrupted`].
    pub(super) fn wait(
        &self,
        console: &Console,
        interrupt: &Interrupt,
    ) -> Result<Moment, StartError> {
        let file = self.file.display();
        let ready = self.ready();
        fs::write(&ready, "ready\n").map_err(|error| {
            StartError::Announced(format!("cannot write {}: {error}", ready.display()))
        })?;
        console.remark(&format!("ready; the moment to begin is awaited in {file}"));
        let deadline = Deadline::after(self.timeout);
        while !interrupt.is_set() {
            match fs::read_to_string(&self.file) {
                // Without its end, the line may not be whole.
                Ok(text) if text.ends_with('\n') => return moment(&text, &self.file),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StartError::Announced(format!(
                        "cannot read {file}: {error}"
                    )));
                }
                _ => {}
            }
            if deadline.left().is_zero() {
                let waited = format_duration(self.timeout);
                return Err(StartError::Announced(format!(
                    "{file} had no moment for {waited}: write one to it, or give a longer --start-timeout"
                )));
            }
            thread::sleep(LOOK);
        }
        Err(StartError::Interrupted)
    }
}

/// Returns the moment in the text of a file. A time from now on would be another for each client.
fn moment(text: &str, file: &Path) -> Result<Moment, StartError> {
    let text = text.trim();
    let fault = |what: &str| {
        let file = file.display();
        StartError::Announced(format!("{file} has '{}': {what}", text.escape_debug()))
    };
    if text.starts_with('+') {
        return Err(fault(
            "all clients need the same moment, such as 2026-01-31T12:00:00Z",
        ));
    }
    text.parse().map_err(|what: String| fault(&what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_moment_that_is_the_same_for_all() {
        let read = |text: &str| moment(text, Path::new("start")).map(Moment::nanos);
        assert_eq!(
            read("1769860800000000000\n").ok(),
            Some(1_769_860_800_000_000_000)
        );
        assert_eq!(
            read("2026-01-31T12:00:00Z\n").ok(),
            Some(1_769_860_800_000_000_000)
        );
        for (text, what) in [
            ("+5s\n", "start has '+5s': all clients need the same moment"),
            (
                "soon\x1b[1m\n",
                "start has 'soon\\u{1b}[1m': a moment looks like",
            ),
            ("\n", "start has '': a moment"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
    }
}
