//! Servers that are hostile to the client.

use std::{
    future, io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use netping_benches::processes::{Client, Said, time_of_day};
use netping_protocol::secure::Acceptor;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use quinn::{Endpoint, Incoming, ServerConfig, VarInt, crypto::rustls::QuicServerConfig};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
};

use crate::{Fault, Kind, Outcome, outcome::Verdict, peer, quic::ANY, restarts::Accounts};

pub const FAULTS: [Fault; 5] = [
    Fault {
        what: "a server that answers garbage",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, Manner::Garbage),
    },
    Fault {
        what: "a server whose handshake is garbage",
        promised: "ends within 6 s with exit code 3, in bulk too",
        servers: Kind::is_secure_client,
        try_it: |kind| hostile(kind, Manner::NoHandshake),
    },
    Fault {
        what: "a server that closes at once",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, Manner::Close),
    },
    Fault {
        what: "a server that resets after a byte",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, Manner::Reset),
    },
    Fault {
        what: "a server that never answers",
        promised: ENDS,
        servers: Kind::is_client,
        try_it: |kind| hostile(kind, Manner::Silence),
    },
];

const ENDS: &str =
    "ends within 6 s with exit code 3, without a first call and in bulk with 1, accounts add up";

/// Longest time of a run of half a second, in seconds; and the time after which one hangs.
const WITHIN: f64 = 6.0;
const HANGS: Duration = Duration::from_secs(20);

/// The handshake of a hostile server.
#[derive(Clone)]
pub enum Handshake {
    /// On TCP connections.
    Tcp(Acceptor),
    /// QUIC, with TLS.
    Quic(Arc<QuicServerConfig>),
}

/// The manner in which a server treats each connection, or each stream of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Whatever comes is answered with random bytes.
    Garbage,
    /// Such bytes take the place of the handshake.
    NoHandshake,
    Close,
    Reset,
    /// Whatever comes is read, and nothing is said.
    Silence,
}

impl Manner {
    /// Treats a connection or a stream.
    async fn treat(self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Garbage | Self::NoHandshake => {
                let mut random = ChaCha8Rng::seed_from_u64(7);
                let (mut bytes, mut request) = ([0; 4096], [0; 4096]);
                while stream.read(&mut request).await? > 0 {
                    random.fill_bytes(&mut bytes);
                    stream.write_all(&bytes).await?;
                    stream.flush().await?;
                }
            }
            Self::Close => {}
            Self::Reset => {
                stream.read_u8().await?;
                stream.write_u8(0).await?;
                stream.flush().await?;
            }
            Self::Silence => {
                tokio::io::copy(stream, &mut tokio::io::sink()).await?;
                // A stream of QUIC is only half over.
                future::pending::<()>().await;
            }
        }
        Ok(())
    }

    /// Treats a connection over TCP.
    async fn over_tcp(self, acceptor: &Acceptor, mut tcp: TcpStream) -> io::Result<()> {
        if self == Self::NoHandshake {
            return self.treat(&mut tcp).await;
        }
        if self == Self::Reset {
            // Then its end is a reset.
            tcp.set_zero_linger()?;
        }
        let accepted = acceptor.accept(tcp).await;
        let mut stream = accepted.map_err(|(error, _)| error)?;
        self.treat(&mut stream).await
    }

    /// Treats a connection over QUIC, and each of its streams.
    async fn over_quic(self, incoming: Incoming) -> io::Result<()> {
        let connection = incoming.await?;
        if self == Self::Close {
            connection.close(VarInt::from_u32(0), b"");
            return Ok(());
        }
        loop {
            let (send, recv) = connection.accept_bi().await?;
            tokio::spawn(async move {
                let mut stream = tokio::io::join(recv, send);
                // The client may break off first.
                let _ = self.treat(&mut stream).await;
                if self == Self::Reset {
                    let _ = stream.writer_mut().reset(VarInt::from_u32(1));
                }
            });
        }
    }
}

