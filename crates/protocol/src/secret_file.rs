//! Files with keys, which are read only if no one but their owner has access.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Permission bits that a key file must not have: any for the group or for others.
const LOOSE: u32 = 0o077;

/// A key file was not read.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The system refused to read it.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Others can read or change it.
    #[error("{} holds a key that others can read or change (mode {mode:03o}); fix it with: chmod 600 {}", path.display(), path.display())]
    Loose {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
}

/// Reads up to `limit` bytes of a file that holds a secret.
///
/// # Errors
/// Fails with a [`SecretFileError`].
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, SecretFileError> {
    let refused = |reason| SecretFileError::File {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(refused)?;
    // The mode of the opened file, not of a file that has the name by now.
    let mode = file.metadata().map_err(refused)?.permissions().mode() & 0o777;
    if mode & LOOSE != 0 {
        return Err(SecretFileError::Loose {
            path: path.to_owned(),
            mode,
        });
    }
    let mut bytes = Vec::new();
    let mut start = file.take(limit as u64);
    start.read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}
