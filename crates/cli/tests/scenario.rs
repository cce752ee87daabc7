//! `netping run`: commands from a file, and files from results.

mod common;

use std::{fs, time::Duration};

use common::{Server, load, netping, stderr, stdout};

/// Runs a scenario with this text.
fn run(folder: &tempfile::TempDir, text: &str) -> std::process::Output {
    let file = folder.path().join("scenario.toml");
    fs::write(&file, text).unwrap();
    netping().arg("run").arg(file).output().unwrap()
}

#[test]
fn a_scenario_repeats_commands_and_a_result_becomes_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("tokio", &[]);
    let [first, second] = ["first.json", "second.json"].map(|name| folder.path().join(name));
    let text = format!(
        "[defaults]\nflags = '--no-first-call --server-metrics off --warmup 0s'\n\n\
         [[step]]\nrun = 'throughput {url} -c 1,2 -n 50 --json {first}'\n\n\
         [[step]]\nrun = 'latency {url} --samples 30 --allow all --fail-if p50>0us --json {second}'\n",
        url = server.url,
        first = first.display(),
        second = second.display()
    );
    let output = run(&folder, &text);
    // The condition of the second step.
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("step 2 (line 8), latency"),
        "{}",
        stderr(&output)
    );
    let (steps, one) = (load(&first), load(&second));
    assert_eq!(steps["steps"][1]["settings"]["callers"], 2);
    assert_eq!(one["steps"][0]["ok"], 30);
    let output = netping()
        .args(["run", "--from"])
        .arg(&second)
        .output()
        .unwrap();
    let text = stdout(&output);
    let written = format!("--json {}", second.display());
    let (repetition, left_out) = text.split_once("\n# ").unwrap();
    assert!(
        repetition.starts_with("[[step]]\nrun = ") && !repetition.contains(&written),
        "{text}"
    );
    assert!(left_out.contains(&written), "{text}");
    // The repetition does not replace what it repeats, unless that is wanted.
    let again = repetition.replace("--samples 30", &format!("--samples 30 {written}"));
    let output = run(&folder, &again);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert_eq!(
        load(&second)["steps"][0]["settings"],
        one["steps"][0]["settings"]
    );
}

#[test]
fn nothing_is_run_if_any_step_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("run.json");
    let text = format!(
        "[[step]]\nrun = 'tcp://127.0.0.1:1 --json {}'\n\n[[step]]\nrun = 'tcp://h --duratio 1s'\n",
        result.display()
    );
    let output = run(&folder, &text);
    let says = "scenario.toml:5: unexpected argument '--duratio' found";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
    assert!(!result.exists());
    let output = netping().args(["run", "/nowhere.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn steps_of_several_commands_begin_at_moments_that_follow_from_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("tokio", &[]);
    let text = "[variables]\nserver = 'tcp://127.0.0.1:1'\nfirst = 'first.json'\nsecond = 'second.json'\n\
                [defaults]\nflags = '-d 100ms --warmup 0s --timeout 100ms --no-first-call --server-metrics off'\n\
                [[step]]\nrun = 'throughput ${server} -c 1 --json ${first}'\n\
                [[step]]\nrun = 'latency ${server} --json ${second}'\n";
    // A value with a space stays one word.
    let [first, second] = ["1 first.json", "2 second.json"].map(|name| folder.path().join(name));
    let file = folder.path().join("scenario.toml");
    fs::write(&file, text).unwrap();
    let set = [
        format!("server={}", server.url),
        format!("first={}", first.display()),
        format!("second={}", second.display()),
    ];
    let run = |words: &[&str]| {
        let mut client = netping();
        client.arg("run").arg(&file).args(words);
        for value in &set {
            client.args(["--set", value]);
        }
        client.output().unwrap()
    };
    let output = run(&["--start-at", "+4s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let began = |path| {
        let run = load(path);
        let began = run["steps"][0]["window_started_at"].as_str().unwrap();
        humantime::parse_rfc3339(began).unwrap()
    };
    // 100 ms, the time limit, and 5 s for connections lie between the first step's moment and the next.
    let between = began(&second).duration_since(began(&first)).unwrap();
    assert!(between >= Duration::from_secs(5), "{between:?}");
    let unknown = run(&["--set", "sever=x"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("[variables] has no 'sever'"));
}

#[test]
fn published_numbers_stand_beside_those_of_the_run_and_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("tokio", &[]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = format!(
        "[variables]\nserver = 'tcp://127.0.0.1:1'\n\
         [defaults]\nflags = '--no-first-call --server-metrics off --warmup 0s -n 400'\n\
         [[step]]\nrun = 'throughput ${{server}} -c 2 --json {one}'\n\
         [[step]]\nrun = 'latency ${{server}} --json {two}'\n\
         [[published]]\nsource = 'a study, on its machine'\nall = {{ target = '${{server}}' }}\nrows = [\n\
         {{ kind = 'throughput', callers = 2, p50 = '1s' }},\n\
         {{ kind = 'latency', min = '1s' }},\n\
         {{ kind = 'latency', callers = 64, min = '1s' }},\n]\n",
        one = path("one.json"),
        two = path("two.json")
    );
    let file = path("scenario.toml");
    fs::write(&file, &text).unwrap();
    let set = format!("server={}", server.url);
    let output = netping()
        .args(["run", &file, "--set", &set, "--units", "us"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let (_, tables) = text.split_once("\npublished: ").unwrap();
    assert!(tables.starts_with("a study, on its machine\n"), "{tables}");
    let row = |name: &str| {
        let line = tables.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..]
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let there = row("throughput, callers 2 ");
    assert_eq!(there[..3], ["p50", "us", "1,000,000"]);
    let p50: f64 = there[3]
        .trim_end_matches('!')
        .replace(',', "")
        .parse()
        .unwrap();
    let stored = load(&folder.path().join("one.json"));
    let stored = stored["steps"][0]["response_time"]["p50_ns"]
        .as_f64()
        .unwrap()
        / 1e3;
    assert!((p50 / stored - 1.0).abs() < 0.01, "{p50} {stored}");
    assert_ne!(row("latency ")[3], "-");
    assert_eq!(row("latency, callers 64 ")[3..], ["-", "-", "-"]);
    let report = |files: &[&str], flags: &[&str]| {
        let files = files.iter().map(|name| path(name));
        netping()
            .arg("report")
            .args(files)
            .args(["--published", &file, "--units", "us"])
            .args(flags)
            .output()
            .unwrap()
    };
    let again = report(&["one.json", "two.json"], &["--set", &set]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(stdout(&again), format!("published: {tables}"));
    // Another server than the file's.
    let none = stdout(&report(&["one.json"], &[]));
    assert!(
        none.contains("1,000,000     -") && !none.contains('!'),
        "{none}"
    );
    let unknown = report(&["one.json"], &["--set", "sever=x"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    fs::write(
        &file,
        "\n[[published]]\nsource = 's'\nrows = [{ name = 'a', p50 = 5 }]\n",
    )
    .unwrap();
    let wrong = report(&["one.json"], &[]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    let says = "scenario.toml:4: '5' is no value of p50, such as p50 = \"7.5us\"";
    assert!(stderr(&wrong).contains(says), "{}", stderr(&wrong));
    let output = netping()
        .args(["report", &path("one.json"), "--set", "a=b"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
