//! The limit on open files (`RLIMIT_NOFILE`).

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Limit assumed if the system reports none: the usual default.
const USUAL_OPEN_FILES: u64 = 1024;

/// Returns the limit that is in force.
pub fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(USUAL_OPEN_FILES, |(soft, _)| soft)
}

/// Raises the limit to the hard limit and returns the limit then in force. If the system refuses,
/// the limit stays as it is.
pub fn raise_open_files() -> u64 {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    open_files()
}
