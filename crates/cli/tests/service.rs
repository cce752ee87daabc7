//! The `netping` binary and methods of gRPC services that it knows only from their schemas.

mod common;

use std::fs;

use common::{PROTO, Server, netping, parse, run, stderr, stdout};
use netping_protocol::FILE_DESCRIPTOR_SET;
use serde_json::{Value, json};

/// A short run of one caller: its only step, its exit code, and its standard error.
fn measure(url: &str, flags: &[&str]) -> (Value, i32, String) {
    let fixed = [
        "throughput",
        url,
        "-c",
        "1",
        "--warmup",
        "0s",
        "--json",
        "-",
    ];
    let output = run(&[&fixed[..], flags].concat());
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    let mut run = parse(&stdout(&output));
    (run["steps"][0].take(), output.status.code().unwrap(), text)
}

/// A command that fails before anything is measured: its exit code, and what it says.
fn refused(url: &str, flags: &[&str]) -> (i32, String) {
    let output = run(&[&["throughput", url, "-d", "1s"], flags].concat());
    (output.status.code().unwrap(), stderr(&output))
}

#[test]
fn a_method_is_called_with_the_schema_that_the_server_tells() {
    let server = Server::start("grpc", &[]);
    let url = format!("{}/echopb.Echo/Echo", server.url);
    let data = "{\"input\": \"a{{n}}\"} {\"responseBytes\": 9}";
    let before = server.requests();
    let flags = ["--requests", "500", "--data", data];
    let (step, code, text) = measure(&url, &flags);
    assert_eq!((code, &step["ok"]), (0, &json!(500)), "{text}");
    assert_eq!(step["target"], url);
    let settings = &step["settings"];
    assert_eq!(
        (&settings["client"], &settings["bodies"]),
        (&json!("h2 call"), &json!(4096))
    );
    assert_eq!(settings["data_hash"].as_str().unwrap().len(), 16);
    assert_eq!(server.requests() - before, 500);
    assert_eq!(step["messages"], Value::Null);
}

#[test]
fn a_schema_comes_from_files_too() {
    let server = Server::start("grpc", &[]);
    let url = format!("{}/echopb.Echo/Echo", server.url);
    let set = tempfile::NamedTempFile::new().unwrap();
    fs::write(&set, FILE_DESCRIPTOR_SET).unwrap();
    for schema in [
        ["--proto", PROTO],
        ["--protoset", set.path().to_str().unwrap()],
    ] {
        let before = server.requests();
        let flags = ["--requests", "20", "--data", "{\"input\": \"x\"}"];
        let (step, _, text) = measure(&url, &[&flags[..], &schema].concat());
        assert_eq!(step["ok"], 20, "{text}");
        assert_eq!(server.requests() - before, 20);
    }
}

#[test]
fn streams_end_with_their_last_message() {
    let server = Server::start("grpc", &[]);
    let down = format!("{}/grpc_bench.DataService/GiveMeData", server.url);
    let data = "{\"totalBytes\": 1000000, \"chunkBytes\": 1000}";
    let (step, _, text) = measure(&down, &["--requests", "20", "--data", data]);
    assert_eq!(step["ok"], 20, "{text}");
    assert_eq!(messages_per_reply(&step), [json!(1.0), json!(1000.0)]);
    let mean = |times: &Value| times["mean_ns"].as_f64().unwrap();
    let first = &step["messages"]["first_message"]["time"];
    assert_eq!(first["count"], 20);
    assert!(mean(first) < mean(&step["service_time"]), "{first}");
    let up = format!("{}/grpc_bench.DataService/TakeMyData", server.url);
    let expected = tempfile::NamedTempFile::new().unwrap();
    fs::write(&expected, "{\"totalBytes\": 6}").unwrap();
    let path = expected.path().to_str().unwrap();
    let data = "[{\"data\": \"YWJj\"}, {\"data\": \"ZGVm\"}]";
    let (step, _, text) = measure(&up, &["--requests", "20", "--data", data, "--expect", path]);
    assert_eq!(step["ok"], 20, "{text}");
    assert_eq!(messages_per_reply(&step), [json!(2.0), json!(1.0)]);
}

/// Messages sent and received for each reply that counts for the rate.
fn messages_per_reply(step: &Value) -> [Value; 2] {
    let rate = step["rate_per_s"].as_f64().unwrap();
    ["sent_per_s", "received_per_s"].map(|per_s| {
        let messages = step["messages"][per_s].as_f64().unwrap();
        json!((messages / rate).round())
    })
}

