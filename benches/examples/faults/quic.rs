//! QUIC peers that say nothing, too little or nonsense, that take no bytes, and that reset what they
//! ask for.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use netping_benches::processes::{Server, time_of_day};
use netping_protocol::{
    frame::{Reply, RequestHeader},
    secure::Connector,
};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, TransportConfig, VarInt,
    crypto::rustls::QuicClientConfig,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use tokio::{
    task::{JoinSet, yield_now},
    time,
};

use crate::{
    Fault, Kind, Outcome,
    closings::{IDLE, REPLY, SHORT, by_deadline},
    counted,
    limits::drained,
    memory::{LOOK, Moment, held, rest},
    peer::{self, PATIENCE},
};

pub const FAULTS: [Fault; 10] = [
    Fault {
        what: "half a request on a QUIC stream",
        promised: "ended after 1 to 4 s, counted",
        servers: Kind::is_quic,
        try_it: half_request,
    },
    Fault {
        what: "nothing but a QUIC PING every 300 ms",
        promised: "closed after 1 to 4 s, counted",
        servers: Kind::is_quic,
        try_it: pings,
    },
    Fault {
        what: "10,000 random datagrams",
        promised: "at most 16 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: garbage,
    },
    Fault {
        what: "100 QUIC streams of 16 MiB, never read, and 3 MiB more sent on each",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: unread,
    },
    Fault {
        what: "100 QUIC streams of 16 MiB, none of it acknowledged",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: unacknowledged,
    },
    Fault {
        what: "2,000 QUIC streams, half a request of 100 kB on each",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: unfinished,
    },
    Fault {
        what: "100 QUIC streams, 3 MiB of a request on each",
        promised: "at most 192 MiB more memory, counted, others served",
        servers: Kind::is_quic,
        try_it: long_unfinished,
    },
    Fault {
        what: "replies on a QUIC stream, never read",
        promised: "closed after 1 to 4 s, counted",
        servers: Kind::is_quic,
        try_it: untaken,
    },
    Fault {
        what: "3,000 QUIC streams, each reset",
        promised: "at most 64 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: resets,
    },
    Fault {
        what: "a QUIC stream of 16 MiB never read, SIGTERM, --drain-timeout 2s",
        promised: "ended with 0 after 2 to 3 s",
        servers: Kind::is_quic,
        try_it: stuck,
    },
];

/// A connection of a peer that nothing but the server holds back, and its socket.
pub struct Peer {
    pub connection: Connection,
    pub endpoint: Endpoint,
}

/// Any port of this host.
pub const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl Peer {
    /// Waits until it sends nothing more: the server has all of it, or takes no more.
    pub async fn comes_to_rest(&self) {
        let sent = || self.connection.stats().udp_tx.bytes;
        let mut before = 0;
        while sent() > before {
            before = sent();
            time::sleep(LOOK).await;
        }
    }
}

/// Connects, with no window for replies, and sends a PING at this interval, if any.
async fn connected(kind: &Kind, server: &Server, ping: Option<Duration>) -> Peer {
    connected_with(kind, server, VarInt::from_u32(1), ping).await
}

/// Connects, with this window for the replies of each stream.
pub async fn connected_with(
    kind: &Kind,
    server: &Server,
    window: VarInt,
    ping: Option<Duration>,
) -> Peer {
    let endpoint = Endpoint::client(ANY).expect("a socket");
    let address = server.address().parse().expect("an address");
    let connecting = endpoint.connect_with(config(kind, window, ping), address, "localhost");
    let connection = connecting.expect("a valid name").await;
    Peer {
        connection: connection.expect("a connection"),
        endpoint,
    }
}

