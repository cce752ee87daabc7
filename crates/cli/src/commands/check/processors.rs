//! The CPUs of this machine: which of them share a core or a memory, and how deep they sleep.

use std::{collections::BTreeSet, path::Path};

use netping_results::format::{self, plural};
use netping_system::cores;

use super::files::{entries, name, text};
use crate::observation::Observations;

/// Tells what the system that is mounted at `root` knows of the CPUs that this process may use.
pub fn look(found: &mut Observations, root: &Path, own: &[usize]) {
    let folder = root.join("sys/devices/system");
    threads(found, &folder, own);
    memories(found, &folder, own);
    sleep(found, &folder, own);
}

/// Tells how many CPUs are threads of the same core. Virtual machines may not.
fn threads(found: &mut Observations, folder: &Path, own: &[usize]) {
    let siblings = |cpu: &usize| {
        let file = folder.join(format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
        cores::parse(&text(file)?)
    };
    let Some(groups) = own.iter().map(siblings).collect::<Option<BTreeSet<_>>>() else {
        return;
    };
    let [threads, cores] = [(own.len(), "CPU"), (groups.len(), "core")]
        .map(|(count, noun)| plural(count as u64, noun));
    found.add("SMT", format!("{threads} on {cores}"));
}

/// Tells how many memories (NUMA nodes) the CPUs are near to.
fn memories(found: &mut Observations, folder: &Path, own: &[usize]) {
    let mut nodes = entries(&folder.join("node"));
    nodes.retain(|node| name(node).trim_start_matches("node").parse::<u32>().is_ok());
    let lists = nodes
        .into_iter()
        .filter_map(|node| cores::parse(&text(node.join("cpulist"))?));
    let used = lists.map(|mut cpus| {
        cpus.retain(|cpu| own.contains(cpu));
        cpus
    });
    let used: Vec<_> = used.filter(|cpus| !cpus.is_empty()).collect();
    if used.is_empty() {
        return;
    }
    let cpus: Vec<_> = used.iter().map(|cpus| format::cpus(cpus)).collect();
    let nodes = plural(used.len() as u64, "node");
    found.add("NUMA", format!("{nodes}: {}", cpus.join(" and "))).warn_unless(
        used.len() == 1,
        "keep client and servers on one node each (taskset, numactl), that of the network card if there is one",
    );
}

/// Tells the states that an idle CPU may sleep in, and how long it takes to leave each.
fn sleep(found: &mut Observations, folder: &Path, own: &[usize]) {
    let Some(cpu) = own.first() else { return };
    let states = entries(&folder.join(format!("cpu/cpu{cpu}/cpuidle")));
    let enabled = states
        .into_iter()
        .filter(|state| text(state.join("disable")).as_deref() != Some("1"));
    let told = enabled.filter_map(|state| {
        let [name, latency] = ["name", "latency"].map(|file| text(state.join(file)));
        Some(format!("{} {} us", name?, latency?))
    });
    let told: Vec<_> = told.collect();
    if !told.is_empty() {
        found.add("idle states, time to leave", told.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::files::tests::{kernel, told};

    const MACHINE: [(&str, &str); 11] = [
        (
            "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
            "0,2",
        ),
        (
            "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
            "1,3",
        ),
        (
            "sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
            "0,2",
        ),
        ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C6"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "133"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0"),
        ("sys/devices/system/node/node0/cpulist", "0,2\n"),
        ("sys/devices/system/node/node1/cpulist", "1,3\n"),
        ("sys/devices/system/node/possible", "0-1\n"),
    ];

    #[test]
    fn only_the_cpus_that_this_process_has_are_told() {
        let root = kernel(&MACHINE);
        let about = |cpus: &[usize]| told(|found| look(found, root.path(), cpus));
        let is = |text: &str, good| (text.to_owned(), good);
        let idle = || is("idle states, time to leave: POLL 0 us, C6 133 us", true);
        let all = [
            is("SMT: 3 CPUs on 2 cores", true),
            is("NUMA: 2 nodes: CPUs 0,2 and CPU 1", false),
            idle(),
        ];
        assert_eq!(about(&[0, 1, 2]), all);
        let one = [
            is("SMT: 2 CPUs on 1 core", true),
            is("NUMA: 1 node: CPUs 0,2", true),
            idle(),
        ];
        assert_eq!(about(&[0, 2]), one);
    }

    #[test]
    fn states_that_are_off_and_files_that_are_missing_are_left_out() {
        let off = [("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "1")];
        let root = kernel(&[&MACHINE[3..7], &off].concat());
        let expected = [("idle states, time to leave: POLL 0 us".to_owned(), true)];
        assert_eq!(told(|found| look(found, root.path(), &[0])), expected);
    }
}
