//! `netping bulk`: every byte arrives, over every transport and both ways,
//! and losses are reported.

mod common;

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

use common::{
    Server, assert_usage, interrupt, killed_in_mid_run, load, netping, parse, run, spawn, stderr,
    stdout,
};
use serde_json::{Value, json};

/// A way to carry bulk streams: the server, its flags, and those of its client.
struct Way {
    server: &'static str,
    serving: Vec<String>,
    asking: Vec<String>,
}

/// Every way; keys go to `folder`.
fn ways(folder: &tempfile::TempDir) -> Vec<Way> {
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for more in [&[][..], &["--psk"]] {
        let made = netping()
            .args(["certs", "--out"])
            .arg(folder.path())
            .args(more)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
    }
    let flags = |flags: &[&str]| {
        flags
            .iter()
            .map(|&flag| flag.to_owned())
            .collect::<Vec<_>>()
    };
    let identity = |name: &str| {
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        flags(&["--tls-cert", &certificate, "--tls-key", &key])
    };
    let (ca, psk) = (file("ca.pem"), file("psk.key"));
    let way = |server, serving: Vec<String>, asking: Vec<String>| Way {
        server,
        serving,
        asking,
    };
    let tls = |server| way(server, identity("server"), flags(&["--tls-ca", &ca]));
    let mutual = [identity("client"), flags(&["--tls-ca", &ca])].concat();
    vec![
        way("threads", Vec::new(), Vec::new()),
        way("tokio", Vec::new(), Vec::new()),
        way("grpc", Vec::new(), Vec::new()),
        way(
            "tokio",
            flags(&["--psk-file", &psk]),
            flags(&["--psk-file", &psk]),
        ),
        tls("threads"),
        tls("tokio"),
        tls("quic"),
        tls("grpc"),
        way(
            "grpc",
            [identity("server"), flags(&["--tls-client-ca", &ca])].concat(),
            mutual,
        ),
    ]
}

/// A run that must end with `code`; what is in its result, and what stands on standard error.
fn bulk(code: i32, url: &str, flags: &[&str]) -> (Value, String) {
    let output = run(&[&["bulk", url, "--json", "-"], flags].concat());
    assert_eq!(
        output.status.code(),
        Some(code),
        "{flags:?}: {}",
        stderr(&output)
    );
    (
        parse(&String::from_utf8_lossy(&output.stdout))["bulk"].clone(),
        stderr(&output),
    )
}

/// Runs that failed with this kind.
fn failed(step: &Value, kind: &str) -> u64 {
    step["errors"][kind].as_u64().unwrap_or(0)
}

#[test]
fn every_byte_arrives_and_is_counted_over_every_transport_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    for Way {
        server: kind,
        serving,
        asking,
    } in ways(&folder)
    {
        for direction in [&["--verify"][..], &["--direction", "up"]] {
            let server = Server::start(
                kind,
                &serving.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            let fixed = [
                "--size",
                "3000017",
                "--chunk",
                "64KiB",
                "--streams",
                "3",
                "--runs",
                "2",
            ];
            let metrics = ["--server-metrics", &server.metrics];
            let asking: Vec<&str> = asking.iter().map(String::as_str).collect();
            let (steps, text) = bulk(
                0,
                &server.url,
                &[&fixed[..], direction, &metrics, &asking].concat(),
            );
            let what = format!("{} {direction:?}: {text}", server.url);
            let step = &steps[0];
            assert_eq!(
                (&step["status"], step["runs"].as_array().unwrap().len()),
                (&"complete".into(), 2),
                "{what}"
            );
            for run in step["runs"].as_array().unwrap() {
                assert_eq!(run["bytes"], 3_000_017, "{what}");
                let number = |name: &str| run[name].as_f64().unwrap();
                assert!(number("first_byte_seconds") <= number("seconds"), "{what}");
                assert!(
                    number("client_cpu_seconds_per_gib") > 0.0
                        && number("server_cpu_seconds_per_gib") > 0.0
                );
            }
            assert_eq!(step["security"].is_null(), asking.is_empty(), "{what}");
            // Two runs and one before them, on three streams, whose shares make 16 messages each.
            assert_eq!(
                server.requests(),
                if kind == "grpc" { 3 * 3 } else { 3 * 3 * 16 },
                "{what}"
            );
        }
    }
}

#[test]
fn chunks_of_any_length_are_right() {
    for kind in ["threads", "tokio", "grpc"] {
        let server = Server::start(kind, &[]);
        for chunk in ["1", "7", "61", "1000", "65536", "1048576", "10MB"] {
            let fixed = ["--size", "100003", "--chunk", chunk, "--runs", "1"];
            for direction in [&["--verify"][..], &["--direction", "up"]] {
                let (steps, text) = bulk(0, &server.url, &[&fixed, direction].concat());
                assert_eq!(
                    steps[0]["runs"][0]["bytes"], 100_003,
                    "{kind} {chunk} {direction:?}: {text}"
                );
            }
        }
    }
}