/// Returns the configuration of a client with this window for the replies of each stream.
pub fn config(kind: &Kind, window: VarInt, ping: Option<Duration>) -> ClientConfig {
    let Connector::Tls(tls, _) = &kind.connector else {
        unreachable!("QUIC without TLS");
    };
    let tls = QuicClientConfig::try_from(Arc::clone(tls)).expect("TLS 1.3");
    let mut config = ClientConfig::new(Arc::new(tls));
    let mut transport = TransportConfig::default();
    transport
        .receive_window(VarInt::MAX)
        .stream_receive_window(window)
        .send_window(u64::MAX)
        .keep_alive_interval(ping);
    config.transport_config(Arc::new(transport));
    config
}

/// Returns a request for this many bytes whose payload has this length, up to the payload.
pub fn request(payload: u32, reply: u32) -> [u8; 8] {
    let header = RequestHeader {
        payload,
        reply: Reply::Bytes(reply),
    };
    header.encode()
}

/// Returns a request for 16 MiB, of one byte.
fn large_request() -> Vec<u8> {
    [&request(1, 16 << 20)[..], b"x"].concat()
}

fn half_request(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let ended = peer::runtime().block_on(async {
        let peer = connected(kind, &server, None).await;
        let begun = time_of_day();
        let (mut send, mut recv) = peer.connection.open_bi().await.expect("a stream");
        send.write_all(b"\0\0").await.expect("bytes");
        let end = time::timeout(PATIENCE, recv.read_to_end(1 << 10)).await;
        end.is_ok().then(|| time_of_day() - begun)
    });
    by_deadline(&server, kind, ended)
}

fn pings(kind: &Kind) -> Outcome {
    let server = kind.start(&IDLE);
    let ended = peer::runtime().block_on(async {
        let begun = time_of_day();
        let peer = connected(kind, &server, Some(Duration::from_millis(300))).await;
        let end = time::timeout(PATIENCE, peer.connection.closed()).await;
        end.is_ok().then(|| time_of_day() - begun)
    });
    by_deadline(&server, kind, ended)
}

fn garbage(kind: &Kind) -> Outcome {
    held(kind, &[], 16.0, async |server, hold| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut bytes = [0; 1200];
        let sending = async {
            for at in 0..10_000 {
                random.fill_bytes(&mut bytes);
                if at % 2 == 0 {
                    // The beginning of a first packet: a long header, version 1.
                    bytes[..5].copy_from_slice(&[0xC0, 0, 0, 0, 1]);
                }
                // A full socket loses it, as a network may.
                let _ = socket.send_to(&bytes, server.address());
                yield_now().await;
            }
        };
        tokio::join!(sending, hold.others(Moment::Now));
    })
    .outcome
}

fn unread(kind: &Kind) -> Outcome {
    held(kind, &[], 160.0, async |server, hold| {
        let peer = connected(kind, server, None).await;
        let more = Bytes::from(vec![0; 3 << 20]);
        let mut streams = JoinSet::new();
        for _ in 0..100 {
            let (mut send, recv) = peer.connection.open_bi().await.expect("a stream");
            let mut parts = [large_request().into(), more.clone()];
            streams.spawn(async move {
                // The server need not take it.
                let _ = send.write_all_chunks(&mut parts).await;
                (send, recv)
            });
        }
        peer.comes_to_rest().await;
        hold.others(Moment::Rest).await;
    })
    .outcome
}

/// Has all that it asks for sent, and is gone.
fn unacknowledged(kind: &Kind) -> Outcome {
    held(kind, &[], 160.0, async |server, hold| {
        let runtime = peer::runtime();
        // On a thread of its own, since this runtime is not to go on.
        let peer = thread::scope(|scope| {
            let asking = async { time::timeout(PATIENCE, asked(kind, server)).await };
            let asking = scope.spawn(|| runtime.block_on(asking));
            asking.join().expect("an end").expect("100 requests")
        });
        hold.others(Moment::Rest).await;
        drop(peer);
        runtime.shutdown_background();
    })
    .outcome
}

