//! Atomic writing of files.

use std::{
    any::Any,
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use tempfile::NamedTempFile;

/// Why a result file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", path.display())]
pub struct SaveError {
    /// The file.
    pub path: PathBuf,
    /// The system's answer.
    pub reason: io::Error,
}

impl SaveError {
    pub(super) fn of(path: &Path, reason: impl Into<io::Error>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Makes a guard. While it lives, no signal ends the process.
static GUARD: OnceLock<fn() -> Box<dyn Any>> = OnceLock::new();

/// Has files written under such a guard, so that none stays half written. The first call counts.
pub fn write_under(guard: fn() -> Box<dyn Any>) {
    let _ = GUARD.set(guard);
}

fn whole() -> Option<Box<dyn Any>> {
    GUARD.get().map(|guard| guard())
}

/// Writes a file anew: to a temporary file in its folder, synced, then renamed. Whoever reads the
/// path finds the old file or the new one, whole, with the old one's mode. A symbolic link stays one, and it is what it
/// leads to that is replaced. What is no file, such as a pipe, or stands in /dev or /proc, is
/// written to.
///
/// # Errors
/// [`SaveError`], and then the old file is as it was.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), SaveError> {
    write(path, content).map_err(|reason| SaveError::of(path, reason))
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let Some(target) = file_to_replace(path) else {
        return fs::write(path, content);
    };
    let _whole = whole();
    let mut file = temporary_beside(&target)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}

/// Sees that [`write_atomically`] can write a file: one that is there is left as it is, one that is
/// not is written.
///
/// # Errors
/// [`SaveError`].
pub fn prepare_file(path: &Path, content: &[u8]) -> Result<(), SaveError> {
    let there = file_to_replace(path).filter(|target| target.is_file());
    let prepared = there.map_or_else(
        || write(path, content),
        |target| {
            let _whole = whole();
            temporary_beside(&target).map(drop)
        },
    );
    prepared.map_err(|reason| SaveError::of(path, reason))
}

/// Returns the file that another one is renamed to; `None` for what is written to directly: it is
/// open already, or no regular file.
fn file_to_replace(path: &Path) -> Option<PathBuf> {
    let is_stream = fs::metadata(path).is_ok_and(|there| !there.is_file());
    // Standard output may be a file, and a new one in its place would not be what the shell has
    // open.
    let is_open =
        path.starts_with("/proc") || (path.starts_with("/dev") && !path.starts_with("/dev/shm"));
    if is_stream || is_open {
        return None;
    }
    // A link stays one, and leads to the new file.
    Some(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// An empty file that goes away by itself unless it is renamed, with the mode of `target` if that is there.
fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let missing = format!("there is no folder {}", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, missing));
    }
    let file = tempfile::Builder::new()
        .prefix(".netping-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    if let Ok(there) = fs::metadata(target) {
        file.as_file().set_permissions(there.permissions())?;
    }
    Ok(file)
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
    fn a_file_that_is_there_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        write_atomically(&path, b"new").unwrap();
        for kept in [0o600, 0o666, 0o440] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            write_atomically(&path, b"newer").unwrap();
            assert_eq!(mode(), kept);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write_atomically(Path::new("/no/such/folder/run.csv"), b"").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write /no/such/folder/run.csv: "),
            "{error}"
        );
    }

    #[test]
    fn a_link_stays_one_and_leads_to_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (
            folder.path().join("sub/run.json"),
            folder.path().join("latest.json"),
        );
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("sub/run.json", &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("sub/run.json"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path().join("sub")).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_open_already_stays_the_one() {
        use std::os::{fd::AsRawFd, unix::fs::MetadataExt};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let open = fs::File::create(&path).unwrap();
        let number = fs::metadata(&path).unwrap().ino();
        write_atomically(
            Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())),
            b"content",
        )
        .unwrap();
        assert_eq!(
            (
                fs::metadata(&path).unwrap().ino(),
                fs::read_to_string(&path).unwrap()
            ),
            (number, "content".into())
        );
    }

    #[test]
    fn a_file_that_is_there_is_prepared_without_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        prepare_file(&path, b"first").unwrap();
        prepare_file(&path, b"second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        prepare_file(Path::new("/no/such/folder/run.json"), b"").unwrap_err();
    }

    #[test]
    fn a_device_stays_one() {
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