/// Starts a server, until this process ends; returns its address.
fn server(kind: &Kind, manner: Manner) -> String {
    let handshake = kind.hostile.clone().expect("a client under test");
    let (bound, address) = mpsc::channel();
    thread::spawn(move || {
        let bound = |address: io::Result<SocketAddr>| {
            let address = address.expect("an address").to_string();
            bound.send(address).expect("a receiver");
        };
        peer::runtime().block_on(async {
            match handshake {
                Handshake::Tcp(acceptor) => {
                    let listener = TcpListener::bind(ANY).await.expect("a port");
                    bound(listener.local_addr());
                    while let Ok((tcp, _)) = listener.accept().await {
                        let acceptor = acceptor.clone();
                        tokio::spawn(async move { manner.over_tcp(&acceptor, tcp).await });
                    }
                }
                Handshake::Quic(_) if manner == Manner::NoHandshake => {
                    let socket = UdpSocket::bind(ANY).await.expect("a port");
                    bound(socket.local_addr());
                    let mut random = ChaCha8Rng::seed_from_u64(7);
                    let (mut bytes, mut datagram) = ([0; 1200], [0; 1500]);
                    while let Ok((_, client)) = socket.recv_from(&mut datagram).await {
                        random.fill_bytes(&mut bytes);
                        // The client's socket may be gone.
                        let _ = socket.send_to(&bytes, client).await;
                    }
                }
                Handshake::Quic(tls) => {
                    let config = ServerConfig::with_crypto(tls);
                    let endpoint = Endpoint::server(config, ANY).expect("a port");
                    bound(endpoint.local_addr());
                    while let Some(incoming) = endpoint.accept().await {
                        tokio::spawn(manner.over_quic(incoming));
                    }
                }
            }
        });
    });
    address.recv().expect("an address")
}

/// Runs a load with the first call, one without it, and bulk streams both ways.
fn hostile(kind: &Kind, manner: Manner) -> Outcome {
    let url = format!("{}://{}", kind.scheme.as_str(), server(kind, manner));
    // After a handshake, the load begins.
    let begun = if manner == Manner::NoHandshake { 3 } else { 1 };
    let further = |outcome: Outcome, what: &str, further: &Outcome| {
        let kept = further.verdict == Verdict::Kept;
        outcome.and(kept, &format!("{what} {}", further.came))
    };
    let (with, without) = thread::scope(|scope| {
        let with = scope.spawn(|| load(kind, &url, &[], 3));
        let without = load(kind, &url, &["--no-first-call"], begun);
        (with.join().expect("no panic"), without)
    });
    let mut all = further(with, "without a first call", &without);
    if kind.is_bulk_client() {
        for direction in ["down", "up"] {
            all = further(all, direction, &bulk(kind, &url, direction, begun));
        }
    }
    all
}

/// Runs a load that is to end with this exit code.
fn load(kind: &Kind, url: &str, flags: &[&str], code: i32) -> Outcome {
    let run = ["throughput", url, "-c", "2", "-d", "500ms"];
    client_ends(kind, &[&run[..], flags].concat(), code, |said| {
        let accounts = Accounts::of(said);
        (accounts.words(), accounts.add_up())
    })
}

/// Runs a bulk stream in this direction that is to end with this exit code.
fn bulk(kind: &Kind, url: &str, direction: &str, code: i32) -> Outcome {
    let run = ["bulk", url, "--size", "1MiB", "--runs", "1"];
    let direction = ["--direction", direction];
    client_ends(kind, &[&run[..], &direction].concat(), code, |_| {
        ("a stream".to_owned(), true)
    })
}

/// Runs a client that is to end with this exit code. Where it has measured anything, `account` says what came of it,
/// and whether that is as it should be.
fn client_ends(
    kind: &Kind,
    words: &[&str],
    code: i32,
    account: impl Fn(&Said) -> (String, bool),
) -> Outcome {
    let limits = ["--timeout", "500ms", "--server-metrics", "off"];
    let begun = time_of_day();
    let client = Client::start(&[words, &limits, &kind.client()].concat());
    let pid = Pid::from_raw(client.id().cast_signed());
    let (ended, ends) = mpsc::channel();
    thread::spawn(move || ended.send(client.finish()));
    let Ok(said) = ends.recv_timeout(HANGS) else {
        let _ = kill(pid, Signal::SIGKILL);
        return Outcome::new(false, "does not end");
    };
    let took = time_of_day() - begun;
    let ended = said.output.status.code();
    // Without a connection, there is no step.
    let (came, is_right) = if said.step().is_null() {
        ("not begun".to_owned(), code == 3)
    } else {
        account(&said)
    };
    let came = format!("{came}; exit {}, {took:.1} s", ended.unwrap_or(-1));
    Outcome::new(is_right && took <= WITHIN && ended == Some(code), came)
}
