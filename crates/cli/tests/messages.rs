//! The `netping` binary and messages on open gRPC streams.

mod common;

use common::{Server, assert_usage, parse, run, stderr, stdout};
use serde_json::{Value, json};

/// Measures messages with these flags; returns the only step, and the exit code.
fn measure(url: &str, flags: &[&str]) -> (Value, i32) {
    let fixed = ["throughput", url, "--per-message", "--warmup", "0s"];
    let output = run(&[&fixed[..], &["--json", "-"], flags].concat());
    let code = output.status.code().unwrap();
    let told = stderr(&output);
    assert!(matches!(code, 0 | 1), "{told}");
    assert!(told.contains("messages "), "{told}");
    (parse(&stdout(&output))["steps"][0].take(), code)
}

#[test]
fn each_message_is_a_request_that_the_server_counts() {
    for stack in ["tonic", "hyper"] {
        let server = Server::start("grpc", &["--stack", stack]);
        for flags in [
            &["-c", "4", "--requests", "200"][..],
            &[
                "-c",
                "8",
                "--connections",
                "2",
                "--rate",
                "400",
                "--requests",
                "200",
            ],
            &["-c", "2", "--requests", "200", "--payload", "100000"],
            &["-c", "1", "--requests", "200", "--response", "5000"],
            &["-c", "3", "--requests", "200", "--messages-per-stream", "7"],
            &[
                "-c",
                "8",
                "--requests",
                "200",
                "--streams-per-connection",
                "1",
            ],
        ] {
            let before = server.requests();
            let (step, code) = measure(&server.url, flags);
            assert_eq!((code, &step["ok"]), (0, &json!(200)), "{stack} {flags:?}");
            assert_eq!(step["settings"]["client"], "h2 chat");
            assert_eq!(server.requests() - before, 200, "{stack} {flags:?}");
        }
    }
}

#[test]
fn a_methods_messages_are_those_of_its_documents() {
    let server = Server::start("grpc", &[]);
    let url = format!("{}/echopb.Echo/Chat", server.url);
    let data = "[{\"input\": \"x\"}, {\"responseBytes\": 9}] [{\"input\": \"{{n}}\"}]";
    let flags = ["-c", "2", "--requests", "60", "--data", data];
    let (step, code) = measure(&url, &flags);
    assert_eq!((code, &step["ok"]), (0, &json!(60)));
    assert_eq!(step["settings"]["client"], "h2 messages");
    let bodies = step["settings"]["bodies"].as_u64().unwrap();
    assert!(bodies >= 4096 && bodies.is_multiple_of(3), "{bodies}");
    // Nothing is told of calls' messages.
    assert_eq!(step["messages"], Value::Null);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "{\"output\": \"x\"}").unwrap();
    let expect = file.path().to_str().unwrap();
    let one = ["-c", "1", "--requests", "30", "--expect", expect];
    let data = ["--data", "[{\"input\": \"x\"}, {\"input\": \"y\"}]"];
    let (step, code) = measure(&url, &[&one[..], &data].concat());
    assert_eq!((code, &step["ok"]), (1, &json!(15)));
    assert_eq!(step["errors"]["mismatch"], 15);
}

