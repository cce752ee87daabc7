//! Servers that this process starts on its own host, and ends.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use netping_client::{clock::Deadline, probe::metrics::ServerSource};
use netping_protocol::target::Target;
use netping_system::signals;

use crate::tail::Tail;

/// The time that a server has to end.
const LONGEST_END: Duration = Duration::from_secs(30);

/// Time between looks at whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// A running server; dropping it ends it, and what it has started.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// Its command line, or that of `netping serve`.
    line: String,
    /// The end of its standard error; `None` where that is this process's own.
    said: Option<Tail>,
    /// Its URL.
    pub target: Target,
    /// The source of its counters.
    pub source: ServerSource,
    /// The end of the time that it has to end, once it was asked to.
    deadline: Option<Deadline>,
}

impl ServerProcess {
    /// Starts the server that `netping serve` calls `name`, with more `flags`, on these cores or, if
    /// there are none, on any; and waits until it listens.
    ///
    /// # Errors
    /// If it does not.
    pub fn start(name: &str, flags: &[OsString], cores: &[usize]) -> anyhow::Result<Self> {
        let mut child = serve(cores)?
            .args([name, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .args(flags)
            // Its start and end are not worth a log line here; its warnings are.
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
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
            line: format!("netping serve {name}"),
            said: None,
            target,
            source,
            deadline: None,
        })
    }

    /// Starts a program with its flags, which is to serve this URL. It may not do so yet. Of its standard error, the end
    /// is kept.
    ///
    /// # Errors
    /// If there is no process for it. A program that is not there is one that ends.
    pub fn start_program(
        words: &[String],
        target: Target,
        cores: &[usize],
    ) -> anyhow::Result<Self> {
        let mut command = serve(cores)?;
        // Standard output is for results.
        command.arg("program").args(words).stdout(Stdio::null());
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a server")?;
        let stderr = child.stderr.take().map(Tail::of).transpose();
        let source = ServerSource::Processes(vec![child.id()]);
        let mut server = Self {
            child,
            line: words.join(" "),
            said: None,
            target,
            source,
            deadline: None,
        };
        server.said = stderr.context("cannot start a thread")?;
        Ok(server)
    }

    /// Returns its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns how it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Fails if it has ended, with its last words; `when` says at which time, such as "before it answered".
    pub fn require_running(&mut self, when: &str) -> anyhow::Result<()> {
        let Some(status) = self.ended() else {
            return Ok(());
        };
        let hint = if status.success() {
            "; a server must stay in the foreground, so that it can be watched and ended"
        } else {
            ""
        };
        bail!(
            "'{}' ended {when}: {status}{hint}{}",
            self.line,
            self.last_words()
        );
    }

    /// Returns its command line.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Returns the end of its standard error for the end of a sentence; empty where it said nothing, or not to this
    /// process.
    pub fn last_words(&self) -> String {
        let words = self.said.as_ref().map(Tail::lines).unwrap_or_default();
        if words.is_empty() {
            return words;
        }
        format!("; its last words:\n{words}")
    }

    /// Asks it to end, and does not wait. Returns the end of the time that it has for that, from the first time on.
    pub fn terminate(&mut self) -> Deadline {
        signals::terminate_group(self.child.id());
        *self
            .deadline
            .get_or_insert_with(|| Deadline::after(LONGEST_END))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // What it has started is in its group.
        let group = self.child.id();
        let deadline = self.terminate();
        while self.ended().is_none() && !deadline.left().is_zero() {
            thread::sleep(LOOK);
        }
        signals::kill_group(group);
        let _ = self.child.wait();
    }
}

/// Returns the command of a server that ends with this process, on these cores.
fn serve(cores: &[usize]) -> anyhow::Result<Command> {
    let program = env::current_exe().context("cannot find netping's own binary")?;
    let mut command = Command::new(program);
    command
        .args(["serve", "--die-with-parent"])
        .args(cores.iter().map(|core| format!("--cores={core}")))
        .stdin(Stdio::null())
        // Ctrl-C is for the client, which then ends its servers in order.
        .process_group(0);
    Ok(command)
}
