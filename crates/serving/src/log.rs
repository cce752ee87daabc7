//! The log: lines on standard error, written by a thread of their own.
//!
//! Nothing that serves waits for the log, and nothing ends because of it. A full disk, a closed pipe
//! or a terminal that stands still loses lines; the next line that gets out says how many.

use std::{
    env,
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Lines that may wait to be written; further ones are lost.
const WAITING: usize = 1024;

/// The longest time that the end of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_millis(250);

/// The log of this process.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Lines,
    /// Ends when the last line is written.
    written: Receiver<()>,
}

impl Log {
    /// Logs to standard error, by default from level `info` up. `RUST_LOG` has a level, or
    /// `TARGET=LEVEL` pairs, separated by commas.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub(crate) fn start() -> io::Result<Self> {
        let log = Self::to(io::stderr())?;
        let lines = log.lines.clone();
        let has_colors = io::stderr().is_terminal()
            && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let stderr = fmt::layer()
            .with_writer(move || lines.clone())
            .with_ansi(has_colors);
        let filter = env::var("RUST_LOG").ok();
        let filter: Option<Targets> = filter.and_then(|filter| filter.parse().ok());
        let filter = filter.unwrap_or_default();
        let default = filter.default_level().unwrap_or(LevelFilter::INFO);
        tracing_subscriber::registry()
            .with(stderr)
            .with(filter.with_default(default))
            .init();
        Ok(log)
    }

    /// Writes the lines that wait, for [`LAST_LINES`] at most.
    pub(crate) fn finish(self) {
        // Where no line fits, the last ones do not get out in time either.
        if self.lines.sender.try_send(None).is_ok() {
            let _ = self.written.recv_timeout(LAST_LINES);
        }
    }

    fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, messages) = mpsc::sync_channel(WAITING);
        let (ended, written) = mpsc::channel();
        let lines = Lines {
            sender,
            lost: Arc::default(),
        };
        let lost = Arc::clone(&lines.lost);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                write_all(&messages, &lost, out);
                drop(ended);
            })?;
        Ok(Self { lines, written })
    }
}

/// Hands lines to the thread that writes them.
#[derive(Debug, Clone)]
struct Lines {
    /// Takes lines, and `None` at the end.
    sender: SyncSender<Option<Vec<u8>>>,
    /// Lines lost since the last one that was written.
    lost: Arc<AtomicU64>,
}

impl Write for Lines {
    /// Takes a whole line, and never waits or fails.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.sender.try_send(Some(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes lines until the end is sent.
fn write_all(lines: &Receiver<Option<Vec<u8>>>, lost: &AtomicU64, mut out: impl Write) {
    while let Ok(Some(line)) = lines.recv() {
        let before = lost.swap(0, Ordering::Relaxed);
        let told = match before {
            0 => Ok(()),
            _ => writeln!(out, "{before} lines of the log were lost"),
        };
        if told.and_then(|()| out.write_all(&line)).is_err() {
            lost.fetch_add(before + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A writer to shared text that fails while a flag is set.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(bool, String)>>);

    impl Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let (is_full, written) = &mut *self.0.lock().unwrap();
            if *is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.push_str(std::str::from_utf8(text).unwrap());
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_told_later() {
        let (disk, lost) = (Disk::default(), AtomicU64::new(0));
        let write = |lines: &[&str]| {
            let (sender, messages) = mpsc::sync_channel(WAITING);
            for line in lines {
                sender.send(Some(line.as_bytes().to_vec())).unwrap();
            }
            sender.send(None).unwrap();
            write_all(&messages, &lost, disk.clone());
        };
        write(&["one\n"]);
        disk.0.lock().unwrap().0 = true;
        write(&["two\n", "three\n"]);
        disk.0.lock().unwrap().0 = false;
        write(&["four\n", "five\n"]);
        let written = disk.0.lock().unwrap().1.clone();
        assert_eq!(written, "one\n2 lines of the log were lost\nfour\nfive\n");
    }

    #[test]
    fn the_end_waits_for_lines_that_can_be_written() {
        let disk = Disk::default();
        let log = Log::to(disk.clone()).unwrap();
        let mut lines = log.lines.clone();
        for _ in 0..100 {
            lines.write_all(b"line\n").unwrap();
        }
        log.finish();
        assert_eq!(disk.0.lock().unwrap().1, "line\n".repeat(100));
    }

    #[test]
    fn nobody_waits_for_a_writer_that_stands_still() {
        let disk = Disk::default();
        let standing_still = disk.0.lock().unwrap();
        let log = Log::to(disk.clone()).unwrap();
        let mut lines = log.lines.clone();
        for _ in 0..2 * WAITING {
            lines.write_all(b"line\n").unwrap();
        }
        log.finish();
        assert!(lines.lost.load(Ordering::Relaxed) > 0);
        drop(standing_still);
    }
}
