//! Events in replies of the type `text/event-stream` (WHATWG's HTML standard, "Server-sent events").

/// The place in an event stream.
///
/// An event is lines up to an empty one, with data in one of them. Comments, which keep a connection alive, are none.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    /// The beginning of the current line, and its length.
    line: [u8; BOM.len() + DATA.len() + 1],
    length: usize,
    /// A line has ended.
    has_begun: bool,
    /// The last byte was a carriage return, whose line feed may follow.
    has_returned: bool,
    /// The event that has begun has data.
    has_data: bool,
}

/// A byte order mark, which may stand at the beginning.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The name of the field that makes an event.
const DATA: &[u8] = b"data";

impl EventStream {
    /// Takes the next part of a reply; calls `on_event` at each event that ends in it.
    pub(super) fn take(&mut self, part: &[u8], mut on_event: impl FnMut()) {
        for byte in part {
            let follows_return = std::mem::replace(&mut self.has_returned, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => {
                    if self.end_of_line() {
                        on_event();
                    }
                }
                byte => {
                    if let Some(place) = self.line.get_mut(self.length) {
                        *place = *byte;
                    }
                    self.length += 1;
                }
            }
        }
    }

    /// Ends the current line; returns true if an event ends with it.
    fn end_of_line(&mut self) -> bool {
        let length = std::mem::take(&mut self.length);
        let mut line = &self.line[..length.min(self.line.len())];
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            return std::mem::take(&mut self.has_data);
        }
        let rest = line.strip_prefix(DATA);
        self.has_data |= rest.is_some_and(|rest| matches!(rest, [] | [b':', ..]));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_they_come() {
        for (text, expected) in [
            ("data: a\n\ndata: b\n\n", 2),
            ("data:a\r\n\r\ndata\r\n\r\n", 2),
            ("data: a\rdata: b\r\r", 1),
            ("event: x\nid: 7\ndata: {}\n\n", 1),
            // Keep-alive, an event without data, other fields, and one that is not whole.
            (
                ": hello\n\n\nevent: x\n\ndatabase: y\n\ndat\n\ndata: z\n",
                0,
            ),
            ("data: a\n\n: b\n\ndata: [DONE]\n\n", 2),
            ("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", 1),
        ] {
            for step in [1, 2, 3, 100] {
                let (mut events, mut count) = (EventStream::default(), 0);
                for part in text.as_bytes().chunks(step) {
                    events.take(part, || count += 1);
                }
                assert_eq!(count, expected, "{text:?} {step}");
            }
        }
    }
}
