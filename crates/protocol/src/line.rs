//! The line echo: a request is bytes without `\n` and then `\n`; the reply is the same bytes and `\n`.

/// The longest line a server takes unless told otherwise, in bytes, without its `\n`.
pub const DEFAULT_MAX: usize = 64 << 10;

/// Finds the first whole line of `input`: its length without the `\n`.
///
/// `scanned` is how many bytes earlier calls have searched already; a caller that keeps it reads each byte once.
pub fn find(input: &[u8], scanned: usize) -> Option<usize> {
    memchr::memchr(b'\n', &input[scanned..]).map(|at| scanned + at)
}
