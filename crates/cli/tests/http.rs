//! The `netping` binary against web servers, good and bad ones.

mod common;
mod web;

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use common::{PROTO, Server, assert_usage, misbehaving, netping, parse, run, stderr, stdout};
use netping_protocol::{
    secure::Acceptor,
    tls::{self, ALPN_H2, ALPN_HTTP1, Identity},
};
use serde_json::{Value, json};
use web::{
    GRPC, Site, close, keep, ok, read_head, read_request, read_until_request, serve_either,
    serve_grpc, serve_h3,
};

/// A short run of one caller, or of as many as the flags say: its only step, its exit code, and its
/// standard error.
fn measure(url: &str, flags: &[&str]) -> (Value, i32, String) {
    let callers: &[&str] = if flags.contains(&"-c") {
        &[]
    } else {
        &["-c", "1"]
    };
    let output = run(&[
        &["throughput", url, "--warmup", "0s", "--json", "-"],
        callers,
        flags,
    ]
    .concat());
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    let mut run = parse(&String::from_utf8(output.stdout).unwrap());
    (run["steps"][0].take(), output.status.code().unwrap(), text)
}

/// `requests` fail, all with this kind. Gives the number of connections opened in place of lost
/// ones, and what was said.
fn assert_all_fail(url: &str, flags: &[&str], requests: usize, kind: &str) -> (u64, String) {
    let count = requests.to_string();
    let (step, code, text) = measure(url, &[flags, &["--requests", &count]].concat());
    assert_eq!((code, &step["ok"]), (1, &json!(0)), "{text}");
    assert_eq!(step["errors"], json!({ kind: requests }), "{text}");
    (step["reconnects"].as_u64().unwrap(), text)
}

#[test]
fn requests_get_the_path_of_the_url_and_reuse_connections() {
    let site = Site::start(|mut stream| {
        let expected = format!(
            "GET /10k.bin?x=1 HTTP/1.1\r\nhost: {}\r\n\r\n",
            stream.local_addr().unwrap()
        );
        let mut count = 0;
        while let Some(head) = read_head(&mut stream) {
            assert_eq!(head, expected);
            stream
                .write_all(ok(&"x".repeat(10_000)).as_bytes())
                .unwrap();
            count += 1;
        }
        count
    });
    let url = site.url();
    let (step, code, text) = measure(&url, &["-c", "3", "--requests", "60"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(step["target"], url);
    let settings = &step["settings"];
    assert_eq!(
        (&settings["client"], &settings["payload_bytes"]),
        (&json!("http/1.1"), &json!(0))
    );
    assert_eq!(
        (&settings["response_bytes"], &settings["connections"]),
        (&Value::Null, &json!(3))
    );
    assert_eq!((&step["ok"], &step["reconnects"]), (&json!(60), &json!(0)));
    assert_eq!(step["ended_by_server"], 0);
    let counts = site.finish();
    assert_eq!((counts.len(), counts.iter().sum::<usize>()), (3, 60));
}

#[test]
fn a_connection_ended_by_the_server_is_replaced_without_an_error() {
    let announced = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\npong";
    let in_chunks = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npong\r\n0\r\n\r\n";
    let by_its_end = "HTTP/1.1 200 OK\r\n\r\npong";
    let of_old = "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npong";
    for (last, each) in [
        (announced, 1),
        (announced, 5),
        (in_chunks, 2),
        (by_its_end, 1),
        (of_old, 1),
    ] {
        let site = Site::answering(move |_, number| {
            if number < each {
                keep(ok("pong"))
            } else {
                close(last.to_owned())
            }
        });
        let (step, code, text) = measure(&site.url(), &["--requests", "20"]);
        assert_eq!((code, &step["ok"]), (0, &json!(20)), "{last}: {text}");
        let anew = 20 / each - 1;
        assert_eq!(
            (&step["reconnects"], &step["ended_by_server"]),
            (&json!(0), &json!(anew)),
            "{last}: {text}"
        );
        assert!(
            text.contains(&format!(
                "{anew} connections were opened because the server had ended"
            )),
            "{text}"
        );
        assert_eq!(site.finish(), vec![each; 20 / each], "{last}");
    }
}

#[test]
fn a_connection_serves_exactly_its_requests() {
    let site = Site::answering(|_, _| keep(ok("pong")));
    let flags = ["--requests", "100", "--requests-per-connection", "10"];
    assert_eq!(measure(&site.url(), &flags).1, 0);
    // The first one only showed that the server is there.
    assert_eq!(site.finish(), [&[0][..], &[10; 10]].concat());

    let site = Site::start(|stream| serve_either(stream, &Acceptor::Plain, usize::MAX));
    assert_eq!(
        measure(&site.url(), &[&flags[..], &["--http2"]].concat()).1,
        0
    );
    assert_eq!(site.finish(), [&[0][..], &[10; 10]].concat());
}

#[test]
fn each_failure_status_is_an_error_of_its_own() {
    for (status, kind) in [
        ("404 Not Found", "http_404"),
        ("500 Internal Server Error", "http_500"),
        ("302 Found", "http_302"),
    ] {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n");
        let going_on = format!("{head}\r\noops");
        let site = Site::answering(move |_, _| keep(going_on.clone()));
        let (reconnects, text) = assert_all_fail(&site.url(), &[], 30, kind);
        assert_eq!((reconnects, site.finish()), (0, vec![30]), "{text}");
        assert!(text.contains(status), "{text}");

        let ending = format!("{head}Connection: close\r\n\r\noops");
        let site = Site::answering(move |_, _| close(ending.clone()));
        let (reconnects, text) = assert_all_fail(&site.url(), &[], 10, kind);
        assert_eq!((reconnects, site.finish()), (0, vec![1; 10]), "{text}");
    }
}

#[test]
fn a_truncated_reply_is_an_eof() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\nConte",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ] {
        let site = Site::answering(move |_, _| close(text));
        let (reconnects, _) = assert_all_fail(&site.url(), &[], 5, "eof");
        assert_eq!((reconnects, site.finish()), (4, vec![1; 5]), "{text:?}");
    }
}

