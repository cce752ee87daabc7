//! Secured connections: what is let in, and what is not.

mod common;

use std::{
    fs,
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Output,
    sync::Arc,
};

use common::{NO_FIRST_CALL, NO_METRICS, Server, eventually, load, netping, serve, stderr};
use netping_protocol::{
    pki::{Authority, Issued, LEAF, Role, Validity},
    tls::{self, ALPN_NETPING, ClientOptions},
};

/// The servers that speak TLS.
const SERVERS: [&str; 4] = ["threads", "tokio", "grpc", "quic"];

/// Certificates and keys of all sorts, in a folder of their own.
struct Pki {
    folder: tempfile::TempDir,
    authority: Authority,
}

impl Pki {
    fn new() -> Self {
        let pki = Self {
            folder: tempfile::tempdir().unwrap(),
            authority: Authority::new().unwrap(),
        };
        pki.write("ca", &pki.authority.ca_pem, 0o644);
        pki.write("other-ca", &Authority::new().unwrap().ca_pem, 0o644);
        pki.issue("server", Role::Server, "127.0.0.1", &LEAF);
        pki.issue("client", Role::Client, "client.example", &LEAF);
        pki
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn keep(&self, name: &str, issued: &Issued) {
        self.write(name, &issued.cert_pem, 0o644);
        self.write(&format!("{name}.key"), &issued.key_pem, 0o600);
    }

    fn issue(&self, name: &str, role: Role, host: &str, validity: &Validity) {
        self.keep(
            name,
            &self
                .authority
                .issue(role, &[host.to_owned()], validity)
                .unwrap(),
        );
    }

    /// Flags of a server with this certificate; `mutual`: it asks for the client's.
    fn serving(&self, name: &str, mutual: bool) -> Vec<String> {
        let mut flags = self.showing(name);
        if mutual {
            flags.extend(["--tls-client-ca".to_owned(), self.file("ca")]);
        }
        flags
    }

    /// Flags of whoever shows this certificate.
    fn showing(&self, name: &str) -> Vec<String> {
        [
            "--tls-cert",
            &self.file(name),
            "--tls-key",
            &self.file(&format!("{name}.key")),
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn trusting(&self, name: &str) -> Vec<String> {
        vec!["--tls-ca".to_owned(), self.file(name)]
    }
}

const EXPIRED: Validity = -10..-1;
const TOO_EARLY: Validity = 1..10;

fn start(kind: &str, flags: &[String]) -> Server {
    Server::start(kind, &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A few round trips.
fn ping(url: &str, flags: &[String]) -> Output {
    let fixed = [
        "latency",
        url,
        "--samples",
        "5",
        "--warmup",
        "0s",
        "--timeout",
        "5s",
    ];
    netping()
        .args(fixed)
        .args(NO_METRICS)
        .arg(NO_FIRST_CALL)
        .args(flags)
        .output()
        .unwrap()
}

/// The server's count of errors of this kind.
fn errors(server: &Server, kind: &str) -> u64 {
    let text = ureq::get(&server.metrics)
        .call()
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    let name = format!("netping_errors_total{{kind=\"{kind}\"}} ");
    text.lines()
        .find_map(|line| line.strip_prefix(&name)?.parse().ok())
        .unwrap_or(0)
}

fn await_errors(server: &Server, kind: &str, count: u64) {
    let what = format!("{}: {count} errors of kind {kind}", server.url);
    eventually(&what, || errors(server, kind) >= count);
}

/// The client does not get in: it says so, with its kind, and the server has served nothing.
fn assert_refused(what: &str, server: &Server, flags: &[String]) {
    let output = ping(&server.url, flags);
    let text = stderr(&output);
    assert!(
        matches!(output.status.code(), Some(1 | 3)),
        "{what}: {text}"
    );
    // A server without the key says nothing.
    let silent = server.url.starts_with("tcp+psk");
    let kind = if silent { "(eof)" } else { "tls" };
    assert!(text.contains(kind), "{what}: {text}");
    assert_eq!(server.requests(), 0, "{what}");
    await_errors(server, "tls", 1);
}

fn assert_served(what: &str, server: &Server, flags: &[String]) {
    let before = server.requests();
    let output = ping(&server.url, flags);
    assert!(output.status.success(), "{what}: {}", stderr(&output));
    assert_eq!(server.requests() - before, 5, "{what}");
}

#[test]
fn honest_clients_are_served_and_the_result_says_how() {
    let pki = Pki::new();
    for kind in SERVERS {
        let server = start(kind, &pki.serving("server", true));
        let file = pki.path("result.json");
        let flags = [
            pki.trusting("ca"),
            pki.showing("client"),
            vec!["--json".to_owned(), pki.file("result.json")],
        ];
        assert_served(kind, &server, &flags.concat());
        let security = &load(&file)["steps"][0]["security"];
        assert_eq!(security["server_verified"], true);
        assert_eq!(security["client_certificate"], true);
        assert!(
            security["protocol"].as_str().unwrap().ends_with("TLS 1.3"),
            "{security}"
        );
        if kind != "quic" {
            assert_eq!(security["key_exchange"], "X25519MLKEM768");
        }
    }
    // Both clients for gRPC.
    let server = start("grpc", &pki.serving("server", false));
    assert_served(
        "tonic",
        &server,
        &[pki.trusting("ca"), vec!["--grpc-client=tonic".to_owned()]].concat(),
    );
    let output = ping(&server.url, &["--tls-insecure".to_owned()]);
    assert!(
        output.status.success() && stderr(&output).contains("WARNING: --tls-insecure"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn clients_with_wrong_certificates_are_rejected() {
    let pki = Pki::new();
    let other = Authority::new().unwrap();
    pki.keep("foreign", &other.issue(Role::Client, &[], &LEAF).unwrap());
    pki.issue("expired", Role::Client, "client.example", &EXPIRED);
    pki.issue("early", Role::Client, "client.example", &TOO_EARLY);
    for kind in SERVERS {
        for certificate in [
            None,
            Some("foreign"),
            Some("expired"),
            Some("early"),
            Some("server"),
        ] {
            let server = start(kind, &pki.serving("server", true));
            let shown = certificate
                .map(|name| pki.showing(name))
                .unwrap_or_default();
            let what = format!("{kind}, {certificate:?}");
            assert_refused(&what, &server, &[pki.trusting("ca"), shown].concat());
            assert_served(
                &what,
                &server,
                &[pki.trusting("ca"), pki.showing("client")].concat(),
            );
        }
    }
}

#[test]
fn servers_with_wrong_certificates_are_rejected() {
    let pki = Pki::new();
    pki.issue("elsewhere", Role::Server, "server.example", &LEAF);
    pki.issue("expired", Role::Server, "127.0.0.1", &EXPIRED);
    pki.issue("early", Role::Server, "127.0.0.1", &TOO_EARLY);
    pki.issue("usage", Role::Client, "127.0.0.1", &LEAF);
    for kind in SERVERS {
        for certificate in ["elsewhere", "expired", "early", "usage"] {
            let server = start(kind, &pki.serving(certificate, false));
            assert_refused(
                &format!("{kind}, {certificate}"),
                &server,
                &pki.trusting("ca"),
            );
        }
        let server = start(kind, &pki.serving("server", false));
        assert_refused(kind, &server, &pki.trusting("other-ca"));
        assert_served(kind, &server, &pki.trusting("ca"));
    }
}

#[test]
fn mismatched_and_readable_keys_are_rejected_at_the_start() {
    let pki = Pki::new();
    fs::copy(pki.path("client.key"), pki.path("odd.key")).unwrap();
    fs::copy(pki.path("server"), pki.path("odd")).unwrap();
    fs::copy(pki.path("server"), pki.path("open")).unwrap();
    fs::copy(pki.path("server.key"), pki.path("open.key")).unwrap();
    fs::set_permissions(pki.path("open.key"), fs::Permissions::from_mode(0o640)).unwrap();
    for (name, says) in [("odd", "KeyMismatch"), ("open", "chmod 600")] {
        for kind in SERVERS {
            let output = serve(kind, &[])
                .args(pki.serving(name, false))
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(3), "{kind}: {}", stderr(&output));
            assert!(
                stderr(&output).contains(says),
                "{kind}: {}",
                stderr(&output)
            );
        }
        let output = ping(
            "tcp+tls://127.0.0.1:1",
            &[pki.trusting("ca"), pki.showing(name)].concat(),
        );
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let output = serve("quic", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--tls-self-signed"),
        "{}",
        stderr(&output)
    );
}

/// A ClientHello of TLS 1.2: without the extension that offers 1.3 (RFC 5246, section 7.4.1.2).
fn client_hello_of_tls12() -> Vec<u8> {
    let extensions = [
        &[0, 10, 0, 4, 0, 2, 0, 29][..],  // supported_groups: x25519
        &[0, 13, 0, 6, 0, 4, 4, 3, 8, 4], // signature_algorithms: ECDSA with P-256, RSA-PSS
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &[0, 4, 0xc0, 0x2b, 0xc0, 0x2f],
        &[1, 0],
        &(extensions.len() as u16).to_be_bytes(),
        &extensions,
    ]
    .concat();
    let handshake = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
    [
        &[0x16, 3, 1][..],
        &(handshake.len() as u16).to_be_bytes(),
        &handshake,
    ]
    .concat()
}

#[test]
fn invalid_handshakes_end_and_are_counted() {
    let pki = Pki::new();
    let hello = client_hello_of_tls12();
    for kind in ["threads", "tokio", "grpc"] {
        let server = start(kind, &pki.serving("server", false));
        let address = server.url.split("://").nth(1).unwrap();
        let openings = [&hello[..], &hello[..20], b"ping\n", &[0xA5; 300]];
        for (count, bytes) in (1..).zip(openings) {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = Vec::new();
            // Closed, or reset: no reply but an alert.
            let _ = stream.read_to_end(&mut reply);
            assert!(reply.is_empty() || reply[0] == 0x15, "{kind}: {reply:?}");
            await_errors(&server, "tls", count);
        }
        assert_eq!(server.requests(), 0, "{kind}");
        assert_served(kind, &server, &pki.trusting("ca"));
        // TLS where none is expected.
        let mut plain = Server::start(kind, &[]);
        plain.url = plain.url.replace("://", "+tls://");
        assert_refused(kind, &plain, &pki.trusting("ca"));
    }
    let server = start("quic", &pki.serving("server", false));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [1, 20, 1200, 1400] {
        socket
            .send_to(
                &vec![0xC5; length],
                server.url.strip_prefix("quic://").unwrap(),
            )
            .unwrap();
    }
    assert_served("quic", &server, &pki.trusting("ca"));
}

#[test]
fn silent_and_half_open_handshakes_end_by_their_deadline() {
    const EACH: usize = 100;
    let pki = Pki::new();
    for kind in SERVERS {
        let server = start(
            kind,
            &[
                pki.serving("server", false),
                vec!["--first-byte-timeout=300ms".to_owned()],
            ]
            .concat(),
        );
        let address = server.url.split("://").nth(1).unwrap();
        // A server that has just started would lose datagrams.
        assert_served(kind, &server, &pki.trusting("ca"));
        let hold: Box<dyn std::any::Any> = if kind == "quic" {
            Box::new(half_open_quic(address, EACH))
        } else {
            let hello = client_hello_of_tls12();
            let open = |number: usize| {
                let mut stream = TcpStream::connect(address).unwrap();
                // Every other is silent; the others stop within their first message.
                stream
                    .write_all(&hello[..if number.is_multiple_of(2) { 0 } else { 30 }])
                    .unwrap();
                stream
            };
            Box::new((0..EACH).map(open).collect::<Vec<_>>())
        };
        assert_served(kind, &server, &pki.trusting("ca"));
        await_errors(&server, "first_byte_timeout", EACH as u64);
        drop(hold);
    }
}

#[test]
fn the_requested_cipher_suite_is_used() {
    let pki = Pki::new();
    for kind in ["tokio", "grpc"] {
        let server = start(kind, &pki.serving("server", false));
        for (cipher, suite) in [
            ("aes128", "TLS13_AES_128_GCM_SHA256"),
            ("chacha20", "TLS13_CHACHA20_POLY1305_SHA256"),
        ] {
            let file = pki.path("run.json");
            let flags =
                ["--tls-cipher", cipher, "--json", file.to_str().unwrap()].map(str::to_owned);
            assert_served(cipher, &server, &[&pki.trusting("ca")[..], &flags].concat());
            assert_eq!(load(&file)["steps"][0]["security"]["cipher_suite"], suite);
        }
    }
    // QUIC does not report its suite, but must work with every one.
    let server = start("quic", &pki.serving("server", false));
    assert_served(
        "quic",
        &server,
        &[
            &pki.trusting("ca")[..],
            &["--tls-cipher", "chacha20"].map(str::to_owned),
        ]
        .concat(),
    );
}

/// Opens of which the server never hears again: only the first datagram of each is passed on to it.
fn half_open_quic(address: &str, count: usize) -> Vec<UdpSocket> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        };
        let tls = quinn::crypto::rustls::QuicClientConfig::try_from(
            tls::client(&options, &[ALPN_NETPING]).unwrap(),
        );
        let config = quinn::ClientConfig::new(Arc::new(tls.unwrap()));
        let mut sockets = Vec::new();
        for _ in 0..count {
            let between = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let _connecting = endpoint
                .connect_with(config.clone(), between.local_addr().unwrap(), "localhost")
                .unwrap();
            let mut datagram = [0; 2000];
            // A hello with a post-quantum key takes two datagrams; the server cannot answer one of
            // them.
            let length = between.recv(&mut datagram).await.unwrap();
            between.send_to(&datagram[..length], address).await.unwrap();
            sockets.push(between.into_std().unwrap());
        }
        sockets
    })
}

#[test]
fn only_holders_of_the_shared_key_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let out = folder.path().join(name);
        assert!(
            netping()
                .args(["certs", "--psk", "--out"])
                .arg(&out)
                .output()
                .unwrap()
                .status
                .success()
        );
        vec![
            "--psk-file".to_owned(),
            out.join("psk.key").to_str().unwrap().to_owned(),
        ]
    };
    let (ours, theirs) = (key("ours"), key("theirs"));
    let server = start("tokio", &ours);
    assert_refused("another key", &server, &theirs);
    assert_served("the key", &server, &ours);
    let output = ping(&server.url, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--psk-file"),
        "{}",
        stderr(&output)
    );
    fs::set_permissions(&ours[1], fs::Permissions::from_mode(0o604)).unwrap();
    let output = ping(&server.url, &ours);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains(&format!("chmod 600 {}", ours[1])),
        "{}",
        stderr(&output)
    );
}

#[test]
fn logs_contain_no_keys() {
    let pki = Pki::new();
    pki.write("psk", "0123456789abcdefghijklmnopqrstuv", 0o600);
    let key = fs::read_to_string(pki.path("server.key")).unwrap();
    let line = key.lines().nth(1).unwrap();
    let hex = "30313233343536373839";
    let shared = ["--psk-file".to_owned(), pki.file("psk")];
    for (kind, serving, trusting) in [
        (
            "tokio",
            &pki.serving("server", false)[..],
            &pki.trusting("ca")[..],
        ),
        (
            "grpc",
            &pki.serving("server", false)[..],
            &pki.trusting("ca")[..],
        ),
        (
            "quic",
            &pki.serving("server", false)[..],
            &pki.trusting("ca")[..],
        ),
        ("tokio", &shared[..], &shared[..]),
    ] {
        let log = pki.path("log");
        let mut command = serve(kind, &[]);
        command
            .args(serving)
            .env("RUST_LOG", "trace")
            .stderr(fs::File::create(&log).unwrap());
        let server = Server::spawn(&mut command);
        let output = netping()
            .args(["latency", &server.url, "--samples", "5", "--warmup", "0s"])
            .args(NO_METRICS)
            .args(trusting)
            .env("RUST_LOG", "trace")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        drop(server);
        let text = fs::read_to_string(&log).unwrap() + &stderr(&output);
        for secret in [
            line,
            "0123456789abcdefghijklmnopqrstuv",
            hex,
            "48, 49, 50, 51, 52",
        ] {
            assert!(!text.contains(secret), "{kind}: {secret}");
        }
    }
}

#[test]
fn connect_times_each_part() {
    let pki = Pki::new();
    let file = pki.path("result.json");
    for (kind, flags, phases) in [
        ("tokio", vec![], &["first_call", "tcp", "total"][..]),
        (
            "tokio",
            pki.serving("server", false),
            &["first_call", "handshake", "tcp", "total"],
        ),
        (
            "grpc",
            pki.serving("server", false),
            &["first_call", "handshake", "http2", "tcp", "total"],
        ),
        (
            "quic",
            pki.serving("server", false),
            &["first_call", "handshake", "total"],
        ),
    ] {
        let server = start(kind, &flags);
        let output = netping()
            .args([
                "connect",
                &server.url,
                "-n",
                "50",
                "-c",
                "2",
                "--warmup",
                "0s",
                "--json",
            ])
            .arg(&file)
            .args(NO_METRICS)
            .args(if flags.is_empty() {
                vec![]
            } else {
                pki.trusting("ca")
            })
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let run = load(&file);
        let connect = run["steps"][0]["connect"].as_object().unwrap();
        assert_eq!(connect.keys().collect::<Vec<_>>(), phases, "{kind}");
        for (phase, of) in connect {
            assert_eq!(of["time"]["count"], 50, "{kind} {phase}");
        }
        // The parts are no longer than the whole, but for the histograms' error. A busy machine puts time
        // between them.
        let mean = |phase: &str| {
            connect
                .get(phase)
                .map_or(0.0, |of| of["time"]["mean_ns"].as_f64().unwrap())
        };
        let parts: f64 = phases
            .iter()
            .filter(|phase| **phase != "total")
            .map(|phase| mean(phase))
            .sum();
        assert!(
            parts > 0.0 && parts <= mean("total") * 1.01,
            "{kind}: {connect:?}"
        );
    }
}

#[test]
fn tls_sessions_are_resumed_on_request() {
    let pki = Pki::new();
    for kind in ["threads", "tokio", "grpc"] {
        let server = start(kind, &pki.serving("server", false));
        for whether in ["on", "off"] {
            let file = pki.file("result.json");
            let flags = [
                "--repeat",
                "2",
                "--every",
                "0s",
                "--tls-resume",
                whether,
                "--json",
                &file,
            ]
            .map(str::to_owned);
            assert!(
                ping(&server.url, &[pki.trusting("ca"), flags.to_vec()].concat())
                    .status
                    .success()
            );
            let run = load(&pki.path("result.json"));
            assert_eq!(run["steps"][0]["security"]["resumed"], false, "{kind}");
            assert_eq!(
                run["steps"][1]["security"]["resumed"],
                whether == "on",
                "{kind}"
            );
            // The connections that are measured, not the one before them.
            let fresh = [
                "connect",
                &server.url,
                "-n",
                "20",
                "--warmup",
                "0s",
                "--tls-resume",
                whether,
                "--json",
                &file,
            ];
            assert!(
                netping()
                    .args(fresh)
                    .args(NO_METRICS)
                    .args(pki.trusting("ca"))
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
            assert_eq!(
                load(&pki.path("result.json"))["steps"][0]["security"]["resumed"],
                whether == "on",
                "{kind}"
            );
        }
    }
}
