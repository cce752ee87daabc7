//! Flow control (RFC 9113, sections 5.2 and 6.9).

use crate::error::Error;

/// Largest window, in bytes.
pub(crate) const LARGEST: u32 = 0x7FFF_FFFF;

/// Size of a new window before settings, in bytes.
pub(crate) const DEFAULT: u32 = 65_535;

const TOO_LARGE: Error = Error::flow_control("a window exceeds 2^31-1 bytes");

/// The bytes that the peer accepts, of a stream or of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self(size as i64)
    }

    /// Returns the bytes that may be sent: none while the window is negative, which a smaller
    /// SETTINGS_INITIAL_WINDOW_SIZE can make it.
    pub(crate) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        // Never more than is available.
        self.0 -= i64::try_from(bytes).unwrap_or(self.0);
    }

    /// Adds what WINDOW_UPDATE gives, or takes and gives what a change of
    /// SETTINGS_INITIAL_WINDOW_SIZE does.
    ///
    /// # Errors
    /// A window of more than 2^31-1 bytes is a FLOW_CONTROL_ERROR.
    pub(crate) fn change(&mut self, by: i64) -> Result<(), Error> {
        self.0 += by;
        if self.0 > i64::from(LARGEST) {
            return Err(TOO_LARGE);
        }
        Ok(())
    }
}

/// The bytes that the peer may send, of a stream or of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveWindow {
    size: u32,
    /// Bytes that the peer may still send.
    left: u32,
    /// Bytes that were received and released since the last update.
    released: u32,
}

impl ReceiveWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self {
            size,
            left: size,
            released: 0,
        }
    }

    /// Notes the payload of a DATA frame, padding included.
    ///
    /// # Errors
    /// More than the window allows is a FLOW_CONTROL_ERROR.
    pub(crate) fn received(&mut self, bytes: usize) -> Result<(), Error> {
        let left = (self.left as usize).checked_sub(bytes);
        let left = left.ok_or(Error::flow_control("the peer sent more than its window"))?;
        self.left = left as u32;
        Ok(())
    }

    /// Notes that room for `bytes` is free again, and returns the increment to announce: once it is
    /// worth a frame, which is at half of the window.
    pub(crate) fn release(&mut self, bytes: usize) -> Option<u32> {
        self.released += bytes as u32;
        if self.released < (self.size / 2).max(1) {
            return None;
        }
        let increment = std::mem::take(&mut self.released);
        self.left += increment;
        Some(increment)
    }

    /// Returns the bytes that were received and not released.
    pub(crate) fn unreleased(self) -> usize {
        (self.size - self.left - self.released) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    #[test]
    fn a_send_window_may_be_negative_but_never_too_large() {
        let mut window = SendWindow::new(100);
        window.sent(80);
        window.change(-50).unwrap();
        assert_eq!(window.available(), 0);
        window.change(40).unwrap();
        assert_eq!(window.available(), 10);
        window.change(i64::from(LARGEST) - 10).unwrap();
        let reason = window.change(1).unwrap_err().reason;
        assert_eq!(reason, Reason::FLOW_CONTROL_ERROR);
    }

    #[test]
    fn a_receive_window_is_announced_again_by_halves() {
        let mut window = ReceiveWindow::new(10);
        window.received(10).unwrap();
        let reason = window.received(1).unwrap_err().reason;
        assert_eq!(reason, Reason::FLOW_CONTROL_ERROR);
        assert_eq!(window.release(4), None);
        assert_eq!(window.unreleased(), 6);
        assert_eq!(window.release(1), Some(5));
        assert_eq!(window.unreleased(), 5);
        window.received(5).unwrap();
        assert!(window.received(1).is_err());
    }
}
