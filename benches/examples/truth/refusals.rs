//! Refusals: mistakes that a number must not come of.

use std::fs;

use netping_benches::processes::{Server, netping, plain};

use crate::{Tell, Truth};

/// Runs of each mistake.
const RUNS: usize = 20;

/// Makes each mistake.
pub fn check(tell: Tell<'_>) {
    tell(wrong_protocol());
    tell(unlike_trials());
}

fn wrong_protocol() -> Truth {
    let server = Server::start("grpc", &[]);
    let url = format!("tcp://{}", server.address());
    let right = (0..RUNS)
        .filter(|_| {
            let said = netping(&[
                "throughput",
                &url,
                "-c",
                "4",
                "-d",
                "300ms",
                "--warmup",
                "0s",
            ]);
            said.output.status.code() == Some(3)
                && said.text().contains("the server there speaks HTTP/2")
        })
        .count();
    Truth {
        what: "wrong protocol: tcp:// to a gRPC server".to_owned(),
        expected: format!("no load, and the protocol that the server speaks, {RUNS} of {RUNS}"),
        found: format!("{right} of {RUNS}"),
        passed: Some(right == RUNS),
    }
}

/// Two runs whose requests differ in size must not be compared.
fn unlike_trials() -> Truth {
    let server = Server::start("tokio", &["--workers", "1"]);
    let folder = tempfile::tempdir().expect("a folder");
    let measure = |payload: &str| {
        let path = folder.path().join(payload);
        let fixed = ["throughput", &server.url, "-d", "300ms", "--warmup", "0s"];
        let flags = ["-c", "4", "--payload", payload];
        let said = netping(&[&fixed[..], &flags].concat());
        fs::write(&path, said.run.to_string()).expect("a result");
        path.to_string_lossy().into_owned()
    };
    let right = (0..RUNS)
        .filter(|_| {
            let [first, second] = ["16", "1000"].map(measure);
            let output = plain(&["compare", &first, &second]);
            let text = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&text).contains("nothing to compare")
        })
        .count();
    Truth {
        what: "compare: payloads of 16 and 1,000 bytes".to_owned(),
        expected: format!("refused, {RUNS} of {RUNS}"),
        found: format!("{right} of {RUNS}"),
        passed: Some(right == RUNS),
    }
}
