//! A server started from this process's own binary, on a free port of the loopback.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, bail};
use netping_client::probe::metrics::ServerSource;
use netping_protocol::target::Target;
use netping_system::signals;

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// Its URL.
    pub target: Target,
    /// The source of its counters.
    pub source: ServerSource,
}

impl ServerProcess {
    /// Starts the server that `netping serve` calls `name`, with more `flags`, on these cores or, if
    /// there are none, on any; and waits until it listens.
    ///
    /// # Errors
    /// If it does not.
    pub fn start(name: &str, flags: &[OsString], cores: &[usize]) -> anyhow::Result<Self> {
        let program = env::current_exe().context("cannot find netping's own binary")?;
        let confine = cores.iter().map(|core| format!("--cores={core}"));
        let mut child = Command::new(program)
            .args(["serve", "--die-with-parent"])
            .args(confine)
            .args([name, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .args(flags)
            // Its start and end are not worth a log line here; its warnings are.
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C is for the client, which then ends its servers in order.
            .process_group(0)
            .spawn()
            .context("cannot start a server")?;
        let stdout = child.stdout.take();
        let mut lines = stdout
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines());
        let mut field = |name: &str| -> Option<String> {
            let line = lines.next()?.ok()?;
            Some(line.strip_prefix(name)?.trim().to_owned())
        };
        let (listening, metrics) = (field("listening"), field("metrics"));
        let Some(target) = listening.and_then(|url| url.parse().ok()) else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the {name} server did not start; its own message stands above");
        };
        let source = metrics.map_or(ServerSource::Nowhere, |url| ServerSource::Url {
            url,
            asked: true,
        });
        Ok(Self {
            child,
            target,
            source,
        })
    }
}

impl ServerProcess {
    /// Returns its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It ends by its drain timeout, and is gone already if the wait fails.
        signals::terminate(self.child.id());
        let _ = self.child.wait();
    }
}
