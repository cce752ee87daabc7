//! Settings (RFC 9113, section 6.5).

use crate::{
    error::Error,
    flow::{DEFAULT, LARGEST},
    frame::DEFAULT_MAX_SIZE,
};

/// The settings of this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Flow-control window of a stream, in bytes: up to 2^31-1.
    pub stream_window: u32,
    /// Flow-control window of the connection, in bytes: from 65,535 to 2^31-1.
    pub connection_window: u32,
    /// Longest payload of a received frame, in bytes: from 2^14 to 2^24-1.
    /// A client takes no frames but DATA that are longer than 64 KiB.
    pub frame: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            stream_window: DEFAULT,
            connection_window: DEFAULT,
            frame: DEFAULT_MAX_SIZE as u32,
        }
    }
}

/// Concurrent streams before the peer has told its limit: many servers allow a hundred.
const FIRST_STREAMS: u32 = 100;

/// The dynamic table's size that HPACK begins with, in bytes.
pub(crate) const TABLE: u32 = 4096;

/// The identifiers of settings.
pub(crate) mod id {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The settings of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    /// The smallest and the last size of its dynamic table since these were last looked at, in bytes.
    pub(crate) table: (u32, u32),
    /// Concurrent streams that it allows.
    pub(crate) streams: u32,
    /// Its first settings have come.
    pub(crate) has_told_streams: bool,
    /// Window of a new stream, in bytes.
    pub(crate) window: u32,
    /// Longest payload of a frame, in bytes.
    pub(crate) frame: usize,
    /// It is a client, which may allow that the server pushes.
    pub(crate) may_push: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            table: (TABLE, TABLE),
            streams: FIRST_STREAMS,
            has_told_streams: false,
            window: DEFAULT,
            frame: DEFAULT_MAX_SIZE,
            may_push: false,
        }
    }
}

impl PeerSettings {
    /// Applies a SETTINGS frame; unknown settings are ignored.
    ///
    /// # Errors
    /// FRAME_SIZE_ERROR, and PROTOCOL_ERROR or FLOW_CONTROL_ERROR for values that are not allowed.
    pub(crate) fn apply(&mut self, payload: &[u8]) -> Result<(), Error> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Error::frame_size("SETTINGS ends within a setting"));
        }
        for &[high, low, value @ ..] in settings {
            self.set(u16::from_be_bytes([high, low]), u32::from_be_bytes(value))?;
        }
        Ok(())
    }

    fn set(&mut self, id: u16, value: u32) -> Result<(), Error> {
        match id {
            id::HEADER_TABLE_SIZE => self.table = (self.table.0.min(value), value),
            id::ENABLE_PUSH if value > u32::from(self.may_push) => {
                let detail = "a server enables push, or the peer has no valid setting of it";
                return Err(Error::protocol(detail));
            }
            id::MAX_CONCURRENT_STREAMS => self.streams = value,
            id::INITIAL_WINDOW_SIZE if value > LARGEST => {
                return Err(Error::flow_control("the initial window exceeds 2^31-1"));
            }
            id::INITIAL_WINDOW_SIZE => self.window = value,
            id::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                return Err(Error::protocol("the maximum frame size is not allowed"));
            }
            id::MAX_FRAME_SIZE => self.frame = value as usize,
            _ => {}
        }
        Ok(())
    }
}

/// Returns the payload of a SETTINGS frame. Settings that are left out are as the RFC has them by default.
pub(crate) fn payload(settings: &[(u16, u32)]) -> Vec<u8> {
    let encode = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    settings.iter().flat_map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    fn applied(id: u8, value: u32) -> Result<PeerSettings, Reason> {
        let mut settings = PeerSettings::default();
        let payload = [&[0, id][..], &value.to_be_bytes()].concat();
        let applied = settings.apply(&payload).map_err(|error| error.reason);
        applied.map(|()| settings)
    }

    #[test]
    fn values_that_are_not_allowed_are_errors_by_name() {
        assert_eq!(applied(2, 1), Err(Reason::PROTOCOL_ERROR));
        assert_eq!(applied(4, 1 << 31), Err(Reason::FLOW_CONTROL_ERROR));
        assert_eq!(applied(5, (1 << 14) - 1), Err(Reason::PROTOCOL_ERROR));
        assert_eq!(applied(5, 1 << 24), Err(Reason::PROTOCOL_ERROR));
        assert_eq!(applied(99, u32::MAX), Ok(PeerSettings::default()));
        assert_eq!(applied(3, 7).unwrap().streams, 7);
        assert_eq!(applied(5, (1 << 24) - 1).unwrap().frame, (1 << 24) - 1);
        let cut = PeerSettings::default().apply(&[0; 7]).unwrap_err();
        assert_eq!(cut.reason, Reason::FRAME_SIZE_ERROR);
    }

    #[test]
    fn the_smallest_table_in_between_is_kept() {
        let mut settings = PeerSettings::default();
        settings
            .apply(&[0, 1, 0, 0, 0, 100, 0, 1, 0, 0, 2, 0])
            .unwrap();
        assert_eq!(settings.table, (100, 512));
    }
}
