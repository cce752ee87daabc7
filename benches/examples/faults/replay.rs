//! A session that is recorded and sent again.

use std::{
    io::{self, Read, Write},
    iter,
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use netping_benches::processes::netping;
use netping_protocol::secure::Connector;

use crate::{
    Fault, Kind, Outcome, counted,
    peer::{PATIENCE, Peer},
    serves, word,
};

pub const FAULTS: [Fault; 1] = [Fault {
    what: "a client's session, sent again",
    promised: "closed, no request answered, others served",
    servers: Kind::is_secure_tcp,
    try_it: replayed,
}];

/// Least length of a session with a hundred requests, in bytes.
const SESSION: usize = 2000;

/// Starts a relay that records what each connection's client sends, until this process ends; returns its
/// address, and the sessions.
fn recorder(server: &str) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = server.to_owned();
    let (ended, sessions) = mpsc::channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let upstream = TcpStream::connect(&server).expect("a server");
            let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
            let (mut from_server, mut to_client) = (clone(&upstream), clone(&client));
            thread::spawn(move || drop(io::copy(&mut from_server, &mut to_client)));
            let ended = ended.clone();
            thread::spawn(move || ended.send(recorded(&client, &upstream)));
        }
    });
    (address, sessions)
}

/// Passes on what a client sends; returns all of it at the end.
fn recorded(mut client: &TcpStream, mut server: &TcpStream) -> Vec<u8> {
    let mut session = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read) = client.read(&mut buffer) {
        if read == 0 || server.write_all(&buffer[..read]).is_err() {
            break;
        }
        session.extend_from_slice(&buffer[..read]);
    }
    // The client has its replies.
    let _ = server.shutdown(Shutdown::Both);
    session
}

fn replayed(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let (address, sessions) = recorder(server.address());
    let (scheme, _) = server.url.split_once("://").expect("a URL");
    let url = format!("{scheme}://{address}");
    let latency = ["latency", &url, "-n", "100", "--server-metrics", "off"];
    let said = netping(&[&latency[..], &kind.client()].concat());
    // The first call may have a connection of its own.
    let mut ended = iter::from_fn(|| sessions.recv_timeout(PATIENCE).ok());
    let session = ended.find(|session| session.len() >= SESSION);
    let (Some(session), Some(0)) = (session, said.output.status.code()) else {
        return Outcome::new(false, "no session to send again");
    };
    let before = server.requests();
    let mut peer = Peer::new(&server, &Connector::Plain);
    // The server may close before it has all.
    let _ = peer.send(&session, PATIENCE);
    peer.finish();
    let end = peer.rest();
    let answered = server.requests() - before;
    let how = end.as_ref().map_or("not closed".to_owned(), |bytes| {
        format!("closed after {} bytes", bytes.len())
    });
    let came = format!(
        "{} bytes again: {answered} answered, {how}; {}",
        session.len(),
        counted(&server)
    );
    let honest = serves(&server, kind);
    Outcome::new(end.is_some() && answered == 0, came).and(honest, word(honest))
}
