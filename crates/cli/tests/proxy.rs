//! `netping proxy` with a relay that lives in the test.

mod common;

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use common::{
    Server, assert_usage, eventually, interrupt, load, nobody, parse, run, spawn, stderr,
};
use serde_json::Value;

/// A relay that counts the connections it takes.
struct Relay {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
}

impl Relay {
    /// Relays to `backend`; where nobody listens there, connections are closed at once.
    fn start(backend: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                counter.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || relay(&stream, backend));
            }
        });
        Self {
            address,
            connections,
        }
    }

    /// `NAME=URL`, as --via has it.
    fn via(&self, name: &str) -> String {
        format!("{name}=tcp://{}", self.address)
    }

    /// The connections that came before this call. They are accepted in the order they came in, so
    /// that the reply on one more shows that all have been.
    fn connections(&self) -> u64 {
        let mut last = TcpStream::connect(self.address).unwrap();
        last.write_all(b"last\n").unwrap();
        last.read_exact(&mut [0; 5]).unwrap();
        self.connections.load(Ordering::Relaxed) - 1
    }
}

fn relay(client: &TcpStream, backend: SocketAddr) {
    let Ok(server) = TcpStream::connect(backend) else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let upwards = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut downwards = client;
    let _ = io::copy(&mut &server, &mut downwards);
    let _ = client.shutdown(Shutdown::Both);
    upwards.join().unwrap();
}

fn address(server: &Server) -> SocketAddr {
    server.url.strip_prefix("tcp://").unwrap().parse().unwrap()
}

fn steps(run: &Value) -> &[Value] {
    run["steps"].as_array().unwrap()
}

fn count(step: &Value, name: &str) -> u64 {
    step[name].as_u64().unwrap()
}

/// The steps of one path at one rate.
fn of<'a>(run: &'a Value, label: &'a str, rate: &'a Value) -> impl Iterator<Item = &'a Value> {
    let is = move |step: &&Value| {
        step["label"] == label && step["settings"]["planned_rate_per_s"] == *rate
    };
    steps(run).iter().filter(is)
}

/// Checks that each proxy is compared with the direct path at these rates, and nothing else.
fn check_pairings(run: &Value, proxies: &[&str], rates: &[Value]) {
    let number = |label, rate| of(run, label, rate).next().unwrap()["measurement"].clone();
    let expected: Vec<(Value, Value)> = rates
        .iter()
        .flat_map(|rate| proxies.iter().map(move |proxy| (*proxy, rate)))
        .map(|(proxy, rate)| (number("direct", rate), number(proxy, rate)))
        .collect();
    let pairings = run["pairings"].as_array().unwrap().iter();
    let pairings: Vec<(Value, Value)> = pairings
        .map(|own| (own["base"].clone(), own["new"].clone()))
        .collect();
    assert_eq!(pairings, expected);
}