#[test]
fn invalid_http_is_a_protocol_error() {
    for text in [
        "0000\n",
        "SSH-2.0-OpenSSH_9.9\r\n",
        // An alert of TLS: what a server says that expects a handshake.
        "\x15\x03\x03\x00\x02\x02\x46",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let site = Site::answering(move |_, _| close(text));
        let (reconnects, _) = assert_all_fail(&site.url(), &[], 5, "protocol");
        assert_eq!((reconnects, site.finish()), (4, vec![1; 5]), "{text:?}");
    }
    // A server that does not speak HTTP/2 at all.
    let site = Site::saying(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert_all_fail(&site.url(), &["--http2"], 5, "protocol");
    site.finish();
}

#[test]
fn surplus_bytes_fail_the_next_request() {
    let site = Site::answering(|_, _| keep(ok("pong") + "and more"));
    let (step, _, text) = measure(&site.url(), &["--requests", "10"]);
    assert_eq!(
        (&step["ok"], &step["errors"]),
        (&json!(5), &json!({ "protocol": 5 })),
        "{text}"
    );
    // It was never sent.
    assert_eq!(site.finish(), vec![1; 5]);
}

#[test]
fn a_reply_of_another_length_than_the_first_is_a_mismatch() {
    let site = Site::answering(|_, number| keep(ok(if number <= 3 { "pong" } else { "pongs" })));
    let (step, code, text) = measure(&site.url(), &["--requests", "10"]);
    assert_eq!((code, &step["ok"]), (1, &json!(3)), "{text}");
    assert_eq!(step["errors"], json!({ "mismatch": 7 }));
    assert!(
        text.contains("a reply of 5 bytes, where the first one had 4"),
        "{text}"
    );
    // Also where each reply has a connection of its own.
    let cut = Arc::new(AtomicBool::new(false));
    let site = Site::answering(move |_, _| {
        close(ok(if cut.swap(true, Ordering::SeqCst) {
            "pon"
        } else {
            "pong"
        }))
    });
    let (step, _, text) = measure(
        &site.url(),
        &["--requests", "10", "--new-connection-per-request"],
    );
    assert_eq!(step["errors"], json!({ "mismatch": 9 }), "{text}");
    site.finish();
}

#[test]
fn a_proxy_with_replies_of_another_length_is_found_before_it_is_measured() {
    let direct = Site::answering(|_, _| keep(ok("pong")));
    let proxy = Site::answering(|_, _| keep(ok("<html>sorry</html>")));
    let (url, via) = (direct.url(), format!("proxy={}", proxy.url()));
    let output = run(&["proxy", "--direct", &url, "--via", &via, "--rate", "200"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("a reply of 18 bytes, where the first one had 4")
            && text.contains("a page of its own"),
        "{text}"
    );
    direct.finish();
    proxy.finish();
}

#[test]
fn callers_share_connections_of_http2() {
    let site = Site::start(|stream| serve_either(stream, &Acceptor::Plain, usize::MAX));
    let flags = [
        "--http2",
        "-c",
        "8",
        "--connections",
        "2",
        "--requests",
        "80",
    ];
    let (step, code, text) = measure(&site.url(), &flags);
    assert_eq!((code, &step["ok"]), (0, &json!(80)), "{text}");
    assert_eq!(
        (
            &step["settings"]["client"],
            &step["settings"]["connections"]
        ),
        (&json!("http/2"), &json!(2))
    );
    let counts = site.finish();
    assert_eq!((counts.len(), counts.iter().sum::<usize>()), (2, 80));
}

#[test]
fn goaway_is_an_error_only_within_a_request() {
    let site = Site::start(|stream| serve_either(stream, &Acceptor::Plain, 5));
    let (step, code, text) = measure(&site.url(), &["--http2", "--requests", "20"]);
    assert_eq!(
        (code, &step["ok"], &step["reconnects"]),
        (0, &json!(20), &json!(0)),
        "{text}"
    );
    assert_eq!(site.finish(), [5; 4]);

    // SETTINGS; then GOAWAY before any stream, with ENHANCE_YOUR_CALM (RFC 9113, sections 6.5 and
    // 6.8).
    let site = Site::saying(&[
        0, 0, 0, 4, 0, 0, 0, 0, 0, //
        0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11,
    ]);
    assert_all_fail(&site.url(), &["--http2"], 4, "goaway");
    site.finish();
}

#[test]
fn goaway_between_grpc_requests_is_no_error() {
    let site = Site::start(|stream| serve_grpc(stream, 5, GRPC));
    let (step, code, text) = measure(&format!("grpc://{}", site.address), &["--requests", "20"]);
    assert_eq!(
        (code, &step["ok"], &step["reconnects"]),
        (0, &json!(20), &json!(0)),
        "{text}"
    );
    assert_eq!(step["ended_by_server"], 3, "{text}");
    assert_eq!(site.finish(), [5; 4]);
}

#[test]
fn a_reply_of_another_type_is_none_of_grpc() {
    for kind in ["text/html", "application/grpc-web+proto"] {
        let site = Site::start(move |stream| serve_grpc(stream, usize::MAX, kind));
        let url = format!("grpc://{}", site.address);
        let method = format!("{url}/echopb.Echo/Echo");
        let schema = ["--proto", PROTO];
        for (url, flags) in [
            (&url, &[][..]),
            (&url, &["--grpc-client", "tonic"]),
            (&method, &schema[..]),
        ] {
            let (_, text) = assert_all_fail(url, flags, 5, "protocol");
            assert!(text.contains(kind), "{text}");
        }
    }
}

#[test]
fn an_http2_connection_that_ends_within_a_request_is_an_eof() {
    for (scheme, flags) in [
        ("http", &["--http2"][..]),
        ("grpc", &[]),
        ("grpc", &["--grpc-client", "tonic"]),
    ] {
        let site = Site::start(|mut stream| {
            if read_until_request(&mut stream).is_err() {
                return 0;
            }
            // An end, and no reset: nothing that comes is left unread.
            let _ = stream.shutdown(Shutdown::Write);
            while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
            1
        });
        let (reconnects, text) =
            assert_all_fail(&format!("{scheme}://{}", site.address), flags, 5, "eof");
        assert_eq!(
            (reconnects, site.finish()),
            (4, vec![1; 5]),
            "{scheme}: {text}"
        );
    }
}

fn secure_site(alpn: &[&[u8]]) -> Site {
    let config = tls::server(Identity::self_signed().unwrap(), None, alpn).unwrap();
    let acceptor = Acceptor::Tls(Arc::new(config));
    Site::start(move |stream| serve_either(stream, &acceptor, usize::MAX))
}

/// A case: the server's offer, the client's flags, and the protocol and client in the result.
type Case = (
    &'static [&'static [u8]],
    &'static [&'static str],
    &'static str,
    &'static str,
);

