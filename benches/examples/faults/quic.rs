//! QUIC peers that say nothing, too little or nonsense, that take no bytes, and that reset what they
//! ask for.

use std::{net::UdpSocket, sync::Arc, time::Duration};

use netping_benches::processes::{Server, time_of_day};
use netping_protocol::{
    frame::{Reply, RequestHeader},
    secure::Connector,
};
use quinn::{
    ClientConfig, Connection, Endpoint, TransportConfig, VarInt, crypto::rustls::QuicClientConfig,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use tokio::time;

use crate::{
    Fault, Kind, Outcome, memory,
    peer::{self, PATIENCE},
    peers::{SHORT, deadlines, told},
    serves, word,
};

pub const FAULTS: [Fault; 4] = [
    Fault {
        what: "half a request on a QUIC stream",
        promised: "ended within 4 s, counted",
        servers: Kind::is_quic,
        try_it: half_request,
    },
    Fault {
        what: "10,000 random datagrams",
        promised: "at most 16 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: garbage,
    },
    Fault {
        what: "100 QUIC streams of 16 MiB, never read",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: unread,
    },
    Fault {
        what: "3,000 QUIC streams, each reset",
        promised: "at most 64 MiB more memory, others served",
        servers: Kind::is_quic,
        try_it: resets,
    },
];

/// Runs a peer on a connection of its own.
fn peer<F: Future>(kind: &Kind, server: &Server, ask: impl FnOnce(Connection) -> F) -> F::Output {
    let Connector::Tls(tls, _) = &kind.connector else {
        unreachable!("QUIC without TLS");
    };
    let tls = QuicClientConfig::try_from(Arc::clone(tls)).expect("TLS 1.3");
    let mut config = ClientConfig::new(Arc::new(tls));
    let mut transport = TransportConfig::default();
    // Nothing that this peer does not read holds the server back but its own limits.
    transport
        .receive_window(VarInt::MAX)
        .stream_receive_window(VarInt::from_u32(1));
    config.transport_config(Arc::new(transport));
    peer::runtime().block_on(async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address"));
        let address = server.address().parse().expect("an address");
        let connecting = endpoint
            .expect("a socket")
            .connect_with(config, address, "localhost");
        let connection = connecting.expect("a valid name").await;
        ask(connection.expect("a connection")).await
    })
}

/// Returns a request for 16 MiB, of one byte.
fn large_request() -> Vec<u8> {
    let header = RequestHeader {
        payload: 1,
        reply: Reply::Bytes(16 << 20),
    };
    [&header.encode()[..], b"x"].concat()
}

fn half_request(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let ended = peer(kind, &server, |connection| async move {
        let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
        send.write_all(b"\0\0").await.expect("bytes");
        let end = recv.read_to_end(1 << 10);
        time::timeout(PATIENCE, end).await.is_ok()
    });
    let ended = ended.then(|| time_of_day() - begun);
    told(ended, &deadlines(&server), serves(&server, kind))
}

fn garbage(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    serves(&server, kind);
    let before = memory(&server);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut bytes = [0; 1200];
    for at in 0..10_000 {
        random.fill_bytes(&mut bytes);
        if at % 2 == 0 {
            // The beginning of a first packet: a long header, version 1.
            bytes[..5].copy_from_slice(&[0xC0, 0, 0, 0, 1]);
        }
        // A full socket loses it, as a network may.
        let _ = socket.send_to(&bytes, server.address());
    }
    outcome(kind, &server, memory(&server) - before, 16.0)
}

fn unread(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let (held, before) = (&server, memory(&server));
    let more = peer(kind, held, |connection| async move {
        let mut streams = Vec::new();
        for _ in 0..100 {
            let (mut send, recv) = connection.open_bi().await.expect("a stream");
            send.write_all(&large_request()).await.expect("a request");
            streams.push((send, recv));
        }
        time::sleep(Duration::from_secs(1)).await;
        memory(held) - before
    });
    outcome(kind, &server, more, 160.0)
}

fn resets(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let (held, before) = (&server, memory(&server));
    let more = peer(kind, held, |connection| async move {
        for _ in 0..3000 {
            let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
            send.write_all(&large_request()).await.expect("a request");
            let _ = send.reset(VarInt::from_u32(1));
            let _ = recv.stop(VarInt::from_u32(1));
        }
        memory(held) - before
    });
    outcome(kind, &server, more, 64.0)
}

/// Says how much more memory the server holds, and whether others are served.
fn outcome(kind: &Kind, server: &Server, more: f64, most: f64) -> Outcome {
    let honest = serves(server, kind);
    Outcome {
        came: format!("{more:.0} MiB more; others {}", word(honest)),
        kept: honest && more <= most,
    }
}