#[test]
fn paths_are_interleaved_and_every_request_is_accounted_for() {
    let server = Server::start("tokio", &[]);
    let relays = ["first", "second"].map(|name| (name, Relay::start(address(&server))));
    let [first, second] = relays.each_ref().map(|(name, relay)| relay.via(name));
    let output = run(&[
        "proxy",
        "--direct",
        &server.url,
        "--via",
        &first,
        "--via",
        &second,
        "--rate",
        "400,800",
        "-d",
        "300ms",
        "--hold",
        "400ms",
        "--warmup",
        "0s",
        "--trials",
        "2",
        "--order-seed",
        "1",
        "-c",
        "1",
        "--requests-per-connection",
        "7",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = parse(&String::from_utf8(output.stdout.clone()).unwrap());
    assert_eq!(
        (&run["status"], &run["order_seed"]),
        (&"complete".into(), &1.into())
    );

    let rates = [Value::from(400.0), Value::from(800.0)];
    assert_eq!(steps(&run).len(), 12);
    for (place, paths) in steps(&run).chunks(3).enumerate() {
        let mut labels: Vec<&str> = paths
            .iter()
            .map(|step| step["label"].as_str().unwrap())
            .collect();
        labels.sort_unstable();
        assert_eq!(labels, ["direct", "first", "second"]);
        for step in paths {
            assert_eq!(step["trial"].as_u64().unwrap(), place as u64 % 2 + 1);
            assert_eq!(step["settings"]["planned_rate_per_s"], rates[place / 2]);
            assert_eq!(step["settings"]["requests_per_connection"], 7);
            assert_eq!(count(step, "scheduled"), count(step, "ok"));
            assert!(count(step, "ok") > 0);
        }
    }
    let requests = |step: &Value| count(step, "ok") + count(step, "outside_ok");
    // Windows that were measured again are not in the run.
    let expect = |counted: u64, expected: u64, name: &str| {
        if replaced(&run) == 0 {
            assert_eq!(counted, expected, "{name}");
        } else {
            // On one path or another.
            assert!(counted >= expected, "{name}: {counted}, {expected}");
        }
    };
    for (name, relay) in &relays {
        let expected: u64 = rates
            .iter()
            .flat_map(|rate| of(&run, name, rate))
            // One more, which showed that the proxy is there.
            .map(|step| requests(step).div_ceil(7) + 1)
            .sum();
        // And one before all steps.
        expect(relay.connections(), expected + 1, name);
    }
    // Each path had one request before all steps, and each relay that of this test.
    let expected = steps(&run).iter().map(requests).sum::<u64>() + 3 + 2;
    expect(server.requests(), expected, "server");
    // Below the highest rate, paths are described.
    check_pairings(&run, &["first", "second"], &rates[1..]);

    let table = stderr(&output);
    let described = table
        .lines()
        .filter(|line| line.trim_start().starts_with("400  "));
    assert_eq!(described.count(), 3, "{table}");
    assert!(table.contains("open loop, 800 req/s planned"), "{table}");
    // A few hundred samples do not tell p99.9 and beyond: of each path's times, and of each proxy's
    // added time.
    let unknown = table.lines().filter(|line| line.contains(" -  "));
    assert!(unknown.count() >= 5, "{table}");
}

/// Returns the number of windows that were measured again.
fn replaced(run: &Value) -> u64 {
    run["replaced"]["windows"].as_u64().unwrap_or(0)
}

#[test]
fn maximum_throughput_is_measured_with_each_number_of_callers() {
    let server = Server::start("tokio", &[]);
    let relay = Relay::start(address(&server));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let output = run(&[
        "proxy",
        "--direct",
        &server.url,
        "--via",
        &relay.via("relay"),
        "--max=1,3",
        "-d",
        "200ms",
        "--warmup",
        "0s",
        "--trials",
        "2",
        "--requests-per-connection",
        "keep",
        "--json",
        file.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = load(&file);
    let settings: Vec<_> = steps(&run)
        .iter()
        .map(|step| {
            (
                step["settings"]["arrivals"].as_str().unwrap(),
                step["settings"]["callers"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(settings, [[("closed", 1); 4], [("closed", 3); 4]].concat());
    assert!(
        steps(&run)
            .iter()
            .all(|step| step["settings"]["requests_per_connection"].is_null())
    );
    // Kept: one for each caller in each step; and one before all steps. Of each number of callers, two windows
    // may have been measured again, each through the relay or not.
    let more = relay.connections() - (1 + 2 * (1 + 3));
    let most = [0, 3, 6, 7, 8][replaced(&run) as usize];
    assert!(more <= most, "{more} more");

    // With a fixed number of callers, times say nothing that the rate does not.
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.starts_with("2 trials of 2 paths: with 2 claims, ")
            && table.contains("all 2 intervals of this run hold"),
        "{table}"
    );
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("maximum throughput"))
        .skip(2);
    let names: Vec<&str> = rows
        .take(2)
        .filter_map(|row| row.split_whitespace().next())
        .collect();
    assert_eq!(names, ["direct", "relay"], "{table}");
    assert!(
        table.contains("with which the direct path had its maximum throughput"),
        "{table}"
    );
}

#[test]
fn one_trial_says_what_its_intervals_do_not_cover() {
    let server = Server::start("tokio", &[]);
    let via = format!("same={}", server.url);
    let flags = [
        "--rate", "500", "-d", "200ms", "--warmup", "0s", "--trials", "1", "--json", "-",
    ];
    let output = run(&[
        &["proxy", "--direct", &server.url, "--via", &via],
        &flags[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("do not cover what varies from trial to trial"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_proxys_cpu_time_comes_from_the_source_that_is_given() {
    let server = Server::start("tokio", &[]);
    let via = format!("proxy={}", server.url);
    let flags = [
        "--rate", "2k", "-d", "300ms", "--warmup", "0s", "--trials", "1", "--json", "-",
    ];
    let fixed = [
        &["proxy", "--direct", &server.url, "--via", &via],
        &flags[..],
    ]
    .concat();
    let pid = format!("proxy={}", server.child.id());
    let metrics = format!("proxy={}", server.metrics);
    // A process that is named twice is counted once.
    for flags in [
        &["--proxy-pid", &pid, "--proxy-pid", &pid][..],
        &["--proxy-metrics", &metrics],
    ] {
        let output = run(&[&fixed[..], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let run = parse(&String::from_utf8(output.stdout).unwrap());
        for step in steps(&run) {
            let demand = &step["cost"]["server"];
            if step["label"] == "proxy" {
                assert!(
                    demand["cpu_seconds"].as_f64().unwrap() > 0.0,
                    "{flags:?}: {demand}"
                );
                let resident = demand["resident_bytes"].as_u64().unwrap();
                assert!(resident > 0 && resident < 1 << 30, "{flags:?}: {demand}");
                // Of a proxy's requests, none need be those that were sent.
                assert!(demand["requests"].is_null(), "{flags:?}: {demand}");
            } else {
                assert!(demand.is_null(), "{flags:?}: {demand}");
            }
        }
    }
}

#[test]
fn a_proxy_without_its_backend_fails_the_run() {
    let server = Server::start("tokio", &[]);
    let relay = Relay::start(nobody());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let via = relay.via("relay");
    let fixed = [
        "proxy",
        "--direct",
        &server.url,
        "--via",
        &via,
        "--json",
        file.to_str().unwrap(),
    ];
    let flags = [
        "--rate",
        "100",
        "-d",
        "300ms",
        "--warmup",
        "0s",
        "--trials",
        "2",
        "--timeout",
        "1s",
        "--no-first-call",
    ];
    let output = run(&[&fixed[..], &flags].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let run = load(&file);
    assert_eq!(steps(&run).len(), 4);
    for step in steps(&run) {
        let errors = step["errors"].as_object().unwrap();
        if step["label"] == "relay" {
            assert_eq!(count(step, "ok"), 0);
            assert!(
                !errors.is_empty()
                    && errors
                        .keys()
                        .all(|kind| ["eof", "reset"].contains(&kind.as_str()))
            );
        } else {
            assert_eq!(
                (errors.len(), count(step, "ok")),
                (0, count(step, "scheduled"))
            );
        }
    }
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("requests failed") && table.contains("do not describe the proxy"),
        "{table}"
    );
    let marked = table.lines().filter(|line| line.contains("relay*"));
    // Its rate and its times, and the time added.
    assert_eq!(marked.count(), 3, "{table}");
    assert!(!table.contains("direct*"), "{table}");
}

#[test]
fn a_missing_proxy_is_named_before_anything_is_measured() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let gone = format!("tcp://{}", nobody());
    let (there, via) = (format!("there={}", server.url), format!("gone={gone}"));
    let fixed = [
        "proxy",
        "--direct",
        &server.url,
        "--via",
        &there,
        "--via",
        &via,
        "--rate",
        "100",
    ];
    let output = run(&[&fixed[..], &["--json", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(
        text.contains(&format!("gone: {gone}")) && text.contains("refused"),
        "{text}"
    );
    let run = load(&file);
    assert_eq!((&run["status"], steps(&run).len()), (&"partial".into(), 0));
}

#[test]
fn usage_errors_suggest_a_correction() {
    assert_usage(&[
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:2 --rate 1",
            "a name of its own",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via direct=tcp://127.0.0.1:1 --rate 1",
            "a name of its own",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via tcp://127.0.0.1:1 --rate 1",
            "write NAME=",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via =tcp://127.0.0.1:1 --rate 1",
            "is no name for a target",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=udp://127.0.0.1:1 --rate 1",
            "unknown scheme 'udp'",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=grpc://127.0.0.1:1 --rate 1",
            "have different protocols",
        ),
        ("proxy --direct tcp://127.0.0.1:1 --rate 1", "--via"),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1",
            "--rate",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --rate 1 --requests-per-connection 0",
            "'keep'",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --rate 1 --proxy-pid b=1",
            "no --via has the name b",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --rate 1 --proxy-pid a=x",
            "invalid digit",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --rate 1 --proxy-pid a=1 --proxy-metrics a=http://h/",
            "two sources of counters",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --rate 1 -d 1s --warmup 2s",
            "shorter than the warm-up",
        ),
        (
            "proxy --direct tcp://127.0.0.1:1 --via a=tcp://127.0.0.1:1 --rate 1 -d 5s --hold 2s",
            "--hold is shorter than -d",
        ),
    ]);
}

#[test]
fn ctrl_c_keeps_the_results_so_far() {
    let server = Server::start("tokio", &[]);
    let relay = Relay::start(address(&server));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let (via, json) = (relay.via("relay"), file.to_str().unwrap());
    let client = spawn(&[
        "proxy",
        "--direct",
        &server.url,
        "--via",
        &via,
        "--rate",
        "200",
        "-d",
        "60s",
        "--warmup",
        "0s",
        "--json",
        json,
    ]);
    // Each path has one request before all steps.
    eventually("a step", || server.requests() >= 10);
    interrupt(client);
    let run = load(&file);
    assert_eq!((&run["status"], steps(&run).len()), (&"partial".into(), 1));
    assert_eq!(steps(&run)[0]["status"], "partial");
    assert!(count(&steps(&run)[0], "ok") > 0);
}
