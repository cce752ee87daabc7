//! The line echo: a request is bytes without `\n` and then `\n`; the reply is the same bytes and
//! `\n`.

/// Default limit on lines, in bytes without the `\n`.
pub const DEFAULT_MAX: usize = 64 << 10;

/// Returns the length of the first whole line in `input`, without the `\n`.
///
/// `scanned` is the number of bytes that earlier calls have searched: they are not searched again.
pub fn find(input: &[u8], scanned: usize) -> Option<usize> {
    memchr::memchr(b'\n', &input[scanned..]).map(|at| scanned + at)
}
