//! The HTTP/2 frames of a peer (RFC 9113, section 4.1): which of its bytes belong to requests, and whether it owes
//! the rest of a frame that it has begun. tonic and hyper do not tell.

use std::mem;

use crate::pieces::Pieces;

/// Length of a frame's header, in bytes.
pub(crate) const HEADER: usize = 9;

/// Length of the preface, in bytes.
const PREFACE: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_HEADERS: u8 = 4;

/// Follows the frames that are read.
#[derive(Debug, Default)]
pub(crate) struct ReceivedFrames {
    /// Bytes of the preface that have come.
    preface: usize,
    frames: Pieces<HEADER>,
    /// The frame belongs to a request or to a reply.
    is_counted: bool,
    /// A header block has begun and not ended.
    is_in_block: bool,
    /// Frames that have begun, of which those of a header block are one.
    begun: u64,
    /// Header blocks that have begun, each that of a request.
    requests: u64,
    /// Frames that serve no request and no reply, and have not been asked for.
    control: u64,
    /// Further ones for which requests and replies are a reason.
    explained: u64,
}

/// Frames for which a frame of a request or a reply is a reason: WINDOW_UPDATE of the stream and of the connection, a
/// PING that measures the path, and the end of the request or its cancellation.
const EXPLAINED: u64 = 4;

/// The most that are explained beforehand: more than a window of the shortest frames leads to.
const MOST_EXPLAINED: u64 = 50_000;

impl ReceivedFrames {
    /// Takes the next bytes; returns how many of them belong to requests, or to the preface. Others keep no connection
    /// alive: those of PING, SETTINGS, PRIORITY, unknown frames and DATA without data. WINDOW_UPDATE belongs to a reply,
    /// while there is one.
    pub(crate) fn take(&mut self, mut bytes: &[u8], has_reply: bool) -> usize {
        let preface = bytes.len().min(PREFACE - self.preface);
        self.preface += preface;
        bytes = &bytes[preface..];
        let mut counted = preface;
        loop {
            let (payload, header) = self.frames.next(&mut bytes);
            counted += if self.is_counted { payload.len() } else { 0 };
            let Some(header) = header else {
                return counted;
            };
            self.begin(header, has_reply);
            counted += if self.is_counted { HEADER } else { 0 };
        }
    }

    /// Takes note of so many frames with data that the server has sent.
    pub(crate) fn has_sent_data(&mut self, frames: u64) {
        self.explained = (self.explained + EXPLAINED * frames).min(MOST_EXPLAINED);
    }

    /// Returns the number of frames that serve no request and no reply, since it was last asked for.
    pub(crate) fn take_control(&mut self) -> u64 {
        mem::take(&mut self.control)
    }

    /// Returns the number of requests that have begun, since it was last asked for.
    pub(crate) fn take_requests(&mut self) -> u64 {
        mem::take(&mut self.requests)
    }

    /// Returns the number of the frame or header block whose rest is awaited; 0: none.
    pub(crate) fn partial(&self) -> u64 {
        if self.frames.awaits_payload() || self.is_in_block {
            return self.begun;
        }
        if self.frames.has_part_of_head() {
            return self.begun + 1;
        }
        0
    }

    /// Takes the header of a frame.
    fn begin(&mut self, header: [u8; HEADER], has_reply: bool) {
        let [_, _, _, kind, flags, ..] = header;
        let length = length(header);
        self.frames.expect(length);
        self.begun += u64::from(!self.is_in_block);
        self.requests += u64::from(kind == HEADERS);
        let is_of_request = match kind {
            DATA => length > 0,
            HEADERS | CONTINUATION => {
                self.is_in_block = flags & END_HEADERS == 0;
                true
            }
            _ => false,
        };
        self.is_counted = is_of_request || (kind == WINDOW_UPDATE && has_reply);
        if is_of_request {
            self.explained = (self.explained + EXPLAINED).min(MOST_EXPLAINED);
        } else if self.explained > 0 {
            self.explained -= 1;
        } else {
            self.control += 1;
        }
    }
}

/// Returns the length of a frame's payload, in bytes.
pub(crate) fn length([a, b, c, kind, ..]: [u8; HEADER]) -> usize {
    (u32::from_be_bytes([a, b, c, kind]) >> 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn bytes_of_requests_are_counted_however_they_come() {
        let others = [
            frame(6, 0, &[7; 8]),
            frame(4, 0, &[7; 60]),
            frame(2, 0, &[7; 5]),
            frame(DATA, 0, b""),
            frame(99, 0, &[7; 500]),
        ]
        .concat();
        let window = frame(WINDOW_UPDATE, 0, &[7; 4]);
        let requests = [
            frame(HEADERS, 0, &[7; 30]),
            frame(CONTINUATION, END_HEADERS, &[7; 20]),
            frame(DATA, 0, &[7; 300]),
        ]
        .concat();
        let all = [&[7; PREFACE], &others[..], &window, &requests].concat();
        for has_reply in [false, true] {
            let update = if has_reply { window.len() } else { 0 };
            for step in [1, 2, 8, 9, 10, 64, 1000, 10_000] {
                let mut frames = ReceivedFrames::default();
                let parts = all.chunks(step);
                let counted: usize = parts.map(|part| frames.take(part, has_reply)).sum();
                assert_eq!(counted, PREFACE + requests.len() + update, "{step}");
                assert_eq!(frames.partial(), 0, "{step}");
                assert_eq!(frames.take_control(), 6, "{step}");
                assert_eq!(frames.take_control(), 0, "{step}");
                assert_eq!(frames.take_requests(), 1, "{step}");
            }
        }
    }

    #[test]
    fn frames_of_requests_and_replies_explain_others() {
        let mut frames = ReceivedFrames::default();
        frames.take(&[7; PREFACE], true);
        let mut beyond = |bytes: &[u8], sent: u64| {
            frames.has_sent_data(sent);
            frames.take(bytes, true);
            frames.take_control()
        };
        let other = |kind, count| frame(kind, 0, &[7; 8]).repeat(count);
        assert_eq!(beyond(&other(WINDOW_UPDATE, 3), 0), 3);
        // A request and two frames of a reply.
        let request = frame(HEADERS, END_HEADERS, b"");
        let pings = 3 * EXPLAINED as usize;
        assert_eq!(beyond(&[request, other(6, pings)].concat(), 2), 0);
        assert_eq!(beyond(&other(WINDOW_UPDATE, 5), 0), 5);
        // No more than that beforehand.
        assert_eq!(
            beyond(&other(6, MOST_EXPLAINED as usize), MOST_EXPLAINED),
            0
        );
        assert_eq!(beyond(&other(6, 2), 0), 2);
    }

    #[test]
    fn what_is_begun_is_partial_until_its_end() {
        let request = [
            frame(HEADERS, 0, &[7; 3]),
            frame(CONTINUATION, END_HEADERS, b""),
            frame(DATA, 0, &[7; 2]),
        ]
        .concat();
        let mut frames = ReceivedFrames::default();
        frames.take(&[7; PREFACE - 1], false);
        // The deadline of the preface is another.
        assert_eq!(frames.partial(), 0);
        frames.take(&[7], false);
        let mut awaited = Vec::new();
        for byte in &request {
            frames.take(&[*byte], false);
            awaited.push(frames.partial());
        }
        // A header block ends with its last frame.
        let expected = [vec![1; 12 + 8], vec![0], vec![2; 9 + 1], vec![0]].concat();
        assert_eq!(awaited, expected);
    }
}
