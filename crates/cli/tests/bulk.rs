//! `netping bulk`: every byte arrives, over every transport and both ways,
//! and losses are reported.

mod common;

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

use common::{
    Server, assert_usage, eventually, interrupt, killed_in_mid_run, load, misbehaving, netping,
    parse, run, spawn, stderr, stdout,
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

/// A run that must end with `code`; the steps of its result, and what stands on standard error.
fn bulk(code: i32, url: &str, flags: &[&str]) -> (Vec<Value>, String) {
    let output = run(&[&["bulk", url, "--json", "-"], flags].concat());
    assert_eq!(
        output.status.code(),
        Some(code),
        "{flags:?}: {}",
        stderr(&output)
    );
    (
        steps_of(&parse(&String::from_utf8_lossy(&output.stdout))).to_vec(),
        stderr(&output),
    )
}

fn steps_of(run: &Value) -> &[Value] {
    run["steps"].as_array().unwrap()
}

/// The kinds of the failures of each run.
fn failures(steps: &[Value]) -> Vec<&str> {
    steps
        .iter()
        .flat_map(|step| step["errors"].as_object().unwrap().keys())
        .map(String::as_str)
        .collect()
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
            assert_eq!(steps.len(), 2, "{what}");
            for step in &steps {
                assert_eq!(step["status"], "complete", "{what}");
                assert_eq!(step["security"].is_null(), asking.is_empty(), "{what}");
                let run = &step["bulk"];
                assert_eq!(run["bytes"], 3_000_017, "{what}");
                let number = |name: &str| run[name].as_f64().unwrap();
                assert!(number("first_byte_seconds") <= number("seconds"), "{what}");
                assert!(
                    number("client_cpu_seconds_per_gib") > 0.0
                        && number("server_cpu_seconds_per_gib") > 0.0
                );
            }
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
fn small_requests_have_their_times_before_the_streams_and_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    for way in ways(&folder) {
        let delayed = ["--delay".to_owned(), "5ms".to_owned()];
        let serving = [way.serving, delayed.to_vec()].concat();
        let serving: Vec<&str> = serving.iter().map(String::as_str).collect();
        let server = Server::start(way.server, &serving);
        let asking: Vec<&str> = way.asking.iter().map(String::as_str).collect();
        let fixed = ["--size", "20MB", "--runs", "1", "--probe", "400"];
        let (steps, text) = bulk(0, &server.url, &[&fixed[..], &asking].concat());
        let probe = &steps[0]["probe"];
        assert_eq!(probe["failed"], 0, "{}: {text}", server.url);
        for (part, fewest) in [("idle", 300), ("loaded", 1)] {
            let time = &probe[part]["time"];
            let [count, min] = ["count", "min_ns"].map(|name| time[name].as_u64().unwrap_or(0));
            let what = format!("{} {part}: {time}", server.url);
            assert!(count >= fewest && min >= 5_000_000, "{what}");
        }
        // Those of the requests are not the streams'.
        let connections = &steps[0]["path"]["connections"];
        assert!(connections.is_null() || connections == 1, "{connections}");
        // As many as were due.
        let most = 400.0 * steps[0]["bulk"]["seconds"].as_f64().unwrap() + 1.0;
        let loaded = probe["loaded"]["time"]["count"].as_f64().unwrap();
        assert!(loaded <= most, "{}: {loaded} of {most}", server.url);
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
                    steps[0]["bulk"]["bytes"], 100_003,
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
    let settings = &steps[0]["settings"]["bulk"];
    assert_eq!(
        (&settings["size_bytes"], &settings["chunk_bytes"]),
        (&json!(0), &json!(0)),
        "{text}"
    );
    assert_eq!(steps.len(), 2);
    for run in steps.iter().map(|step| &step["bulk"]) {
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
    assert_eq!(steps[0]["bulk"]["bytes"], json!(1 << 20));
    let (steps, _) = bulk(
        0,
        &server.url,
        &["--size", "server", "--chunk", "39999", "--runs", "1"],
    );
    assert_eq!(steps[0]["bulk"]["bytes"], json!(10_000_000));
    assert_eq!(steps[0]["bulk"]["message_bytes"], json!(39_999));
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
    let mut settings: Vec<_> = steps_of(&run)
        .iter()
        .map(|step| {
            let setting = |name: &str| step["settings"]["bulk"][name].as_u64().unwrap();
            (
                step["measurement"].as_u64().unwrap(),
                ["chunk_bytes", "window_bytes", "frame_bytes"].map(setting),
            )
        })
        .collect();
    settings.sort_unstable();
    let (k, m) = (1 << 10, 1 << 20);
    let half = |chunk| {
        [
            [chunk, 64 * k, 16 * k],
            [chunk, 64 * k, m],
            [chunk, m, 16 * k],
            [chunk, m, m],
        ]
    };
    let combinations = [half(4 * k), half(64 * k)].concat();
    let expected: Vec<_> = (0..).zip(combinations).flat_map(|own| [own; 3]).collect();
    assert_eq!(settings, expected);
    // All others against the first.
    let pairings = run["pairings"].as_array().unwrap().iter();
    let pairings: Vec<_> = pairings.map(|own| (&own["base"], &own["new"])).collect();
    let numbers: Vec<Value> = (0..8).map(Value::from).collect();
    let expected: Vec<_> = numbers[1..].iter().map(|new| (&numbers[0], new)).collect();
    assert_eq!(pairings, expected);
    let table = String::from_utf8(output.stdout).unwrap();
    let is_row = |line: &&str| matches!(line.split_whitespace().next(), Some("4KiB" | "64KiB"));
    assert_eq!(table.lines().filter(is_row).count(), 8, "{table}");
    for text in ["GiB/s", "to first", "95% interval", "SHARED_HOST"] {
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
                let resident = steps[0]["bulk"][side].as_u64().unwrap();
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
        assert_eq!(failures(&steps), ["mismatch"; 2], "{text}");
        assert!(steps.iter().all(|step| step["bulk"].is_null()), "{text}");
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
            let expected = match (kind, direction) {
                ("grpc", "down") => "grpc_3",
                ("grpc", _) => "grpc_11",
                _ => "protocol",
            };
            assert_eq!(
                failures(&steps),
                [expected; 2],
                "{kind} {direction}: {text}"
            );
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
                steps[0]["bulk"]["bytes"], 1_600_000,
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
    let silent = misbehaving("tcp", |mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (steps, text) = bulk(
        1,
        &silent,
        &["--size", "1MiB", "--runs", "2", "--timeout", "200ms"],
    );
    assert_eq!(failures(&steps), ["timeout"; 2], "{text}");
    let garbage = misbehaving("tcp", |mut stream| {
        let _ = stream.write_all(&[0x40; 1000]);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (steps, text) = bulk(1, &garbage, &["--size", "1MiB", "--runs", "2"]);
    assert_eq!(failures(&steps), ["protocol"; 2], "{text}");
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
            let steps = steps_of(&run);
            assert_eq!(run["status"], "complete");
            assert!(steps.iter().all(|step| step["bulk"].is_null()));
            // The second run may still get into the queue of the dying listener, and is reset then.
            let failures = failures(steps);
            assert!(
                failures.len() == 3 && failures.contains(&"refused"),
                "{kind} {direction}: {failures:?}"
            );
        }
    }
}

#[test]
fn ctrl_c_keeps_finished_runs() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let fixed = ["--chunk", "64KiB", "--json", file.to_str().unwrap()];
    let client = |flags: &[&str]| spawn(&[&["bulk", &server.url], &fixed[..], flags].concat());
    let endless = client(&["--size", "1MiB", "--runs", "1000000"]);
    // The first run and the one before it have 16 requests each.
    eventually("a run", || server.requests() > 64);
    let output = interrupt(endless);
    let run = load(&file);
    assert_eq!(run["status"], "partial", "{}", stdout(&output));
    let steps = steps_of(&run);
    assert!(!steps.is_empty() && steps.iter().all(|step| step["bulk"]["bytes"] == 1 << 20));
    // Without a run there is no result, and nothing that is called valid.
    let before = server.requests();
    let longest = client(&["--size", "1TiB"]);
    eventually("a request", || server.requests() > before);
    let text = stdout(&interrupt(longest));
    assert!(
        text.contains("interrupted before there was a result") && !text.contains("VALID"),
        "{text}"
    );
}

#[test]
fn conditions_on_a_run_fail_the_command() {
    let server = Server::start("tokio", &[]);
    let fixed = ["bulk", &server.url, "--size", "1MiB", "--runs", "3"];
    let with =
        |condition: &str| run(&[&fixed[..], &["--allow", "all", "--fail-if", condition]].concat());
    let broken = with("bulk-rate>0.0001");
    assert_eq!(broken.status.code(), Some(4), "{}", stderr(&broken));
    assert!(
        stderr(&broken).contains("failed by --fail-if 'bulk-rate>0.0001'"),
        "{}",
        stderr(&broken)
    );
    assert_eq!(with("first-byte>60s").status.code(), Some(0));
}

#[test]
fn usage_errors_suggest_a_correction() {
    assert_usage(&[
        (
            "bulk tcp://127.0.0.1:1 --size server",
            "for bytes that come down from grpc://",
        ),
        (
            "bulk grpc://127.0.0.1:1 --size server --probe 100",
            "leave it out where the server chooses",
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
        ("bulk tcp://127.0.0.1:1 --chunk 2GiB", "0 to 1073741824"),
        ("bulk tcp://127.0.0.1:1 --frame 16KiB", "from grpc://"),
        ("bulk grpc://127.0.0.1:1 --frame 1KiB", "16384 to 16777215"),
        ("bulk grpc://127.0.0.1:1 --window 2GiB", "1 to 2147483647"),
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
            "bulk tcp://127.0.0.1:1 --prometheus-push http://127.0.0.1:1",
            "unexpected argument",
        ),
        (
            "bulk tcp://127.0.0.1:1 --fail-if p99<1ms",
            "'p99' is not one of bulk-rate, first-byte",
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
