//! The processes that hold a socket on which a port is served.

use std::{collections::BTreeSet, fs, path::Path};

use crate::proc;

/// The state of a listening socket (`TCP_LISTEN` in `include/net/tcp_states.h` of Linux).
const LISTENS: &str = "0A";

/// A kind of socket that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// A listening TCP socket.
    Tcp,
    /// A UDP socket.
    Udp,
}

/// Returns the processes that hold a socket bound to this port of this host; none where they belong to
/// another user, or to another network namespace.
pub fn processes(port: u16, transport: Transport) -> Vec<u32> {
    let sockets = sockets(port, transport);
    if sockets.is_empty() {
        return Vec::new();
    }
    proc::pids()
        .filter(|pid| holds(&proc::process(*pid), &sockets))
        .collect()
}

/// Returns true if any process in this network namespace serves this port, be it over TCP or UDP.
pub fn is_served(port: u16) -> bool {
    let all = [Transport::Tcp, Transport::Udp];
    all.into_iter()
        .any(|transport| !sockets(port, transport).is_empty())
}

fn sockets(port: u16, transport: Transport) -> BTreeSet<u64> {
    let (files, state) = match transport {
        Transport::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], Some(LISTENS)),
        Transport::Udp => (["/proc/net/udp", "/proc/net/udp6"], None),
    };
    let texts: String = files.into_iter().filter_map(proc::read).collect();
    let lines = texts.lines();
    lines.filter_map(|line| inode(line, port, state)).collect()
}

/// Returns the inode of a socket that is bound to this port, if its state is the one that is asked for, from a line of
/// `/proc/net/tcp` and its like (`Documentation/networking/proc_net_tcp.rst` of Linux), whose port is hexadecimal.
fn inode(line: &str, port: u16, state: Option<&str>) -> Option<u64> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, own) = fields.get(1)?.rsplit_once(':')?;
    let is_asked_for = state.is_none_or(|state| fields.get(3) == Some(&state));
    let is_own = u16::from_str_radix(own, 16) == Ok(port) && is_asked_for;
    fields.get(9).filter(|_| is_own)?.parse().ok()
}

/// Returns true if the process has one of these sockets open.
fn holds(process: &Path, sockets: &BTreeSet<u64>) -> bool {
    open_sockets(process).any(|inode| sockets.contains(&inode))
}

/// Returns the inodes of the sockets that a process has open, whose folder of `/proc` is given.
pub(crate) fn open_sockets(process: &Path) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(process.join("fd")).into_iter().flatten();
    let targets = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter_map(|target| socket(&target))
}

/// Returns the inode of an open file that is a socket, as `socket:[1060]`.
fn socket(target: &Path) -> Option<u64> {
    let inode = target.to_str()?.strip_prefix("socket:[")?;
    inode.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = [std::process::id()];
        assert_eq!(processes(port, Transport::Tcp), own);
        drop(listener);
        assert!(processes(port, Transport::Tcp).is_empty());
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(processes(port, Transport::Udp), own);
    }

    #[test]
    fn a_socket_is_told_by_its_port_and_its_state() {
        let tcp = "   0: 0100007F:1F90 0200007F:1F91 0A 00000000:00000000 00:00000000 00000000  1000        7 \
                   1060 1 00000000321f2c33 100 0 0 10 0";
        let connected = tcp.replace(" 0A ", " 01 ");
        let udp = "  12: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:1F91 07 \
                   00000000:00000000 00:00000000 00000000  1000        7 18446744073709551615 2 0 0";
        assert_eq!(inode(tcp, 8080, Some(LISTENS)), Some(1060));
        assert_eq!(inode(&connected, 8080, Some(LISTENS)), None);
        assert_eq!(inode(udp, 8080, None), Some(u64::MAX));
        assert_eq!(inode(tcp, 8081, Some(LISTENS)), None);
        assert_eq!(inode(udp, 8081, None), None);
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        let (cut, _) = tcp.split_once("1060").unwrap();
        for wrong in ["", heading, "0:", "0: 1F90", "0: 0:1F90 0:0 0A", cut] {
            assert_eq!(inode(wrong, 8080, Some(LISTENS)), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_is_a_socket_by_its_target() {
        assert_eq!(socket(Path::new("socket:[1060]")), Some(1060));
        for other in [
            "pipe:[1060]",
            "socket:[]",
            "socket:[1060",
            "/dev/null",
            "/a/socket:[1]",
        ] {
            assert_eq!(socket(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn a_connection_from_a_port_does_not_serve_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = client.local_addr().unwrap().port();
        assert!(processes(port, Transport::Tcp).is_empty() && !is_served(port));
        assert!(is_served(listener.local_addr().unwrap().port()));
    }
}
