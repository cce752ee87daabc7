//! Reads a server's counters on a thread of its own, while a measurement runs.

use std::{
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use crate::{
    clock::Deadline,
    probe::metrics::{Probe, Reading, ServerSource, TIMEOUT},
};

/// Reads a server's counters at a window's start and end, on a thread of its own: a server that is
/// slow to answer delays no measurement.
#[derive(Debug)]
pub struct CounterReader {
    requests: Sender<()>,
    readings: Receiver<Result<Reading, String>>,
    requested: u32,
}

impl CounterReader {
    /// Starts the thread, which looks at the number of `replies` so far beside each reading, and counts the events of
    /// processes if that is wished. It ends by itself when the reader is dropped.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(
        source: &ServerSource,
        perf_events: bool,
        replies: impl Fn() -> u64 + Send + 'static,
    ) -> io::Result<Self> {
        let (requests, requested) = mpsc::channel();
        let (results, readings) = mpsc::channel();
        if *source != ServerSource::Nowhere {
            let source = source.clone();
            let probing = move || {
                let mut probe = Probe::new(source);
                if perf_events {
                    probe = probe.counting_events();
                }
                for () in requested {
                    let reading = probe.read_beside(&replies);
                    // A server that has failed to answer once is not asked again.
                    let failed = reading.is_err();
                    if results.send(reading).is_err() || failed {
                        return;
                    }
                }
            };
            thread::Builder::new()
                .name("probe".to_owned())
                .spawn(probing)?;
        }
        Ok(Self {
            requests,
            readings,
            requested: 0,
        })
    }

    /// Requests a reading, without waiting for it.
    pub fn read(&mut self) {
        self.requested += 1;
        // Without a thread there is no reading, which shows at the end.
        let _ = self.requests.send(());
    }

    /// Returns the readings at the window's start and end; the latter is requested now if it was
    /// not before. Waits for them for a bounded time.
    ///
    /// # Errors
    /// A sentence with the reason why there are none; empty if none were to be expected.
    pub fn finish(mut self) -> Result<(Reading, Reading), String> {
        match self.requested {
            0 => return Err(String::new()),
            1 => self.read(),
            _ => {}
        }
        let deadline = Deadline::after(TIMEOUT * 2);
        let receive = || match self.readings.recv_timeout(deadline.left()) {
            Ok(reading) => reading,
            Err(RecvTimeoutError::Timeout) => {
                Err("the server's counters could not be read in time".to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => Err(String::new()),
        };
        Ok((receive()?, receive()?))
    }
}

/// Reads a server's counters if they come within `patience`.
pub fn read_within(source: &ServerSource, patience: Duration) -> Option<Reading> {
    let mut reader = CounterReader::start(source, false, || 0).ok()?;
    reader.read();
    reader.readings.recv_timeout(patience).ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readings_are_returned_in_order() {
        let source = ServerSource::Processes(vec![std::process::id()]);
        let mut reader = CounterReader::start(&source, false, || 0).unwrap();
        reader.read();
        let (start, end) = reader.finish().unwrap();
        let demand = start.demand_until(&end, 1).unwrap().unwrap();
        assert!(demand.cpu_seconds >= 0.0);
    }

    #[test]
    fn a_source_without_counters_has_no_reading_and_no_reason() {
        let mut reader = CounterReader::start(&ServerSource::Nowhere, false, || 0).unwrap();
        reader.read();
        assert_eq!(reader.finish(), Err(String::new()));
        let unread = CounterReader::start(&ServerSource::Processes(vec![1]), false, || 0).unwrap();
        assert_eq!(unread.finish(), Err(String::new()));
    }
}
