//! The end of what another program says.

use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use netping_results::format::on_one_line;

/// Bytes that are kept, and lines and characters of each that are shown.
const KEPT: usize = 4096;
const LINES: usize = 8;
const CHARACTERS: usize = 200;

/// The time that the stream of a program that has ended may take to end too.
const PATIENCE: Duration = Duration::from_secs(1);

/// The end of a stream, which a thread of its own reads to its end.
#[derive(Debug)]
pub struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// Closed once the stream has ended.
    open: Receiver<()>,
}

impl Tail {
    /// Starts to read a stream.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn of(stream: impl Read + Send + 'static) -> io::Result<Self> {
        let kept = Arc::default();
        let (is_open, open) = mpsc::channel();
        let to = Arc::clone(&kept);
        thread::Builder::new()
            .name("tail".to_owned())
            .spawn(move || {
                read(stream, &to);
                drop(is_open);
            })?;
        Ok(Self { kept, open })
    }

    /// Waits a moment for the stream's end, and returns its last lines as text for a terminal, each behind a mark.
    pub fn lines(&self) -> String {
        // It is closed without a message.
        let _ = self.open.recv_timeout(PATIENCE);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        shown(&String::from_utf8_lossy(&bytes))
    }
}

fn read(mut stream: impl Read, to: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; KEPT];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                let mut kept = to.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..length]);
                let surplus = kept.len().saturating_sub(KEPT);
                kept.drain(..surplus);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn shown(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<String> = lines
        .map(|line| {
            let start: String = line.chars().take(CHARACTERS).collect();
            format!("  | {}", on_one_line(&start))
        })
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn lines(text: impl Into<Vec<u8>>) -> String {
        Tail::of(Cursor::new(text.into())).unwrap().lines()
    }

    #[test]
    fn the_last_lines_are_shown_without_what_moves_the_cursor() {
        assert_eq!(lines("a\n\n  b\x1b[2J\r\n"), "  | a\n  |   b\u{fffd}[2J");
        assert_eq!(lines(" \n"), "");
        let many: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        let last: Vec<String> = (9_992..10_000).map(|own| format!("  | {own}")).collect();
        assert_eq!(lines(many.join("\n")), last.join("\n"));
        let long = "x".repeat(KEPT + 1) + "\nlast";
        let expected = format!("  | {}\n  | last", "x".repeat(CHARACTERS));
        assert_eq!(lines(long), expected);
        assert!(lines(*b"\xff!").ends_with('!'));
        let tail = Tail::of(Cursor::new(vec![b'x'; 3 * KEPT])).unwrap();
        tail.lines();
        assert_eq!(tail.kept.lock().unwrap().len(), KEPT);
    }

    #[test]
    fn a_stream_that_stays_open_is_shown_as_far_as_it_came() {
        struct Open(mpsc::Receiver<()>, Cursor<&'static str>);
        impl Read for Open {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                match self.1.read(buffer)? {
                    0 => {
                        let _ = self.0.recv();
                        Ok(0)
                    }
                    length => Ok(length),
                }
            }
        }
        let (_held, open) = mpsc::channel();
        let tail = Tail::of(Open(open, Cursor::new("so far"))).unwrap();
        assert_eq!(tail.lines(), "  | so far");
    }
}
