//! Errors of its peers that the server reports to them, read from the HTTP/2 frames that it sends
//! (RFC 9113, sections 4.1, 6.4 and 6.8): tonic and hyper do not tell.

use std::{io::IoSlice, mem};

use h2::Reason;

use crate::{
    pieces::Pieces,
    received_frames::{HEADER, length},
};

const DATA: u8 = 0;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

/// Finds the resets and goodbyes with an error among the frames that are written.
#[derive(Debug, Default)]
pub(crate) struct SentFrames {
    frames: Pieces<HEADER>,
    /// The type of the last frame.
    kind: u8,
    /// The beginning of its payload, up to the error code.
    payload: Vec<u8>,
    /// GOAWAY has been sent.
    has_left: bool,
    /// Frames with data, since they were last asked for.
    data: u64,
}

impl SentFrames {
    /// Returns true if GOAWAY may follow: no frame is cut off, and none has been sent.
    pub fn may_leave(&self) -> bool {
        !self.has_left && !self.frames.has_part_of_head() && !self.frames.awaits_payload()
    }

    /// Returns the number of frames with data, since it was last asked for.
    pub fn take_data(&mut self) -> u64 {
        mem::take(&mut self.data)
    }

    /// Reads the first `length` bytes of what is in `parts`; returns the kinds under which what was found
    /// is counted.
    pub fn read(&mut self, parts: &[IoSlice<'_>], length: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut left = length;
        for part in parts {
            let written = &part[..part.len().min(left)];
            left -= written.len();
            self.read_part(written, &mut found);
        }
        found
    }

    fn read_part(&mut self, mut bytes: &[u8], found: &mut Vec<String>) {
        loop {
            let (payload, header) = self.frames.next(&mut bytes);
            let lacking = self.wanted() - self.payload.len();
            if lacking > 0 && !payload.is_empty() {
                self.payload.extend(&payload[..payload.len().min(lacking)]);
                found.extend(self.found());
            }
            let Some(header) = header else { return };
            self.frames.expect(length(header));
            self.kind = header[3];
            self.payload.clear();
            self.has_left |= self.kind == GOAWAY;
            self.data += u64::from(self.kind == DATA);
        }
    }

    /// Returns the bytes of a payload up to the end of its error code; 0 if it has none.
    fn wanted(&self) -> usize {
        match self.kind {
            RST_STREAM => 4,
            GOAWAY => 8,
            _ => 0,
        }
    }

    /// Returns the kind under which the frame is counted, once its error code is known.
    fn found(&self) -> Option<String> {
        if self.payload.len() < self.wanted() {
            return None;
        }
        let what = if self.kind == GOAWAY {
            "goaway"
        } else {
            "reset"
        };
        let reason = Reason::from(u32::from_be_bytes(*self.payload.last_chunk()?));
        // Its name as in RFC 9113, section 7, where it has one.
        let name = match format!("{reason:?}").to_lowercase() {
            other if other.starts_with("reason") => "unknown".to_owned(),
            name => name,
        };
        (reason != Reason::NO_ERROR).then(|| format!("http2_{what}_{name}"))
    }
}

/// Returns a GOAWAY that says in words why the server closes the connection.
pub(crate) fn goaway(reason: netping_http2::Reason, words: &str) -> Vec<u8> {
    let length = (8 + words.len() as u32).to_be_bytes();
    // Which requests have been served is not known: any may have been.
    let last_stream = [0x7f, 0xff, 0xff, 0xff];
    let head = [&length[1..], &[GOAWAY, 0, 0, 0, 0, 0], &last_stream].concat();
    [&head, &reason.0.to_be_bytes()[..], words.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn errors_are_found_however_they_are_written() {
        let frames = [
            frame(0, &[7; 300]),
            frame(RST_STREAM, &[0, 0, 0, 7]),
            frame(1, b""),
            frame(RST_STREAM, &[0, 0, 0, 0]),
            frame(GOAWAY, &[0, 0, 0, 5, 0, 0, 0, 11, b'w', b'h', b'y']),
            frame(GOAWAY, &[0, 0, 0, 5, 0, 0, 0, 99]),
            frame(GOAWAY, &[0, 0, 0, 5, 0, 0, 0, 0]),
        ]
        .concat();
        let expected = [
            "http2_reset_refused_stream",
            "http2_goaway_enhance_your_calm",
            "http2_goaway_unknown",
        ];
        for step in [1, 2, 5, 9, 10, 64, 1000] {
            let mut sent = SentFrames::default();
            let mut found = Vec::new();
            for chunk in frames.chunks(step) {
                let (one, other) = chunk.split_at(chunk.len() / 2);
                let parts = [
                    IoSlice::new(one),
                    IoSlice::new(other),
                    IoSlice::new(&[3; 20]),
                ];
                found.extend(sent.read(&parts, chunk.len()));
            }
            assert_eq!(found, expected, "{step}");
        }
    }

    #[test]
    fn a_goodbye_follows_whole_frames_once() {
        let goodbye = goaway(netping_http2::Reason::ENHANCE_YOUR_CALM, "why");
        assert_eq!(goodbye[..3], [0, 0, 11]);
        let frames = [frame(0, &[7; 3]), frame(1, b""), goodbye].concat();
        let mut sent = SentFrames::default();
        let may: Vec<_> = frames
            .iter()
            .map(|byte| {
                let may = sent.may_leave();
                sent.read(&[IoSlice::new(&[*byte])], 1);
                may
            })
            .collect();
        let places = may.iter().enumerate().filter(|(_, may)| **may);
        assert_eq!(places.map(|(at, _)| at).collect::<Vec<_>>(), [0, 12, 21]);
        assert!(!sent.may_leave());
    }
}