#[test]
fn over_tls_the_server_chooses_unless_http2_is_asked_for() {
    let (both, either) = ("HTTP/2, TLS 1.3", "http/2 or http/1.1");
    let cases: [Case; 5] = [
        (&[ALPN_H2, ALPN_HTTP1], &[], both, either),
        (&[ALPN_HTTP1, ALPN_H2], &[], "HTTP/1.1, TLS 1.3", either),
        (&[ALPN_HTTP1], &[], "HTTP/1.1, TLS 1.3", either),
        (&[], &[], "HTTP/1.1, TLS 1.3", either),
        (
            &[ALPN_HTTP1, ALPN_H2],
            &["--http2", "--connections", "2"],
            both,
            "http/2",
        ),
    ];
    for (alpn, flags, spoken, client) in cases {
        let site = secure_site(alpn);
        let url = site.url().replace("http://", "https://");
        let fixed = ["-c", "2", "--requests", "20", "--tls-insecure"];
        let (step, code, text) = measure(&url, &[&fixed, flags].concat());
        assert_eq!((code, &step["ok"]), (0, &json!(20)), "{text}");
        assert_eq!(
            (&step["security"]["protocol"], &step["settings"]["client"]),
            (&json!(spoken), &json!(client))
        );
        let counts = site.finish();
        assert_eq!(
            (counts.len(), counts.iter().sum::<usize>()),
            (2, 20),
            "{spoken}"
        );
    }
}

