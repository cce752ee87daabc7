//! `netping ladder --rung`: servers of the user's on the ladder, good ones and others.

mod common;

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Output, exit},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use common::{assert_usage, load, netping, stderr, stdout};

/// Variables of a server that this binary is when a ladder starts it.
const ADDRESS: &str = "NETPING_TEST_ADDRESS";
const BEHAVIOUR: &str = "NETPING_TEST_BEHAVIOUR";

/// Requests after which a server of some behaviours changes, or between those that it answers wrongly.
const GOOD: u64 = 100;

#[test]
#[ignore = "it is a server of the other tests, which they start"]
fn acts_as_a_server() {
    let behaviour = env::var(BEHAVIOUR).unwrap_or_default();
    if behaviour == "dies" {
        eprintln!("no \x1b[31mconfiguration");
        exit(7);
    }
    let listener = TcpListener::bind(env::var(ADDRESS).unwrap()).unwrap();
    if behaviour == "takes one connection" {
        let (stream, _) = listener.accept().unwrap();
        echo_lines(&stream, &behaviour);
        drop(listener);
        loop {
            thread::park();
        }
    }
    // As a server that is not ready yet may.
    let early = if behaviour == "late" { 3 } else { 0 };
    for stream in listener.incoming().skip(early) {
        let behaviour = behaviour.clone();
        thread::spawn(move || echo_lines(&stream.unwrap(), &behaviour));
    }
}

fn echo_lines(mut stream: &TcpStream, behaviour: &str) {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while lines
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        let number = REQUESTS.fetch_add(1, Relaxed) + 1;
        match behaviour {
            "dies at the first request" => exit(8),
            "dies later" if number > GOOD => {
                eprintln!("out of luck");
                exit(9)
            }
            // The end of a request without a body, in HTTP.
            "no page" if line == b"\r\n" => {
                line = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
            }
            "no page" | "silent" => {
                line.clear();
                continue;
            }
            "wrong" => line[0] ^= 1,
            "wrong at times" if number.is_multiple_of(GOOD) => line[0] ^= 1,
            _ => {}
        }
        if stream.write_all(&line).is_err() {
            return;
        }
        line.clear();
    }
}

/// Returns the command of such a server.
fn server(behaviour: &str) -> String {
    let program = env::current_exe().unwrap();
    format!(
        "env {ADDRESS}={{listen}} '{BEHAVIOUR}={behaviour}' {} --exact acts_as_a_server --ignored --nocapture",
        program.display()
    )
}

/// Runs a short ladder with these flags, in a folder.
fn ladder(folder: &Path, flags: &[&str]) -> Output {
    let quick = ["ladder", "--quick", "-c", "3", "--connections", "2"];
    let mut command = netping();
    command.current_dir(folder).args(quick).args(flags);
    command.output().unwrap()
}

