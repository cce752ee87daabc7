//! `netping report`: result files as pages and charts.

mod common;

use std::{fs, path::Path, process::Output};

use common::{Server, load, netping, run, stderr, stdout};

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
