//! Runs netping's client and servers as processes of their own.

use std::{
    env,
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, ExitCode, Output, Stdio},
    time::{Duration, SystemTime},
};

use clap::Parser;
use netping::commands::{self, Cli};
use netping_system::cores;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

/// The name under which a command runs on one core: `on CORE COMMAND...`.
const ON: &str = "on";

/// The name under which a process uses a core all the time.
const HOG: &str = "hog";

/// Time between looks at a process.
const LOOK: Duration = Duration::from_millis(20);

/// The core of the client, and that of the server.
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// Returns true if the arguments are those of a command that this program starts itself as.
pub fn is_own(args: &[String]) -> bool {
    args.first().is_some_and(|name| name == ON)
}

/// Runs one of the commands that this program starts itself as.
pub fn main(args: &[String]) -> ExitCode {
    let args = match args {
        [on, core, rest @ ..] if on == ON => {
            if let Ok(core) = core.parse() {
                confine_to_core(core);
            }
            rest
        }
        args => args,
    };
    if args.first().is_some_and(|name| name == HOG) {
        netping_system::signals::terminate_with_parent();
        loop {
            std::hint::spin_loop();
        }
    }
    let line = ["netping".to_owned()]
        .into_iter()
        .chain(args.iter().cloned());
    match Cli::try_parse_from(line) {
        Ok(cli) => commands::run(cli),
        Err(error) => error.exit(),
    }
}

/// Confines the calling thread, and those that it starts later, to the client's core or the server's, if there are two.
pub fn confine_to_core(core: usize) {
    if let own @ [_, _, ..] = &cores::own()[..] {
        cores::confine(&own[core..=core]);
    }
}

/// Returns this program as a command on one of its cores.
fn on(core: usize, args: &[&str]) -> Command {
    let program = env::current_exe().expect("this program's own path");
    let mut command = Command::new(program);
    command
        .args([ON, &core.to_string()])
        .args(args)
        .env("RUST_LOG", "off")
        .stdin(Stdio::null());
    command
}

/// A process that ends when this is dropped.
pub struct Process(Child);

impl Process {
    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), signal);
    }
}

impl Process {
    /// Returns its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it ends, for at most so long; returns its exit code, -1 if a signal ended it.
    pub fn ended_within(&mut self, time: Duration) -> Option<i32> {
        let rounds = time.as_millis() / LOOK.as_millis();
        for _ in 0..=rounds {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status.code().unwrap_or(-1));
            }
            wait(LOOK);
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A stopped process could not end.
        self.signal(Signal::SIGCONT);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts processes that use a core all the time.
pub fn hogs(core: usize, count: usize) -> Vec<Process> {
    let hog = |_| Process(on(core, &[HOG]).spawn().expect("a process"));
    (0..count).map(hog).collect()
}

/// A server of one worker on its own core.
pub struct Server {
    pub process: Process,
    /// Its URL.
    pub url: String,
    metrics: String,
    /// Keeps its standard output open.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts the server that `netping serve` calls `name` on free ports.
    pub fn start(name: &str, flags: &[&str]) -> Self {
        Self::start_at(["127.0.0.1:0"; 2], name, flags)
    }

    /// Starts it at these addresses, its own and that of its metrics.
    pub fn start_at([own, metrics]: [&str; 2], name: &str, flags: &[&str]) -> Self {
        Self::start_logging_to([own, metrics], name, flags, Stdio::inherit())
    }

    /// Starts it with its log going there.
    pub fn start_logging_to(
        [own, metrics]: [&str; 2],
        name: &str,
        flags: &[&str],
        log: Stdio,
    ) -> Self {
        let listen = ["--listen", own, "--metrics", metrics];
        let serve = ["serve", "--die-with-parent", name];
        let args = [&serve[..], &listen, flags].concat();
        let mut child = on(SERVER, &args)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("a process");
        let output = child.stdout.take().expect("a pipe");
        let process = Process(child);
        let mut output = BufReader::new(output);
        let mut field = |name: &str| {
            let mut line = String::new();
            output.read_line(&mut line).expect("a line");
            line.trim()
                .strip_prefix(name)
                .expect(name)
                .trim()
                .to_owned()
        };
        let (url, metrics) = (field("listening"), field("metrics"));
        Self {
            process,
            url,
            metrics,
            _output: output,
        }
    }

