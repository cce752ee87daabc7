//! `netping ab`: two servers by turns, and the exit code.

mod common;

use std::process::Output;

use common::{Server, load, run, stderr, stdout};

/// Compares two forms of the tokio server, of which the new one has these flags more.
fn compare(flags: &[&str], more: &[&str]) -> (Output, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let program = env!("CARGO_BIN_EXE_netping");
    let base = format!("{program} serve --die-with-parent tokio --metrics off --listen {{listen}}");
    let new = [&[base.as_str()], flags].concat().join(" ");
    let args = [
        "ab",
        "--base",
        &base,
        "--new",
        &new,
        "--url",
        "tcp://{listen}",
        "--allow",
        "all",
        "--json",
        file.to_str().unwrap(),
    ];
    let output = run(&[&args[..], more].concat());
    let run = load(&file);
    (output, run)
}

#[test]
fn a_server_that_is_much_slower_fails() {
    let (output, run) = compare(&["--delay", "2ms"], &["--capacity", "0", "--budget", "60s"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(4), "{text}{}", stderr(&output));
    assert!(
        text.contains("WORSE: new is worse than base by more than 5 %: "),
        "{text}"
    );
    assert_eq!((&run["kind"], &run["margin"]), (&"ab".into(), &0.05.into()));
    let steps = run["steps"].as_array().unwrap();
    let rounds = steps.len() / 4;
    assert!(rounds >= 5 && steps.len() == 4 * rounds);
    for round in steps.chunks(4) {
        let labels: Vec<_> = round
            .iter()
            .map(|step| step["label"].as_str().unwrap())
            .collect();
        assert_eq!(labels, ["base", "base again", "new", "new again"]);
        assert!(round.iter().all(|step| step["settings"]["together"] == 4));
    }
    // Every three rounds, the servers are others.
    let target = |at: usize| &steps[4 * at]["target"];
    assert!(
        target(0) == target(2) && target(2) != target(3),
        "{} {}",
        target(2),
        target(3)
    );
}

#[test]
fn a_server_that_is_the_same_does_not_fail() {
    let (output, _) = compare(
        &[],
        &["--margin", "90%", "--budget", "40s", "--capacity", "4"],
    );
    let text = stdout(&output);
    let code = output.status.code().unwrap();
    // A machine that is busy with other tests may not tell.
    assert!(code == 0 || code == 7, "{code}: {text}{}", stderr(&output));
    let verdict = if code == 0 {
        "NOT WORSE: "
    } else {
        "UNDECIDED: "
    };
    assert!(text.contains(verdict), "{text}");
    assert!(text.contains("base again"), "{text}");
}

#[test]
fn servers_that_run_already_are_called_twice_in_a_cycle() {
    let servers = [Server::start("tokio", &[]), Server::start("tokio", &[])];
    let [base, new] = [&servers[0].url, &servers[1].url];
    let flags = ["--budget", "1s", "--capacity", "0", "--json", "-"];
    let output = run(&[&["ab", base, new], &flags[..]].concat());
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let targets = run["steps"].as_array().unwrap().iter().take(4);
    let targets: Vec<_> = targets
        .map(|step| step["target"].as_str().unwrap())
        .collect();
    assert_eq!(targets, [base, base, new, new]);
    let pairings = run["pairings"].as_array().unwrap();
    let controls = pairings.iter().filter(|own| own["is_control"] == true);
    assert_eq!((pairings.len(), controls.count()), (3, 2));
}

#[test]
fn commands_that_do_not_say_where_they_listen_are_wrong_usage() {
    common::assert_usage(&[
        ("ab tcp://h:1", "2"),
        ("ab --base server --new server --url tcp://h:1", "{listen}"),
        ("ab --base a{listen} --new b{listen}", "--url"),
        (
            "ab --base a{listen} --new b{listen} --url tcp://h:1",
            "like 'http://{listen}/'",
        ),
    ]);
}
