//! Notes what the client is built from: the commit, for result files and `--version`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    // Where there is no git or no repository, the commit is unknown, and that is no error.
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12"]);
    if let Some(commit) = &commit {
        println!("cargo:rustc-env=NETPING_COMMIT={commit}");
    }
    let commit = commit.map_or_else(|| "unknown commit".to_owned(), |id| format!("commit {id}"));
    let of_build = |name| env::var(name).unwrap_or_default();
    println!(
        "cargo:rustc-env=NETPING_BUILD={} ({commit})",
        of_build("CARGO_PKG_VERSION")
    );
    println!("cargo:rustc-env=NETPING_TARGET={}", of_build("TARGET"));

    // A change of the sources makes them differ from their commit.
    let mut seen = sources();
    if let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) {
        seen.extend(["HEAD", "index"].map(|file| Path::new(&folder).join(file)));
    }
    for path in seen {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = || String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then(text)
}

/// Returns the files and folders that the program is built from.
fn sources() -> Vec<PathBuf> {
    let top = Path::new("../..");
    let files = ["Cargo.toml", "Cargo.lock"].map(|file| top.join(file));
    let crates = top
        .join("crates")
        .read_dir()
        .into_iter()
        .flatten()
        .flatten();
    let folders = crates.map(|folder| folder.path().join("src"));
    files
        .into_iter()
        .chain(folders.filter(|folder| folder.is_dir()))
        .collect()
}
