//! Notes the commit that the client is built from, for result files.

use std::process::Command;

fn main() {
    // Where there is no git or no repository, the commit is unknown, and that is no error.
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(args)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if let Some(commit) = git(&["describe", "--always", "--dirty", "--abbrev=12"]) {
        println!("cargo:rustc-env=NETPING_COMMIT={commit}");
    }
    if let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) {
        println!("cargo:rerun-if-changed={folder}/HEAD");
        println!("cargo:rerun-if-changed={folder}/index");
    }
}