#[test]
fn servers_without_http2_or_tls_are_reported_at_the_start() {
    let refused = |site: Site, flags: &[&str], says: &str| {
        let url = site.url().replace("http://", "https://");
        let output = run(&[&["latency", &url, "--tls-insecure"], flags].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains(says) && text.contains("(tls)"), "{text}");
        assert!(site.finish().iter().all(|&requests| requests == 0));
    };
    refused(secure_site(&[ALPN_HTTP1]), &["--http2"], "cannot connect");
    refused(secure_site(&[]), &["--http2"], "did not choose h2");
    refused(
        Site::saying(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        &[],
        "cannot connect",
    );
}

#[test]
fn connect_times_each_part() {
    for (flag, phases) in [
        (None, &["first_call", "tcp", "total"][..]),
        (Some("--http2"), &["first_call", "http2", "tcp", "total"]),
    ] {
        let site = Site::start(move |stream| {
            if flag.is_some() {
                return serve_either(stream, &Acceptor::Plain, usize::MAX);
            }
            let mut stream = stream;
            let mut count = 0;
            while read_head(&mut stream).is_some() {
                stream.write_all(ok("pong").as_bytes()).unwrap();
                count += 1;
            }
            count
        });
        let url = site.url();
        let fixed = ["connect", &url, "-n", "20", "--warmup", "0s", "--json", "-"];
        let output = run(&[&fixed, flag.as_slice()].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let run = parse(&String::from_utf8(output.stdout).unwrap());
        let connect = run["steps"][0]["connect"].as_object().unwrap();
        assert_eq!(connect.keys().collect::<Vec<_>>(), phases);
        assert!(
            connect.values().all(|of| of["time"]["count"] == 20),
            "{connect:?}"
        );
        assert_eq!(site.finish(), [&[0][..], &[1; 20]].concat());
    }
}

#[test]
fn bodies_are_sent_in_turn_with_headers_and_a_method() {
    let site = Site::start(|mut stream| {
        let mut count = 0;
        while let Some((head, body)) = read_request(&mut stream) {
            assert!(head.starts_with("PUT /10k.bin?x=1 HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("x-key: a b\r\n"), "{head}");
            assert_eq!(body, format!("{{\"n\": {count}}}"));
            // Of another length from the tenth on.
            stream.write_all(ok(&body).as_bytes()).unwrap();
            count += 1;
        }
        count
    });
    let data = ["-X", "PUT", "-H", "X-Key: a b", "--data", "{\"n\": {{n}}}"];
    let flags = [&data[..], &["--requests", "20"]].concat();
    let (step, code, text) = measure(&site.url(), &flags);
    assert_eq!((code, &step["ok"]), (0, &json!(20)), "{text}");
    let settings = &step["settings"];
    assert_eq!(settings["http_method"], "PUT");
    assert_eq!(
        (&settings["bodies"], &settings["body_order"]),
        (&json!(4096), &json!("turn"))
    );
    assert_eq!(settings["headers"], json!(["x-key"]));
    assert_eq!(site.finish(), [20]);
}

#[test]
fn a_post_over_http2_has_its_body() {
    let site = Site::start(|stream| serve_grpc(stream, usize::MAX, GRPC));
    let url = site.url();
    let echoed = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&echoed, "0123456789").unwrap();
    let expect = ["--expect", echoed.path().to_str().unwrap()];
    let flags = ["--http2", "--data", "0123456789", "--requests", "30"];
    let (step, code, text) = measure(&url, &[&flags[..], &expect].concat());
    assert_eq!((code, &step["ok"]), (0, &json!(30)), "{text}");
    assert_eq!(
        (
            &step["settings"]["http_method"],
            &step["settings"]["payload_bytes"]
        ),
        (&json!("POST"), &json!(10))
    );
}

#[test]
fn replies_are_good_by_the_status_and_the_contents_that_are_expected() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "hello").unwrap();
    let path = file.path().to_str().unwrap();
    let site = Site::answering(|_, _| keep(ok("hello")));
    let (step, ..) = measure(&site.url(), &["--requests", "10", "--expect", path]);
    assert_eq!(step["ok"], 10);
    let site = Site::answering(|_, count| keep(ok(&"h".repeat(count))));
    let (step, ..) = measure(&site.url(), &["--requests", "10", "--expect-body", "any"]);
    assert_eq!(step["ok"], 10);
    let site = Site::answering(|_, _| keep(ok("hallo")));
    let flags = ["--expect", path];
    let (_, text) = assert_all_fail(&site.url(), &flags, 10, "mismatch");
    assert!(
        text.contains("differs from the expected 5 from byte 1 on"),
        "{text}"
    );
    let gone = "HTTP/1.1 301 Moved Permanently\r\nlocation: /\r\ncontent-length: 0\r\n\r\n";
    let site = Site::answering(move |_, _| keep(gone));
    let (step, ..) = measure(
        &site.url(),
        &["--requests", "10", "--expect-status", "200,301"],
    );
    assert_eq!(step["ok"], 10);
    assert_all_fail(&site.url(), &[], 10, "http_301");
}

#[test]
fn requests_over_http3_share_connections() {
    let address = serve_h3(Identity::self_signed().unwrap(), u32::MAX);
    let url = format!("https://{address}/x");
    let echoed = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&echoed, "0123456789").unwrap();
    let expect = echoed.path().to_str().unwrap();
    let flags = ["--http3", "--tls-insecure", "-c", "8", "--connections", "2"];
    let load = [
        "--data",
        "0123456789",
        "--expect",
        expect,
        "--requests",
        "200",
    ];
    let (step, code, text) = measure(&url, &[&flags[..], &load].concat());
    assert_eq!((code, &step["ok"]), (0, &json!(200)), "{text}");
    assert_eq!(step["settings"]["connections"], 2);
    assert_eq!(step["security"]["protocol"], "HTTP/3, QUIC v1, TLS 1.3");
    // A server of QUIC without HTTP/3.
    let server = Server::start("quic", &["--tls-self-signed"]);
    let other = server.url.replace("quic://", "https://");
    let output = run(&["latency", &other, "--http3", "--tls-insecure"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("does the server offer HTTP/3"),
        "{}",
        stderr(&output)
    );
    assert_usage(&[(
        "latency http://127.0.0.1:1/ --http3",
        "--http3 is for https://",
    )]);
}

#[test]
fn goaway_between_requests_over_http3_is_no_error() {
    let address = serve_h3(Identity::self_signed().unwrap(), 5);
    let url = format!("https://{address}/");
    let flags = ["--http3", "--tls-insecure", "--requests", "20"];
    let (step, code, text) = measure(&url, &flags);
    assert_eq!(
        (code, &step["ok"], &step["reconnects"]),
        (0, &json!(20), &json!(0)),
        "{text}"
    );
    assert_eq!(step["ended_by_server"], 3, "{text}");
}

#[test]
fn a_unix_socket_is_connected_to_instead_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.sock");
    let name = format!("netping-test-{}", std::process::id());
    let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
    for (listener, flag) in [
        (
            UnixListener::bind(&path).unwrap(),
            path.display().to_string(),
        ),
        (
            UnixListener::bind_addr(&abstract_name).unwrap(),
            format!("@{name}"),
        ),
    ] {
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            while stream.read(&mut request).is_ok_and(|read| read > 0) {
                stream.write_all(ok("pong").as_bytes()).unwrap();
            }
        });
        let flags = ["--requests", "10", "--unix-socket", &flag];
        let (step, code, text) = measure("http://app/x", &flags);
        assert_eq!((code, &step["ok"]), (0, &json!(10)), "{text}");
        assert_eq!(step["settings"]["unix_socket"], flag);
    }
    let output = run(&["latency", "http://app/", "--unix-socket", "/nowhere.sock"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("(refused)"), "{}", stderr(&output));
}

