//! Servers that commands of the user's start.

use std::{
    io::{self, ErrorKind},
    net::{TcpListener, UdpSocket},
    ops::Range,
    str::FromStr,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use humantime::format_duration;
use netping_client::{clock::Deadline, error::StartError, interrupt::Interrupt};
use netping_protocol::{scheme::port::METRICS_OFFSET, target::Target};
use netping_system::listener::is_served;

use crate::{environment, server_process::ServerProcess};

/// Stands for the address that a server is to listen on.
pub const LISTEN: &str = "{listen}";

/// Stands for its port alone.
const PORT: &str = "{port}";

/// Stands for its host alone.
const HOST: &str = "{host}";

/// Ports for servers. They lie below those that Linux gives to connections and to whoever asks for any, so that nobody
/// gets one between now and the server's start by chance.
const PORTS: Range<u16> = 10_000..31_000;

/// Time between looks at whether a server listens.
const LOOK: Duration = Duration::from_millis(5);

/// A command that starts a server.
#[derive(Debug, Clone)]
pub struct Launcher(Vec<String>);

impl FromStr for Launcher {
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

impl Launcher {
    /// Starts the server, with these values in place of what stands for them, on these CPUs, or on any if there are none.
    pub fn start(
        &self,
        target: Target,
        values: &Values,
        cpus: &[usize],
    ) -> anyhow::Result<ServerProcess> {
        let words: Vec<String> = self.0.iter().map(|word| values.put_in(word)).collect();
        ServerProcess::start_program(&words, target, cpus)
    }

    /// Returns true if this stands in the command.
    pub fn has(&self, form: &str) -> bool {
        self.0.iter().any(|word| word.contains(form))
    }
}

/// Waits until a server that was started listens.
///
/// # Errors
/// If it ends before that, or there is no time left.
pub fn await_listening(
    server: &mut ServerProcess,
    interrupt: &Interrupt,
    patience: Duration,
) -> anyhow::Result<()> {
    let deadline = Deadline::after(patience);
    loop {
        if interrupt.is_set() {
            return Err(StartError::Interrupted.into());
        }
        server.require_running("before it listened")?;
        if is_served(server.target.port) {
            return Ok(());
        }
        if deadline.left().is_zero() {
            bail!(
                "'{}' does not listen on port {} after {}{}",
                server.line(),
                server.target.port,
                format_duration(patience),
                server.last_words()
            );
        }
        thread::sleep(LOOK);
    }
}

/// Returns true for a text in which an address or a port stands.
pub fn is_filled(text: &str) -> bool {
    [LISTEN, PORT].iter().any(|form| text.contains(form))
}

/// Placeholders of a command, each with the value that is known when it starts.
#[derive(Debug)]
pub struct Values(Vec<(&'static str, String)>);

impl Values {
    /// Returns the values of an address, which has a host and a port.
    pub fn of(address: &str) -> Self {
        let (host, port) = address.rsplit_once(':').unwrap_or_default();
        let values = [(LISTEN, address), (HOST, host), (PORT, port)];
        Self(values.map(|(form, value)| (form, value.to_owned())).into())
    }

    /// Adds the value of another form.
    pub fn with(mut self, form: &'static str, value: String) -> Self {
        self.0.push((form, value));
        self
    }

    /// Returns a text with the values in it.
    pub fn put_in(&self, text: &str) -> String {
        let all = self.0.iter();
        all.fold(text.to_owned(), |text, (form, value)| {
            text.replace(form, value)
        })
    }
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
    let count = u64::from(PORTS.end - PORTS.start);
    let port = PORTS.start + (environment::random_seed() % count) as u16;
    match TcpListener::bind(("127.0.0.1", port)) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
        listener => HeldAddress::of(listener?),
    }
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
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn addresses_of_a_round_are_different() {
        let all = free_addresses(64).unwrap();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (64, 64));
        for address in all {
            let address: SocketAddr = address.parse().unwrap();
            assert!(PORTS.contains(&address.port()), "{address}");
        }
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
        let words = |text: &str| text.parse::<Launcher>().map(|own| own.0);
        assert_eq!(
            words("server --name 'a b' --listen {listen}").unwrap(),
            ["server", "--name", "a b", "--listen", "{listen}"]
        );
        assert!(words("server {port}").is_ok());
        for wrong in ["", "server", "server {host}", "server 'a {listen}"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
        let values = Values::of("127.0.0.1:80").with("{cert}", "a.pem".to_owned());
        assert_eq!(
            values.put_in("{listen} {host} {port} {cert} {key}"),
            "127.0.0.1:80 127.0.0.1 80 a.pem {key}"
        );
    }
}