/// Runs a ladder that fails before anything is measured, with this rung, and returns its message.
fn refused(rung: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = ladder(folder.path(), &[&["--rung", rung], more].concat());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(stdout(&output).is_empty(), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{text}");
    text
}

#[test]
fn servers_of_the_users_stand_on_the_ladder() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let program = env!("CARGO_BIN_EXE_netping");
    let serve = |kind: &str| format!("{program} serve {kind} --metrics off");
    let own = format!("mine={}", server("late"));
    let frames = format!(
        "frames=frame:{} --listen {{host}}:{{port}}",
        serve("threads")
    );
    let grpc = format!("calls=grpc:{} --listen {{listen}}", serve("grpc"));
    let tls = "--tls-cert {cert} --tls-key {key} --listen {listen}";
    let quic = format!("streams=quic:{} {tls}", serve("quic"));
    // The shell neither becomes the server nor hands signals on.
    let shell = format!(
        "shell=sh -c '{} --listen {{listen}} & echo $! >{}; wait'",
        serve("tokio"),
        pids.display()
    );
    let rungs = [&own, &frames, &grpc, &quic, &shell];
    let mut flags: Vec<&str> = rungs.iter().flat_map(|rung| ["--rung", rung]).collect();
    flags.extend(["--over", "shell=mine", "--over", "calls = gRPC floor"]);
    let output = ladder(folder.path(), &flags);
    let told = stderr(&output);
    // In a short window in which others have the cores, no request may end.
    let has_empty_window = told.contains("no request ended within the window");
    assert_eq!(
        output.status.code(),
        Some(i32::from(has_empty_window)),
        "{told}"
    );
    let run = load(&folder.path().join("netping-ladder.json"));
    let steps = run["steps"].as_array().unwrap();
    let transports = [
        ("mine", "line"),
        ("frames", "frame"),
        ("calls", "h2"),
        ("streams", "quic"),
        ("shell", "line"),
    ];
    for (name, transport) in transports {
        let own: Vec<_> = steps.iter().filter(|step| step["label"] == name).collect();
        // In every other of three rounds, with one caller, and not over QUIC.
        let apart = own.iter().filter(|step| step.get("anatomy").is_some());
        let apart: Vec<_> = apart
            .map(|step| (&step["trial"], &step["settings"]["callers"]))
            .collect();
        assert!(
            apart
                .iter()
                .all(|(trial, callers)| **trial != 2 && **callers == 1 && name != "streams"),
            "{name}: {apart:?}"
        );
        let blocks = if ["calls", "streams"].contains(&name) {
            3
        } else {
            2
        };
        assert_eq!(own.len(), 3 * blocks, "{name}");
        assert!(
            own.iter()
                .all(|step| step["settings"]["client"] == transport),
            "{name}"
        );
        assert!(
            own.iter()
                .all(|step| step["settings"]["payload_bytes"] == 16),
            "{name}"
        );
        // Of a window in which the machine stood still, nothing may be known.
        let known = own.iter().any(|step| {
            let server = &step["cost"]["server"];
            let is_positive = |name: &str| server[name].as_f64().is_some_and(|value| value > 0.0);
            is_positive("cpu_us_per_request") && is_positive("resident_bytes")
        });
        assert!(known, "{name}");
    }
    let label = |measurement: &serde_json::Value| {
        let step = steps
            .iter()
            .find(|step| step["measurement"] == *measurement);
        step.unwrap()["label"].as_str().unwrap()
    };
    let pairings = run["pairings"].as_array().unwrap();
    let base_of = |name: &str| {
        let mut pairs = pairings
            .iter()
            .map(|pair| [label(&pair["new"]), label(&pair["base"])]);
        pairs.find(|[new, _]| *new == name).unwrap()[1]
    };
    assert_eq!(base_of("mine"), "TCP tokio");
    assert_eq!(base_of("frames"), "TCP tokio");
    assert_eq!(base_of("calls"), "gRPC floor");
    assert_eq!(base_of("streams"), "QUIC");
    assert_eq!(base_of("shell"), "mine");
    let text = stdout(&output);
    assert!(
        text.lines()
            .any(|line| line.starts_with("calls ") && line.contains(" gRPC floor ")),
        "{text}"
    );
    // What the shell had started has ended with it.
    let pid = fs::read_to_string(pids).unwrap();
    let line = fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(line.is_empty(), "{pid}");
}

#[test]
fn a_server_that_dies_is_told_with_its_last_words() {
    let text = refused(&format!("mine={}", server("dies")), &[]);
    assert!(text.contains("error: rung 'mine': 'env "), "{text}");
    assert!(
        text.contains("' ended before it listened: exit status: 7; its last words:\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  | no \u{fffd}[31mconfiguration\n"),
        "{text}"
    );
    let text = refused("mine=/no/such/server {listen}", &[]);
    assert!(text.contains("cannot start '/no/such/server'"), "{text}");
    let text = refused(
        &format!("mine={}", server("dies at the first request")),
        &[],
    );
    assert!(
        text.contains("' ended before it answered: exit status: 8"),
        "{text}"
    );
}

#[test]
fn a_server_that_goes_to_the_background_is_told_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let text = refused(
        &format!(
            "mine=sh -c '{} & echo $! >{}'",
            server("good").replace('\'', "\""),
            pids.display()
        ),
        &[],
    );
    assert!(
        text.contains("' ended before it ")
            && text.contains("exit status: 0; a server must stay in the foreground"),
        "{text}"
    );
    let pid = fs::read_to_string(pids).unwrap();
    let line = fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(line.is_empty(), "{pid}");
}

#[test]
fn a_server_that_never_answers_is_told() {
    let limit = ["--start-timeout", "1s"];
    let text = refused(&format!("mine={}", server("silent")), &limit);
    assert!(
        text.contains("error: rung 'mine': 'env ")
            && text.contains("' gives no answer within 1s: tcp://127.0.0.1:"),
        "{text}"
    );
    let text = refused(
        "mine=sh -c 'echo starting >&2; exec sleep 1000' {port}",
        &limit,
    );
    assert!(
        text.contains("' does not listen on port ")
            && text.contains(" after 1s; its last words:\n  | starting"),
        "{text}"
    );
}

