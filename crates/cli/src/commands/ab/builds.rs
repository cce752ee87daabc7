//! Servers that commands of the user's start.

use std::{
    io::{self, ErrorKind},
    net::{TcpListener, UdpSocket},
    str::FromStr,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use netping_client::{clock::Deadline, error::StartError, interrupt::Interrupt};
use netping_protocol::{scheme::port::METRICS_OFFSET, target::Target};
use netping_system::listener::is_served;

use crate::{error::usage, server_process::ServerProcess};

/// Stands for the address that a server is to listen on.
pub const LISTEN: &str = "{listen}";

/// Stands for its port alone; the address is 127.0.0.1.
const PORT: &str = "{port}";

/// The time for a server to begin to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between looks at whether it does.
const LOOK: Duration = Duration::from_millis(5);

/// A command that starts a server.
#[derive(Debug, Clone)]
pub struct Build(Vec<String>);

impl FromStr for Build {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let words = words.ok_or("not a command line: it is empty, or a quote is not closed")?;
        if !words.iter().any(|word| is_filled(word)) {
            return Err(format!(
                "the command must say where it listens: write {LISTEN} for the address, as in 'server --listen \
                 {LISTEN}', or {PORT} for a port of 127.0.0.1"
            ));
        }
        Ok(Self(words))
    }
}

impl Build {
    /// Starts a server at an address, on these CPUs, or on any if there are none. `url` is the form of its URL.
    pub fn start(&self, address: &str, url: &str, cpus: &[usize]) -> anyhow::Result<ServerProcess> {
        let target = filled(url, address).parse::<Target>();
        let target = target.map_err(|error| usage(format!("--url: {error}")))?;
        let words: Vec<String> = self.0.iter().map(|word| filled(word, address)).collect();
        ServerProcess::start_program(&words, target, cpus)
    }

    /// Waits until a server that this started listens.
    pub fn await_listening(
        &self,
        server: &mut ServerProcess,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let port = server.target.port;
        let line = || filled(&self.0.join(" "), &format!("127.0.0.1:{port}"));
        let deadline = Deadline::after(PATIENCE);
        loop {
            if interrupt.is_set() {
                return Err(StartError::Interrupted.into());
            }
            if let Some(status) = server.ended() {
                bail!("'{}' ended before it listened: {status}", line());
            }
            if is_served(port) {
                return Ok(());
            }
            if deadline.left().is_zero() {
                bail!(
                    "'{}' does not listen after {} s",
                    line(),
                    PATIENCE.as_secs()
                );
            }
            thread::sleep(LOOK);
        }
    }
}

/// Returns true for a text in which an address or a port stands.
pub fn is_filled(text: &str) -> bool {
    [LISTEN, PORT].iter().any(|form| text.contains(form))
}

/// Returns a text with an address where it is to stand.
fn filled(text: &str, address: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or_default();
    text.replace(LISTEN, address).replace(PORT, port)
}

/// Returns this number of different addresses of the loopback that nobody serves, over TCP or UDP.
pub fn free_addresses(count: usize) -> anyhow::Result<Vec<String>> {
    // All are held until the last is found: a port that was let go may come again.
    let mut held = Vec::new();
    while held.len() < count {
        held.extend(free_address().context("no free port")?);
    }
    let address = |held: &HeldAddress| Ok(held.tcp.local_addr()?.to_string());
    held.iter().map(address).collect()
}

/// Holds an address; `None` where it is not free.
fn free_address() -> io::Result<Option<HeldAddress>> {
    HeldAddress::of(TcpListener::bind("127.0.0.1:0")?)
}

/// An address that is held over TCP and UDP, and the one that a server of netping's takes beside it for its
/// metrics.
struct HeldAddress {
    tcp: TcpListener,
    _udp: UdpSocket,
    _metrics: TcpListener,
}

impl HeldAddress {
    /// Holds a listener's address; `None` where another program has its port over UDP, or the one beside it.
    fn of(tcp: TcpListener) -> io::Result<Option<Self>> {
        let mut beside = tcp.local_addr()?;
        let Some(port) = beside.port().checked_add(METRICS_OFFSET) else {
            return Ok(None);
        };
        let udp = UdpSocket::bind(beside);
        beside.set_port(port);
        match (udp, TcpListener::bind(beside)) {
            (Ok(udp), Ok(metrics)) => Ok(Some(Self {
                tcp,
                _udp: udp,
                _metrics: metrics,
            })),
            (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::AddrInUse => Ok(None),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_round_are_different() {
        let all = free_addresses(64).unwrap();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (64, 64));
    }

    #[test]
    fn an_address_is_not_free_where_the_port_for_metrics_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut beside = listener.local_addr().unwrap();
        beside.set_port(beside.port().saturating_add(METRICS_OFFSET));
        // If this fails, somebody else has it.
        let taken = TcpListener::bind(beside);
        assert!(HeldAddress::of(listener).unwrap().is_none(), "{taken:?}");
    }

    #[test]
    fn a_command_says_where_it_listens() {
        let words = |text: &str| text.parse::<Build>().map(|build| build.0);
        assert_eq!(
            words("server --name 'a b' --listen {listen}").unwrap(),
            ["server", "--name", "a b", "--listen", "{listen}"]
        );
        assert!(words("server {port}").is_ok());
        assert_eq!(filled("{listen} {port}", "127.0.0.1:80"), "127.0.0.1:80 80");
        for wrong in ["", "server", "server 'a {listen}"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