    /// Returns its address.
    pub fn address(&self) -> &str {
        address(&self.url)
    }

    /// Returns the address of its metrics.
    pub fn metrics_address(&self) -> &str {
        address(&self.metrics)
    }

    /// Returns the flag and the URL with which a client finds its metrics.
    pub fn metrics(&self) -> [&str; 2] {
        ["--server-metrics", &self.metrics]
    }

    /// Returns the number of requests that it has answered by its own count.
    pub fn requests(&self) -> u64 {
        self.metric("netping_requests_total").expect("a count") as u64
    }

    /// Returns the value of one of its metrics, whose name includes the labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = self.scrape()?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value?.trim().parse().ok()
    }

    /// Returns the kinds of errors that it has counted, and how many of each.
    pub fn errors(&self) -> Vec<(String, u64)> {
        let text = self.scrape().unwrap_or_default();
        let error = |line: &str| {
            let line = line.strip_prefix("netping_errors_total{kind=\"")?;
            let (kind, count) = line.split_once("\"} ")?;
            Some((kind.to_owned(), count.trim().parse().ok()?))
        };
        text.lines().filter_map(error).collect()
    }

    fn scrape(&self) -> Option<String> {
        let mut stream = TcpStream::connect(address(&self.metrics)).ok()?;
        let request = b"GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n";
        stream.write_all(request).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Waits until its process ends, for at most so long; returns its exit code.
    pub fn ended_within(&mut self, time: Duration) -> Option<i32> {
        self.process.ended_within(time)
    }
}

/// Returns the host and port of a URL.
pub fn address(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("a scheme");
    rest.split('/').next().expect("an address")
}

/// Returns true if a server accepts connections at an address.
pub fn accepts(address: &str) -> bool {
    TcpStream::connect(address).is_ok()
}

/// A client that runs.
pub struct Client(Child);

/// The output of a client that has ended.
pub struct Said {
    pub output: Output,
    /// The result file.
    pub run: Value,
}

impl Client {
    /// Starts a command of netping's, whose result file is its standard output.
    pub fn start(args: &[&str]) -> Self {
        Self::start_in(args, &[])
    }

    /// Starts it with these variables in its environment.
    pub fn start_in(args: &[&str], environment: &[(&str, &OsStr)]) -> Self {
        let child = on(CLIENT, &[args, &["--json", "-"]].concat())
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.expect("a process"))
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    pub fn finish(self) -> Said {
        let output = self.0.wait_with_output().expect("its output");
        let run = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Said { output, run }
    }
}

/// Runs a command of netping's that measures nothing.
pub fn plain(args: &[&str]) -> Output {
    on(CLIENT, args).output().expect("a process")
}

/// Runs a command of netping's, on any core, to its end.
pub fn netping_anywhere(args: &[&str]) -> Said {
    let program = env::current_exe().expect("this program's own path");
    let mut command = Command::new(program);
    command.args(args).env("RUST_LOG", "off");
    let child = command
        .args(["--json", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Client(child.expect("a process")).finish()
}

/// Runs a command of netping's to its end.
pub fn netping(args: &[&str]) -> Said {
    Client::start(args).finish()
}

impl Said {
    /// Returns the only step.
    pub fn step(&self) -> &Value {
        &self.run["steps"][0]
    }

    /// Returns the tables and remarks.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Returns the names of the warnings about the step, but for that of the shared machine.
    pub fn warnings(&self) -> Vec<&str> {
        let all = self.step()["warnings"].as_array().into_iter().flatten();
        all.filter_map(|warning| warning["name"].as_str())
            .filter(|name| *name != "SHARED_HOST")
            .collect()
    }

    /// Returns the longest response time, in seconds.
    pub fn longest(&self) -> f64 {
        let max = &self.step()["response_time"]["max_ns"];
        max.as_f64().unwrap_or_default() / 1e9
    }
}

/// Waits: these truths are about time itself.
pub fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// Returns the time of day, in seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "it is compared with that of results"
)]
pub fn time_of_day() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("a time after 1970").as_secs_f64()
}
