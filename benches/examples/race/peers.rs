//! Programs that netping is compared with, each on the core of the side that it takes.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use netping_benches::processes::{accepts, wait};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

/// Returns true if a program of this name can be started.
pub fn is_installed(program: &str) -> bool {
    let found = Command::new("which")
        .arg(program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Returns a program of the folder of further peers, if it is there.
pub fn of_folder(folder: Option<&Path>, name: &str) -> Option<String> {
    let path = folder?.join(name);
    path.exists().then(|| path.to_string_lossy().into_owned())
}

/// Returns a program as a command on one core, without its own output.
fn on(core: usize, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new("taskset");
    command
        .args(["-c", &core.to_string(), program])
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs a program to its end; returns its output.
pub fn run(core: usize, program: &str, args: &[&str]) -> String {
    let output = on(core, program, args).output().expect("taskset");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the number after `label` in a text, without thousands separators.
pub fn number_after(text: &str, label: &str) -> f64 {
    let (_, rest) = text.split_once(label).unwrap_or_default();
    let number = rest.split_whitespace().next().unwrap_or_default();
    number.trim_end_matches(',').parse().unwrap_or(f64::NAN)
}

/// A server that ends when this is dropped.
pub struct Peer {
    child: Child,
    pub address: String,
    /// Its configuration.
    _files: TempDir,
}

impl Peer {
    /// Starts a server on a free port and waits until it accepts; returns `None` if it ends before.
    /// `configuration` returns the arguments for its address and a folder of its own.
    pub fn start(
        core: usize,
        program: &str,
        configuration: impl FnOnce(&str, &Path) -> Vec<String>,
    ) -> Option<Self> {
        let files = TempDir::new().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let args = configuration(&address, files.path());
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let child = on(core, program, &args).stdout(Stdio::null()).spawn();
        let mut peer = Self {
            child: child.expect("taskset"),
            address,
            _files: files,
        };
        while !accepts(&peer.address) {
            if let Ok(Some(status)) = peer.child.try_wait() {
                eprintln!("{program} ended: {status}");
                return None;
            }
            wait(Duration::from_millis(20));
        }
        Some(peer)
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts nginx, which answers with so many bytes.
pub fn nginx(core: usize, bytes: usize) -> Option<Peer> {
    Peer::start(core, "nginx", |address, folder| {
        let here = folder.display();
        fs::write(folder.join("index"), "x".repeat(bytes)).expect("a file");
        let text = format!(
            "daemon off; master_process off; pid {here}/pid; error_log stderr crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; sendfile on; tcp_nopush on;\n\
             server {{ listen {address}; location / {{ root {here}; index index; }} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, text).expect("a file");
        vec!["-c".to_owned(), file.display().to_string()]
    })
}

/// Starts HAProxy with one thread, which relays bytes to a server.
pub fn haproxy(core: usize, server: &str) -> Option<Peer> {
    Peer::start(core, "haproxy", |address, folder| {
        let text = format!(
            "global\n  nbthread 1\n  maxconn 2000\n\
             defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
             listen relay\n  bind {address}\n  server one {server}\n"
        );
        let file = folder.join("haproxy.cfg");
        fs::write(&file, text).expect("a file");
        vec![
            "-db".to_owned(),
            "-f".to_owned(),
            file.display().to_string(),
        ]
    })
}

/// Starts iperf3's server.
pub fn iperf3(core: usize) -> Option<Peer> {
    Peer::start(core, "iperf3", |address, _| {
        let port = address.rsplit(':').next().unwrap_or_default();
        ["-s", "-B", "127.0.0.1", "-p", port]
            .map(str::to_owned)
            .into()
    })
}

/// Returns the rate at which iperf3 receives from its server, in GiB/s.
pub fn iperf3_rate(core: usize, server: &Peer, seconds: f64) -> f64 {
    let (host, port) = server.address.rsplit_once(':').unwrap_or_default();
    let seconds = seconds.ceil().to_string();
    let text = run(
        core,
        "iperf3",
        &["-c", host, "-p", port, "-R", "-J", "-t", &seconds],
    );
    let report: Value = serde_json::from_str(&text).unwrap_or_default();
    let bits = report["end"]["sum_received"]["bits_per_second"].as_f64();
    bits.unwrap_or(f64::NAN) / 8.0 / f64::from(1 << 30)
}

/// Returns h2load's rate against a gRPC server, in requests per second.
pub fn h2load(core: usize, address: &str, shape: [usize; 2], seconds: f64) -> f64 {
    let url = format!("http://{address}");
    let seconds = format!("{}ms", seconds * 1e3);
    let text = run_h2load(
        core,
        &url,
        shape,
        &["-D", &seconds, "--warm-up-time", "200ms"],
    );
    let rate = text.split("finished in ").nth(1).unwrap_or_default();
    number_after(rate, "s, ")
}

/// Has h2load call a gRPC server so often; returns the number of calls that succeeded.
pub fn h2load_calls(core: usize, url: &str, shape: [usize; 2], calls: u64) -> f64 {
    let text = run_h2load(core, url, shape, &["-n", &calls.to_string()]);
    let counts = text.split("requests: ").nth(1).unwrap_or_default();
    number_after(counts, "done, ")
}

/// Runs h2load with calls of `Echo`, on so many connections with so many streams each; returns its output.
fn run_h2load(core: usize, url: &str, shape: [usize; 2], extent: &[&str]) -> String {
    // The string "ping" as field 1 of a message, behind the prefix of gRPC.
    let mut body = NamedTempFile::new().expect("a file");
    body.write_all(b"\0\0\0\0\x06\x0a\x04ping").expect("a file");
    let url = format!("{url}/echopb.Echo/Echo");
    let [connections, streams] = shape.map(|number| number.to_string());
    let file = body.path().to_string_lossy();
    let load = ["-c", &connections, "-m", &streams, "-t", "1", "-d", &file];
    let call = [
        "-H",
        "content-type: application/grpc",
        "-H",
        "te: trailers",
        &url,
    ];
    run(core, "h2load", &[&load[..], extent, &call].concat())
}

/// Has wrk send requests for so long; returns the number of its replies.
pub fn wrk(core: usize, address: &str, connections: usize, seconds: f64) -> f64 {
    let (connections, seconds) = (connections.to_string(), format!("{}s", seconds.ceil()));
    let url = format!("http://{address}/");
    let text = run(
        core,
        "wrk",
        &["-c", &connections, "-t", "1", "-d", &seconds, &url],
    );
    let line = text.lines().find(|line| line.contains(" requests in "));
    number_after(line.unwrap_or_default(), "")
}