#[test]
fn a_server_may_choose_its_own_sizes() {
    let server = Server::start(
        "grpc",
        &["--bulk-total", "10000000", "--bulk-chunk", "40000"],
    );
    let chosen = [
        "--size",
        "server",
        "--chunk",
        "server",
        "--runs",
        "2",
        "--streams",
        "3",
    ];
    let (steps, text) = bulk(0, &server.url, &chosen);
    let settings = &steps[0]["settings"];
    assert_eq!(
        (&settings["size_bytes"], &settings["chunk_bytes"]),
        (&json!(0), &json!(0)),
        "{text}"
    );
    for run in steps[0]["runs"].as_array().unwrap() {
        assert_eq!(
            (&run["bytes"], &run["message_bytes"]),
            (&json!(30_000_000), &json!(40_000))
        );
    }
    // Of a stream that the server cuts, the length of either is still exact.
    let (steps, _) = bulk(
        0,
        &server.url,
        &["--size", "1MiB", "--chunk", "server", "--runs", "1"],
    );
    assert_eq!(steps[0]["runs"][0]["bytes"], json!(1 << 20));
    let (steps, _) = bulk(
        0,
        &server.url,
        &["--size", "server", "--chunk", "39999", "--runs", "1"],
    );
    assert_eq!(steps[0]["runs"][0]["bytes"], json!(10_000_000));
    assert_eq!(steps[0]["runs"][0]["message_bytes"], json!(39_999));
}