#[test]
fn a_field_tells_which_reply_belongs_to_which_message() {
    let server = Server::start("grpc", &[]);
    let url = format!("{}/echopb.Echo/Chat", server.url);
    let fixed = ["-c", "4", "--streams-per-connection", "1", "--requests"];
    let matched = ["60", "--match", "input=output", "--data"];
    let flags = [&fixed[..], &matched, &["{\"input\": \"{{n}}\"}"]].concat();
    let (step, code) = measure(&url, &flags);
    assert_eq!((code, &step["ok"]), (0, &json!(60)));
    assert_eq!(step["settings"]["matching"], "input=output");
    // The reply has another value, so that nothing answers the message.
    let data = "{\"input\": \"x\", \"responseBytes\": 2}";
    let other = ["4", "--timeout", "200ms", "--match"];
    let flags = [&fixed[..], &other, &["input=output", "--data", data]].concat();
    let (step, code) = measure(&url, &flags);
    assert_eq!((code, &step["ok"]), (1, &json!(0)));
    for (fields, reason) in [
        ("id", "echopb.EchoRequest has no field 'id'"),
        ("input", "echopb.EchoResponse has no field 'input'"),
        ("responseBytes=output", "output is string"),
    ] {
        let output = run(&["throughput", &url, "--per-message", "--match", fields]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn messages_that_the_servers_flow_control_holds_back_are_told() {
    let server = Server::start(
        "grpc",
        &["--stream-window", "65535", "--connection-window", "65535"],
    );
    let count = |payload| {
        let flags = ["-c", "1", "--requests", "20", "--payload", payload];
        let (step, code) = measure(&server.url, &flags);
        assert_eq!((code, &step["ok"]), (0, &json!(20)));
        let warnings = step["warnings"].as_array().unwrap().clone();
        let is_told = |warning: &Value| warning["name"] == "BLOCKED_BY_PEER";
        let told = warnings.iter().any(is_told);
        (step["held_back"]["requests"].as_u64(), told)
    };
    assert_eq!(count("1000000"), (Some(20), true));
    assert_eq!(count("1000"), (None, false));
    // More than is written at a time, but less than the windows, which the first message may come before.
    let server = Server::start("grpc", &[]);
    let flags = ["-c", "1", "--requests", "20", "--payload", "1000000"];
    let (step, _) = measure(&server.url, &flags);
    assert!(step["held_back"]["requests"].as_u64().unwrap_or(0) <= 1);
}

#[test]
fn the_servers_delay_is_that_of_each_message() {
    let server = Server::start("grpc", &["--delay", "5ms"]);
    for flags in [&[][..], &["--rate", "100"]] {
        let fixed = ["-c", "4", "--requests", "100"];
        let (step, _) = measure(&server.url, &[&fixed[..], flags].concat());
        let p50 = step["response_time"]["p50_ns"].as_u64().unwrap();
        assert!(p50 >= 5_000_000, "{p50}");
    }
}

#[test]
fn what_has_no_open_streams_is_refused() {
    assert_usage(&[
        ("throughput tcp://h:1 --per-message", "grpc://"),
        (
            "throughput grpc://h:1 --per-message --grpc-client tonic",
            "leave out --per-message",
        ),
        (
            "throughput grpc://h:1 --per-message --match id",
            "--match is for the fields of a method",
        ),
        (
            "throughput grpc://h:1 --messages-per-stream 3",
            "--per-message",
        ),
        (
            "throughput grpc://h:1 --per-message --message benchmark",
            "cannot be used",
        ),
    ]);
    let server = Server::start("grpc", &[]);
    let url = format!("{}/echopb.Echo/Echo", server.url);
    let output = run(&["throughput", &url, "--per-message"]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("stream both ways"), "{text}");
    let floor = Server::start("grpc", &["--stack", "floor"]);
    let (step, code) = measure(&floor.url, &["-c", "1", "--requests", "5"]);
    assert_eq!((code, &step["errors"]["grpc_12"]), (1, &json!(5)));
}

#[test]
fn the_gaps_of_a_ticker_are_its_periods() {
    for stack in ["tonic", "hyper"] {
        let server = Server::start("grpc", &["--stack", stack]);
        let url = format!("{}/echopb.Echo/Watch", server.url);
        // Of six ticks, the third and the last have no message.
        for (skipped, messages, longest) in [(0, 6, 20), (3, 4, 40)] {
            let data = format!("{{\"periodUs\": 20000, \"count\": 6, \"skipped\": {skipped}}}");
            let fixed = [
                "throughput",
                &url,
                "-c",
                "2",
                "--requests",
                "10",
                "--warmup",
                "0s",
            ];
            let output = run(&[&fixed[..], &["--data", &data, "--json", "-"]].concat());
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let step = &parse(&stdout(&output))["steps"][0];
            let gap = &step["messages"]["message_gap"]["time"];
            assert_eq!(gap["count"], 10 * (messages - 1), "{stack}");
            // A timer has milliseconds.
            let longest = (longest - 2) * 1_000_000;
            assert!(gap["max_ns"].as_u64().unwrap() >= longest, "{stack}: {gap}");
        }
    }
}
