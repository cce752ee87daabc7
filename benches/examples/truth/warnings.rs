//! Warnings: troubles that are made, and the warnings that they must raise, and no other.

use std::{
    ffi::OsStr,
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    thread,
    time::Duration,
};

use nix::sys::signal::Signal;
use serde_json::Value;

use netping_benches::{
    processes::{CLIENT, Client, SERVER, Said, Server, address, confine_to_core, hogs, wait},
    strays::by_chance,
};

use crate::{Extent, Tell, Truth};

/// Runs of each trouble.
const RUNS: usize = 20;

/// Runs at most, until one that nothing else disturbed.
const MOST: usize = 5;

/// The warnings of a run that was disturbed: by other programs, or by a machine that woke its threads late.
const DISTURBED: [&str; 2] = ["FOREIGN_LOAD", "CLIENT_STARVED"];

/// A trouble: its name, the run with it, the warnings that it must raise, and those that may come
/// with it.
pub struct Trouble {
    pub what: &'static str,
    pub run: fn() -> Said,
    /// Returns true if this machine lets it be made.
    pub possible: fn() -> bool,
    pub must: &'static [&'static str],
    pub may: &'static [&'static str],
}

const TROUBLES: [Trouble; 10] = [
    Trouble {
        what: "no trouble",
        run: quiet,
        possible: || true,
        must: &[],
        may: &[],
    },
    Trouble {
        what: "client bound",
        run: client_bound,
        possible: || true,
        must: &["CLIENT_BOUND"],
        // A hypervisor may change the speed of a busy core, and with it the rate.
        may: &["NOT_STEADY"],
    },
    Trouble {
        what: "client starved by three hogs",
        run: starved,
        possible: || true,
        must: &["CLIENT_STARVED", "FOREIGN_LOAD"],
        // Its turns on the core may be more than 20 ms apart.
        may: &[
            "NO_CALLER_FREE",
            "BEHIND_SCHEDULE",
            "NOISY",
            "NOT_STEADY",
            "STALLED",
        ],
    },
    Trouble {
        what: "client throttled by its cgroup",
        run: throttled,
        possible: || Cgroup::make().is_some(),
        must: &["CLIENT_THROTTLED"],
        // It uses all that it gets, and gets it by fits and starts.
        may: &[
            "STALLED",
            "CLIENT_STARVED",
            "BEHIND_SCHEDULE",
            "NO_CALLER_FREE",
            "CLIENT_BOUND",
            "NOISY",
        ],
    },
    Trouble {
        what: "server killed",
        run: killed,
        possible: || true,
        must: &["SERVER_GONE"],
        may: &["ERRORS", "CLIENT_BOUND"],
    },
    Trouble {
        what: "server restarted",
        run: restarted,
        possible: || true,
        must: &["SERVER_RESTARTED"],
        // For a moment there is no server.
        may: &["ERRORS", "STALLED", "NOT_STEADY", "CLIENT_BOUND"],
    },
    Trouble {
        what: "dip in mid-window",
        run: dip,
        possible: || true,
        must: &["NOT_STEADY"],
        // A stop may be longer than was asked for.
        may: &["NOISY", "CLIENT_BOUND", "STALLED"],
    },
    Trouble {
        what: "clock set in mid-window",
        run: clock_set,
        possible: || clock_library().is_some(),
        must: &["CLOCK_STEP"],
        // A virtual CPU that wakes up late makes a client late that sleeps between requests.
        may: &["CLIENT_STARVED"],
    },
    Trouble {
        what: "server bound",
        run: server_bound,
        possible: || true,
        must: &[],
        may: &[],
    },
    Trouble {
        what: "a server that ends each connection",
        run: closing_server,
        possible: || true,
        must: &[],
        // Where system calls are slow, most of the time to open a connection is the client's own.
        may: &["CLIENT_BOUND"],
    },
];

/// Makes each trouble.
pub fn check(extent: Extent, tell: Tell<'_>) {
    make_all(&TROUBLES, RUNS, extent, tell);
}

