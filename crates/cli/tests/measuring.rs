//! The `netping` binary against servers that behave.

mod common;

use std::{
    hint,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, SystemTime},
};

use common::{
    Server, assert_usage, load, misbehaving, netping, parse, run, signal, spawn, stderr, stdout,
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Every way to put requests on the wire: the server, and the flags of the client.
const WAYS: [(&str, &[&str]); 5] = [
    ("threads", &[]),
    ("tokio", &[]),
    ("tokio", &["--framing", "frame"]),
    ("grpc", &[]),
    ("grpc", &["--grpc-client", "tonic"]),
];

fn throughput(url: &str, flags: &[&str]) -> Value {
    let output = run(&[&["throughput", url, "--json", "-"], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    parse(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_server_counts_the_requests_that_were_asked_for() {
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        let run = throughput(
            &server.url,
            &[&["-c", "8", "--requests", "2003", "--warmup", "0s"], flags].concat(),
        );
        assert_eq!(run["status"], "complete");
        assert_eq!(run["steps"][0]["ok"], 2003);
        assert_eq!(server.requests(), 2003, "{kind} {flags:?}");
    }
}

#[test]
fn what_is_planted_between_trials_is_seen() {
    let server = Server::start("tokio", &[]);
    let trials = [
        "--trials",
        "12",
        "--requests",
        "100",
        "-c",
        "2",
        "--warmup",
        "0s",
    ];
    let flags = ["--json", "-", "--prove", "--progress", "none"];
    let output = run(&[&["throughput", &server.url], &trials[..], &flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("\nplanted on this machine: a service time of 10.0 ms, seen as ")
    );
    let run = parse(&stdout(&output));
    // It is none of the steps, and is measured once after each trial.
    assert_eq!(run["steps"].as_array().unwrap().len(), 12);
    let proof = &run["proof"];
    assert_eq!(proof["trials"], 12);
    let number = |name: &str| proof[name].as_f64().unwrap();
    // A timer is never early.
    assert!(number("seen_service_ns") >= number("service_ns"), "{proof}");
    assert!(proof["seen_stall_seconds"].is_number(), "{proof}");
    assert!(proof["interval"].is_array(), "{proof}");
}

#[test]
fn requests_inside_and_outside_the_window_add_up_to_the_servers_count() {
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        let run = throughput(
            &server.url,
            &[&["-c", "4", "-d", "300ms", "--warmup", "100ms"], flags].concat(),
        );
        let summary = &run["steps"][0];
        let (inside, outside) = (
            summary["ok"].as_u64().unwrap(),
            summary["outside_ok"].as_u64().unwrap(),
        );
        assert!(inside > 0 && outside > 0);
        assert_eq!(summary["outside_errors"], 0);
        assert_eq!(inside + outside, server.requests(), "{kind} {flags:?}");
        let seconds: u64 = run["steps"][0]["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|second| second["ok"].as_u64().unwrap())
            .sum();
        let early = summary["early"].as_u64().unwrap();
        assert_eq!(seconds, inside + early);
    }
}

#[test]
fn payloads_and_replies_of_any_length_are_verified() {
    let lengths = [
        ("0", "1"),
        ("1", "70000"),
        ("17", "16"),
        ("1000000", "1"),
        ("300000", "1000000"),
    ];
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        for (payload, response) in lengths {
            let fixed = [
                "-c",
                "2",
                "--requests",
                "20",
                "--warmup",
                "0s",
                "--payload",
                payload,
                "--response",
                response,
            ];
            let run = throughput(&server.url, &[&fixed, flags].concat());
            assert_eq!(run["steps"][0]["ok"], 20, "{kind} {payload} {response}");
        }
    }
}

#[test]
fn messages_are_answered_and_compared_field_for_field() {
    // Over TCP they are frames, whatever --framing is by default.
    for (kind, flags) in WAYS
        .into_iter()
        .chain([("threads", &["--framing", "frame"][..])])
    {
        let server = Server::start(kind, &[]);
        let fixed = [
            "-c",
            "3",
            "--requests",
            "50",
            "--warmup",
            "0s",
            "--message",
            "benchmark",
        ];
        let run = throughput(&server.url, &[&fixed, flags].concat());
        let settings = &run["steps"][0]["settings"];
        assert_eq!(
            (&settings["message"], &settings["payload_bytes"]),
            (&"benchmark".into(), &581.into())
        );
        assert_eq!(run["steps"][0]["ok"], 50, "{kind} {flags:?}");
        assert_eq!(server.requests(), 50);
    }
}

#[test]
fn connections_are_reopened_after_their_requests() {
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        // Callers that share a connection share its number of requests too.
        let callers = if kind == "grpc" { "3" } else { "1" };
        let fixed = [
            "-c",
            callers,
            "--workers",
            "1",
            "--requests",
            "100",
            "--warmup",
            "0s",
        ];
        let flags = [&fixed[..], &["--requests-per-connection", "10"], flags].concat();
        throughput(&server.url, &flags);
        // One more, which showed that the server is there.
        assert_eq!(
            server.reading().connections_admitted(),
            Some(11),
            "{kind} {flags:?}"
        );
    }
}

#[test]
fn latency_has_as_many_samples_as_asked_for() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let output = run(&[
        "latency",
        &server.url,
        "--samples",
        "1000",
        "--repeat",
        "2",
        "--every",
        "0s",
        "--json",
        file.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = load(&file);
    let counts: Vec<_> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["ok"])
        .collect();
    assert_eq!(counts, [1000, 1000]);
    let quantiles = &run["steps"][0]["service_time"];
    assert!(quantiles["p99_ns"].is_u64());
    // 1000 samples do not tell it.
    assert!(quantiles["p99_9_ns"].is_null());
    let table = String::from_utf8(output.stdout).unwrap();
    // Each repetition has a row that begins with its time of day.
    let rows = table
        .lines()
        .filter(|line| line.as_bytes().get(2) == Some(&b':'));
    assert_eq!(rows.count(), 2, "{table}");
    assert!(table.contains("SHARED_HOST"), "{table}");
}

#[test]
fn a_sweep_has_a_row_for_each_step() {
    let server = Server::start("grpc", &[]);
    let flags = [
        "-c",
        "1..4",
        "--connections",
        "1,2,4",
        "--requests",
        "50",
        "--warmup",
        "0s",
    ];
    let run = throughput(&server.url, &flags);
    let steps: Vec<_> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (
                step["settings"]["callers"].as_u64().unwrap(),
                step["settings"]["connections"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(steps, [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)]);
}

#[test]
fn a_url_without_a_command_is_looked_at_with_one_caller_and_with_many() {
    let server = Server::start("tokio", &[]);
    let output = run(&[&server.url, "-d", "500ms"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    let callers = text.lines().filter_map(|line| {
        let mut cells = line.split_whitespace();
        let callers = cells.next()?.parse::<u32>().ok()?;
        cells.next()?.parse::<u32>().ok().map(|_| callers)
    });
    assert_eq!(callers.take(2).collect::<Vec<_>>(), [1, 64], "{text}");
    assert!(text.contains("response times with 64 callers"), "{text}");
}

#[test]
fn without_a_terminal_progress_is_lines_of_its_steps() {
    let server = Server::start("tokio", &[]);
    let progress = |flags: &[&str]| {
        let fixed = ["throughput", &server.url, "-c", "1,2", "-d", "1500ms"];
        let output = run(&[&fixed, flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stderr(&output);
        let lines = text.lines().filter(|line| line.contains(" of 2  tcp://"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = progress(&[]);
    assert!(
        lines.iter().any(|line| line.starts_with("2 of 2")),
        "{lines:?}"
    );
    assert!(
        lines.iter().all(|line| line.contains(" req/s")),
        "{lines:?}"
    );
    assert!(progress(&["--progress", "none"]).is_empty());
}

#[test]
fn a_full_screen_needs_a_terminal_and_steps_of_seconds() {
    for (command, reason) in [
        (&["latency", "tcp://127.0.0.1:1"][..], "needs a terminal"),
        (&["ladder"], "a ladder's steps last 150 ms"),
    ] {
        let output = run(&[command, &["--live"]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn connections_are_accounted_for_second_by_second() {
    for (kind, flags) in [("tokio", &[][..]), ("quic", &["--tls-self-signed"])] {
        let server = Server::start(kind, flags);
        let mut args = vec!["throughput", &server.url, "-c", "2", "-d", "2s"];
        args.extend(["--rate", "200", "--warmup", "0s", "--json", "-"]);
        args.extend((kind == "quic").then_some("--tls-insecure"));
        let run = parse(&stdout(&run(&args)));
        let seconds = run["steps"][0]["intervals"].as_array().unwrap();
        // Where the machine stood still for a second, that one has none.
        let mut known = seconds
            .iter()
            .filter(|second| second["path"].is_object())
            .peekable();
        assert!(known.peek().is_some(), "{kind}: {seconds:?}");
        for second in known {
            assert_eq!(second["path"]["lost_packets"], 0, "{kind}: {second}");
            let rtt = second["path"]["smoothed_rtt_ns"].as_u64().unwrap();
            assert!(rtt > 0 && rtt < 5_000_000_000, "{kind}: {second}");
        }
    }
}

#[test]
fn the_ladder_climbs_every_server() {
    let folder = tempfile::tempdir().unwrap();
    let output = netping()
        .current_dir(folder.path())
        .args(["ladder", "--quick", "-c", "3", "--connections", "2"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = folder.path().join("netping-ladder.json");
    let shown = netping().arg("report").arg(&file).output().unwrap();
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let run = load(&file);
    let rungs = [
        "TCP tokio",
        "TCP again",
        "TCP threads",
        "TCP+PSK",
        "TCP+TLS",
        "QUIC",
        "gRPC floor",
        "gRPC",
        "gRPC+TLS",
    ];
    // One caller, three with a connection each, and three on two connections.
    let round: Vec<(&str, u64, u64)> = [(1, 1), (3, 3), (3, 2)]
        .into_iter()
        .flat_map(|(callers, connections)| {
            let shown = if connections < callers {
                &rungs[5..]
            } else {
                &rungs
            };
            shown.iter().map(move |rung| (*rung, callers, connections))
        })
        .collect();
    let steps = run["steps"].as_array().unwrap();
    let measured: Vec<_> = steps
        .iter()
        .map(|step| {
            let setting = |name: &str| step["settings"][name].as_u64().unwrap();
            let label = step["label"].as_str().unwrap();
            (label, setting("callers"), setting("connections"))
        })
        .collect();
    assert_eq!(measured, round.repeat(3));
    // Of a window in which the machine stood still, nothing may be known.
    for rung in rungs {
        let known = steps.iter().any(|step| {
            let cpu = step["cost"]["server"]["cpu_us_per_request"].as_f64();
            step["label"] == rung && cpu.is_some_and(|cpu| cpu > 0.0)
        });
        assert!(known, "{rung}");
    }
    // Every rung but the reference, under each load, and each that shares connections.
    assert_eq!(run["pairings"].as_array().unwrap().len(), 8 + 8 + 4);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("3 rounds: too few to call anything a difference"),
        "{text}"
    );
    // Tables have columns; sentences may be longer.
    for line in text.lines().filter(|line| line.contains("  ")) {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    let page = std::fs::read_to_string(folder.path().join("netping-ladder.html")).unwrap();
    assert!(page.contains("data-chart=\"ladder\""));
}

/// Runs while another program, which this process is to it, has a thread on every CPU.
fn beside_hogs<T>(run: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let result = run();
        is_over.store(true, Relaxed);
        result
    })
}

#[test]
fn disturbed_windows_are_measured_again_half_as_often_as_there_are() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let output = beside_hogs(|| {
        let trials = ["--trials", "3", "-d", "300ms", "--warmup", "0s"];
        let json = ["--json", file.to_str().unwrap()];
        run(&[&["throughput", &server.url, "-c", "4"], &trials[..], &json].concat())
    });
    let (told, text) = (stderr(&output), stdout(&output));
    assert_eq!(output.status.code(), Some(0), "{told}");
    let again = format!("{} is measured again: ", server.url);
    assert!(told.contains(&again), "{told}");
    let run = load(&file);
    let trials = run["steps"].as_array().unwrap().iter();
    let trials: Vec<_> = trials.map(|step| step["trial"].as_u64().unwrap()).collect();
    assert_eq!(trials, [1, 2, 3]);
    assert_eq!(run["replaced"]["windows"], 1);
    assert!(
        text.contains("1 window was measured again because others had the CPUs"),
        "{text}"
    );
    let [above, below] = ["NOT VALID: ", "the mean of the trials"].map(|part| text.find(part));
    assert!(above.is_some() && above < below, "{text}");
    assert!(text.contains("FOREIGN_LOAD"), "{text}");
}

#[test]
fn an_open_loop_sends_what_is_planned() {
    let server = Server::start("tokio", &[]);
    for flags in [
        &["--rate", "2k"][..],
        &["--rate", "2k", "--arrivals", "poisson", "--seed", "7"],
    ] {
        let run = throughput(
            &server.url,
            &[&["--requests", "1000", "--warmup", "100ms"], flags].concat(),
        );
        let summary = &run["steps"][0];
        let scheduled = summary["scheduled"].as_f64().unwrap();
        // Random arrivals are within six standard deviations of what is expected.
        let slack = if flags.len() > 2 {
            6.0 * 1000_f64.sqrt()
        } else {
            1.0
        };
        assert!((scheduled - 1000.0).abs() <= slack, "{scheduled}");
        assert_eq!(summary["scheduled"], summary["ok"]);
        for time in ["service_time", "response_time", "lag"] {
            assert_eq!(summary[time]["count"], summary["ok"], "{time}");
        }
    }
}

#[test]
fn bursts_are_due_in_the_middle_of_their_cycles() {
    let server = Server::start("tokio", &[]);
    let load = ["--rate", "100", "--burst", "1k:2s", "--every", "10s"];
    let times = ["-c", "32", "-d", "10s", "--warmup", "300ms"];
    let output = run(&[
        &["throughput", &server.url][..],
        &load,
        &times,
        &["--json", "-"],
    ]
    .concat());
    let step = &parse(&stdout(&output))["steps"][0];
    assert_eq!(step["scheduled"], 2800);
    assert_eq!(step["settings"]["planned_rate_per_s"], 280.0);
    let second = |at: usize| step["intervals"][at]["ok"].as_u64().unwrap();
    let (quiet, burst) = (second(2), second(5) + second(6));
    assert!(burst > 4 * quiet, "{quiet}, {burst}");
    let warnings = step["warnings"].as_array().unwrap();
    let is_steady = warnings.iter().all(|own| own["name"] != "NOT_STEADY");
    assert!(is_steady, "{warnings:?}");
    let told = stderr(&output);
    assert!(
        told.contains("bursts of 1,000 req/s for 2 s every 10 s: p99"),
        "{told}"
    );
    let wrong = |flags: &str, what| (format!("throughput tcp://h:1 --rate 9 {flags}"), what);
    let wrong = [
        wrong("--burst 99", "a burst looks like 20k:3s"),
        wrong("--burst 99:2s", "--every"),
        wrong("--burst 99:2s --every 11s -d 11s", "even number of seconds"),
        wrong("--burst 99:2s --every 8s -d 8s", "from 10 on"),
        wrong("--burst 99:4s --every 10s", "2 s or more before the end"),
        wrong("--burst 99:1500ms --every 10s", "whole seconds"),
        wrong(
            "--burst 99:2s --every 10s -d 15s",
            "-d has to be a multiple",
        ),
        wrong("--burst 99:2s --every 10s --warmup auto", "--warmup auto"),
        wrong("--burst 99:2s --every 10s --trials 3", "cannot be used"),
        wrong("--burst 99:2s --every 10s -n 10", "cannot be used"),
    ];
    let wrong: Vec<_> = wrong.iter().map(|(line, what)| (&**line, *what)).collect();
    assert_usage(&wrong);
}

#[test]
fn the_account_of_connections_has_every_request() {
    let load = ["-c", "4", "--requests", "2003", "--warmup", "0s"];
    let path = |kind: &str, flags: &[&str]| {
        let is_quic = kind == "quic";
        let server = Server::start(kind, if is_quic { &["--tls-self-signed"] } else { &[] });
        let connections: &[&str] = match kind {
            "quic" => &["--connections", "4", "--tls-insecure"],
            "grpc" => &["--connections", "4"],
            _ => &[],
        };
        let mut run = throughput(&server.url, &[&load[..], connections, flags].concat());
        run["steps"][0]["path"].take()
    };
    let sum = |path: &Value, fact: &str| path["facts"][fact]["sum"].as_u64();
    for (kind, flags) in WAYS {
        let path = path(kind, flags);
        assert_eq!(path["connections"], 4, "{kind} {flags:?}: {path}");
        assert_eq!((&path["opened"], &path["closed"]), (&0.into(), &0.into()));
        let rtt = &path["facts"]["smoothed_rtt_ns"];
        assert!(
            rtt["min"].as_u64() > Some(0) && rtt["min"].as_u64() <= rtt["max"].as_u64(),
            "{path}"
        );
        // Callers that share a connection may share a segment.
        if kind != "grpc" {
            assert!(sum(&path, "delivered_packets") >= Some(2003), "{path}");
            assert!(sum(&path, "sent_packets") >= Some(2003), "{path}");
        }
    }
    let quic = path("quic", &[]);
    assert_eq!(quic["connections"], 4, "{quic}");
    assert!(sum(&quic, "received_packets") > Some(0), "{quic}");
    assert!(
        quic["facts"]["mtu_bytes"]["min"].as_u64() >= Some(1200),
        "{quic}"
    );
    assert_eq!(sum(&quic, "delivered_packets"), None);
    // Those that were there at the start are gone.
    let renewed = path("tokio", &["--requests-per-connection", "100"]);
    assert_eq!(renewed["opened"], renewed["connections"], "{renewed}");
}

/// Echoes lines, but closes the first connection that has 20.
fn echo_that_closes_a_connection(stream: TcpStream) {
    static HAS_CLOSED: AtomicBool = AtomicBool::new(false);
    let mut replies = stream.try_clone().unwrap();
    for (number, line) in BufReader::new(stream).lines().enumerate() {
        if number == 20 && !HAS_CLOSED.swap(true, Relaxed) {
            return;
        }
        let Ok(line) = line else { return };
        let _ = replies.write_all(format!("{line}\n").as_bytes());
    }
}

#[test]
fn the_account_of_connections_has_no_request_of_the_warm_up() {
    let server = Server::start("tokio", &[]);
    let url = misbehaving("tcp", echo_that_closes_a_connection);
    let load = ["-c", "4", "--requests", "500", "--warmup", "300ms"];
    // Connections that stay, those that are opened in the warm-up, and one that is closed there.
    let ways: [(&str, &[&str]); 3] = [
        (&server.url, &[]),
        (&server.url, &["--requests-per-connection", "10M"]),
        (&url, &["--max-error-rate", "1"]),
    ];
    for (url, flags) in ways {
        let run = throughput(url, &[&load[..], flags].concat());
        let path = &run["steps"][0]["path"];
        assert_eq!(path["connections"], 4, "{flags:?}: {path}");
        assert_eq!((&path["opened"], &path["closed"]), (&0.into(), &0.into()));
        // Besides those of the window, each caller may have a request under way as that begins.
        let delivered = path["facts"]["delivered_packets"]["sum"].as_u64();
        assert!(delivered.is_some() && delivered <= Some(504), "{path}");
    }
}

/// Echoes lines; on the sixth connection of every sixteen, only after 200 ms.
fn echo_with_a_slow_connection(stream: TcpStream) {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let is_slow = CONNECTIONS.fetch_add(1, Relaxed) % 16 == 5;
    let mut replies = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        if is_slow {
            thread::sleep(Duration::from_millis(200));
        }
        let Ok(line) = line else { return };
        let _ = replies.write_all(format!("{line}\n").as_bytes());
    }
}

#[test]
fn a_slow_connection_is_named_and_seen_by_requests_that_belong_to_it() {
    let url = misbehaving("tcp", echo_with_a_slow_connection);
    let load = [
        "-c",
        "16",
        "-d",
        "2s",
        "--warmup",
        "100ms",
        "--timeout",
        "2s",
        "--max-error-rate",
        "1",
    ];
    let p99 = |flags: &[&str]| {
        let run = throughput(&url, &[&load[..], flags].concat());
        let step = &run["steps"][0];
        let mut warnings = step["warnings"].as_array().unwrap().iter();
        let slow = warnings.find(|own| own["name"] == "SLOW_CONNECTION");
        let slow = slow.unwrap_or_else(|| panic!("{flags:?}: {step}"));
        assert_eq!(
            (&slow["slow"], &slow["connections"]),
            (&1.into(), &16.into())
        );
        let address = url.strip_prefix("tcp://").unwrap();
        assert_eq!(slow["server"], address);
        // Its port is that of the one with the longest times.
        let connections = step["fairness"]["connections"].as_array().unwrap();
        let longest = connections.iter().find(|own| own["slow"] == true).unwrap();
        assert!(longest["mean_ns"].as_f64() >= Some(2e8), "{longest}");
        assert_eq!(longest["local_port"], slow["local_port"]);
        assert!(slow["local_port"].is_u64(), "{slow}");
        let ends = [&step["ok"], &step["in_flight"], &step["not_sent"]];
        let ends: u64 = ends.iter().map(|own| own.as_u64().unwrap()).sum();
        assert_eq!(step["scheduled"], ends);
        step["response_time"]["p99_ns"].as_u64().unwrap()
    };
    p99(&[]);
    let rate = ["--rate", "1k"];
    p99(&rate);
    // It serves 5 of the 62 requests per second that belong to it.
    let fixed = p99(&[&rate[..], &["--assign", "fixed"]].concat());
    assert!(fixed > 1_000_000_000, "{fixed}");
}

#[test]
fn a_rate_beyond_the_server_adds_up_and_warns() {
    let server = Server::start("tokio", &["--workers", "1", "--delay", "50ms"]);
    let output = run(&[
        "throughput",
        &server.url,
        "--rate",
        "1000",
        "-c",
        "2",
        "-d",
        "500ms",
        "--warmup",
        "0s",
        "--timeout",
        "200ms",
        "--max-backlog",
        "100",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let run = parse(&String::from_utf8(output.stdout).unwrap());
    let (summary, warnings) = (&run["steps"][0], &run["steps"][0]["warnings"]);
    assert_eq!(summary["scheduled"], 500);
    assert!(summary["not_sent"].as_u64().unwrap() > 0);
    assert!(
        warnings
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning["name"] == "BEHIND_SCHEDULE"),
        "{warnings}"
    );
}

#[test]
fn a_stopped_server_shows_in_the_response_time_of_an_open_loop() {
    let server = Server::start("tokio", &[]);
    let client = spawn(&[
        "throughput",
        &server.url,
        "--rate",
        "1000",
        "-c",
        "4",
        "-d",
        "2s",
        "--warmup",
        "0s",
        "--json",
        "-",
    ]);
    server.await_requests();
    signal(&server.child, Signal::SIGSTOP);
    // The length of the stop is the input of this test.
    thread::sleep(Duration::from_millis(500));
    signal(&server.child, Signal::SIGCONT);
    let run = parse(&String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap());
    let summary = &run["steps"][0];
    assert_eq!(
        (&summary["scheduled"], &summary["ok"]),
        (&2000.into(), &2000.into())
    );
    let time =
        |name: &str, quantile: &str| summary[name][format!("{quantile}_ns")].as_u64().unwrap();
    assert!(summary["response_time"]["max_ns"].as_u64().unwrap() >= 450_000_000);
    // Only four requests were in the server's hands; the others waited for a caller.
    assert!(time("service_time", "p99") < time("response_time", "p99"));
}

#[test]
fn broken_thresholds_fail_a_run_and_say_by_how_much() {
    let server = Server::start("tokio", &[]);
    let fixed = [
        "latency",
        &server.url,
        "--samples",
        "1000",
        "--warmup",
        "0s",
    ];
    let busy = ["--allow", "all"];
    let ok = run(&[
        &fixed[..],
        &busy,
        &["--fail-if", "p50>10s", "--fail-if", "errors>0"],
    ]
    .concat());
    assert_eq!(ok.status.code(), Some(0), "{}", stderr(&ok));
    assert!(stdout(&ok).contains("passed --fail-if 'p50>10s', 'errors>0'"));
    let failed = run(&[
        &fixed[..],
        &busy,
        &["--fail-if", "rate<100M", "--fail-if", "p99.9<1s"],
    ]
    .concat());
    assert_eq!(failed.status.code(), Some(4));
    let text = stderr(&failed);
    assert!(
        text.contains(", 1 caller: it is") && text.contains("from the limit"),
        "{text}"
    );
    assert!(text.contains("too few samples to tell"), "{text}");
    let strict = |flags: &[&str]| {
        let output = run(&[&fixed[..], &["--strict=notes"], flags].concat());
        let text = stderr(&output);
        let line = text.lines().find(|line| line.contains("--strict"));
        (output.status.code(), line.unwrap_or_default().to_owned())
    };
    let (code, line) = strict(&[]);
    assert_eq!(code, Some(5));
    assert!(line.contains("SHARED_HOST"), "{line}");
    let (_, line) = strict(&["--allow", "SHARED_HOST"]);
    assert!(!line.contains("SHARED_HOST"), "{line}");
}

#[test]
fn the_servers_cpu_time_comes_from_the_source_that_is_given() {
    let server = Server::start("tokio", &[]);
    let pid = server.child.id().to_string();
    let fixed = ["-c", "2", "-d", "300ms", "--warmup", "0s"];
    for flags in [
        ["--server-pid", &pid],
        ["--server-metrics", &server.metrics],
    ] {
        let run = throughput(&server.url, &[&fixed[..], &flags].concat());
        let demand = &run["steps"][0]["cost"]["server"];
        assert!(
            demand["cpu_us_per_request"].as_f64().unwrap() > 0.0,
            "{flags:?}: {demand}"
        );
        assert!(demand["resident_bytes"].as_u64().unwrap() > 0);
        assert!(demand["cores"].as_u64().unwrap() > 0);
    }
    // A server whose port has something else is no reason not to measure.
    let flags = [
        "throughput",
        &server.url,
        "--server-metrics",
        "http://127.0.0.1:1/metrics",
    ];
    let output = run(&[&flags[..], &fixed].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("server CPU time unknown: cannot read"),
        "{}",
        stderr(&output)
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the moment is a time of day")]
fn a_step_begins_at_the_moment_that_was_given_and_not_after_it() {
    let server = Server::start("tokio", &[]);
    let flags = ["-c", "2", "-d", "200ms", "--warmup", "0s", "--start-at"];
    let moment = SystemTime::now() + Duration::from_secs(2);
    let since_1970 = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let run = throughput(
        &server.url,
        &[&flags[..], &[&since_1970.as_nanos().to_string()]].concat(),
    );
    let begun = run["steps"][0]["window_started_at"].as_str().unwrap();
    assert!(
        humantime::parse_rfc3339(begun).unwrap() >= moment,
        "{begun}"
    );

    let past = ["2026-01-01T00:00:00Z"];
    let late = common::run(&[&["throughput", &server.url][..], &flags, &past].concat());
    assert_eq!(late.status.code(), Some(3));
    assert!(stderr(&late).contains("start earlier, or give a later --start-at"));
}

#[test]
fn the_clock_of_a_server_is_compared_with_the_clients() {
    for (kind, flags, trust) in [
        ("threads", &[][..], &[][..]),
        ("quic", &["--tls-self-signed"], &["--tls-insecure"]),
    ] {
        let server = Server::start(kind, flags);
        let ask = |words: &[&str], ahead: &str| {
            let mut client = netping();
            let client = client.args(words).env("NETPING_TEST_CLOCK_OFFSET", ahead);
            client.args(trust).output().unwrap()
        };
        let clock = ["clock", &server.url, "--max-clock-error", "5s"];
        let output = ask(&clock, "0s");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains(&server.url), "{}", stdout(&output));
        let output = ask(&clock, "1h");
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(" ahead of that of"),
            "{}",
            stderr(&output)
        );
        // Nothing is measured with it.
        let run = [
            "latency",
            &server.url,
            "-n",
            "9",
            "--clock-server",
            &server.url,
        ];
        let refused = ask(&[&run[..], &["--max-clock-error", "5s"]].concat(), "1h");
        assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
        let file = tempfile::NamedTempFile::new().unwrap();
        let json = file.path().to_str().unwrap();
        let output = ask(&[&run[..], &["--json", json]].concat(), "1h");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let offset = &load(file.path())["clock"]["offset"]["offset_ns"];
        let hours = offset.as_f64().unwrap() / 3.6e12;
        assert!((-1.01..-0.99).contains(&hours), "{offset}");
    }
}

#[test]
fn the_cost_of_a_window_without_a_warm_up_begins_with_it() {
    let server = Server::start("tokio", &[]);
    let mut args = vec!["throughput", &server.url, "-c", "1", "--workers", "1"];
    args.extend([
        "--rate", "1k", "-d", "100ms", "--warmup", "0s", "--json", "-",
    ]);
    args.extend(["--server-metrics", &server.metrics]);
    // The readings take time of their own, and a machine may stand still meanwhile: but not each time.
    let is_whole = (0..10).any(|_| {
        let run = parse(&stdout(&run(&args)));
        let counted = &run["steps"][0]["cost"]["server"]["requests"]["client"];
        counted.as_u64() >= Some(90)
    });
    assert!(is_whole);
}
