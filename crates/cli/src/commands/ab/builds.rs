//! Servers that commands of the user's start.

use std::{
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    str::FromStr,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use netping_client::clock::Deadline;
use netping_protocol::target::Target;
use netping_system::{cores, signals};

use crate::error::usage;

/// Stands for the address that a server is to listen on.
pub const LISTEN: &str = "{listen}";

/// The time for a server to begin to listen, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_END: Duration = Duration::from_secs(5);

/// Time between looks at whether it does.
const LOOK: Duration = Duration::from_millis(10);

/// A command that starts a server.
#[derive(Debug, Clone)]
pub struct Build(Vec<String>);

/// A server that was started; dropping it ends it.
#[derive(Debug)]
pub struct Started {
    child: Child,
    /// Its URL.
    pub target: Target,
}

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
    /// Starts a server on these CPUs, or on any if there are none, and waits until it listens. `url` is the
    /// form of its URL.
    pub fn start(&self, url: &str, cpus: &[usize]) -> anyhow::Result<Started> {
        let address = free_address()?;
        let fill = |text: &str| text.replace(LISTEN, &address);
        let target = fill(url).parse::<Target>();
        let target = target.map_err(|error| usage(format!("--url: {error}")))?;
        let words: Vec<String> = self.0.iter().map(|word| fill(word)).collect();
        let line = words.join(" ");
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            // Standard output is for results.
            .stdout(Stdio::null())
            // Ctrl-C is for the client, which then ends its servers.
            .process_group(0);
        let child = on_cpus(cpus, || command.spawn());
        let child = child.with_context(|| format!("cannot start '{line}'"))?;
        let mut started = Started { child, target };
        let deadline = Deadline::after(PATIENCE);
        while TcpStream::connect(&address).is_err() {
            if let Some(status) = started.child.try_wait()? {
                bail!("'{line}' ended before it listened on {address}: {status}");
            }
            if deadline.left().is_zero() {
                let seconds = PATIENCE.as_secs();
                bail!("'{line}' does not listen on {address} after {seconds} s");
            }
            thread::sleep(LOOK);
        }
        Ok(started)
    }
}

impl Started {
    /// Returns the number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        signals::terminate(self.child.id());
        let deadline = Deadline::after(LONGEST_END);
        while matches!(self.child.try_wait(), Ok(None)) {
            if deadline.left().is_zero() {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Returns an address of the loopback on which nobody listens.
fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.to_string())
}

/// Runs `start` on these CPUs, which a process that it starts inherits; on any if there are none.
fn on_cpus<T>(cpus: &[usize], start: impl FnOnce() -> T) -> T {
    if cpus.is_empty() {
        return start();
    }
    let own = cores::own();
    cores::confine(cpus);
    let started = start();
    cores::confine(&own);
    started
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

    #[test]
    fn a_server_that_ends_at_once_is_told() {
        let error = |line: &str| {
            let build: Build = line.parse().unwrap();
            build.start("tcp://{listen}", &[]).unwrap_err().to_string()
        };
        let ended = error("false {listen}");
        assert!(
            ended.contains("ended before it listened on 127.0.0.1:"),
            "{ended}"
        );
        let missing = error("/no/such/server {listen}");
        assert!(
            missing.starts_with("cannot start '/no/such/server 127.0.0.1:"),
            "{missing}"
        );
    }
}