/// Makes each of these troubles so many times, or once, and counts the runs with a warning that none explains.
pub fn make_all(troubles: &[Trouble], runs: usize, extent: Extent, tell: Tell<'_>) {
    let (mut odd, mut tried) = (0, 0);
    for trouble in troubles {
        let (truth, odd_here) = make(trouble, runs, extent);
        odd += odd_here;
        tried += truth.passed.map_or(0, |_| runs);
        tell(truth);
    }
    if extent == Extent::Full {
        let allowed = by_chance(tried);
        tell(Truth {
            what: "warnings that no trouble explains".to_owned(),
            expected: format!("in {allowed} of {tried} at most"),
            found: format!("in {odd} of {tried}"),
            passed: Some(odd <= allowed),
        });
    }
}

/// Makes a trouble this many times, or once; returns in how many runs a warning came that it does not explain, too.
fn make(trouble: &Trouble, runs: usize, extent: Extent) -> (Truth, usize) {
    let is_full = extent == Extent::Full;
    let runs = if is_full { runs } else { 1 };
    let tried = if (trouble.possible)() { runs } else { 0 };
    let (mut right, mut odd, mut others) = (0, 0, Vec::new());
    for _ in 0..tried {
        let said = undisturbed(trouble);
        let found = said.warnings();
        let has_all = trouble.must.iter().all(|name| found.contains(name));
        let is_other = |name: &&str| !trouble.must.contains(name) && !trouble.may.contains(name);
        right += usize::from(has_all && !said.run.is_null());
        let before = others.len();
        others.extend(found.into_iter().filter(is_other).map(str::to_owned));
        odd += usize::from(others.len() > before);
    }
    others.sort_unstable();
    others.dedup();
    let mut found = format!("{right} of {tried}");
    if odd > 0 {
        found += &["; others in ", &odd.to_string(), ": ", &others.join(", ")].concat();
    }
    let names = match trouble.must {
        [] => "no warning".to_owned(),
        names => names.join(", "),
    };
    let allowed = is_full.then(|| by_chance(runs));
    let and_others = allowed.map(|allowed| format!(", others in {allowed} at most"));
    let truth = Truth {
        what: trouble.what.to_owned(),
        expected: format!(
            "{names}, {runs} of {runs}{}",
            and_others.unwrap_or_default()
        ),
        passed: (tried > 0).then_some(right == runs && allowed.is_none_or(|most| odd <= most)),
        found,
    };
    (truth, odd)
}

/// Returns the first run that was not disturbed, unless that is the trouble; the last of a few that were tried,
/// otherwise.
fn undisturbed(trouble: &Trouble) -> Said {
    let is_trouble = |name: &str| trouble.must.contains(&name) || trouble.may.contains(&name);
    let mut said = (trouble.run)();
    for _ in 1..MOST {
        let found = said.warnings();
        let is_disturbed = |name: &&&str| !is_trouble(name) && found.contains(*name);
        let Some(name) = DISTURBED.iter().find(is_disturbed) else {
            break;
        };
        eprintln!("run again: {name}");
        said = (trouble.run)();
    }
    said
}

/// Starts a client of a server with these flags, for 3 s.
pub fn client(server: &Server, flags: &[&str]) -> Client {
    client_in(&[], server, flags)
}

/// Starts it with these variables in its environment.
fn client_in(environment: &[(&str, &OsStr)], server: &Server, flags: &[&str]) -> Client {
    let fixed = ["throughput", &server.url, "-d", "3s", "--warmup", "500ms"];
    let metrics = server.metrics();
    Client::start_in(&[&fixed[..], &metrics, flags].concat(), environment)
}

/// Waits until a client has measured for so many seconds.
pub fn wait_into_window(seconds: f64) {
    wait(Duration::from_secs_f64(0.55 + seconds));
}

/// Starts the tokio server with one worker.
pub fn tokio() -> Server {
    Server::start("tokio", &["--workers", "1"])
}

fn quiet() -> Said {
    client(&tokio(), &["-c", "16", "--rate", "1k"]).finish()
}

fn client_bound() -> Said {
    client(&tokio(), &["-c", "16", "--workers", "1"]).finish()
}

fn starved() -> Said {
    let server = tokio();
    let _hogs = hogs(CLIENT, 3);
    client(&server, &["-c", "64", "--rate", "5k"]).finish()
}

