//! Servers that are hostile to the client.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use netping_benches::processes::{Client, time_of_day};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{Fault, Kind, Outcome, outcome::Verdict, restarts::Accounts};

pub const FAULTS: [Fault; 4] = [
    Fault {
        what: "a server that answers garbage",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, garbage),
    },
    Fault {
        what: "a server that closes at once",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, |_| Ok(())),
    },
    Fault {
        what: "a server that resets after a byte",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, reset),
    },
    Fault {
        what: "a server that never answers",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, silence),
    },
];

const ENDS: &str = "ends within 6 s with exit code 1 or 3, accounts add up";

/// Longest time of a run of half a second, in seconds; and the time after which one hangs.
const WITHIN: f64 = 6.0;
const HANGS: Duration = Duration::from_secs(20);

/// The manner in which a server treats each connection.
type Manner = fn(TcpStream) -> io::Result<()>;

fn garbage(mut stream: TcpStream) -> io::Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut bytes = [0; 4096];
    let mut request = [0; 4096];
    while stream.read(&mut request)? > 0 {
        random.fill_bytes(&mut bytes);
        stream.write_all(&bytes)?;
    }
    Ok(())
}

fn reset(mut stream: TcpStream) -> io::Result<()> {
    // What has come and is not read makes it a reset.
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    stream.write_all(b"\0")
}

fn silence(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink())?;
    stream.shutdown(Shutdown::Both)
}

/// Starts a server, until this process ends; returns its address.
fn server(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may break off first.
            thread::spawn(move || drop(manner(stream)));
        }
    });
    address
}

/// Runs a load with the first call, and one without it.
fn hostile(kind: &Kind, manner: Manner) -> Outcome {
    let url = format!("{}{}", kind.name, server(manner));
    let (with, without) = thread::scope(|scope| {
        let with = scope.spawn(|| load(&url, &[]));
        let without = load(&url, &["--no-first-call"]);
        (with.join().expect("no panic"), without)
    });
    let kept = without.verdict == Verdict::Kept;
    with.and(kept, &format!("without a first call {}", without.came))
}

fn load(url: &str, flags: &[&str]) -> Outcome {
    let run = ["throughput", url, "-c", "2", "-d", "500ms"];
    let limits = ["--timeout", "500ms", "--server-metrics", "off"];
    let begun = time_of_day();
    let client = Client::start(&[&run[..], &limits, flags].concat());
    let pid = Pid::from_raw(client.id().cast_signed());
    let (ended, ends) = mpsc::channel();
    thread::spawn(move || ended.send(client.finish()));
    let Ok(said) = ends.recv_timeout(HANGS) else {
        let _ = kill(pid, Signal::SIGKILL);
        return Outcome::new(false, "does not end");
    };
    let took = time_of_day() - begun;
    let code = said.output.status.code();
    // Without a connection, there is no step.
    let (came, adds_up) = if said.step().is_null() {
        ("not begun".to_owned(), code == Some(3))
    } else {
        let accounts = Accounts::of(&said);
        (accounts.words(), accounts.add_up())
    };
    let came = format!("{came}; exit {}, {took:.1} s", code.unwrap_or(-1));
    let is_told = [Some(1), Some(3)].contains(&code);
    Outcome::new(adds_up && took <= WITHIN && is_told, came)
}
