//! Writing a file so that nobody ever reads half of it.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Why a result file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", path.display())]
pub struct SaveError {
    /// The file.
    pub path: PathBuf,
    /// The system's answer.
    pub reason: io::Error,
}

/// Writes a file anew: to a temporary file in its folder, synced, then renamed. Whoever reads the path finds the old
/// file or the new one, whole. What is there and is no file, such as a pipe, is written to.
///
/// # Errors
/// [`SaveError`], and then the old file is as it was.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), SaveError> {
    let write = || -> io::Result<()> {
        // Renaming would put a file in the place of a device.
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return fs::write(path, content);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .prefix(".netping-")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|reason| SaveError { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.csv");
        for content in ["longer than the next", "short"] {
            write_atomically(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write_atomically(Path::new("/no/such/folder/run.csv"), b"").unwrap_err();
        assert!(error.to_string().starts_with("cannot write /no/such/folder/run.csv: "), "{error}");
    }

    #[test]
    fn a_device_stays_one() {
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
