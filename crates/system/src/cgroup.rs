//! Files of this process's cgroup and of those above it, whose limits hold for it too
//! (`Documentation/admin-guide/cgroup-v2.rst` of Linux, and `cgroup-v1/` for version 1).

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::proc;

/// Where the kernel shows cgroups.
const ROOT: &str = "/sys/fs/cgroup";

/// Returns, for the process's cgroup and each above it that can be seen, the text of the first of these files that it
/// has, in version 2 or in the hierarchy of version 1 that has the controller.
pub(crate) fn read(controller: &str, files: &[&str]) -> Vec<String> {
    let groups = proc::read(proc::own().join("cgroup")).unwrap_or_default();
    let folders = groups.lines().filter_map(|group| folder(group, controller));
    let texts = folders.flat_map(|folder| {
        let all = with_those_above(&folder).map(|folder| {
            let mut files = files.iter();
            files.find_map(|file| fs::read_to_string(folder.join(file)).ok())
        });
        all.flatten().collect::<Vec<_>>()
    });
    texts.collect()
}

/// Returns a cgroup's folder and those of the cgroups above it. In a container that sees only its own cgroup, which then
/// stands at the root, the others do not exist.
fn with_those_above(folder: &Path) -> impl Iterator<Item = &Path> {
    folder.ancestors().take_while(|own| own.starts_with(ROOT))
}

/// Returns the folder of a line `hierarchy:controller,...:path` of `/proc/PID/cgroup` (cgroups(7)), if it may have the
/// controller. Version 2 has one hierarchy, 0, which names none.
fn folder(group: &str, controller: &str) -> Option<PathBuf> {
    let (hierarchy, group) = group.split_once(':')?;
    let (controllers, path) = group.split_once(':')?;
    let root = Path::new(ROOT);
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

    #[test]
    fn those_above_a_cgroup_reach_up_to_the_root() {
        let all = |path: &str| {
            let all = with_those_above(Path::new(path)).map(|own| own.display().to_string());
            all.collect::<Vec<_>>()
        };
        let is = ["/a/b", "/a", ""].map(|path| format!("{ROOT}{path}"));
        assert_eq!(all(&is[0]), is);
        assert_eq!(all(ROOT), [ROOT]);
    }
}
