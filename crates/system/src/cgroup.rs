//! Files of this process's cgroup (`Documentation/admin-guide/cgroup-v2.rst` of Linux, and
//! `cgroup-v1/` for version 1).

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::proc;

/// Returns the text of the first of these files that the process's cgroup has, in version 2 or in the
/// hierarchy of version 1 that has the controller.
pub(crate) fn read(controller: &str, files: &[&str]) -> Option<String> {
    let groups = proc::read(proc::own().join("cgroup"))?;
    let mut folders = groups.lines().filter_map(|group| folder(group, controller));
    folders.find_map(|folder| {
        let mut files = files.iter();
        files.find_map(|file| fs::read_to_string(folder.join(file)).ok())
    })
}

/// Returns the folder of a line `hierarchy:controller,...:path` of `/proc/PID/cgroup` (cgroups(7)), if it may have the
/// controller. Version 2 has one hierarchy, 0, which names none.
fn folder(group: &str, controller: &str) -> Option<PathBuf> {
    let (hierarchy, group) = group.split_once(':')?;
    let (controllers, path) = group.split_once(':')?;
    let root = Path::new("/sys/fs/cgroup");
    let root = match hierarchy {
        "0" => root.to_owned(),
        _ if controllers.split(',').any(|own| own == controller) => root.join(controller),
        _ => return None,
    };
    Some(root.join(path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_of_version_1_is_that_of_its_controllers() {
        let of_cpu = |line| folder(line, "cpu").map(|path| path.display().to_string());
        let is = |path: &str| Some(format!("/sys/fs/cgroup/{path}"));
        assert_eq!(of_cpu("0::/user.slice/a:b"), is("user.slice/a:b"));
        assert_eq!(of_cpu("0::/"), is(""));
        assert_eq!(of_cpu("1:cpu:/"), is("cpu/"));
        assert_eq!(of_cpu("4:cpuacct,cpu:/docker/12"), is("cpu/docker/12"));
        for other in [
            "3:cpuset:/",
            "2:cpuacct:/a",
            "9:name=cpu:/",
            "",
            "0",
            "0:",
            "1:cpu",
        ] {
            assert_eq!(of_cpu(other), None, "{other}");
        }
    }
}
