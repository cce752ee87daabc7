//! `netping ab`: two servers by turns, and the exit code.

mod common;

use std::{collections::BTreeSet, net::TcpStream, process::Output};

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
    // The servers of each round are others, and none is left. A later round may get a port again by chance.
    let target = |step: &'_ serde_json::Value| step["target"].as_str().unwrap().to_owned();
    let rounds: Vec<BTreeSet<String>> = steps
        .chunks(4)
        .map(|round| round.iter().map(target).collect())
        .collect();
    assert!(rounds.iter().all(|round| round.len() == 4), "{rounds:?}");
    assert!(
        rounds.windows(2).all(|pair| pair[0] != pair[1]),
        "{rounds:?}"
    );
    for target in rounds.into_iter().flatten() {
        let address = target.strip_prefix("tcp://").unwrap();
        assert!(TcpStream::connect(address).is_err(), "{address}");
    }
}

#[test]
fn what_a_command_has_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let program = env!("CARGO_BIN_EXE_netping");
    // The shell does not hand its signals on.
    let command = format!(
        "sh -c '{program} serve tokio --metrics off --listen {{listen}} & echo $! >>{}; wait'",
        pids.display()
    );
    let args = ["--url", "tcp://{listen}", "--rate", "50", "--budget", "1s"];
    let output = run(&[&["ab", "--base", &command, "--new", &command][..], &args].concat());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let pids = std::fs::read_to_string(pids).unwrap();
    assert!(pids.lines().count() >= 20, "{pids}");
    for pid in pids.lines() {
        // One that nobody has waited for yet has no command line.
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(line.is_empty(), "{pid}");
    }
}

#[test]
fn servers_of_quic_are_started_too() {
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs");
    let certs = certs.to_str().unwrap();
    let made = common::netping().args(["certs", "--out", certs]).output();
    assert!(made.unwrap().status.success());
    let program = env!("CARGO_BIN_EXE_netping");
    let command = format!(
        "{program} serve quic --metrics off --tls-cert {certs}/server.pem --tls-key {certs}/server.key --listen {{listen}}"
    );
    let ca = format!("{certs}/ca.pem");
    let args = [
        "--url",
        "quic://{listen}",
        "--tls-ca",
        &ca,
        "--rate",
        "50",
        "--budget",
        "1s",
    ];
    let output = run(&[&["ab", "--base", &command, "--new", &command][..], &args].concat());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("UNDECIDED: "),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_server_that_does_not_start_is_told() {
    let failed = |command: &str| {
        let args = [
            "--base",
            command,
            "--new",
            command,
            "--url",
            "tcp://{listen}",
        ];
        let output = run(&[&["ab"][..], &args].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        stderr(&output)
    };
    let ended = failed("false {listen}");
    assert!(
        ended.contains("ended before it listened: exit status: 1"),
        "{ended}"
    );
    let missing = failed("/no/such/server {listen}");
    assert!(
        missing.contains("cannot start '/no/such/server'"),
        "{missing}"
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
fn servers_that_run_already_are_called_twice_each() {
    let servers = [Server::start("tokio", &[]), Server::start("tokio", &[])];
    let [base, new] = [&servers[0].url, &servers[1].url];
    let flags = ["--budget", "1s", "--rate", "50", "--json", "-"];
    let output = run(&[&["ab", base, new], &flags[..]].concat());
    // There are too few requests in a round for a p99.
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    assert!(text.contains("UNDECIDED: "), "{text}");
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
        ("ab tcp://h:1 tcp://h:2 --unix-socket /run/s", "two servers"),
        ("ab tcp://h:1 tcp://h:2 --server-pid 1", "--server-pid"),
        ("ab --base server --new server --url tcp://h:1", "{listen}"),
        ("ab --base a{listen} --new b{listen}", "--url"),
        (
            "ab --base a{listen} --new b{listen} --url tcp://h:1",
            "like 'http://{listen}/'",
        ),
    ]);
}
