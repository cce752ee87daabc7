//! Text of peers and files can neither control a terminal nor hide or forge what stands around it, on every way out.

mod common;
mod web;

use std::{fs, io::Write, net::TcpListener, path::Path, process::Output, thread};

use common::{Server, netping, run, stderr, stdout};
use netping_results::format::is_unsafe;
use serde_json::{Value, json};
use web::Site;

/// It clears the screen, goes to a line of its own, turns the direction, and would be a formula.
const HOSTILE: &str = "=1+1\u{1b}[2J\r\nVALID: all is well\u{9b}1m\u{202e}x\u{200b}";

/// The ways out, beside the terminal.
const EXPORTS: [&str; 5] = ["html", "csv", "hlog", "benchfmt", "markdown"];

/// Runs a command with every way out, and returns all that it said.
fn said(folder: &Path, args: &[&str]) -> (Output, String) {
    let files = EXPORTS.map(|name| (format!("--{name}"), folder.join(name)));
    let mut command = netping();
    command.args(args);
    for (flag, file) in &files {
        command.arg(flag).arg(file);
    }
    let output = command.output().unwrap();
    let mut all = stdout(&output) + &stderr(&output);
    for (_, file) in &files {
        let text = fs::read_to_string(file).unwrap_or_default();
        // On a page, a new line is a space, or one of the command that it shows.
        let is_page = file.ends_with("html");
        all += &if is_page {
            text.replace('\n', " ")
        } else {
            text
        };
    }
    (output, all)
}

fn assert_harmless(text: &str, what: &str) {
    let found = text.find(|character| is_unsafe(character) && !"\n\t".contains(character));
    if let Some(at) = found {
        let around: String = text[at..].chars().take(60).collect();
        panic!("{what}: {around:?}");
    }
    let forged = text.lines().find(|line| line.starts_with("VALID: all is"));
    assert_eq!(forged, None, "{what}");
}

#[test]
fn what_a_peer_says_is_harmless() {
    // The same on a line, as an HTTP/1.1 head, and as the words of an HTTP/2 goodbye (RFC 9113, section 6.8).
    let line = format!("{HOSTILE}\n");
    let head = format!(
        "HTTP/1.1 500 {HOSTILE}\r\nContent-Type: {HOSTILE}\r\n{HOSTILE}: 1\r\nContent-Length: 0\r\n\r\n"
    );
    let length = u32::try_from(8 + HOSTILE.len()).unwrap().to_be_bytes();
    let mut goodbye = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    goodbye.extend(
        [
            &length[1..],
            &[7, 0, 0, 0, 0, 0],
            &[0; 7],
            &[11],
            HOSTILE.as_bytes(),
        ]
        .concat(),
    );
    let cases: [(&str, &[&str], Vec<u8>); 6] = [
        ("tcp", &[], line.into_bytes()),
        ("http", &[], head.into_bytes()),
        ("http", &["--http2"], goodbye.clone()),
        ("grpc", &[], goodbye.clone()),
        ("grpc", &["--grpc-client", "tonic"], goodbye),
        (
            "tcp",
            &["--message", "benchmark"],
            HOSTILE.as_bytes().to_vec(),
        ),
    ];
    for (scheme, flags, answer) in cases {
        let site = Site::saying(Vec::leak(answer));
        let url = format!("{scheme}://{}", site.address);
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("run.json");
        let fixed = [
            "throughput",
            &url,
            "-c",
            "1",
            "--requests",
            "2",
            "--warmup",
            "0s",
        ];
        let file = ["--json", json.to_str().unwrap()];
        let (_, all) = said(folder.path(), &[&fixed[..], &file, flags].concat());
        assert!(all.contains(&url), "{all}");
        assert_harmless(&all, &url);
        let stored = fs::read_to_string(json).unwrap_or_default();
        let stored: Value = serde_json::from_str(&stored).unwrap_or_default();
        assert_harmless(&stored["steps"].to_string(), &url);
    }
}

#[test]
fn what_a_servers_metrics_say_is_harmless() {
    let server = Server::start("tokio", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = format!("http://{}/metrics", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let told = HOSTILE.replace(['\r', '\n'], "");
            let text = format!(
                "process_cpu_seconds_total {told}\nnetping_build_info{{version=\"{told}\"}} 1\nnetping_{told} NaN\n"
            );
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let fixed = [
        "throughput",
        &server.url,
        "-c",
        "1",
        "--requests",
        "20",
        "--warmup",
        "0s",
    ];
    let flags = ["--server-metrics", &metrics];
    let (_, all) = said(folder.path(), &[fixed.as_slice(), &flags].concat());
    assert_harmless(&all, "metrics");
}

#[test]
fn what_a_file_says_is_harmless() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name);
    let good = path("good.json");
    let fixed = ["latency", &server.url, "--warmup", "0s", "--samples", "100"];
    let made = run(&[&fixed[..], &["--json", good.to_str().unwrap()]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let mut file: Value = serde_json::from_slice(&fs::read(&good).unwrap()).unwrap();
    file["steps"][0]["label"] = json!(HOSTILE);
    file["started_at"] = json!(HOSTILE);
    file["command_line"] = json!([HOSTILE]);
    for name in ["host", "kernel", "processor"] {
        file["environment"][name] = json!(HOSTILE);
    }
    file["environment"]["system"][HOSTILE] = json!(HOSTILE);
    for name in ["version", "commit"] {
        file["tool"][name] = json!(HOSTILE);
    }
    let hostile = path("hostile.json");
    fs::write(&hostile, file.to_string()).unwrap();
    let [good, hostile] = [&good, &hostile].map(|path| path.to_str().unwrap());
    let (output, all) = said(folder.path(), &["report", hostile]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(all.contains("VALID: all is well"), "{all}");
    assert_harmless(&all, "report");
    for command in [["compare", good, hostile], ["merge", good, hostile]] {
        let output = run(&command);
        assert_harmless(&(stdout(&output) + &stderr(&output)), command[0]);
    }
}
