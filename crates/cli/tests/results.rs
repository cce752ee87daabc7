//! The `netping` binary with result files: compared, merged, and refused where they are no good.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, SystemTime},
};

use common::{Server, assert_usage, eventually, load, netping, run, spawn, stderr, stdout};
use serde_json::{Value, json};

/// A command on files.
fn command(name: &str, files: &[&Path], flags: &[&str]) -> Output {
    netping()
        .arg(name)
        .args(files)
        .args(flags)
        .output()
        .unwrap()
}

/// A file of real results, without the warnings of a busy machine.
fn measured(folder: &Path, name: &str, server: &Server, flags: &[&str]) -> PathBuf {
    let file = folder.join(name);
    let fixed = [
        "latency",
        &server.url,
        "--warmup",
        "0s",
        "--json",
        file.to_str().unwrap(),
    ];
    let output = run(&[&fixed[..], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    changed(&file, name, |run| warn(run, &json!([])))
}

/// Replaces the warnings of all steps.
fn warn(run: &mut Value, warnings: &Value) {
    for step in run["steps"].as_array_mut().unwrap() {
        step["warnings"] = warnings.clone();
        // Whoever else had the CPUs meanwhile.
        if let Some(cost) = step["cost"].as_object_mut() {
            cost.remove("balances");
        }
    }
}

/// A copy of a file with something changed.
fn changed(file: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut run = load(file);
    change(&mut run);
    let copy = file.with_file_name(name);
    fs::write(&copy, run.to_string()).unwrap();
    copy
}

/// Lets the windows of a run begin at this second.
fn begin(run: &mut Value, second: usize) {
    for step in run["steps"].as_array_mut().unwrap() {
        step["window_started_at"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
    }
}

#[test]
fn differences_within_the_noise_are_not_shown() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let flags = ["--samples", "1000", "--trials", "3"];
    let file = measured(folder.path(), "base.json", &server, &flags);
    let with_rates = |name, rates: [f64; 3]| {
        changed(&file, name, |run| {
            let steps = run["steps"].as_array_mut().unwrap();
            for (step, rate) in steps.iter_mut().zip(rates) {
                step["rate_per_s"] = json!(rate);
            }
        })
    };
    // Trials differ from each other by a hundredth, the means by a sixth of that.
    let file = with_rates("steady.json", [10_000.0, 10_000.0, 10_000.0]);
    let noisy = with_rates("noisy.json", [10_100.0, 9_900.0, 10_050.0]);
    let page = folder.path().join("page.html");
    let gates = ["--fail-if", "p50>+1%", "--fail-if", "rate>+0.1%"];
    let output = command(
        "compare",
        &[&file, &noisy],
        &[&gates[..], &["--html", page.to_str().unwrap()]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("same machine, same settings"), "{text}");
    assert!(
        text.contains("1 measurement: none better, none worse, ")
            && text.contains(" none without an error bar")
            && !text.contains("only in"),
        "{text}"
    );
    let rate = text.lines().find(|line| line.starts_with("req/s"));
    let rate = rate.unwrap();
    assert!(
        !rate.contains("  +0.0%") && rate.contains("no difference shown"),
        "{rate}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("1 measurement: none better") && page.contains("data-chart=\"shift\""));
}

#[test]
fn runs_of_their_own_are_compared_as_trials() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let file = measured(folder.path(), "file.json", &server, &["--samples", "500"]);
    let trials = |of: &str, rates: [f64; 3]| {
        let trial = |(number, rate): (usize, f64)| {
            let name = format!("{of}-{number}.json");
            let file = changed(&file, &name, |run| {
                run["steps"][0]["rate_per_s"] = json!(rate);
            });
            file.to_str().unwrap().to_owned()
        };
        rates.into_iter().enumerate().map(trial).collect::<Vec<_>>()
    };
    let base = trials("base", [10_000.0, 10_100.0, 9_900.0]);
    let half = trials("half", [5_000.0, 5_050.0, 4_950.0]);
    let joined = [&base, &half].map(|trials| PathBuf::from(trials.join(",")));
    let output = command("compare", &[&joined[0], &joined[1]], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("base-0.json and 2 more") && text.contains("3 and 3 trials"),
        "{text}"
    );
    let rate = text.lines().find(|line| line.starts_with("req/s"));
    let rate = rate.unwrap();
    assert!(rate.contains("-50.0%") && rate.ends_with("worse"), "{rate}");
    // A file whose name has a comma is one file, and others are no trials of it.
    let comma = folder.path().join("a,b.json");
    fs::copy(&file, &comma).unwrap();
    let other = ["--samples", "500", "--payload", "64"];
    let other = measured(folder.path(), "other.json", &server, &other);
    let output = command("compare", &[&comma, &file], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let odd = format!("{},{}", base[0], other.display());
    let output = command("compare", &[Path::new(&odd), &file], &[]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(
        error.contains("other.json: payload_bytes is 64 in it, and "),
        "{error}"
    );
}

#[test]
fn a_broken_gate_says_by_how_much_and_environment_differences_come_first() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let base = measured(folder.path(), "base.json", &server, &["--samples", "500"]);
    let slower = changed(&base, "slower.json", |run| {
        let rate = &mut run["steps"][0]["rate_per_s"];
        *rate = json!(rate.as_f64().unwrap() / 2.0);
        run["environment"]["kernel"] = json!("another");
        run["steps"][0]["target"] = json!("tcp://elsewhere:8004");
    });
    let output = command("compare", &[&base, &slower], &["--fail-if", "rate<-3%"]);
    assert_eq!(output.status.code(), Some(4));
    let (text, error) = (stdout(&output), stderr(&output));
    let place = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("no '{what}' in {text}"))
    };
    assert!(
        place("-> another") < place("req/s") && place("elsewhere:8004 (1 step)") < place("req/s")
    );
    assert!(
        text.contains("one run each: no error bar") && text.contains("-50.0%"),
        "{text}"
    );
    assert!(
        error.contains("failed by --fail-if 'rate<-3%'")
            && error.contains("rate by -50.00%, 47.00 beyond"),
        "{error}"
    );
    assert!(error.contains("1 caller, 1 connection"), "{error}");
    let better = command("compare", &[&slower, &base], &["--fail-if", "rate<-3%"]);
    assert_eq!(better.status.code(), Some(0), "{}", stderr(&better));
    // A condition that cannot be decided fails.
    let undecided = command("compare", &[&base, &base], &["--fail-if", "p99.9>+1%"]);
    assert_eq!(undecided.status.code(), Some(4));
    assert!(
        stderr(&undecided).contains("too few samples"),
        "{}",
        stderr(&undecided)
    );
    let wrong = command("compare", &[&base, &base], &["--fail-if", "p99>5%"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("looks like p99>+5%"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn a_condition_decides_nothing_about_files_that_are_not_valid() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let base = measured(folder.path(), "base.json", &server, &["--samples", "500"]);
    let shown = |file: &Path, flags: &[&str]| {
        let output = command("compare", &[&base, file], flags);
        (output.status.code(), stderr(&output))
    };
    // At half the rate of the base.
    let with = |name, warnings| {
        changed(&base, name, |run| {
            warn(run, &warnings);
            let rate = &mut run["steps"][0]["rate_per_s"];
            *rate = json!(rate.as_f64().unwrap() / 2.0);
        })
    };
    let note = with("note.json", json!([{ "name": "SHARED_HOST" }]));
    let invalid = with("invalid.json", json!([{ "name": "SERVER_RESTARTED" }]));
    let [kept, broken] = ["rate<-90%", "rate<-3%"].map(|condition| ["--fail-if", condition]);
    assert_eq!(shown(&note, &kept).0, Some(0));
    assert_eq!(shown(&note, &broken).0, Some(4));
    for condition in [kept, broken] {
        let (code, text) = shown(&invalid, &condition);
        assert_eq!(code, Some(5), "{text}");
        assert!(
            text.contains("invalid.json is NOT VALID: SERVER_RESTARTED (--allow SERVER_RESTARTED"),
            "{text}"
        );
        for allowed in ["STALLED,SERVER_RESTARTED", "all"] {
            let flags = [&condition[..], &["--allow", allowed]].concat();
            let expected = if condition == kept { 0 } else { 4 };
            assert_eq!(shown(&invalid, &flags).0, Some(expected));
            let text = stdout(&command("compare", &[&base, &invalid], &flags));
            assert!(
                !text.contains("NOT VALID") && !text.contains("no claim"),
                "{text}"
            );
        }
        let other = [&condition[..], &["--allow", "STALLED"]].concat();
        assert_eq!(shown(&invalid, &other).0, Some(5));
    }
    // Without a condition, nothing fails.
    assert_eq!(shown(&invalid, &[]).0, Some(0));
}

#[test]
fn steps_without_a_counterpart_are_listed() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let base = measured(folder.path(), "base.json", &server, &["--samples", "100"]);
    let other = changed(&base, "other.json", |run| {
        run["steps"][0]["settings"]["payload_bytes"] = json!(99);
    });
    let output = command("compare", &[&base, &other], &[]);
    assert_eq!(output.status.code(), Some(4));
    let text = stdout(&output);
    for expected in [
        "only in the base:",
        "only in the new one:",
        "99 bytes",
        "nothing to compare",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    // Of two measurements, one is compared, and a gate misses the other.
    let twice = changed(&base, "twice.json", |run| {
        let mut step = run["steps"][0].clone();
        step["settings"]["payload_bytes"] = json!(99);
        step["measurement"] = json!(1);
        run["steps"].as_array_mut().unwrap().push(step);
    });
    assert_eq!(
        command("compare", &[&twice, &base], &[]).status.code(),
        Some(0)
    );
    assert_eq!(
        command("compare", &[&base, &twice], &["--fail-if", "p50>+1%"])
            .status
            .code(),
        Some(0)
    );
    let output = command("compare", &[&twice, &base], &["--fail-if", "p50>+1%"]);
    assert_eq!(output.status.code(), Some(4));
    let error = stderr(&output);
    assert!(
        error.contains("99 bytes") && error.contains("the new run has no such measurement"),
        "{error}"
    );
}

#[test]
fn invalid_result_files_are_rejected_with_advice() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let good = measured(folder.path(), "good.json", &server, &["--samples", "100"]);
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let text = fs::read_to_string(&good).unwrap();
    let newer = changed(&good, "newer.json", |run| {
        run["schema_version"] = json!(99);
        run["tool"]["version"] = json!("7.0.0");
    });
    let huge = folder.path().join("huge.json");
    fs::File::create(&huge).unwrap().set_len(200 << 20).unwrap();
    let cases = [
        (
            write("cut.json", &text[..text.find("\"histograms\"").unwrap()]),
            "cut off",
        ),
        (
            write("foreign.json", "{\"results\": []}"),
            "no schema_version",
        ),
        (write("text.json", "no JSON at all"), "not JSON"),
        (newer, "use the netping that wrote it (7.0.0)"),
        (huge, "larger than 64 MiB"),
        (folder.path().join("absent.json"), "cannot be read"),
    ];
    for (file, expected) in cases {
        for output in [
            command("compare", &[&good, &file], &[]),
            command("compare", &[&file, &good], &[]),
            command("merge", &[&good, &file], &["--json", "-"]),
        ] {
            assert_eq!(output.status.code(), Some(3), "{}", file.display());
            let error = stderr(&output);
            assert!(
                error.contains(expected) && error.contains(&*file.to_string_lossy()),
                "{error}"
            );
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn text_from_files_cannot_control_the_terminal() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let base = measured(folder.path(), "base.json", &server, &["--samples", "100"]);
    let hostile = "\u{1b}[2J\r\nVALID\u{9b}1m";
    let labelled = changed(&base, "labelled.json", |run| {
        run["steps"][0]["label"] = json!(hostile);
    });
    let moved = changed(&labelled, "moved.json", |run| {
        run["environment"]["kernel"] = json!(hostile);
        run["environment"]["host"] = json!(hostile);
        run["started_at"] = json!(hostile);
    });
    let wrong = changed(&base, "wrong.json", |run| {
        run["steps"][0]["target"] = json!(hostile);
        run["steps"][0]["rate_per_s"] = json!(-1.0);
    });
    for (files, code) in [
        ([&labelled, &moved], 0),
        ([&base, &moved], 4),
        ([&base, &wrong], 3),
    ] {
        let output = command("compare", &files.map(PathBuf::as_path), &[]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let text = stdout(&output) + &stderr(&output);
        assert!(
            text.contains("\u{fffd}[2J\u{fffd}\u{fffd}VALID") || code == 3,
            "{text}"
        );
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }
}

fn refused(files: &[&Path], expected: &str) {
    let output = command("merge", files, &["--json", "-"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains(expected) && output.stdout.is_empty(),
        "{}",
        stderr(&output)
    );
}

#[test]
fn clients_of_one_run_are_merged_and_one_client_is_not_counted_twice() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let first = measured(folder.path(), "first.json", &server, &["-d", "300ms"]);
    let second = measured(folder.path(), "second.json", &server, &["-d", "300ms"]);
    // What was measured one after the other is taken for measured at once, on two hosts.
    let (a, started_at) = (
        load(&first),
        load(&first)["steps"][0]["window_started_at"].clone(),
    );
    assert!(started_at.is_string(), "{started_at}");
    let second = changed(&second, "at-once.json", |run| {
        run["environment"]["host"] = json!("another-host");
        run["steps"][0]["window_started_at"] = started_at;
    });
    let sum = folder.path().join("sum.json");
    let to = ["--json", sum.to_str().unwrap()];
    let output = command("merge", &[&first, &second], &to);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("another-host") && stdout(&output).contains("2 clients"),
        "{}",
        stdout(&output)
    );
    let (b, merged) = (load(&second), load(&sum));
    let count = |run: &Value, name: &str| run["steps"][0][name].as_u64().unwrap();
    for name in ["scheduled", "ok", "outside_ok"] {
        assert_eq!(
            count(&merged, name),
            count(&a, name) + count(&b, name),
            "{name}"
        );
    }
    assert_eq!(merged["steps"][0]["settings"]["callers"], 2);
    assert_eq!(merged["parts"][1]["host"], "another-host");
    assert_eq!(
        merged["parts"][0]["steps"][0]["requests"],
        a["steps"][0]["scheduled"]
    );

    refused(&[&first, &first], "of the same client");
    refused(&[&sum, &first], "is itself merged");
    let later = changed(&second, "later.json", |run| {
        let start = run["steps"][0]["window_started_at"].as_str().unwrap();
        let later = humantime::parse_rfc3339(start).unwrap() + Duration::from_millis(100);
        run["steps"][0]["window_started_at"] =
            json!(humantime::format_rfc3339_nanos(later).to_string());
    });
    refused(&[&first, &later], "only 66.6% of the longest");
    let different = changed(&second, "different.json", |run| {
        run["steps"][0]["settings"]["payload_bytes"] = json!(9);
    });
    refused(&[&first, &different], "payload_bytes is 4");
    let before = fs::read(&first).unwrap();
    let over = command(
        "merge",
        &[&first, &second],
        &["--json", first.to_str().unwrap()],
    );
    assert_eq!(over.status.code(), Some(2));
    assert!(
        stderr(&over).contains("would overwrite an input"),
        "{}",
        stderr(&over)
    );
    assert_eq!(fs::read(&first).unwrap(), before);
    assert_eq!(command("merge", &[&first], &to).status.code(), Some(2));
    assert_eq!(
        command("merge", &[&first, &second], &[]).status.code(),
        Some(2)
    );
}

/// Lets clients of these parts share a load, from the moment that they are told once all are ready. Returns their files.
#[expect(clippy::disallowed_methods, reason = "the moment is a time of day")]
fn shared(folder: &Path, server: &Server, parts: &[&str]) -> (String, Vec<PathBuf>) {
    let start = |number: usize| folder.join(format!("start-{number}"));
    let file = |number: usize| folder.join(format!("{number}.json"));
    let clients: Vec<_> = (0..parts.len())
        .map(|number| {
            let at = format!("@{}", start(number).display());
            let file = file(number);
            let fixed = [
                "throughput",
                &server.url,
                "--server-metrics",
                &server.metrics,
            ];
            let load = ["-c", "3", "--rate", "300", "-d", "1s", "--warmup", "0s"];
            let own = ["--start-at", &at, "--part", parts[number]];
            let json = ["--json", file.to_str().unwrap()];
            spawn(&[&fixed[..], &load, &own, &json].concat())
        })
        .collect();
    for number in 0..parts.len() {
        let ready = start(number).with_extension("ready");
        eventually("a client that is ready", || ready.exists());
    }
    let moment = SystemTime::now() + Duration::from_secs(2);
    let moment = humantime::format_rfc3339_nanos(moment).to_string();
    for number in 0..parts.len() {
        fs::write(start(number), format!("{moment}\n")).unwrap();
    }
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let files = (0..parts.len()).map(file);
    let files = files.map(|file| {
        changed(&file, file.file_name().unwrap().to_str().unwrap(), |run| {
            warn(run, &json!([]));
        })
    });
    (moment, files.collect())
}

#[test]
fn clients_share_a_load_from_the_moment_that_they_are_told() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let (moment, files) = shared(folder.path(), &server, &["1/2", "2/2"]);
    let runs: Vec<Value> = files.iter().map(|file| load(file)).collect();
    let begun = humantime::parse_rfc3339(&moment).unwrap();
    for (run, callers) in runs.iter().zip([2, 1]) {
        let step = &run["steps"][0];
        // The moment itself, though clients are a little late.
        let started = step["window_started_at"].as_str().unwrap();
        assert_eq!(humantime::parse_rfc3339(started).unwrap(), begun);
        let settings = &step["settings"];
        assert_eq!(settings["callers"], callers);
        assert_eq!(settings["planned_rate_per_s"], 150.0);
        assert_eq!(settings["part"]["callers"], 3);
        // Every other of the 300 requests, the first of all at once.
        assert_eq!(step["scheduled"], 150);
    }
    let has_server = |run: &Value| run["steps"][0]["cost"]["server"].is_object();
    assert_eq!([&runs[0], &runs[1]].map(has_server), [true, false]);

    let both = [&*files[0], &*files[1]];
    let sum = folder.path().join("sum.json");
    let to = ["--json", sum.to_str().unwrap()];
    let output = command("merge", &both, &to);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let step = load(&sum)["steps"][0].clone();
    assert_eq!(step["settings"]["callers"], 3);
    assert_eq!(step["settings"]["planned_rate_per_s"], 300.0);
    assert_eq!(step["settings"]["part"], Value::Null);
    assert_eq!(step["scheduled"], 300);
    let server = &step["cost"]["server"];
    assert!(
        server["requests"]["server"].as_u64() > Some(100),
        "{server}"
    );

    let of_three = |file: &Path, name: &str, number: u64| {
        changed(file, name, |run| {
            let part = &mut run["steps"][0]["settings"]["part"];
            (part["of"], part["number"]) = (json!(3), json!(number));
        })
    };
    let first = of_three(&files[0], "first.json", 1);
    let third = of_three(&files[1], "third.json", 3);
    refused(
        &[&first, &third],
        "part 2 of 3 is missing, and with it 0 of 3 callers",
    );
    refused(&[&first, &files[1]], "clients is 3");
    refused(
        &[&first, &of_three(&files[1], "again.json", 1)],
        "are both part 1",
    );
    let output = command(
        "merge",
        &[&first, &third],
        &[&to[..], &["--allow-missing", "1"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("PARTS_MISSING"),
        "{}",
        stdout(&output)
    );
    // The server answered those who are missing, too.
    let server = load(&sum)["steps"][0]["cost"]["server"].clone();
    assert!(server["cpu_seconds"].as_f64() >= Some(0.0), "{server}");
    assert_eq!(server["cpu_us_per_request"], Value::Null);
    assert_eq!(server["requests"], Value::Null);
}

#[test]
fn a_part_is_that_of_a_load_that_all_clients_know() {
    assert_usage(&[
        ("throughput tcp://h:1 -d 1s --part 1/2", "--start-at"),
        (
            "throughput tcp://h:1 -d 1s --start-at +1s --part 3/2",
            "such as 2/8",
        ),
        (
            "throughput tcp://h:1 -d 1s --start-at +1s --part 1/9 -c 8",
            "9 clients cannot share 8 callers",
        ),
        (
            "throughput grpc://h:1 -d 1s --start-at +1s --part 1/2",
            "give --connections",
        ),
        (
            "throughput grpc://h:1 -d 1s --start-at +1s --part 1/2 --connections 1",
            "2 clients cannot share 1 connection:",
        ),
        (
            "throughput tcp://h:1 -d 1s --start-at +1s --part 1/2 --rate 10 --arrivals poisson",
            "the same --seed",
        ),
        (
            "throughput tcp://h:1 --aa -d 1s --trials 3 --start-at +1s --part 1/2",
            "--order-seed",
        ),
        (
            "throughput tcp://h:1 tcp://h:2 -d 1s --trials 3 --start-at +1s --part 1/2",
            "the same --order-seed",
        ),
        ("throughput tcp://h:1 -d 1s --start-at @", "write @FILE"),
    ]);
}

#[test]
fn a_moment_that_does_not_come_is_told() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let start = folder.path().join("start");
    let at = format!("@{}", start.display());
    let flags = [
        "latency",
        &server.url,
        "-d",
        "100ms",
        "--start-at",
        &at,
        "--start-timeout",
        "200ms",
    ];
    let output = run(&flags);
    assert_eq!(output.status.code(), Some(3));
    let told = "had no moment for 200ms: write one to it, or give a longer --start-timeout";
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
    // A line without its end may not be whole.
    fs::write(&start, "1769860800000000000").unwrap();
    assert!(stderr(&run(&flags)).contains(told));
    fs::write(&start, "soon\n").unwrap();
    let output = run(&flags);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("has 'soon': a moment looks like"),
        "{}",
        stderr(&output)
    );
    fs::remove_file(&start).unwrap();
    fs::create_dir(&start).unwrap();
    assert!(stderr(&run(&flags)).contains("cannot read"));
    // What an earlier client said holds no longer, though this one cannot connect.
    let ready = folder.path().join("start.ready");
    assert!(ready.exists());
    let mut gone = flags;
    gone[1] = "tcp://127.0.0.1:1";
    let gone = netping().args(gone).output().unwrap();
    assert_eq!(gone.status.code(), Some(3));
    assert!(!ready.exists());
    let nowhere = run(&[
        "latency",
        &server.url,
        "-d",
        "100ms",
        "--start-at",
        "@/nowhere/start",
    ]);
    assert_eq!(nowhere.status.code(), Some(3));
    assert!(
        stderr(&nowhere).contains("cannot write /nowhere/start.ready"),
        "{}",
        stderr(&nowhere)
    );
}

#[test]
fn a_search_goes_on_from_the_windows_so_far() {
    let (server, folder) = (Server::start("tokio", &[]), tempfile::tempdir().unwrap());
    let file = folder.path().join("1000.json");
    let flags = [
        "throughput",
        &server.url,
        "--rate",
        "1k",
        "-d",
        "300ms",
        "--warmup",
        "0s",
        "--json",
    ];
    let output = run(&[&flags[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let window = |(number, rate): (usize, f64), setting: &str, value: Value| {
        changed(&file, &format!("{number}.json"), |run| {
            begin(run, number);
            run["steps"][0]["settings"]["planned_rate_per_s"] = json!(rate);
            run["steps"][0]["settings"][setting] = value;
            warn(run, &json!([]));
        })
    };
    let next = |files: &[&Path], condition: &str| next(files, &["--find", condition]);
    let seeded = |number: usize, rate: f64, seed: u64| window((number, rate), "seed", json!(seed));
    let [first, second] = [seeded(1, 1000.0, 1), seeded(2, 2000.0, 2)];
    let [again, low] = [seeded(3, 1000.0, 3), seeded(4, 500.0, 4)];
    let goes_on = |rate: &str| (Some(0), format!("--rate {rate}\n"), String::new());
    assert_eq!(next(&[], "p50<10s"), goes_on("1000"));
    assert_eq!(next(&[&first], "p50<10s"), goes_on("2000"));
    assert_eq!(next(&[&first, &second], "p50<10s"), goes_on("4000"));
    // One window that does not keep the condition decides nothing.
    assert_eq!(next(&[&first], "p50<1ns"), goes_on("1000"));
    assert_eq!(next(&[&first, &again], "p50<1ns"), goes_on("500"));
    let refused = |files: &[&Path], expected: &str| {
        let (code, _, said) = next(files, "p50<10s");
        assert!(code == Some(2) && said.contains(expected), "{said}");
    };
    refused(&[&first, &first], "are of one window");
    let same = seeded(5, 2000.0, 1);
    refused(&[&first, &same], "give each window a --seed of its own");
    let other = window((6, 2000.0), "callers", json!(7));
    refused(&[&first, &other], "give the windows of one search");
    let longer = window((7, 2000.0), "duration_seconds", json!(60.0));
    refused(&[&first, &longer], "duration_seconds is 60");
    let bursts = json!({ "base_rate_per_s": 1000.0, "rate_per_s": 2000.0, "length_seconds": 3, "every_seconds": 10 });
    let bursts = window((8, 1000.0), "bursts", bursts);
    refused(&[&bursts], "measure without --burst");
    let newer = changed(&second, "newer.json", |run| {
        run["tool"]["version"] = json!("99.0.0");
    });
    refused(&[&first, &newer], "are of two builds of netping");
    let (code, _, said) = next(&[&low], "p50<10s");
    assert!(
        code == Some(2) && said.contains("the search came to 1000"),
        "{said}"
    );
    assert_eq!(command("next", &[&first], &[]).status.code(), Some(2));
    // Without enough samples in a window it cannot end otherwise.
    let (code, result, _) = next(&[&first], "p99<10s");
    assert_eq!(code, Some(4), "{result}");
    assert!(result.ends_with("measure longer (-d)\n"), "{result}");
    assert_eq!(next(&[&first], "p50<10s").0, Some(0));
}

#[test]
fn the_targets_of_a_single_trial_have_the_order_of_its_seed() {
    let server = Server::start("tokio", &[]);
    let first = |seed: &u64| {
        let [a, b] = ["a", "b"].map(|name| format!("{name}={}", server.url));
        let seed = seed.to_string();
        let flags = ["-d", "100ms", "--warmup", "0s", "--order-seed", &seed];
        let output = run(&[&["throughput", &a, &b][..], &flags, &["--json", "-"]].concat());
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        result["steps"][0]["label"].clone()
    };
    let firsts: Vec<_> = (1..=6).map(|seed| first(&seed)).collect();
    assert!(
        firsts.contains(&json!("a")) && firsts.contains(&json!("b")),
        "{firsts:?}"
    );
    assert_eq!(first(&1), firsts[0]);
}

/// Measures one server once under each of two names; returns the result file.
fn one_trial(names: [&str; 2], flags: &[&str], folder: &Path) -> PathBuf {
    let server = Server::start("tokio", &[]);
    let file = folder.join("run.json");
    let [a, b] = names.map(|name| format!("{name}={}", server.url));
    let fixed = [
        "--trials=1",
        "--warmup",
        "0s",
        "--json",
        file.to_str().unwrap(),
    ];
    let output = run(&[&["throughput", &a, &b][..], &fixed, flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    file
}

/// Asks what to measure next: the exit code, and what was said on standard output and standard error.
fn next(files: &[&Path], flags: &[&str]) -> (Option<i32>, String, String) {
    let output = command("next", files, flags);
    (output.status.code(), stdout(&output), stderr(&output))
}

/// A copy of a trial of two targets, with this number, undisturbed and at this rate; that of the second is a tenth
/// higher.
fn with_rate(file: &Path, number: usize, rate: f64) -> PathBuf {
    changed(file, &format!("{number}.json"), |run| {
        begin(run, number);
        warn(run, &json!([]));
        for (at, step) in run["steps"].as_array_mut().unwrap().iter_mut().enumerate() {
            step["rate_per_s"] = json!(rate * (1.0 + 0.1 * at as f64));
        }
    })
}

/// Four trials with almost the same rate.
fn even_trials(file: &Path) -> Vec<PathBuf> {
    (0..4)
        .map(|number| with_rate(file, number, 1000.0 + number as f64))
        .collect()
}

/// A copy of a trial of an old and a new server, undisturbed. The new one is as the old one, but for its rate, which is
/// so many times the old one's.
fn with_rates(file: &Path, number: usize, factor: f64) -> PathBuf {
    changed(file, &format!("{number}-{factor}.json"), |run| {
        begin(run, number);
        warn(run, &json!([]));
        let rate = 1000.0 + number as f64;
        let steps = run["steps"].as_array_mut().unwrap();
        let old = steps.iter().position(|step| step["label"] == "old");
        let mut old = steps[old.unwrap()].clone();
        old["rate_per_s"] = json!(rate);
        let mut new = old.clone();
        new["label"] = json!("new");
        new["measurement"] = json!(1);
        new["rate_per_s"] = json!(rate * factor);
        old["measurement"] = json!(0);
        *steps = vec![old, new];
    })
}

/// Returns the exit code and the standard output of `next --margin 5%`, given a trial for each of these ratios of the new
/// server's rate to the old one's.
fn decided(file: &Path, factors: &[f64], flags: &[&str]) -> (Option<i32>, String) {
    let all = factors.iter().enumerate();
    let files: Vec<_> = all
        .map(|(number, factor)| with_rates(file, number, *factor))
        .collect();
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    let (code, told, _) = next(&files, &[&["--margin", "5%"], flags].concat());
    (code, told)
}

#[test]
fn trials_of_several_clients_are_repeated_until_an_interval_is_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let file = one_trial(["a", "b"], &["-d", "300ms"], folder.path());
    let goes_on = |number: usize| (Some(0), format!("--order-seed {number}\n"), String::new());
    let narrow = ["--until", "rate +-5%"];
    let even = even_trials(&file);
    let even: Vec<&Path> = even.iter().map(AsRef::as_ref).collect();
    assert_eq!(next(&[], &narrow), goes_on(1));
    assert_eq!(next(&even[..2], &narrow), goes_on(3));
    let (code, told, _) = next(&even, &narrow);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.ends_with("rate +-5% after 4 trials\n"), "{told}");
    assert!(
        told.lines()
            .any(|line| line.starts_with("b ") || line.contains("b against a")),
        "{told}"
    );
    let wide = with_rate(&file, 4, 3000.0);
    assert_eq!(next(&[even[0], even[1], &wide], &narrow), goes_on(4));
    let (code, told, _) = next(
        &[even[0], even[1], &wide],
        &["--until", "rate +-5%", "--max-trials=3"],
    );
    assert_eq!(code, Some(4), "{told}");
    assert!(
        told.ends_with("rate +-5% was not reached in 3 trials\n"),
        "{told}"
    );
    // A window that others disturbed is no trial.
    let throttled = json!([{ "name": "CLIENT_THROTTLED", "seconds": 0.1 }]);
    let foreign = |number: usize| {
        changed(&file, &format!("foreign-{number}.json"), |run| {
            begin(run, number);
            warn(run, &throttled);
        })
    };
    let [foreign, another] = [foreign(5), foreign(6)];
    assert_eq!(
        next(&[even[0], even[1], &foreign, even[2]], &narrow),
        goes_on(5)
    );
    let (code, told, _) = next(&[even[0], even[1], &foreign, even[2], even[3]], &narrow);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.ends_with("after 4 trials, without 1 disturbed or cut short\n"),
        "{told}"
    );
    let (code, told, _) = next(
        &[&foreign, &another],
        &["--until", "rate +-5%", "--max-trials=3"],
    );
    assert_eq!(code, Some(5), "{told}");
    // Nor is one that was cut short, or one that is there already.
    let cut = changed(even[3], "cut.json", |run| {
        run["status"] = json!("partial");
    });
    assert_eq!(
        next(&[even[0], even[1], even[2], &cut], &narrow),
        goes_on(5)
    );
    let (code, _, said) = next(&[even[0], even[1], even[0]], &narrow);
    assert!(
        code == Some(2) && said.contains("are of one window"),
        "{said}"
    );
    // Another load is no trial either.
    let other = changed(&file, "other.json", |run| {
        warn(run, &json!([]));
        run["steps"][0]["settings"]["callers"] = json!(7);
    });
    let (code, _, said) = next(&[even[0], &other], &narrow);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("other.json: callers is 7 in it, and "),
        "{said}"
    );
}

#[test]
fn trials_that_failed_or_are_not_valid_are_no_narrow_interval() {
    let folder = tempfile::tempdir().unwrap();
    let file = one_trial(["a", "b"], &["-d", "300ms"], folder.path());
    let even = even_trials(&file);
    let even: Vec<&Path> = even.iter().map(AsRef::as_ref).collect();
    let wide = with_rate(&file, 4, 3000.0);
    let narrow = ["--until", "rate +-5%"];
    // More trials than the intervals were made for.
    let few = ["--until", "rate +-5%", "--max-trials=3"];
    let (code, _, said) = next(&even, &few);
    assert!(
        code == Some(2) && said.contains("there are 4 trials, and their intervals hold at 3 only"),
        "{said}"
    );
    // Where the requests of one failed, the interval of the others is no success.
    let failed = |number: usize| {
        changed(even[number], &format!("failed-{number}.json"), |run| {
            run["steps"][0]["not_sent"] = json!(3);
            let scheduled = &mut run["steps"][0]["scheduled"];
            *scheduled = json!(scheduled.as_u64().unwrap() + 3);
        })
    };
    let failing = failed(1);
    let files = [even[0], &failing, even[2], even[3]];
    let (code, told, said) = next(&files, &narrow);
    assert_eq!(code, Some(1), "{told}{said}");
    let tolerant = [&narrow[..], &["--max-error-rate=0.5"]].concat();
    assert_eq!(next(&files, &tolerant).0, Some(0));
    // Trials that are not valid do not say that a narrower interval cannot be had.
    let invalid: Vec<_> = [wide.as_ref(), even[0], even[1]]
        .iter()
        .enumerate()
        .map(|(at, file)| {
            changed(file, &format!("invalid-{at}.json"), |run| {
                warn(run, &json!([{ "name": "ERRORS", "share": 0.5 }]));
            })
        })
        .collect();
    let invalid: Vec<&Path> = invalid.iter().map(AsRef::as_ref).collect();
    let (code, told, said) = next(&invalid, &few);
    assert_eq!(code, Some(5), "{told}{said}");
}

#[test]
fn trials_of_several_clients_are_repeated_until_they_decide() {
    let folder = tempfile::tempdir().unwrap();
    let file = one_trial(["old", "new"], &["-c", "16", "-d", "500ms"], folder.path());
    let decided = |factors: &[f64], flags: &[&str]| decided(&file, factors, flags);
    assert_eq!(decided(&[], &[]).1, "--order-seed 1\n");
    // However clear it is, five trials are the fewest, even where they are looked at once.
    for flags in [&[][..], &["--max-trials=5"]] {
        let (code, told) = decided(&[0.5; 4], flags);
        assert_eq!((code, told.as_str()), (Some(0), "--order-seed 5\n"));
    }
    let (code, told) = decided(&[0.5; 5], &[]);
    assert_eq!(code, Some(4), "{told}");
    let worse = "WORSE: new is worse than old by more than 5 %: rate -50.";
    assert!(
        told.starts_with(worse) && told.ends_with("\ndecided after 5 trials\n"),
        "{told}"
    );
    assert!(
        told.contains("each server had windows of its own, with 16 callers"),
        "{told}"
    );
    assert!(!told.contains("again"), "{told}");
    let (code, told) = decided(&[1.0; 5], &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.starts_with("NOT WORSE: new is not worse than old by more than 5 %: "),
        "{told}"
    );
    // An interval that is looked at once is narrower than one that holds at all sixteen looks.
    let once = decided(&[1.0; 5], &["--max-trials=5"]);
    let verdict = |told: &str| told.lines().next().map(str::to_owned);
    assert!(
        once.0 == Some(0) && verdict(&once.1) != verdict(&told),
        "{told}"
    );
    // The margin lies within the interval, as long as there are trials left and when there are none.
    let varied = [0.5, 1.5, 0.9, 1.1, 1.0, 0.6];
    assert_eq!(
        decided(&varied, &[]),
        (Some(0), "--order-seed 7\n".to_owned())
    );
    let (code, told) = decided(&varied, &["--max-trials=6"]);
    assert_eq!(code, Some(7), "{told}");
    assert!(
        told.starts_with("UNDECIDED: these trials cannot tell ")
            && told.ends_with("\nnot decided in 6 trials\n"),
        "{told}"
    );
    let (code, _, said) = next(&[], &["--margin=5%", "--max-trials=4"]);
    assert!(
        code == Some(2) && said.contains("--margin needs 5 trials"),
        "{said}"
    );
    let alone = changed(&file, "alone.json", |run| {
        run["steps"].as_array_mut().unwrap().truncate(1);
        run["pairings"] = json!([]);
        warn(run, &json!([]));
    });
    let (code, _, said) = next(&[&alone], &["--margin=5%"]);
    assert!(
        code == Some(2) && said.contains("these runs compare 0 pairs"),
        "{said}"
    );
}

#[test]
fn trials_that_show_another_thing_decide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = one_trial(["old", "new"], &["-c", "16", "-d", "500ms"], folder.path());
    // What nobody could measure is not undecided.
    let disturbed: Vec<_> = (0..4)
        .map(|number| {
            changed(&file, &format!("disturbed-{number}.json"), |run| {
                begin(run, number);
                warn(
                    run,
                    &json!([{ "name": "CLIENT_THROTTLED", "seconds": 0.1 }]),
                );
            })
        })
        .collect();
    let disturbed: Vec<&Path> = disturbed.iter().map(AsRef::as_ref).collect();
    let (code, told, _) = next(&disturbed, &["--margin=5%", "--max-trials=6"]);
    assert_eq!(code, Some(5), "{told}");
    // Of a window in which the new server answered nothing, no mean of the others makes up.
    let (code, told) = decided(&file, &[1.0, 1.0, 0.0, 1.0, 1.0, 1.0], &["--max-trials=6"]);
    assert!(
        code == Some(7) && told.contains("the rate is 0 in 1 round: nothing was answered then"),
        "{told}"
    );
    let unlike = (0..5).map(|number| {
        changed(
            &with_rates(&file, number, 1.0),
            &format!("unlike-{number}.json"),
            |run| {
                run["steps"][1]["settings"]["connections"] = json!(2);
            },
        )
    });
    let unlike: Vec<_> = unlike.collect();
    let unlike: Vec<&Path> = unlike.iter().map(AsRef::as_ref).collect();
    let (code, told, _) = next(&unlike, &["--margin=5%", "--max-trials=5"]);
    assert!(
        code == Some(7) && told.contains("give both the same --connections"),
        "{told}"
    );
}
