//! `netping report`: result files as pages and charts.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Output, Stdio},
};

use common::{Server, interrupt, load, netping, run, spawn, stderr, stdout};

fn report(folder: &Path, args: &[&str]) -> Output {
    netping()
        .current_dir(folder)
        .arg("report")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn a_measurement_becomes_a_page_and_charts() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let server = Server::start("tokio", &[]);
    let flags = [
        "-c",
        "4,8",
        "-d",
        "1200ms",
        "--warmup",
        "100ms",
        "--json",
        json.to_str().unwrap(),
    ];
    let output = run(&[&["throughput", &server.url], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let output = report(
        folder.path(),
        &[
            "run.json",
            "run.json",
            "--html",
            "page.html",
            "--svg",
            "charts",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for step in load(&json)["steps"].as_array().unwrap() {
        let rate = step["rate_per_s"].as_f64().unwrap();
        for name in ["run 1", "run 2"] {
            let point = format!("data-series=\"{name}: {}\" data-x=\"{rate}\"", server.url);
            assert!(page.contains(&point), "{point}");
        }
    }
    let output = report(folder.path(), &["run.json"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        text.contains(&server.url) && text.contains("SHARED_HOST"),
        "{text}"
    );
    for chart in ["sweep", "load", "quantiles", "heatmap", "fairness"] {
        let svg = fs::read_to_string(
            folder
                .path()
                .join("charts")
                .join(chart)
                .with_extension("svg"),
        )
        .unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.contains("class=\"pt\""),
            "{chart}"
        );
    }
}

#[test]
fn a_failed_report_leaves_the_old_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, "old").unwrap();
    fs::write(folder.path().join("foreign.json"), "{}").unwrap();
    for file in ["foreign.json", "missing.json"] {
        let output = report(folder.path(), &[file, "--html", "page.html"]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(file), "{}", stderr(&output));
    }
    assert_eq!(fs::read_to_string(&page).unwrap(), "old");
    for args in [
        &["foreign.json", "--csv", "foreign.json"][..],
        &["foreign.json", "--csv", "out", "--html", "./out"],
    ] {
        let output = report(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("--csv"), "{}", stderr(&output));
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("foreign.json")).unwrap(),
        "{}"
    );
    assert_eq!(
        report(folder.path(), &["foreign.json"]).status.code(),
        Some(3)
    );
    assert_eq!(
        report(folder.path(), &["--html", "page.html"])
            .status
            .code(),
        Some(2)
    );
}

/// Returns the lines of a text, but for the one above numbers that are not valid: rows that are printed as they
/// are measured do not know yet.
fn below_verdict(text: &str) -> Vec<&str> {
    let is_above = |line: &&str| line.ends_with("do not rely on the numbers below");
    text.lines().filter(|line| !is_above(line)).collect()
}

#[test]
fn a_report_says_what_the_command_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("tokio", &[]);
    let other = Server::start("tokio", &[]);
    let (one, two) = (server.url.as_str(), other.url.as_str());
    let (direct, via) = (format!("--direct={one}"), format!("--via=p={two}"));
    let commands: [&[&str]; 9] = [
        &[one, "-d", "500ms"],
        &["latency", one, "-n", "300"],
        &["latency", one, two, "-n", "300", "--trials", "3"],
        &["throughput", one, "-c", "1,2", "--requests", "300"],
        &[
            "throughput",
            one,
            two,
            "-c",
            "2",
            "--requests",
            "300",
            "--trials",
            "2",
        ],
        &["connect", one, "-n", "30"],
        &[
            "bulk",
            one,
            "--size",
            "1MiB",
            "--chunk",
            "64KiB,1MiB",
            "--runs",
            "2",
        ],
        &[
            "proxy", &direct, &via, "--rate", "100", "-d", "200ms", "--trials", "2",
        ],
        &["ab", one, two, "--budget", "1s", "--rate", "50"],
    ];
    for command in commands {
        let output = run(&[
            command,
            &["--json", folder.path().join("run.json").to_str().unwrap()],
        ]
        .concat());
        let said = stdout(&output);
        let mut expected = below_verdict(&said);
        // Said before the first step.
        expected.retain(|line| {
            !line.contains("is shown in 80 % of such runs") && !line.contains("stays unknown")
        });
        let reported = report(folder.path(), &["run.json"]);
        assert_eq!(
            below_verdict(&stdout(&reported)),
            expected,
            "{command:?}{}",
            stderr(&output)
        );
    }
}

#[test]
fn trials_that_were_interrupted_say_what_counts() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let server = Server::start("tokio", &[]);
    let args = [
        "latency",
        &server.url,
        &server.url,
        "-d",
        "60s",
        "--warmup",
        "0s",
    ];
    let more = [
        "--trials",
        "3",
        "--alternate",
        "windows",
        "--json",
        json.to_str().unwrap(),
    ];
    let client = spawn(&[&args[..], &more].concat());
    server.await_requests();
    let said = stdout(&interrupt(client));
    let line = "PARTIAL: no trial is whole, so nothing can be compared; in trial 1, 0 of ";
    assert!(
        said.starts_with("interrupted\n") && said.contains(line),
        "{said}"
    );
    let reported = report(folder.path(), &["run.json"]);
    assert!(stdout(&reported).contains(line), "{}", stdout(&reported));
}

#[test]
fn a_ladder_without_a_whole_round_compares_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut ladder = netping()
        .current_dir(folder.path())
        .args(["ladder", "--no-pin", "--progress", "lines"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(ladder.stderr.take().unwrap()).lines();
    let mut rounds = lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("round "));
    assert!(
        rounds
            .next()
            .is_some_and(|line| line.starts_with("round 1 "))
    );
    let said = stdout(&interrupt(ladder));
    assert!(
        said.starts_with("interrupted in round 1, after ")
            && said.contains(
                " windows: no round is whole, so nothing can be compared, and nothing is saved"
            ),
        "{said}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
