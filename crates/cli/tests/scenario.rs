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
        "[defaults]\nno-first-call = true\nserver-metrics = 'off'\nwarmup = '0s'\n\n\
         [[step]]\ncommand = 'throughput'\ntargets = '{url}'\ncallers = [1, 2]\nrequests = 50\njson = '{first}'\n\n\
         [[step]]\ncommand = 'latency'\ntargets = ['{url}']\nsamples = 30\nfail-if = 'p50>0us'\njson = '{second}'\n",
        url = server.url,
        first = first.display(),
        second = second.display()
    );
    let output = run(&folder, &text);
    // The condition of the second step.
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("step 2 (line 13), latency"),
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
    assert!(
        text.starts_with("[[step]]\ncommand = \"latency\"\n") && text.contains("\n# json = "),
        "{text}"
    );
    // The repetition does not replace what it repeats, unless that is wanted.
    let output = run(&folder, &text.replace("# json = ", "json = "));
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
        "[[step]]\ntargets = 'tcp://127.0.0.1:1'\njson = '{}'\n\n[[step]]\ntargets = 'tcp://h'\nduratio = '1s'\n",
        result.display()
    );
    let output = run(&folder, &text);
    let says = "scenario.toml:7: duratio: a quick look has no such flag; did you mean 'duration'?";
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
    let text = "[variables]\nserver = 'tcp://127.0.0.1:1'\n[defaults]\nduration = '100ms'\nwarmup = '0s'\n\
                timeout = '100ms'\nno-first-call = true\nserver-metrics = 'off'\n\
                [[step]]\ncommand = 'throughput'\ntargets = '${server}'\ncallers = 1\njson = '${first}'\n\
                [[step]]\ncommand = 'latency'\ntargets = '${server}'\njson = '${second}'\n";
    let [first, second] = ["first.json", "second.json"].map(|name| folder.path().join(name));
    let text = text
        .replace("${first}", &first.display().to_string())
        .replace("${second}", &second.display().to_string());
    let file = folder.path().join("scenario.toml");
    fs::write(&file, text).unwrap();
    let set = format!("server={}", server.url);
    let run = |words: &[&str]| {
        let mut client = netping();
        let client = client.arg("run").arg(&file).args(words);
        client.output().unwrap()
    };
    let output = run(&["--set", &set, "--start-at", "+4s"]);
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