#[test]
fn a_sweep_is_one_table_of_every_combination() {
    let server = Server::start("grpc", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let sweep = [
        "--chunk",
        "4KiB,64KiB",
        "--window",
        "64KiB..1MiBx16",
        "--frame",
        "16KiB,1MiB",
        "--order-seed",
        "7",
    ];
    let fixed = [
        "bulk",
        &server.url,
        "--size",
        "300000",
        "--runs",
        "3",
        "--verify",
        "--json",
        file.to_str().unwrap(),
    ];
    let output = run(&[&fixed[..], &sweep].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = load(&file);
    assert_eq!(
        (&run["status"], &run["order_seed"]),
        (&"complete".into(), &7.into())
    );
    let steps = run["bulk"].as_array().unwrap();
    let settings: Vec<_> = steps
        .iter()
        .map(|step| {
            ["chunk_bytes", "window_bytes", "frame_bytes"]
                .map(|name| step["settings"][name].as_u64().unwrap())
        })
        .collect();
    let (k, m) = (1 << 10, 1 << 20);
    let half = |chunk| {
        [
            [chunk, 64 * k, 16 * k],
            [chunk, 64 * k, m],
            [chunk, m, 16 * k],
            [chunk, m, m],
        ]
    };
    assert_eq!(settings, [half(4 * k), half(64 * k)].concat());
    for step in steps {
        assert_eq!(step["runs"].as_array().unwrap().len(), 3);
        assert!(
            step["summary"]["gib_per_second"]["half_width"].is_number()
                && step["summary"]["sd_gib_per_second"].is_number()
        );
    }
    let table = String::from_utf8(output.stdout).unwrap();
    let is_row = |line: &&str| matches!(line.split_whitespace().next(), Some("4KiB" | "64KiB"));
    assert_eq!(table.lines().filter(is_row).count(), 8, "{table}");
    for text in [
        "GiB/s",
        "to first",
        "mean GiB/s over all other settings",
        "  chunk: 4KiB ",
        "SHARED_HOST",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn memory_does_not_grow_with_the_size() {
    for kind in ["threads", "tokio", "grpc"] {
        let server = Server::start(kind, &[]);
        for direction in ["down", "up"] {
            let flags = [
                "--size",
                "256MiB",
                "--runs",
                "1",
                "--direction",
                direction,
                "--server-metrics",
            ];
            let (steps, _) = bulk(0, &server.url, &[&flags[..], &[&server.metrics]].concat());
            for side in ["client_resident_bytes", "server_resident_bytes"] {
                let resident = steps[0]["runs"][0][side].as_u64().unwrap();
                assert!(
                    resident < (160 << 20),
                    "{kind} {direction}: {side} {resident}"
                );
            }
        }
    }
}

/// A relay to `upstream` that flips a bit in byte number `at` of what comes back on each
/// connection.
fn flipping(upstream: &str, at: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let upstream = upstream.to_owned();
    thread::spawn(move || {
        for near in listener.incoming() {
            let mut near = near.unwrap();
            let mut far = TcpStream::connect(&upstream).unwrap();
            let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                let (mut buffer, mut passed) = (vec![0; 64 << 10], 0);
                while let Ok(read @ 1..) = far.read(&mut buffer) {
                    if (passed..passed + read).contains(&at) {
                        buffer[at - passed] ^= 1;
                    }
                    passed += read;
                    if near.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
                let _ = near.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

#[test]
fn a_flipped_byte_is_a_mismatch_with_its_place() {
    for kind in ["tokio", "grpc"] {
        let server = Server::start(kind, &[]);
        let (scheme, address) = server.url.split_once("://").unwrap();
        let url = format!("{scheme}://{}", flipping(address, 200_000));
        let fixed = ["--size", "1MiB", "--chunk", "1MiB", "--runs", "2"];
        let (steps, text) = bulk(1, &url, &[&fixed[..], &["--verify"]].concat());
        assert_eq!(
            (failed(&steps[0], "mismatch"), &steps[0]["summary"]),
            (2, &Value::Null),
            "{text}"
        );
        // Behind a reply's header of 4 bytes; HTTP/2's frames are cut as it likes.
        let place = if kind == "tokio" {
            "byte 199996 of the stream is"
        } else {
            "of the stream is"
        };
        assert!(text.contains(place), "{text}");
        assert!(text.contains("ERRORS"), "{text}");
        // So it was there, and only comparing shows it.
        bulk(0, &url, &fixed);
    }
}

#[test]
fn messages_over_a_servers_limit_name_its_flag() {
    for (kind, flag) in [
        ("threads", "--max-frame"),
        ("tokio", "--max-frame"),
        ("grpc", "--max-message"),
    ] {
        let server = Server::start(kind, &[flag, "1000"]);
        for direction in ["down", "up"] {
            let flags = [
                "--size",
                "1MB",
                "--chunk",
                "2000",
                "--runs",
                "2",
                "--direction",
                direction,
            ];
            let (steps, text) = bulk(1, &server.url, &flags);
            let kinds: Vec<&String> = steps[0]["errors"].as_object().unwrap().keys().collect();
            let expected = match (kind, direction) {
                ("grpc", "down") => "grpc_3",
                ("grpc", _) => "grpc_11",
                _ => "protocol",
            };
            assert_eq!(kinds, [expected], "{kind} {direction}: {text}");
            assert_eq!(failed(&steps[0], expected), 2);
            assert!(
                text.contains(&format!("the server's {flag}")),
                "{kind} {direction}: {text}"
            );
        }
    }
}

#[test]
fn messages_are_cut_to_the_share_of_their_stream() {
    for (kind, flag) in [
        ("threads", "--max-frame"),
        ("tokio", "--max-frame"),
        ("grpc", "--max-message"),
    ] {
        let server = Server::start(kind, &[flag, "200000"]);
        for direction in [&[][..], &["--verify"], &["--direction", "up"]] {
            let fixed = [
                "--size",
                "1600000",
                "--chunk",
                "1600000",
                "--streams",
                "16",
                "--runs",
                "1",
            ];
            let (steps, text) = bulk(0, &server.url, &[&fixed, direction].concat());
            assert_eq!(
                steps[0]["runs"][0]["bytes"], 1_600_000,
                "{kind} {direction:?}: {text}"
            );
        }
    }
}

#[test]
fn streams_over_a_servers_limit_name_its_flag() {
    let folder = tempfile::tempdir().unwrap();
    let way = ways(&folder)
        .into_iter()
        .find(|way| way.server == "quic")
        .unwrap();
    let serving: Vec<&str> = way
        .serving
        .iter()
        .map(String::as_str)
        .chain(["--max-streams", "2"])
        .collect();
    let server = Server::start("quic", &serving);
    let asking: Vec<&str> = way.asking.iter().map(String::as_str).collect();
    for (streams, code) in [("2", 0), ("3", 3)] {
        let fixed = [
            "bulk",
            &server.url,
            "--size",
            "1MiB",
            "--runs",
            "1",
            "--timeout",
            "1s",
            "--streams",
            streams,
        ];
        let output = run(&[&fixed[..], &asking].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{streams}: {}",
            stderr(&output)
        );
        assert_eq!(
            stderr(&output).contains("--max-streams"),
            code == 3,
            "{streams}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn silent_and_talkative_servers_fail_the_run() {
    let serve = |behave: fn(TcpStream)| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("tcp://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            listener
                .incoming()
                .for_each(|stream| behave(stream.unwrap()));
        });
        url
    };
    let silent = serve(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    let (steps, text) = bulk(
        1,
        &silent,
        &["--size", "1MiB", "--runs", "2", "--timeout", "200ms"],
    );
    assert_eq!(failed(&steps[0], "timeout"), 2, "{text}");
    let garbage = serve(|mut stream| {
        let _ = stream.write_all(&[0x40; 1000]);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (steps, text) = bulk(1, &garbage, &["--size", "1MiB", "--runs", "2"]);
    assert_eq!(failed(&steps[0], "protocol"), 2, "{text}");
    assert!(
        text.contains("a reply of 1077952576 bytes where 262144 were asked for"),
        "{text}"
    );
}

#[test]
fn a_server_killed_in_mid_run_fails_this_run_and_the_next() {
    for kind in ["threads", "tokio", "grpc"] {
        for direction in ["down", "up"] {
            let server = Server::start(kind, &[]);
            let url = server.url.clone();
            let client = [
                "bulk",
                &url,
                "--size",
                "1TiB",
                "--runs",
                "3",
                "--direction",
                direction,
                "--json",
                "-",
            ];
            let run = killed_in_mid_run(server, &client);
            let step = &run["bulk"][0];
            assert_eq!(
                (&run["status"], &step["status"], &step["runs"]),
                (
                    &"complete".into(),
                    &"complete".into(),
                    &Value::Array(Vec::new())
                )
            );
            // The second run may still get into the queue of the dying listener, and is reset then.
            assert!(failed(step, "refused") >= 1, "{kind} {direction}: {step}");
            assert_eq!(
                step["errors"]
                    .as_object()
                    .unwrap()
                    .values()
                    .map(|count| count.as_u64().unwrap())
                    .sum::<u64>(),
                3
            );
        }
    }
}

#[test]
fn ctrl_c_keeps_finished_runs() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let json = file.to_str().unwrap();
    let client = spawn(&["bulk", &server.url, "--size", "1TiB", "--json", json]);
    server.await_requests();
    let output = interrupt(client);
    let run = load(&file);
    assert_eq!(
        (&run["status"], &run["bulk"][0]["status"]),
        (&"partial".into(), &"partial".into())
    );
    assert_eq!(run["bulk"][0]["errors"], serde_json::json!({}));
    // There is no run, so it is not called valid.
    assert_eq!(
        run["bulk"][0]["warnings"][0],
        serde_json::json!({ "name": "FEW_RUNS", "runs": 0 })
    );
    let text = stdout(&output);
    assert!(text.contains("NOT VALID: FEW_RUNS"), "{text}");
}

#[test]
fn usage_errors_suggest_a_correction() {
    assert_usage(&[
        (
            "bulk tcp://127.0.0.1:1 --size server",
            "for bytes that come down from grpc://",
        ),
        (
            "bulk grpc://127.0.0.1:1 --size server --direction up",
            "for bytes that come down from grpc://",
        ),
        (
            "bulk grpc://127.0.0.1:1 --chunk server --verify",
            "netping's own messages only",
        ),
        ("bulk grpc://127.0.0.1:1/a.B/C", "leave out /a.B/C"),
        ("bulk tcp://127.0.0.1:1 --size 0", "must be at least 1"),
        ("bulk tcp://127.0.0.1:1 --chunk 0KiB", "must be at least 1"),
        ("bulk tcp://127.0.0.1:1 --size 1X", "such as 65536, 256KiB"),
        ("bulk tcp://127.0.0.1:1 --runs 0", "--runs"),
        ("bulk tcp://127.0.0.1:1 --streams 0", "--streams"),
        (
            "bulk tcp://127.0.0.1:1 --streams 9 --size 8",
            "fewer bytes than --streams",
        ),
        ("bulk tcp://127.0.0.1:1 --chunk 2GiB", "at most 1GiB"),
        (
            "bulk tcp://127.0.0.1:1 --frame 16KiB",
            "--frame is for grpc://",
        ),
        ("bulk grpc://127.0.0.1:1 --frame 1KiB", "16384 to 16777215"),
        (
            "bulk grpc://127.0.0.1:1 --window 2GiB",
            "at most 2147483647",
        ),
        (
            "bulk grpc://127.0.0.1:1 --direction up --window 1MiB",
            "--stream-window",
        ),
        (
            "bulk grpc://127.0.0.1:1 --direction up --frame 1MiB",
            "--http2-frame",
        ),
        (
            "bulk tcp://127.0.0.1:1 --direction up --verify",
            "--verify compares bytes that come down",
        ),
        (
            "bulk tcp://127.0.0.1:1 --fail-if p99<1ms",
            "unexpected argument '--fail-if'",
        ),
        (
            "bulk tcp://127.0.0.1:1 --prometheus-push http://127.0.0.1:1",
            "unexpected argument '--prometheus-push'",
        ),
        (
            "bulk tcp://127.0.0.1:1 --hlog run.hlog",
            "unexpected argument '--hlog'",
        ),
    ]);
    // Nobody listens: nothing could start.
    let output = run(&["bulk", "tcp://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("is a server listening"),
        "{}",
        stderr(&output)
    );
}