/// Where the folder of a cgroup's CPU limit can be made: in version 1 and 2 of cgroups.
const CGROUPS: [(&str, &str, &str); 2] = [
    (
        "/sys/fs/cgroup/cpu/netping-truth",
        "cpu.cfs_quota_us",
        "20000",
    ),
    ("/sys/fs/cgroup/netping-truth", "cpu.max", "20000 100000"),
];

/// A cgroup that has a fifth of a core; it is removed when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make() -> Option<Self> {
        CGROUPS.iter().find_map(|(folder, file, limit)| {
            let folder = PathBuf::from(folder);
            // Without a controller for CPU time, the folder has no such file.
            fs::create_dir(&folder).ok()?;
            let cgroup = Self(folder);
            let file = cgroup.0.join(file);
            (file.exists() && fs::write(file, limit).is_ok()).then_some(cgroup)
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn throttled() -> Said {
    let cgroup = Cgroup::make().expect("it was made before");
    let server = tokio();
    let client = client(&server, &["-c", "64", "--rate", "10k"]);
    fs::write(cgroup.0.join("cgroup.procs"), client.id().to_string()).expect("a cgroup");
    client.finish()
}

fn killed() -> Said {
    let server = tokio();
    let client = client(&server, &["-c", "16"]);
    wait_into_window(1.0);
    server.process.signal(Signal::SIGKILL);
    client.finish()
}

fn restarted() -> Said {
    let server = tokio();
    let [_, metrics] = server.metrics();
    let (listen, metrics) = (server.address().to_owned(), address(metrics).to_owned());
    // So that the start times differ by more than their resolution.
    wait(Duration::from_secs(1));
    let client = client(&server, &["-c", "16"]);
    wait_into_window(1.0);
    drop(server);
    let _server = Server::start_at([&listen, &metrics], "tokio", &["--workers", "1"]);
    client.finish()
}

fn dip() -> Said {
    let server = tokio();
    let client = client(&server, &["-c", "16"]);
    wait_into_window(1.0);
    // Stopped for half of the time, for a second.
    for _ in 0..50 {
        server.process.signal(Signal::SIGSTOP);
        wait(Duration::from_millis(10));
        server.process.signal(Signal::SIGCONT);
        wait(Duration::from_millis(10));
    }
    client.finish()
}

/// Returns the library that gives a process a time of day of its own: Debian's package faketime.
fn clock_library() -> Option<PathBuf> {
    let name = "faketime/libfaketime.so.1";
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
    ];
    let mut paths = folders
        .iter()
        .map(|folder| PathBuf::from(folder).join(name));
    paths.find(|path| path.exists())
}

/// The client's time of day goes 10 s forward.
fn clock_set() -> Said {
    let server = tokio();
    let library = clock_library().expect("it was found before");
    let offset = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&offset, "+0\n").expect("an offset");
    let environment = [
        ("LD_PRELOAD", library.as_os_str()),
        ("FAKETIME_TIMESTAMP_FILE", offset.path().as_os_str()),
        ("FAKETIME_CACHE_DURATION", OsStr::new("1")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", OsStr::new("1")),
    ];
    let client = client_in(&environment, &server, &["-c", "16", "--rate", "1k"]);
    wait_into_window(1.0);
    fs::write(&offset, "+10\n").expect("an offset");
    client.finish()
}

/// A web server that ends each connection with its reply; one caller, whose time is spent on connections. They are
/// fewer than the ports from which Linux connects before it has to search for one, which takes longer.
fn closing_server() -> Said {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        confine_to_core(SERVER);
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let load = ["-c", "1", "--requests", "10k", "--warmup", "0s"];
    Client::start(&[&["throughput", &url], &load[..]].concat()).finish()
}

/// Counts as right only if the limit is told.
fn server_bound() -> Said {
    let server = Server::start("tokio", &["--workers", "1", "--work", "200us"]);
    let said = client(&server, &["-c", "16"]).finish();
    let is_told = said.text().contains("server CPU: it used");
    let run = if is_told { said.run } else { Value::Null };
    Said { run, ..said }
}
