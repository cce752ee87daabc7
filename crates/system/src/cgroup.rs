//! Files of this process's cgroup (`Documentation/admin-guide/cgroup-v2.rst` of Linux, and
//! `cgroup-v1/` for version 1).

use std::{fs, path::Path};

use procfs::process::Process;

/// Returns the text of the first of these files that the process's cgroup has, in version 2 or in the
/// hierarchy of version 1 that has the controller.
pub(crate) fn read(controller: &str, files: &[&str]) -> Option<String> {
    let groups = Process::myself().ok()?.cgroups().ok()?;
    groups.into_iter().find_map(|group| {
        let root = Path::new("/sys/fs/cgroup");
        let root = match group.hierarchy {
            0 => root.to_owned(),
            _ if group.controllers.iter().any(|name| name == controller) => root.join(controller),
            _ => return None,
        };
        let folder = root.join(group.pathname.trim_start_matches('/'));
        files
            .iter()
            .find_map(|file| fs::read_to_string(folder.join(file)).ok())
    })
}