#[test]
fn sampled_replies_are_shown_and_not_measured() {
    let site = Site::answering(|_, count| keep(ok(&format!("reply {count}"))));
    let url = site.url();
    let flags = [
        "throughput",
        &url,
        "-c",
        "1",
        "--warmup",
        "0s",
        "--requests",
        "5",
    ];
    let output = netping()
        .args(flags)
        .args(["--sample-replies", "2"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for shown in ["reply 1", "reply 2"] {
        assert!(text.contains(&format!("reply of {url}: {shown}")), "{text}");
    }
    assert!(!text.contains("reply 3"), "{text}");
    assert_eq!(site.finish(), [2, 5]);
}

#[test]
fn flags_that_do_not_apply_to_http_are_rejected() {
    assert_usage(&[
        (
            "latency http://127.0.0.1:1/ --payload 8",
            "--payload is for requests to netping's own servers: an HTTP request has the body that --data gives",
        ),
        (
            "connect https://127.0.0.1:1/ --response 8",
            "--response is for requests to netping's own servers",
        ),
        (
            "latency http://127.0.0.1:1/ --framing line",
            "--framing is for requests to netping's own servers",
        ),
        (
            "latency tcp://127.0.0.1:1 --http2",
            "--http2 is for http:// and https://",
        ),
        (
            "throughput http://127.0.0.1:1/ -c 2 --connections 1",
            "quic://, --http2 and --http3",
        ),
        (
            "throughput tcp://127.0.0.1:1 --expect-status 204",
            "--expect-status is for http:// and https://",
        ),
        (
            "throughput quic://127.0.0.1:1 --data x",
            "--data is for gRPC methods, http:// and https://, and quic://127.0.0.1:1 is none",
        ),
        (
            "latency http://127.0.0.1:1/ -H x",
            "a header looks like 'name: value'",
        ),
        ("latency http://127.0.0.1:1/x#y", "without a fragment"),
        (
            "latency http://me:secret@127.0.0.1:1/",
            "without a user name",
        ),
        (
            "latency tcp://127.0.0.1:1/x",
            "only HOST:PORT, without a path",
        ),
    ]);
}

/// Serves streams of five events, 20 ms apart, the third after 100 ms more; a comment comes between.
fn event_streams() -> String {
    misbehaving("http", |mut stream| {
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|read| read > 0) {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            let mut send = |text: &str| stream.write_all(text.as_bytes()).is_ok();
            if !send(head) {
                return;
            }
            for number in 0..5 {
                let pause = if number == 2 { 120 } else { 20 };
                send(&chunk(": alive\n\n"));
                thread::sleep(Duration::from_millis(pause));
                send(&chunk(&format!("data: {number}\n\n")));
            }
            if !send("0\r\n\r\n") {
                return;
            }
        }
    })
}

/// Measures streams of events with this load, and expects an exit code; returns the only step.
fn events(url: &str, load: [&str; 4], code: i32) -> Value {
    let fixed = ["throughput", url, "--events", "--warmup", "0s"];
    let output = run(&[&fixed[..], &load, &["--json", "-"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    parse(&stdout(&output))["steps"][0].take()
}

#[test]
fn events_have_their_times() {
    let url = event_streams();
    let step = events(&url, ["-c", "2", "--requests", "20"], 0);
    assert_eq!(step["settings"]["events"], true);
    let messages = &step["messages"];
    let count = |times: &str| messages[times]["time"]["count"].clone();
    assert_eq!([count("first_message"), count("message_gap")], [20, 80]);
    let at_least = |times: &str, quantile: &str, least: u64| {
        let time = messages[times]["time"][quantile].as_u64().unwrap();
        assert!(time >= least, "{times} {quantile}: {time}");
    };
    at_least("first_message", "min_ns", 19_000_000);
    at_least("message_gap", "p50_ns", 19_000_000);
    at_least("message_gap", "max_ns", 119_000_000);
}

#[test]
fn a_reply_without_events_is_no_stream_of_them() {
    let url = misbehaving("http", |mut stream| {
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|read| read > 0) {
            let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n: nothing\n\n\n";
            if stream.write_all(reply).is_err() {
                return;
            }
        }
    });
    let step = events(&url, ["-c", "1", "--requests", "5"], 1);
    assert_eq!(step["errors"]["mismatch"], 5);
}
