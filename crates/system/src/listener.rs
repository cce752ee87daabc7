//! The processes that hold a socket on which a port is served.

use std::collections::BTreeSet;

use procfs::{
    net,
    process::{self, FDTarget, Process},
};

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
    let all = process::all_processes().into_iter().flatten().flatten();
    all.filter(|process| holds(process, &sockets))
        .map(|process| process.pid.cast_unsigned())
        .collect()
}

/// Returns true if any process in this network namespace serves this port, be it over TCP or UDP.
pub fn is_served(port: u16) -> bool {
    let all = [Transport::Tcp, Transport::Udp];
    all.into_iter()
        .any(|transport| !sockets(port, transport).is_empty())
}

fn sockets(port: u16, transport: Transport) -> BTreeSet<u64> {
    match transport {
        Transport::Tcp => {
            let entries = [net::tcp(), net::tcp6()].into_iter().flatten().flatten();
            entries
                .filter(|entry| {
                    entry.state == net::TcpState::Listen && entry.local_address.port() == port
                })
                .map(|entry| entry.inode)
                .collect()
        }
        Transport::Udp => {
            let entries = [net::udp(), net::udp6()].into_iter().flatten().flatten();
            entries
                .filter(|entry| entry.local_address.port() == port)
                .map(|entry| entry.inode)
                .collect()
        }
    }
}

/// Returns true if the process has one of these sockets open.
fn holds(process: &Process, sockets: &BTreeSet<u64>) -> bool {
    let files = process.fd().into_iter().flatten().flatten();
    files
        .map(|file| file.target)
        .any(|target| matches!(target, FDTarget::Socket(inode) if sockets.contains(&inode)))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

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
}
