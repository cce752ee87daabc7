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
use netping_protocol::target::Target;
use netping_system::listener::is_served;

use crate::{error::usage, server_process::ServerProcess};

/// Stands for the address that a server is to listen on.
pub const LISTEN: &str = "{listen}";

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
        if !words.iter().any(|word| word.contains(LISTEN)) {
            return Err(format!(
                "the command must say where it listens: write {LISTEN} for the address, as in 'server --listen {LISTEN}'"
            ));
        }
        Ok(Self(words))
    }
}

impl Build {
    /// Starts a server on these CPUs, or on any if there are none. `url` is the form of its URL.
    pub fn start(&self, url: &str, cpus: &[usize]) -> anyhow::Result<ServerProcess> {
        let address = free_address().context("no free port")?;
        let fill = |text: &str| text.replace(LISTEN, &address);
        let target = fill(url).parse::<Target>();
        let target = target.map_err(|error| usage(format!("--url: {error}")))?;
        let words: Vec<String> = self.0.iter().map(|word| fill(word)).collect();
        ServerProcess::start_program(&words, target, cpus)
    }

    /// Waits until a server that this started listens.
    pub fn await_listening(
        &self,
        server: &mut ServerProcess,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let port = server.target.port;
        let line = || {
            self.0
                .join(" ")
                .replace(LISTEN, &format!("127.0.0.1:{port}"))
        };
        let deadline = Deadline::after(PATIENCE);
        while !is_served(port) {
            if interrupt.is_set() {
                return Err(StartError::Interrupted.into());
            }
            if let Some(status) = server.ended() {
                bail!("'{}' ended before it listened: {status}", line());
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
        Ok(())
    }
}

/// Returns an address of the loopback that nobody serves, over TCP or UDP.
fn free_address() -> io::Result<String> {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        match UdpSocket::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(address.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_where_it_listens() {
        let words = |text: &str| text.parse::<Build>().map(|build| build.0);
        assert_eq!(
            words("server --name 'a b' --listen {listen}").unwrap(),
            ["server", "--name", "a b", "--listen", "{listen}"]
        );
        for wrong in ["", "server", "server 'a {listen}"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
