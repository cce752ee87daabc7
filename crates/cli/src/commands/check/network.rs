//! The network cards of this machine: their speed, and which CPUs serve their packets.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use netping_results::format;
use netping_system::cores;

use super::files::{entries, name, text};
use crate::observation::Observations;

/// CPUs from which on one that takes all packets of a card may be the limit, and not the servers.
const MANY: usize = 4;

/// Tells what the system that is mounted at `root`, and has `cpus` CPUs, knows of each card that is up.
pub fn look(found: &mut Observations, root: &Path, cpus: usize) {
    let mut cards = entries(&root.join("sys/class/net"));
    cards.retain(|card| {
        name(card) != "lo" && text(card.join("operstate")).as_deref() != Some("down")
    });
    for card in cards {
        // Virtual cards tell no speed, or -1.
        let speed = text(card.join("speed")).filter(|speed| !speed.starts_with('-'));
        let speed = speed.map_or_else(|| "unknown speed".to_owned(), |own| own + " Mbit/s");
        let mtu = text(card.join("mtu")).unwrap_or_else(|| "unknown".to_owned());
        let mut parts = vec![format!("{}: {speed}", name(&card)), format!("MTU {mtu}")];
        // What has no device is made of software.
        let Ok(device) = fs::canonicalize(card.join("device")) else {
            found.add("network", parts.join(", "));
            continue;
        };
        let [receive, send] = ["rx-", "tx-"].map(|kind| queues(&card, kind));
        let queues = format!("queues: {} receive, {} send", receive.len(), send.len());
        parts.push(queues);
        let interrupts = interrupts(root, &device);
        if !interrupts.is_empty() {
            let cpus = format::cpus(&Vec::from_iter(interrupts));
            parts.push(format!("interrupts on {cpus}"));
        }
        if let Some(node) = text(device.join("numa_node")).filter(|node| !node.starts_with('-')) {
            parts.push(format!("NUMA node {node}"));
        }
        let is_spread = receive.len() > 1 || receive.iter().any(|queue| is_steered(queue));
        found.add("network", parts.join(", ")).warn_unless(
            is_spread || cpus < MANY,
            "one CPU receives all packets: enable more queues (ethtool -L), or set rps_cpus of the queue",
        );
    }
}

/// Returns the card's queues of a kind.
fn queues(card: &Path, kind: &str) -> Vec<PathBuf> {
    let mut queues = entries(&card.join("queues"));
    queues.retain(|queue| name(queue).starts_with(kind));
    queues
}

/// Returns true if the kernel hands the packets of a queue on to other CPUs: receive packet steering.
fn is_steered(queue: &Path) -> bool {
    let mask = text(queue.join("rps_cpus")).unwrap_or_default();
    mask.chars().any(|digit| !matches!(digit, '0' | ','))
}

/// Returns the CPUs on which the interrupts of a device arrive; none if that is not known.
fn interrupts(root: &Path, device: &Path) -> BTreeSet<usize> {
    // A virtio card has the interrupts of the PCI device that it is on.
    let folders = [Some(device), device.parent()].into_iter().flatten();
    let numbers = folders
        .map(|folder| entries(&folder.join("msi_irqs")))
        .find(|all| !all.is_empty());
    let cpus = numbers.unwrap_or_default().into_iter().flat_map(|number| {
        let folder = root.join("proc/irq").join(name(&number));
        // Changes of its settings, not packets.
        let is_of_settings = entries(&folder)
            .iter()
            .any(|own| name(own).ends_with("config"));
        let list = text(folder.join("effective_affinity_list")).filter(|_| !is_of_settings);
        list.and_then(|list| cores::parse(&list))
            .unwrap_or_default()
    });
    cpus.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::files::tests::{kernel, told};

    const CARD: [(&str, &str); 5] = [
        ("sys/class/net/lo/mtu", "65536"),
        ("sys/class/net/eth0/mtu", "1460\n"),
        ("sys/class/net/eth0/speed", "-1"),
        ("sys/class/net/eth0/device/numa_node", "1"),
        ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
    ];

    fn about(more: &[(&str, &str)], cpus: usize) -> Vec<(String, bool)> {
        let root = kernel(&[&CARD, more].concat());
        told(|found| look(found, root.path(), cpus))
    }

    #[test]
    fn a_card_has_queues_and_cpus_that_serve_them() {
        let queues = [
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00,00"),
            ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00,00"),
            ("sys/class/net/eth0/device/msi_irqs/30", "msix"),
            ("sys/class/net/eth0/device/msi_irqs/31", "msix"),
            ("sys/class/net/eth0/device/msi_irqs/32", "msix"),
            ("proc/irq/30/effective_affinity_list", "7"),
            ("proc/irq/30/virtio2-config/x", ""),
            ("proc/irq/31/effective_affinity_list", "2"),
            ("proc/irq/32/effective_affinity_list", "3"),
        ];
        let expected = "network: eth0: unknown speed, MTU 1460, queues: 2 receive, 1 send, \
                        interrupts on CPUs 2-3, NUMA node 1";
        assert_eq!(about(&queues, 8), [(expected.to_owned(), true)]);
    }

    #[test]
    fn one_queue_is_little_for_many_cpus_unless_its_packets_are_handed_on() {
        let is_good =
            |mask, cpus| about(&[("sys/class/net/eth0/queues/rx-0/rps_cpus", mask)], cpus)[0].1;
        assert!(!is_good("00000000,00000000", 4));
        assert!(is_good("00000000,00000000", 3));
        assert!(is_good("00000000,0000000e", 4));
    }

    #[test]
    fn a_card_that_is_down_or_of_software_has_no_queues() {
        let software = [
            ("sys/class/net/eth0/operstate", "down"),
            ("sys/class/net/ifb0/mtu", "1500"),
            ("sys/class/net/ifb0/queues/rx-0/rps_cpus", "0"),
        ];
        let expected = "network: ifb0: unknown speed, MTU 1500";
        assert_eq!(about(&software, 8), [(expected.to_owned(), true)]);
    }
}
