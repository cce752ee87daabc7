//! The pre-shared key and its file.

use std::{fmt, path::Path};

use aws_lc_rs::rand;

use super::error::NoiseError;
use crate::secret_file::{self, CredentialError};

/// Length of a [`Key`], in bytes.
pub const KEY_LENGTH: usize = 32;

/// The secret that both sides share. `Debug` does not show it.
#[derive(Clone)]
pub struct Key(pub(super) [u8; KEY_LENGTH]);

impl Key {
    /// Reads a key file: 32 bytes that only the owner can read.
    ///
    /// # Errors
    /// Fails with a [`CredentialError`] if the file cannot be read, is open to others, has another length,
    /// or has only zeros.
    pub fn read(path: &Path) -> Result<Self, CredentialError> {
        // One more byte than a key has, to notice a longer file.
        let bytes = secret_file::read(path, KEY_LENGTH + 1)?;
        let wrong = match <[u8; KEY_LENGTH]>::try_from(bytes) {
            Ok(bytes) if bytes != [0; KEY_LENGTH] => return Ok(Self(bytes)),
            Ok(_) => "a key of zeros is no secret",
            Err(_) => "not a pre-shared key of 32 bytes",
        };
        let (path, advice) = (path.display(), "`netping certs --psk` makes one");
        Err(CredentialError(format!("{path}: {wrong}; {advice}")))
    }

    /// Makes a new key from the operating system's random numbers.
    ///
    /// # Errors
    /// Fails with [`NoiseError::Local`] if the system has none.
    pub fn generate() -> Result<Self, NoiseError> {
        let mut bytes = [0; KEY_LENGTH];
        rand::fill(&mut bytes).map_err(|_| NoiseError::Local(snow::Error::Rng))?;
        Ok(Self(bytes))
    }

    /// Returns the content of a key file.
    pub fn bytes(&self) -> &[u8; KEY_LENGTH] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use tempfile::NamedTempFile;

    use super::*;

    fn key_file(mode: u32, length: usize) -> NamedTempFile {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), vec![0xA5; length]).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_key_of_zeros_is_refused() {
        let file = key_file(0o600, KEY_LENGTH);
        fs::write(file.path(), [0; KEY_LENGTH]).unwrap();
        let error = Key::read(file.path()).unwrap_err();
        assert!(error.to_string().contains("zeros"), "{error}");
    }

    #[test]
    fn a_key_file_is_private_and_32_bytes_long() {
        let file = key_file(0o600, KEY_LENGTH);
        assert_eq!(Key::read(file.path()).unwrap().bytes(), &[0xA5; KEY_LENGTH]);
        for mode in [0o644, 0o640, 0o602] {
            let file = key_file(mode, KEY_LENGTH);
            let text = Key::read(file.path()).unwrap_err().to_string();
            assert!(
                text.contains(&format!("chmod 600 {}", file.path().display())),
                "{text}"
            );
        }
        for length in [0, KEY_LENGTH - 1, KEY_LENGTH + 1] {
            let text = Key::read(key_file(0o600, length).path())
                .unwrap_err()
                .to_string();
            assert!(text.contains("netping certs --psk"), "{text}");
        }
        let text = Key::read(Path::new("/nonexistent/key"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("/nonexistent/key"), "{text}");
    }

    #[test]
    fn a_key_is_random_and_debug_hides_it() {
        let key = Key::generate().unwrap();
        assert_ne!(key.bytes(), Key::generate().unwrap().bytes());
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