#[test]
fn replies_that_are_not_expected_are_mismatches() {
    let server = Server::start("grpc", &[]);
    let url = format!("{}/echopb.Echo/Echo", server.url);
    let expected = tempfile::NamedTempFile::new().unwrap();
    fs::write(&expected, "{\"output\": \"right\"}").unwrap();
    let path = expected.path().to_str().unwrap();
    let flags = ["--requests", "20", "--expect", path, "--data"];
    let (step, ..) = measure(&url, &[&flags[..], &["{\"input\": \"right\"}"]].concat());
    assert_eq!(step["ok"], 20);
    let (step, code, text) = measure(&url, &[&flags[..], &["{\"input\": \"wrong\"}"]].concat());
    assert_eq!((code, &step["errors"]), (1, &json!({ "mismatch": 20 })));
    let told = "the reply has output = \"wrong\", where \"right\" is expected";
    assert!(text.contains(told), "{text}");
}

#[test]
fn a_call_that_misses_its_deadline_has_the_servers_status() {
    for stack in ["tonic", "hyper", "floor"] {
        let server = Server::start("grpc", &["--delay", "2s", "--stack", stack]);
        let url = format!("{}/echopb.Echo/Echo", server.url);
        let flags = ["--requests", "3", "--deadline", "20ms"];
        let (step, code, text) = measure(&url, &[&flags[..], &["--proto", PROTO]].concat());
        assert_eq!((code, &step["ok"]), (1, &json!(0)), "{stack}: {text}");
        assert_eq!(step["settings"]["deadline_seconds"], json!(0.02));
        assert_eq!(step["errors"], json!({ "grpc_4": 3 }), "{stack}: {text}");
    }
}

#[test]
fn mistakes_are_told_before_anything_is_sent() {
    let server = Server::start("grpc", &[]);
    let echo = format!("{}/echopb.Echo", server.url);
    let method = format!("{echo}/Echo");
    let says = |(code, text): (i32, String), expected: (i32, &str)| {
        assert!(
            code == expected.0 && text.contains(expected.1),
            "{code}: {text}"
        );
    };
    says(
        refused(&format!("{echo}/Ecko"), &[]),
        (3, "has no 'Ecko'; it has Echo"),
    );
    says(
        refused(&echo, &[]),
        (3, "names a service and no method; it has Echo"),
    );
    says(
        refused(&format!("{}/echo.Echo/Echo", server.url), &[]),
        (3, "has no 'echo.Echo'; it has "),
    );
    says(
        refused(&method, &["--data", "{\"inputs\": 1}"]),
        (
            2,
            "does not fit echopb.EchoRequest: unrecognized field name 'inputs' at line 1 column 9; \
             'netping grpc describe' shows its fields",
        ),
    );
    says(
        refused(&method, &["--data", "@/nowhere"]),
        (3, "cannot read --data @/nowhere"),
    );
    says(
        refused(&method, &["--payload", "9"]),
        (2, "gets the messages that --data gives"),
    );
    says(
        refused(&server.url, &["--data", "{}"]),
        (2, "grpc://HOST:PORT/package.Service/Method"),
    );
    says(
        refused(&method, &["--proto", "/nowhere.proto"]),
        (3, "cannot read /nowhere.proto"),
    );
    let other = Server::start("tokio", &[]);
    let wrong = other.url.replace("tcp://", "grpc://");
    let (code, text) = refused(&format!("{wrong}/a.B/C"), &[]);
    assert!(
        code == 3 && text.contains(&format!("should the URL be {}?", other.url)),
        "{code}: {text}"
    );
}

#[test]
fn what_there_is_to_call_can_be_listed_and_described() {
    let server = Server::start("grpc", &[]);
    let output = netping()
        .args(["grpc", "list", &server.url])
        .output()
        .unwrap();
    let expected = "echopb.Echo/Echo (echopb.EchoRequest) returns (echopb.EchoResponse)\n";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    let output = netping()
        .args(["grpc", "describe", &format!("{}/pb.Hello/Say", server.url)])
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(
        text.starts_with("pb.Hello/Say (pb.BenchmarkMessage)"),
        "{text}"
    );
    assert!(
        text.contains("message pb.BenchmarkMessage {\n  string field1 = 1;\n"),
        "{text}"
    );
    let output = netping()
        .args(["grpc", "list", "tcp://127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