#[test]
fn a_server_that_answers_with_other_bytes_is_not_compared() {
    let text = refused(&format!("mine={}", server("wrong")), &[]);
    assert!(
        text.contains("error: rung 'mine': it answers, but not with the bytes that it has to, so it is not compared: tcp://")
            && text.contains("(mismatch)"),
        "{text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let rungs = [server("wrong at times"), server("good")].map(|command| format!("mine={command}"));
    let [wrong, good] = [&rungs[0], &rungs[1].replace("mine=", "good=")];
    let output = ladder(
        folder.path(),
        &[
            "--rung",
            wrong,
            "--rung",
            good,
            "--over",
            "good=mine",
            "--allow",
            "all",
        ],
    );
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("rung 'mine' is not compared: it answered ")
            && text.contains(" requests with wrong bytes"),
        "{text}"
    );
    let run = load(&folder.path().join("netping-ladder.json"));
    let steps = run["steps"].as_array().unwrap();
    let is_wrong = |measurement: &serde_json::Value| {
        let mut own = steps
            .iter()
            .filter(|step| step["measurement"] == *measurement);
        own.any(|step| step["label"] == "mine")
    };
    let pairings = run["pairings"].as_array().unwrap();
    assert!(
        pairings
            .iter()
            .all(|pair| !is_wrong(&pair["new"]) && !is_wrong(&pair["base"]))
    );
    assert_eq!(pairings.len(), 8 + 8 + 4);
}

#[test]
fn a_server_that_dies_while_it_is_measured_ends_the_ladder() {
    let folder = tempfile::tempdir().unwrap();
    let output = ladder(
        folder.path(),
        &["--rung", &format!("mine={}", server("dies later"))],
    );
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("error: rung 'mine': 'env ")
            && text.contains("' ended while it was measured: exit status: 9; its last words:\n")
            && text.contains("  | out of luck"),
        "{text}"
    );
}

#[test]
fn a_server_that_takes_no_more_connections_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let rung = format!("mine={}", server("takes one connection"));
    let output = ladder(folder.path(), &["--rung", &rung]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    let start = "error: rung 'mine': tcp://127.0.0.1:";
    assert!(text.contains(start) && text.contains("(refused)"), "{text}");
}

#[test]
fn a_web_server_without_a_page_is_told_after_a_round() {
    let rung = format!("mine=http:{}", server("no page"));
    let folder = tempfile::tempdir().unwrap();
    let output = ladder(folder.path(), &["--rung", &rung]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("error: rung 'mine': with ")
            && text.contains(" no reply is good (")
            && text.contains(" http_404)"),
        "{text}"
    );
}

#[test]
fn a_rung_that_cannot_be_is_wrong_usage() {
    let two = "ladder --rung a=x{listen} --rung";
    let cases = [
        (
            "ladder --rung mine",
            "a rung looks like mine='./server {listen}'",
        ),
        ("ladder --rung =x{listen}", "'' is no name for a rung"),
        ("ladder --rung a/b=x{listen}", "'a/b' is no name for a rung"),
        (
            "ladder --rung mine=server",
            "the command must say where it listens: write {listen}",
        ),
        (
            "ladder --rung mine=grpc:server",
            "the command must say where it listens: write {listen}",
        ),
        (
            "ladder --rung mine=udp:server{listen}",
            "a rung cannot speak 'udp'; before the command may stand one of tcp, frame, tcp+tls, grpc,",
        ),
        (
            "ladder --rung mine=quic:server{listen}",
            "write {cert} and {key}",
        ),
        (
            "ladder --rung gRPC=server{listen}",
            "the ladder has a rung 'gRPC' of its own",
        ),
        (
            "ladder --rung TCP+mTLS=server{listen}",
            "is no name for a rung",
        ),
        (
            &format!("{two} a=y{{listen}}"),
            "two rungs have the name 'a'",
        ),
        (
            &format!("{two} b=y{{listen}} --over a=b"),
            "--over a=b: there is no such rung before it; there are: TCP tokio, ",
        ),
        (
            &format!("{two} b=y{{listen}} --over c=gRPC"),
            "--over c=gRPC: no --rung has the name 'c'",
        ),
        (
            &format!("{two} b=y{{listen}} --over b=a --over b=gRPC"),
            "--over b=RUNG stands there twice",
        ),
        (
            &format!("{two} b=y{{listen}} --over b"),
            "two rungs look like mine=gRPC",
        ),
        ("ladder --over mine=gRPC", "--rung"),
    ];
    assert_usage(&cases);
}
