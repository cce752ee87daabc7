//! Files with keys, which are read only if no one but their owner has access.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Permission bits that a key file must not have: any for the group or for others.
const LOOSE: u32 = 0o077;

/// A key file cannot be used. The text names it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub(crate) String);

/// Reads up to `limit` bytes of a file that holds a secret.
///
/// # Errors
/// Fails with a [`KeyError`].
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, KeyError> {
    let shown = path.display();
    let refused = |reason: io::Error| KeyError(format!("cannot read {shown}: {reason}"));
    let file = File::open(path).map_err(refused)?;
    // The mode of the opened file, not of a file that has the name by now.
    let mode = file.metadata().map_err(refused)?.permissions().mode() & 0o777;
    if mode & LOOSE != 0 {
        return Err(KeyError(format!(
            "{shown} holds a key that others can read or change (mode {mode:03o}); fix it with: chmod 600 {shown}"
        )));
    }
    let mut bytes = Vec::new();
    let mut start = file.take(limit as u64);
    start.read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}
