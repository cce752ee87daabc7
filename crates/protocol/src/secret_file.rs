//! Files with keys, which are read only if no one but their owner has access.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Permission bits that a key file must not have: any for the group or for others.
const LOOSE: u32 = 0o077;

/// Keys or certificates cannot be used. The text names their file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub(crate) String);

/// Returns the error of a file that cannot be read.
pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> CredentialError {
    move |reason| CredentialError(format!("cannot read {}: {reason}", path.display()))
}

/// Reads up to `limit` bytes of a file that holds a secret.
///
/// # Errors
/// Fails with a [`CredentialError`].
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, CredentialError> {
    let file = File::open(path).map_err(unreadable(path))?;
    // The mode of the opened file, not of a file that has the name by now.
    let metadata = file.metadata().map_err(unreadable(path))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & LOOSE != 0 {
        let shown = path.display();
        return Err(CredentialError(format!(
            "{shown} holds a key that others can read or change (mode {mode:03o}); fix it with: chmod 600 {shown}"
        )));
    }
    let mut bytes = Vec::new();
    let mut start = file.take(limit as u64);
    start.read_to_end(&mut bytes).map_err(unreadable(path))?;
    Ok(bytes)
}
