//! `netping check`: what it finds of this host and of servers, and what it makes of it.

mod common;

use common::{Server, nobody, run, stderr, stdout};
use serde_json::Value;

/// Returns the findings about a server.
fn about<'a>(findings: &'a [Value], server: &str) -> Vec<(&'a str, &'a str)> {
    let own = findings.iter().filter(|finding| finding["of"] == server);
    let text = |finding: &'a Value, key: &str| finding[key].as_str().unwrap();
    own.map(|finding| (text(finding, "what"), text(finding, "state")))
        .collect()
}

#[test]
fn a_server_is_looked_at_as_far_as_it_tells() {
    let server = Server::start("threads", &["--max-connections", "50"]);
    let check = ["check", &server.url, "--server-metrics", &server.metrics];
    let output = run(&[&check[..], &["--connections", "40", "--json", "-"]].concat());
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let found = about(&findings, &server.url);
    for what in ["round trip", "netping", "max connections", "clock"] {
        assert!(found.contains(&(what, "ok")), "{what}: {findings:?}");
    }
    // A busy machine may be without time stamps.
    let parts = found.iter().any(|(what, _)| *what == "where the time goes");
    assert!(parts, "{findings:?}");
    // Client and server are on one machine.
    assert!(found.contains(&("host", "warning")), "{findings:?}");
    let own = about(&findings, "this host");
    assert!(own.iter().any(|(what, _)| *what == "cores"), "{own:?}");

    let output = run(&[&check[..], &["--connections", "51"]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("raise its --max-connections"), "{said}");
    assert!(said.contains("NOT READY"), "{said}");
}

#[test]
fn a_server_that_is_not_there_is_wrong() {
    let url = format!("tcp://{}", nobody());
    let output = run(&["check", &url]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("cannot connect"),
        "{}",
        stdout(&output)
    );
}
