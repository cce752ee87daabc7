//! Round trips: in one process, repeated, and to the addresses of a name.

mod common;

use std::process::Output;

use serde_json::Value;

use crate::common::{
    NO_FIRST_CALL, NO_METRICS, Server, assert_usage, netping, nobody, parse, run, stderr, stdout,
};

/// Runs `netping latency` for 50 round trips; the first call is made.
fn latency(flags: &[&str]) -> Output {
    let mut command = netping();
    command.args([
        "latency",
        "-n",
        "50",
        "--warmup",
        "0s",
        "--progress",
        "none",
    ]);
    command.args(flags).env_remove("POD_IP").output().unwrap()
}

fn steps(output: &Output) -> Vec<Value> {
    let run = parse(&stdout(output));
    assert_eq!(run["status"], "complete");
    run["steps"].as_array().unwrap().clone()
}

fn warnings(step: &Value) -> Vec<&str> {
    let warnings = step["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| warning["name"].as_str().unwrap())
        .collect()
}

#[test]
fn echoes_in_one_process_are_measured_on_one_thread_and_on_two() {
    let output = latency(&[
        "--in-process",
        "--repeat",
        "2",
        "--every",
        "0s",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let steps = steps(&output);
    let expected = [
        ("tcp, one thread", "one_thread", "tcp://127.0.0.1:"),
        ("tcp, two threads", "two_threads", "tcp://127.0.0.1:"),
        ("grpc, one thread", "one_thread", "grpc://127.0.0.1:"),
        ("grpc, two threads", "two_threads", "grpc://127.0.0.1:"),
    ];
    assert_eq!(steps.len(), 2 * expected.len());
    for (step, (label, threads, url)) in steps.iter().zip(expected.iter().cycle()) {
        assert_eq!(step["label"], *label);
        assert_eq!(step["settings"]["in_process"], *threads);
        assert!(step["target"].as_str().unwrap().starts_with(url), "{step}");
        assert_eq!((&step["scheduled"], &step["ok"]), (&50.into(), &50.into()));
        assert_eq!(step["cost"]["server"], Value::Null);
        let is_shared = warnings(step).contains(&"SHARED_HOST");
        assert_eq!(is_shared, *threads == "two_threads", "{label}");
    }
}

#[test]
fn no_cpu_time_per_request_is_told_where_it_is_that_of_both() {
    let mut command = netping();
    command.args([
        "latency",
        "--in-process",
        "tcp",
        "-d",
        "300ms",
        "--warmup",
        "0s",
        "--json",
        "-",
    ]);
    let output = command.output().unwrap();
    let cost = |step: &Value| step["cost"]["client_cpu_us_per_request"].is_number();
    let known: Vec<bool> = steps(&output).iter().map(cost).collect();
    assert_eq!(known, [false, true], "{}", stderr(&output));
}

#[test]
fn one_thread_is_compared_with_two() {
    let output = latency(&["--in-process=grpc", "--trials", "2", "--json", "-"]);
    let run = parse(&stdout(&output));
    let pairings = run["pairings"].as_array().unwrap();
    assert_eq!(pairings.len(), 1, "{}", stderr(&output));
    let place = |name: &str| pairings[0][name].as_u64().unwrap();
    let label = |measurement: u64| {
        let mut steps = run["steps"].as_array().unwrap().iter();
        let step = steps
            .find(|step| step["measurement"] == measurement)
            .unwrap();
        step["label"].as_str().unwrap()
    };
    assert_eq!(label(place("base")), "grpc, one thread");
    assert_eq!(label(place("new")), "grpc, two threads");
}

#[test]
fn flags_about_servers_elsewhere_do_not_go_with_one_process() {
    for (flags, message) in [
        (&[][..], "required"),
        (&["--in-process", "udp"], "tcp, grpc"),
        (
            &["tcp://127.0.0.1:1", "--in-process"],
            "cannot be used with",
        ),
        (&["--in-process", "--all-addresses"], "cannot be used with"),
        (
            &["--in-process", "--server-pid", "1"],
            "cannot be used with",
        ),
        (&["--in-process", "--tls-insecure"], "no target is one"),
        (
            &["tcp://127.0.0.1:1", "--pod-ip-env", "IP"],
            "--all-addresses",
        ),
    ] {
        let output = latency(flags);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {text}");
        assert!(text.contains(message), "{flags:?}: {text}");
    }
}

#[test]
fn each_repetition_shows_its_time_of_day() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let file = file.to_str().unwrap();
    let output = latency(&[
        &server.url,
        "--repeat",
        "2",
        "--every",
        "0s",
        "--json",
        file,
    ]);
    let printed = stdout(&output);
    let run = parse(&std::fs::read_to_string(file).unwrap());
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[1].trim_start().starts_with("UTC "), "{printed}");
    for (step, line) in run["steps"].as_array().unwrap().iter().zip(&lines[2..]) {
        let begun = step["window_started_at"].as_str().unwrap();
        assert_eq!(line[..8], begun[11..19], "{printed}");
    }
    let report = netping().args(["report", file]).output().unwrap();
    assert!(
        stdout(&report).contains(&lines[..4].join("\n")),
        "{}",
        stdout(&report)
    );
    let once = stdout(&latency(&[&server.url]));
    assert!(!once.contains("UTC"), "{once}");
}

#[test]
fn this_pods_address_is_left_out_or_its_lack_is_told() {
    let server = Server::start("tokio", &[]);
    let pod = |variable: &str, address: &str, flags: &[&str]| {
        let other = server.url.replace("127.0.0.1", "127.0.0.2");
        let mut command = netping();
        command.args([
            "latency",
            &other,
            &server.url,
            "--all-addresses",
            "-n",
            "9",
            "--json",
            "-",
        ]);
        command
            .args(NO_METRICS)
            .args(flags)
            .env_remove("POD_IP")
            .env(variable, address);
        command.output().unwrap()
    };
    for (variable, flags) in [("POD_IP", &[][..]), ("OWN", &["--pod-ip-env", "OWN"])] {
        let output = pod(variable, "127.0.0.2", flags);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(steps(&output).len(), 1);
        assert!(!stderr(&output).contains(variable), "{}", stderr(&output));
    }
    let told = [
        ("UNSET", "127.0.0.2", "$POD_IP is not set"),
        (
            "POD_IP",
            "127.0.0.9",
            "$POD_IP is 127.0.0.9, which is none of the addresses",
        ),
    ];
    for (variable, address, message) in told {
        let text = stderr(&pod(variable, address, &[]));
        assert!(text.contains(&format!("warning: {message}")), "{text}");
    }
}

#[test]
fn an_address_that_refuses_does_not_end_the_others() {
    let server = Server::start("tokio", &[]);
    // The server listens at one of these.
    let other = server.url.replace("127.0.0.1", "127.0.0.2");
    let flags = [&["--all-addresses", "--json", "-"][..], &NO_METRICS].concat();
    // A first call finds it, or the step.
    for more in [&[][..], &[NO_FIRST_CALL]] {
        let output = latency(&[&[&*other, &server.url], &flags[..], more].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{text}");
        let reason = format!("error: {other}: cannot connect");
        assert_eq!(text.matches(&reason).count(), 1, "{text}");
        let steps = steps(&output);
        assert_eq!(steps.len(), 1, "{text}");
        assert_eq!(
            (&steps[0]["target"], &steps[0]["ok"]),
            (&Value::from(&*server.url), &50.into())
        );
    }
    let gone = format!("tcp://{}", nobody());
    let output = latency(&[&[&*gone], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(
        stderr(&output).matches("error: ").count(),
        1,
        "{}",
        stderr(&output)
    );
}

#[test]
fn targets_that_are_compared_alternate_by_requests_or_by_windows() {
    let servers = [Server::start("tokio", &[]), Server::start("threads", &[])];
    let [first, second] = [&servers[0].url, &servers[1].url];
    let together = |flags: &[&str]| -> Vec<Value> {
        let common = ["--trials", "2", "--json", "-", first];
        let output = latency(&[&common[..], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let steps = steps(&output);
        let settings = steps
            .iter()
            .map(|step| step["settings"]["together"].clone());
        settings.collect()
    };
    assert_eq!(together(&[second]), vec![Value::from(2); 4]);
    assert_eq!(
        together(&[second, "--alternate", "windows"]),
        vec![Value::Null; 4]
    );
    assert_eq!(together(&["--aa"]), vec![Value::from(2); 4]);
    // There is nothing to alternate between.
    assert_eq!(together(&[]), vec![Value::Null; 2]);
}

#[test]
fn several_targets_are_compared_unless_flags_say_how_often_they_are_measured() {
    let servers = [Server::start("tokio", &[]), Server::start("tokio", &[])];
    let measured = |flags: &[&str]| -> Vec<(u64, u64, bool)> {
        let targets = servers.each_ref().map(|own| own.url.as_str());
        let common = ["latency", "--json", "-", "--progress", "none"];
        let output = run(&[&common[..], &targets[..], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let number = |own: &Value| own.as_u64().unwrap();
        let of = |step: &Value| {
            let is_together = !step["settings"]["together"].is_null();
            (number(&step["trial"]), number(&step["ok"]), is_together)
        };
        steps(&output).iter().map(of).collect()
    };
    let compared = measured(&["-n", "5000"]);
    let trials: Vec<u64> = compared.iter().map(|own| own.0).collect();
    assert_eq!(trials, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    // Each target has a fifth of the round trips in each trial, give or take the one that is on its way.
    assert!(
        compared
            .iter()
            .all(|(_, ok, is_together)| *is_together && (999..=1001).contains(ok)),
        "{compared:?}"
    );
    assert_eq!(measured(&["-n", "50"]), [(1, 50, false); 2]);
    let repeated = measured(&["-n", "50", "--repeat", "2", "--every", "0s"]);
    assert_eq!(
        repeated,
        [
            (1, 50, false),
            (1, 50, false),
            (2, 50, false),
            (2, 50, false)
        ]
    );
}

#[test]
fn what_cannot_alternate_is_refused() {
    let line = |flags: &str| format!("latency tcp://h:1 tcp://h:2 {flags}");
    let cases = [
        (
            line("--trials 5 --fail-if rate<1k"),
            "its rate says nothing",
        ),
        (
            line("--trials 5 --fail-if rate<-5%"),
            "its rate says nothing",
        ),
        (
            line("--trials 1 --alternate requests"),
            "--trials 5 or more",
        ),
    ];
    assert_usage(
        &cases
            .each_ref()
            .map(|(line, message)| (line.as_str(), *message)),
    );
    let output = latency(&["--in-process", "--trials", "2", "--alternate", "requests"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("windows of their own"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_name_stands_for_its_target_in_tables_and_files() {
    let server = Server::start("tokio", &[]);
    let [old, new] = ["old", "new"].map(|name| format!("{name}={}", server.url));
    let output = latency(&[&old, &new, "--trials", "2", "--units", "ns", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let steps = steps(&output);
    let mut labels: Vec<&str> = steps
        .iter()
        .map(|step| step["label"].as_str().unwrap())
        .collect();
    labels.sort_unstable();
    assert_eq!(labels, ["new", "new", "old", "old"]);
    assert!(steps.iter().all(|step| step["target"] == *server.url));
    let text = stderr(&output);
    let heading = format!("\nnew  {}  1 caller", server.url);
    assert!(text.contains(&heading), "{text}");
    assert!(
        text.contains("\np50 ns ") && !text.contains("p50 us"),
        "{text}"
    );
}

/// The parts of requests to a server that does not tell its times, by their names.
const UNDIVIDED: [&str; 3] = ["away", "send", "wake"];

/// Checks that each of the requests has these parts, or is counted as one without; returns the anatomy.
fn anatomy<'a>(step: &'a Value, names: &[&str]) -> &'a Value {
    assert_eq!(step["settings"]["anatomy"], true);
    let anatomy = &step["anatomy"];
    let parts = anatomy["parts"].as_object().unwrap();
    assert_eq!(parts.keys().collect::<Vec<_>>(), names);
    let counts = parts
        .values()
        .map(|own| own["time"]["count"].as_u64().unwrap());
    let counts: Vec<u64> = counts.collect();
    let whole = counts[0];
    assert!(counts.iter().all(|count| *count == whole), "{counts:?}");
    let others = ["without_stamps", "clock_set"].map(|name| anatomy[name].as_u64().unwrap());
    let ok = step["ok"].as_u64().unwrap();
    assert!(ok >= 50 && whole > 0);
    assert_eq!(whole + others.iter().sum::<u64>(), ok);
    anatomy
}

#[test]
fn round_trips_are_taken_apart_and_a_servers_delay_is_in_the_part_that_is_away() {
    let server = Server::start("tokio", &["--delay", "200us"]);
    for framing in ["line", "frame"] {
        // The kernel begins to stamp some time after the first connection has asked for it.
        let flags = ["--anatomy", "--warmup", "200ms", "--framing", framing];
        let output = run(&[
            &["latency", &server.url, "-n", "400", "--json", "-"][..],
            &flags,
        ]
        .concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let steps = steps(&output);
        let parts = &anatomy(&steps[0], &UNDIVIDED)["parts"];
        let least = |part: &str| parts[part]["time"]["min_ns"].as_u64().unwrap();
        assert!(least("away") >= 200_000, "{parts}");
        assert!(
            least("send") < 200_000 && least("wake") < 200_000,
            "{parts}"
        );
        let cost = &steps[0]["cost"];
        for name in ["system_seconds", "context_switches"] {
            let workers = cost[format!("client_worker_{name}")].as_array();
            assert_eq!(workers.unwrap().len(), 1, "{name}");
        }
        // It slept at least once for each request.
        let switches = cost["client_worker_context_switches"][0].as_u64().unwrap();
        assert!(switches >= 200, "{switches}");
        let text = stderr(&output);
        let told = ["\n  about p50 ", " wake ", " us are spent "];
        assert!(told.iter().all(|part| text.contains(part)), "{text}");
    }
    let plain = steps(&latency(&[&server.url, "--json", "-"]));
    assert!(plain[0].get("anatomy").is_none() && plain[0]["settings"].get("anatomy").is_none());
}

#[test]
fn one_of_several_clients_does_not_divide_the_cpu_time_of_a_server_that_counts_nothing() {
    let server = Server::start("tokio", &[]);
    let pid = server.child.id().to_string();
    let flags = ["-d", "200ms", "--server-pid", &pid, "--json", "-"];
    let demand = |more: &[&str]| {
        let output = run(&[&["latency", &server.url][..], &flags, more].concat());
        steps(&output)[0]["cost"]["server"].clone()
    };
    let (alone, in_step) = (demand(&[]), demand(&["--start-at", "+1s"]));
    for demand in [&alone, &in_step] {
        assert!(demand["cpu_seconds"].as_f64() > Some(0.0), "{demand}");
    }
    assert!(alone["cpu_us_per_request"].as_f64() > Some(0.0), "{alone}");
    assert_eq!(in_step["cpu_us_per_request"], Value::Null, "{in_step}");
}

#[test]
fn targets_that_share_counters_by_turns_have_no_cpu_time_per_request() {
    let server = Server::start("tokio", &[]);
    let pid = server.child.id().to_string();
    let other = server.url.replace("127.0.0.1", "localhost");
    let mut flags = vec!["-d", "200ms", "--trials", "2", "--json", "-"];
    flags.extend(["--server-pid", &pid]);
    for (targets, is_known) in [
        (&[&*server.url, &*other][..], false),
        (&[&*server.url][..], true),
    ] {
        let output = run(&[&["latency"], targets, &flags].concat());
        for step in steps(&output) {
            let cost = &step["cost"];
            assert!(cost["server"]["cpu_seconds"].as_f64() > Some(0.0), "{cost}");
            let own = &cost["server"]["cpu_us_per_request"];
            assert_eq!(own.is_number(), is_known, "{cost}");
            let own = &cost["client_cpu_us_per_request"];
            assert_eq!(own.is_number(), is_known, "{cost}");
        }
    }
}

/// As far as this machine and user have counts; the flag is refused where there are none.
#[test]
fn system_calls_and_instructions_of_each_request_are_counted() {
    let server = Server::start("tokio", &[]);
    let pid = server.child.id().to_string();
    let flags = ["-n", "500", "--server-pid", &pid, "--json", "-"];
    let own = ["latency", &server.url];
    let output = run(&[&own[..], &flags, &["--perf-events"]].concat());
    if output.status.code() == Some(2) {
        let text = stderr(&output);
        assert!(
            text.contains("--perf-events can count nothing here"),
            "{text}"
        );
        return;
    }
    let counted = &steps(&output)[0];
    assert_eq!(counted["settings"]["perf_events"], true);
    let text = stderr(&output);
    let cost = &counted["cost"];
    for (event, name) in [
        ("system_calls", " system calls"),
        ("instructions", " instructions"),
    ] {
        let Some(client) = cost[format!("client_worker_{event}")].as_array() else {
            assert!(!text.contains(name), "{text}");
            continue;
        };
        // Each message takes one of each at the least.
        assert!(client[0].as_u64().unwrap() >= 1000, "{cost}");
        let server = cost["server"][format!("{event}_per_request")]
            .as_f64()
            .unwrap();
        assert!(server >= 1.5, "{cost}");
        assert_eq!(text.matches(name).count(), 2, "{text}");
    }
    let plain = &steps(&run(&[&own[..], &flags].concat()))[0];
    assert!(plain["settings"].get("perf_events").is_none());
    assert!(
        plain["cost"]["server"]
            .get("system_calls_per_request")
            .is_none()
    );
}

#[test]
fn round_trips_over_http2_are_taken_apart_one_caller_a_connection() {
    let server = Server::start("grpc", &[]);
    let flags = "-c 3 --connections 3 --requests 300 --warmup 200ms --anatomy --json -";
    let flags: Vec<&str> = flags.split(' ').collect();
    let output = run(&[&["throughput", &server.url][..], &flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    anatomy(&steps(&output)[0], &UNDIVIDED);
}

#[test]
fn a_servers_delay_is_in_its_own_part_where_it_tells_its_times() {
    for (kind, more) in [("tokio", "--delay"), ("threads", "--work")] {
        let server = Server::start(kind, &[more, "200us"]);
        let flags = "-n 200 --anatomy --message times --warmup 200ms --json -";
        let flags: Vec<&str> = flags.split(' ').collect();
        let output = run(&[&["latency", &server.url][..], &flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let steps = steps(&output);
        let names = ["back", "out", "send", "server", "wake"];
        let parts = &anatomy(&steps[0], &names)["parts"];
        let least = |part: &str| parts[part]["time"]["min_ns"].as_u64().unwrap();
        assert!(least("server") >= 200_000, "{parts}");
        for part in ["send", "out", "back", "wake"] {
            assert!(least(part) < 200_000, "{part}: {parts}");
        }
        assert!(
            stderr(&output).contains(" us are spent in the server\n"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn time_stamps_that_could_be_of_another_request_are_refused() {
    let many = "throughput grpc://127.0.0.1:1 --anatomy -c 8 --connections 2";
    assert_usage(&[
        (
            "latency grpc://127.0.0.1:1 --message times",
            "gRPC servers do not tell their times: --message times is for tcp:// and quic://",
        ),
        (
            "latency tcp://127.0.0.1:1 --anatomy --unix-socket /none",
            "--anatomy is by the time stamps of TCP, which a Unix socket does not have: leave one of them out",
        ),
        (
            "latency quic://127.0.0.1:1 --anatomy",
            "--anatomy is by the time stamps of TCP, and quic://127.0.0.1:1 is over QUIC: leave it out",
        ),
        (
            "latency https://127.0.0.1:1/ --http3 --anatomy",
            "--anatomy is by the time stamps of TCP, and https://127.0.0.1:1/ is over QUIC: leave it out",
        ),
        (
            "latency grpc://127.0.0.1:1 --grpc-client tonic --anatomy",
            "--anatomy is not for --grpc-client tonic, which does not give its sockets: use --grpc-client h2",
        ),
        (
            many,
            "--anatomy needs one request at a time on each connection, whose time stamps are otherwise nobody's: give 8 \
             callers --connections 8, not 2",
        ),
        (
            "throughput tcp://127.0.0.1:1 -c 8 --anatomy --requests-per-connection 5",
            "--anatomy is of requests on open connections: leave out --requests-per-connection and \
             --new-connection-per-request",
        ),
    ]);
}
