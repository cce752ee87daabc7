//! QUIC clients that do not prove their address: another could stand in theirs, and be sent what it did not ask for.

use std::time::Duration;

use netping_benches::processes::Server;
use quinn::{Endpoint, VarInt};
use tokio::{net::UdpSocket, time};

use crate::{
    Fault, Kind, Outcome, peer,
    quic::{ANY, config, connected_with, request},
    serves, word,
};

pub const FAULTS: [Fault; 3] = [
    Fault {
        what: "a QUIC handshake that does not go on",
        promised: "an answer, and at most 3.3 times as many bytes; others served",
        servers: Kind::is_quic,
        try_it: amplified,
    },
    Fault {
        what: "300 QUIC handshakes that do not go on",
        promised: "those above 256 are to prove their address, others served",
        servers: Kind::is_quic,
        try_it: unproven,
    },
    Fault {
        what: "a QUIC client that goes on from another address",
        promised: "answered before, nothing sent there; others served",
        servers: Kind::is_quic,
        try_it: moved,
    },
];

/// Time in which a server repeats what is not acknowledged twice: after one second, and two more.
const REPEATS: Duration = Duration::from_secs(5);

/// Returns what has come to a socket, when nothing has come for so long.
async fn received(socket: &UdpSocket, silence: Duration) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    // No datagram of a QUIC handshake is longer.
    let mut buffer = [0; 1500];
    while let Ok(read) = time::timeout(silence, socket.recv(&mut buffer)).await {
        datagrams.push(buffer[..read.expect("a datagram")].to_vec());
    }
    datagrams
}

/// Sends the datagrams with which so many handshakes begin, and nothing more. Returns their bytes, and the datagrams that
/// come back.
async fn begun(
    kind: &Kind,
    server: &Server,
    count: usize,
    silence: Duration,
) -> (usize, Vec<Vec<u8>>) {
    let nobody = UdpSocket::bind(ANY).await.expect("a socket");
    let address = nobody.local_addr().expect("an address");
    let endpoint = Endpoint::client(ANY).expect("a socket");
    let stranger = UdpSocket::bind(ANY).await.expect("a socket");
    stranger
        .connect(server.address())
        .await
        .expect("an address");
    let sending = async {
        let (mut handshakes, mut sent) = (Vec::new(), 0);
        for _ in 0..count {
            let config = config(kind, VarInt::MAX, None);
            let handshake = endpoint.connect_with(config, address, "localhost");
            // Dropping one would end it.
            handshakes.push(handshake.expect("a valid name"));
            nobody.readable().await.expect("a socket");
            for datagram in received(&nobody, Duration::from_millis(2)).await {
                sent += stranger.send(&datagram).await.expect("a datagram");
            }
        }
        sent
    };
    tokio::join!(sending, received(&stranger, silence))
}

fn amplified(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let (sent, back) = peer::runtime().block_on(begun(kind, &server, 1, REPEATS));
    let back: usize = back.iter().map(Vec::len).sum();
    let times = back as f64 / sent as f64;
    let came = format!("{sent} bytes sent, {back} back: {times:.2} times");
    let honest = serves(&server, kind);
    Outcome::new(back > 0 && times <= 3.3, came).and(honest, word(honest))
}

/// Returns true for a Retry: RFC 9000, section 17.2.5.
fn is_retry(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xF0 == 0xF0)
}

/// Longest time between the answers to handshakes that begin one after the other.
const SILENCE: Duration = Duration::from_millis(500);

fn unproven(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let (_, back) = peer::runtime().block_on(begun(kind, &server, 300, SILENCE));
    let retries = back.iter().filter(|datagram| is_retry(datagram)).count();
    let honest = serves(&server, kind);
    let others = back.len() - retries;
    let came = format!("{retries} times a Retry, {others} other datagrams");
    // A full socket loses some.
    Outcome::new(retries >= (300 - 256) / 2, came).and(honest, word(honest))
}

/// Length of a reply.
const REPLY: usize = 10_000;

fn moved(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let before = server.requests();
    let sent = peer::runtime().block_on(async {
        let peer = connected_with(kind, &server, VarInt::MAX, None).await;
        let asked = async || {
            let (mut send, mut recv) = peer.connection.open_bi().await.expect("a stream");
            let asking = [&request(1, REPLY as u32)[..], b"x"].concat();
            send.write_all(&asking).await.expect("a request");
            // None comes to another address.
            let mut reply = [0; REPLY];
            let _ = time::timeout(Duration::from_secs(1), recv.read_exact(&mut reply)).await;
        };
        asked().await;
        peer.comes_to_rest().await;
        let socket = std::net::UdpSocket::bind(ANY).expect("a socket");
        peer.endpoint.rebind(socket).expect("another address");
        let before = peer.connection.stats().udp_rx.bytes;
        asked().await;
        peer.connection.stats().udp_rx.bytes - before
    });
    let answered = server.requests() - before;
    let honest = serves(&server, kind);
    let came = format!("{answered} answered, {sent} bytes sent to the other address");
    Outcome::new(answered == 1 && sent == 0, came).and(honest, word(honest))
}
