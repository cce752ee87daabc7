//! The kernel's files about this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns what is in a folder, in the order of names.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the last part of a path.
pub fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the content of a file, without spaces around it.
pub fn text(file: PathBuf) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
pub mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::observation::{Grade, Observations};

    /// Returns a folder with these files.
    pub fn kernel(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    /// Returns the observations as text, and whether each is good.
    pub fn told(look: impl FnOnce(&mut Observations)) -> Vec<(String, bool)> {
        let mut found = Observations::about("this host");
        look(&mut found);
        let told = found.all.iter();
        told.map(|own| {
            (
                format!("{}: {}", own.what, own.value),
                own.state == Grade::Ok,
            )
        })
        .collect()
    }
}
