//! Paths of results, which must overwrite neither each other nor an input.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::error::{require, usage};

/// Checks that the files `written`, given with their flags, differ from each other and from those
/// `read`, and that standard input is read only once.
pub fn apart<'a>(
    read: &[PathBuf],
    written: impl IntoIterator<Item = (&'static str, &'a Path)>,
) -> anyhow::Result<()> {
    let from_stdin = read.iter().filter(|path| path.as_os_str() == "-");
    require(
        from_stdin.count() <= 1,
        "'-' can be given only once: standard input is read to its end",
    )?;
    let read: Vec<PathBuf> = read.iter().filter_map(|path| file(path)).collect();
    let mut before: Vec<(&str, PathBuf)> = Vec::new();
    for (flag, path) in written {
        let Some(own) = file(path) else { continue };
        let path = path.display();
        require(
            !read.contains(&own),
            format!("--{flag} {path} would overwrite an input: give another file"),
        )?;
        if let Some((other, _)) = before.iter().find(|(_, other)| *other == own) {
            return Err(usage(format!(
                "--{other} and --{flag} both write {path}: give each a file of its own"
            )));
        }
        before.push((flag, own));
    }
    Ok(())
}

/// Returns the file that a path leads to, even if it does not exist yet. `None` for standard input
/// and for pipes or devices such as `/dev/null`, which may be given several times.
fn file(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" || fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return None;
    }
    fs::canonicalize(path).ok().or_else(|| {
        let folder = Path::new(".").join(path.parent()?);
        // A missing folder is reported when the file is written.
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        Some(folder.join(path.file_name()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_of_one_file_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("run.json"), "{}").unwrap();
        std::os::unix::fs::symlink(path("run.json"), path("link")).unwrap();
        let error = |read: &[PathBuf], written: &[(&'static str, &Path)]| {
            apart(read, written.iter().copied())
                .unwrap_err()
                .to_string()
        };
        let same = [
            path("run.json"),
            path("link"),
            path("sub/../run.json"),
            path("./run.json"),
        ];
        for name in &same {
            let (run, page) = (path("run.json"), path("a.html"));
            let text = error(
                std::slice::from_ref(&run),
                &[("html", page.as_path()), ("csv", name.as_path())],
            );
            assert!(
                text.starts_with("--csv ") && text.contains("would overwrite an input"),
                "{text}"
            );
        }
        // Two files that do not exist yet.
        let [out, page, again] = ["out", "page", "sub/../out"].map(path);
        let text = error(
            &[],
            &[
                ("json", out.as_path()),
                ("html", page.as_path()),
                ("csv", again.as_path()),
            ],
        );
        assert!(
            text.starts_with("--json and --csv both write ") && text.ends_with("a file of its own"),
            "{text}"
        );
    }

    #[test]
    fn different_files_and_devices_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let null = Path::new("/dev/null");
        let written = [
            ("json", a.as_path()),
            ("csv", b.as_path()),
            ("hlog", null),
            ("markdown", null),
        ];
        let read = ["-", "/dev/null"].map(PathBuf::from);
        assert!(apart(&read, written).is_ok());
    }
}
