//! Processes that this one starts, which the tests of sockets must not see: between `fork` and `exec` they hold them.

use std::{
    collections::BTreeSet,
    process::{self, Command},
};

use netping_system::{
    cpu::process_time,
    process::{Usage, family, is_running, namesakes},
};

#[test]
fn a_child_is_of_the_family_until_it_has_ended() {
    let own = process::id();
    let mut sleeps = [(); 2].map(|()| Command::new("sleep").arg("60").spawn().unwrap());
    let pids = [sleeps[0].id(), sleeps[1].id()];
    assert!(family(&[own]).is_superset(&BTreeSet::from([own, pids[0], pids[1]])));
    let children: BTreeSet<u32> = Usage::of(own).unwrap().children.into_iter().collect();
    assert!(children.is_superset(&BTreeSet::from(pids)) && !children.contains(&own));
    assert!(namesakes(pids[0]).contains(&pids[1]));
    assert!(!namesakes(pids[0]).contains(&pids[0]) && !namesakes(pids[0]).contains(&own));
    for sleep in &mut sleeps {
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
    assert!(family(&[own]).is_disjoint(&BTreeSet::from(pids)));
    assert!(!is_running(&pids[0]) && namesakes(pids[0]).is_empty());
}

#[test]
fn the_cpu_time_of_a_child_that_has_ended_stays_counted() {
    let mut child = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    while Usage::of(child.id()).unwrap().cpu_seconds < 0.05 {}
    child.kill().unwrap();
    child.wait().unwrap();
    let own = process_time().as_secs_f64();
    let usage = Usage::of(process::id()).unwrap();
    assert!(usage.cpu_seconds > own + 0.02, "{usage:?} {own}");
}