/// Asks for 100 replies of 16 MiB on as many streams, and returns when the server makes them.
async fn asked(kind: &Kind, server: &Server) -> (Peer, Vec<(SendStream, RecvStream)>) {
    let before = server.requests();
    let peer = connected_with(kind, server, VarInt::MAX, None).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        let (mut send, recv) = peer.connection.open_bi().await.expect("a stream");
        send.write_all(&large_request()).await.expect("a request");
        streams.push((send, recv));
    }
    while server.requests() < before + 100 {
        time::sleep(Duration::from_millis(1)).await;
    }
    (peer, streams)
}

/// Bytes that are sent of each request, which has 16 MiB.
const PART: usize = 100_000;

fn unfinished(kind: &Kind) -> Outcome {
    let held = held(kind, &[], 160.0, async |server, hold| {
        let peer = connected(kind, server, None).await;
        let request = [&request(16 << 20, 1)[..], &vec![0; PART]].concat();
        let mut streams = Vec::new();
        let sending = async {
            while streams.len() < 2000 {
                let (mut send, recv) = peer.connection.open_bi().await.expect("a stream");
                send.write_all(&request).await.expect("a request");
                streams.push((send, recv));
            }
        };
        // The server may allow no more of them.
        let _ = time::timeout(Duration::from_secs(2), sending).await;
        peer.comes_to_rest().await;
        hold.others(Moment::Rest).await;
        streams.len()
    });
    let came = format!("{} streams", held.result);
    held.outcome.and(held.result > 0, &came)
}

fn long_unfinished(kind: &Kind) -> Outcome {
    let held = held(kind, &[], 192.0, async |server, hold| {
        let peer = connected(kind, server, None).await;
        let more = Bytes::from(vec![0; 3 << 20]);
        let mut streams = JoinSet::new();
        for _ in 0..100 {
            let (mut send, recv) = peer.connection.open_bi().await.expect("a stream");
            let mut parts = [request(16 << 20, 1).to_vec().into(), more.clone()];
            streams.spawn(async move {
                // The server need not take it.
                let _ = send.write_all_chunks(&mut parts).await;
                (send, recv)
            });
        }
        peer.comes_to_rest().await;
        hold.others(Moment::Rest).await;
    });
    let counted = counted(&held.server);
    held.outcome.and(counted.contains("max_held"), &counted)
}

/// Asks for more than the server keeps for it.
fn untaken(kind: &Kind) -> Outcome {
    let server = kind.start(&REPLY);
    let ended = peer::runtime().block_on(async {
        let peer = connected(kind, &server, None).await;
        let begun = time_of_day();
        let (mut send, _recv) = peer.connection.open_bi().await.expect("a stream");
        let requests = large_request().repeat(3);
        send.write_all(&requests).await.expect("bytes");
        let end = time::timeout(PATIENCE, peer.connection.closed()).await;
        end.is_ok().then(|| time_of_day() - begun)
    });
    by_deadline(&server, kind, ended)
}

fn resets(kind: &Kind) -> Outcome {
    held(kind, &[], 64.0, async |server, hold| {
        let peer = connected(kind, server, None).await;
        let sending = async {
            for _ in 0..3000 {
                let (mut send, mut recv) = peer.connection.open_bi().await.expect("a stream");
                send.write_all(&large_request()).await.expect("a request");
                let _ = send.reset(VarInt::from_u32(1));
                let _ = recv.stop(VarInt::from_u32(1));
            }
        };
        tokio::join!(sending, hold.others(Moment::Now));
    })
    .outcome
}

fn stuck(kind: &Kind) -> Outcome {
    let mut server = kind.start(&["--drain-timeout", "2s"]);
    let runtime = peer::runtime();
    let peer = runtime.block_on(async {
        let peer = connected(kind, &server, None).await;
        let (mut send, mut recv) = peer.connection.open_bi().await.expect("a stream");
        send.write_all(&large_request()).await.expect("a request");
        // The reply has begun with its first byte.
        let _ = recv.read(&mut [0]).await;
        (peer, send, recv)
    });
    rest(&server);
    drained(&mut server, peer)
}
