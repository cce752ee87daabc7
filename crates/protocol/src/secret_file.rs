//! Files that hold keys: read only where nobody but their owner can.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Permissions that a key's file must not have: any for the group or for others.
const LOOSE: u32 = 0o077;

/// Why a key's file was not read.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The system refused.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Others may read or change it.
    #[error("{} holds a key that others can read or change (mode {mode:03o}); mend it with: chmod 600 {}", path.display(), path.display())]
    Loose {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

/// Opens a file with a secret in it.
///
/// # Errors
/// [`SecretFileError`].
pub fn open(path: &Path) -> Result<File, SecretFileError> {
    let refused = |reason| SecretFileError::File {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(refused)?;
    // Of the opened file, not of whatever has the name by now.
    let mode = file.metadata().map_err(refused)?.permissions().mode() & 0o777;
    if mode & LOOSE != 0 {
        return Err(SecretFileError::Loose {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(file)
}

/// Reads a file with a secret in it, up to `limit` bytes of it.
///
/// # Errors
/// [`SecretFileError`].
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, SecretFileError> {
    let mut bytes = Vec::new();
    let reading = open(path)?.take(limit as u64).read_to_end(&mut bytes);
    reading.map_err(|reason| SecretFileError::File {
        path: path.to_owned(),
        reason,
    })?;
    Ok(bytes)
}
