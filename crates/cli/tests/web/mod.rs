//! Small web servers, good and bad ones, that count their requests.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use bytes::{Buf, Bytes};
use netping_protocol::{
    secure::{Acceptor, Stream},
    tls::{self, ALPN_H2, ALPN_H3, Identity},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A web server.
pub struct Site {
    pub address: SocketAddr,
    ending: Arc<AtomicBool>,
    /// Returns each connection's peer, and the number of requests on it.
    listening: JoinHandle<Vec<(SocketAddr, usize)>>,
}

impl Site {
    /// Starts a server that does `serve` with each connection; it returns the number of requests on
    /// it.
    pub fn start(serve: impl Fn(TcpStream) -> usize + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ending = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ending);
        let listening = thread::spawn(move || {
            let begin = |(stream, peer): (TcpStream, SocketAddr)| {
                let serve = serve.clone();
                (peer, thread::spawn(move || serve(stream)))
            };
            let mut serving = Vec::new();
            while !ended.load(Ordering::SeqCst) {
                serving.push(begin(listener.accept().unwrap()));
            }
            // What the kernel has accepted meanwhile.
            listener.set_nonblocking(true).unwrap();
            while let Ok(connection) = listener.accept() {
                serving.push(begin(connection));
            }
            serving
                .into_iter()
                .map(|(peer, thread)| (peer, thread.join().unwrap()))
                .collect()
        });
        Self {
            address,
            ending,
            listening,
        }
    }

    /// Starts a server whose replies depend on a request's head and its number on the connection.
    pub fn answering(reply: impl Fn(&str, usize) -> Reply + Clone + Send + 'static) -> Self {
        Self::start(move |mut stream| {
            let mut count = 0;
            while let Some(head) = read_head(&mut stream) {
                count += 1;
                let Reply { text, goes_on } = reply(&head, count);
                // The client may be gone.
                if stream.write_all(text.as_bytes()).is_err() || !goes_on {
                    break;
                }
            }
            count
        })
    }

    /// Starts a server that answers anything with `bytes`.
    pub fn saying(bytes: &'static [u8]) -> Self {
        Self::start(move |mut stream| {
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok_and(|read| read > 0) {
                let _ = stream.write_all(bytes);
            }
            while stream.read(&mut request).is_ok_and(|read| read > 0) {}
            0
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}/10k.bin?x=1", self.address)
    }

    /// Ends the server, when no client has a connection any more; returns the number of requests on
    /// each connection.
    pub fn finish(self) -> Vec<usize> {
        // Comes after all connections of clients.
        let last = TcpStream::connect(self.address)
            .unwrap()
            .local_addr()
            .unwrap();
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the server, unless it has ended already.
        drop(TcpStream::connect(self.address));
        let served = self.listening.join().unwrap();
        let end = served.iter().rposition(|(peer, _)| *peer == last).unwrap();
        served[..end].iter().map(|(_, count)| *count).collect()
    }
}

/// A reply of a server, after which it may wait for another request.
pub struct Reply {
    text: String,
    goes_on: bool,
}

pub fn keep(text: impl Into<String>) -> Reply {
    Reply {
        text: text.into(),
        goes_on: true,
    }
}

pub fn close(text: impl Into<String>) -> Reply {
    Reply {
        text: text.into(),
        goes_on: false,
    }
}

pub fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(read @ 1..) => head.extend_from_slice(&chunk[..read]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}

/// Returns the next request's head and its body of a known length; `None` at the end.
pub fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
                return Some((format!("{head}\r\n"), body.to_owned()));
            }
        }
        match stream.read(&mut chunk) {
            Ok(read @ 1..) => bytes.extend_from_slice(&chunk[..read]),
            _ => return None,
        }
    }
}

/// Does `serve` with a connection, on a runtime of its own.
fn on_runtime(stream: TcpStream, serve: impl AsyncFnOnce(tokio::net::TcpStream) -> usize) -> usize {
    stream.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { serve(tokio::net::TcpStream::from_std(stream).unwrap()).await })
}

/// Serves HTTP/2, or HTTP/1.1 where that was agreed on, from a connection. Over HTTP/2 it says
/// goodbye with request number `last`.
pub fn serve_either(stream: TcpStream, acceptor: &Acceptor, last: usize) -> usize {
    on_runtime(stream, async |stream| {
        let Ok(stream) = acceptor.accept(stream).await else {
            return 0;
        };
        if stream.is_secure() && stream.alpn() != Some(ALPN_H2) {
            return serve_one(stream).await;
        }
        let Ok(mut connection) = h2::server::handshake(stream).await else {
            return 0;
        };
        let mut count = 0;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            count += 1;
            assert_eq!(request.uri().path_and_query().unwrap(), "/10k.bin?x=1");
            assert!(
                request
                    .uri()
                    .authority()
                    .unwrap()
                    .as_str()
                    .starts_with("127.0.0.1:")
            );
            if count == last {
                connection.graceful_shutdown();
            }
            let mut body = respond
                .send_response(http::Response::new(()), false)
                .unwrap();
            body.send_data(Bytes::from_static(b"pong"), true).unwrap();
        }
        count
    })
}

/// The type of gRPC's messages.
pub const GRPC: &str = "application/grpc";

/// Serves gRPC from a connection: each reply, of this type, is the request's message, which is what an echo is. It
/// says goodbye with the request number `last`.
pub fn serve_grpc(stream: TcpStream, last: usize, content_type: &'static str) -> usize {
    on_runtime(stream, async move |stream| {
        let Ok(mut connection) = h2::server::handshake(stream).await else {
            return 0;
        };
        let mut count = 0;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            count += 1;
            if count == last {
                connection.graceful_shutdown();
            }
            tokio::spawn(async move {
                let (mut body, mut message) = (request.into_body(), Vec::new());
                while let Some(Ok(data)) = body.data().await {
                    message.extend_from_slice(&data);
                }
                let head = http::Response::builder().header("content-type", content_type);
                let head = head.body(()).unwrap();
                let mut reply = respond.send_response(head, false).unwrap();
                reply.send_data(message.into(), false).unwrap();
                let trailers = [(
                    http::HeaderName::from_static("grpc-status"),
                    http::HeaderValue::from_static("0"),
                )];
                reply.send_trailers(trailers.into_iter().collect()).unwrap();
            });
        }
        count
    })
}

/// Reads from an HTTP/2 client up to its first request (RFC 9113, sections 3.4, 4.1 and 6.2).
pub fn read_until_request(stream: &mut TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize])?;
        if head[3] == 1 {
            return Ok(());
        }
    }
}

async fn serve_one(mut stream: Stream) -> usize {
    let (mut count, mut head) = (0, Vec::new());
    while stream.read_buf(&mut head).await.is_ok_and(|read| read > 0) {
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            count += 1;
            stream.write_all(ok("pong").as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
    }
    count
}

/// Waits until the peer has what was sent so far: a stream of a kind that it ignores comes after it.
async fn until_seen(connection: &quinn::Connection) {
    const RESERVED_KIND: &[u8] = &[0x21];
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(RESERVED_KIND).await.unwrap();
    let _ = stream.finish();
    let _ = stream.stopped().await;
}

/// Serves HTTP/3 on a free UDP port, until the process ends: each reply has the request's body, and
/// each connection so many requests. Returns the address.
pub fn serve_h3(identity: Identity, per_connection: u32) -> SocketAddr {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let tls = tls::server(identity, None, &[ALPN_H3]).unwrap();
    let tls = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let endpoint = runtime.block_on(async {
        quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap()
    });
    let address = endpoint.local_addr().unwrap();
    thread::spawn(move || {
        runtime.block_on(async {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else {
                        return;
                    };
                    let quic = connection.clone();
                    let connection = h3_quinn::Connection::new(connection);
                    let mut accepted = 0;
                    let mut server = h3::server::Connection::<_, Bytes>::new(connection)
                        .await
                        .unwrap();
                    while let Ok(Some(request)) = server.accept().await {
                        accepted += 1;
                        if accepted == per_connection {
                            server.shutdown(0).await.unwrap();
                            until_seen(&quic).await;
                        }
                        tokio::spawn(async move {
                            let (_, mut stream) = request.resolve_request().await.unwrap();
                            let mut body = Vec::new();
                            while let Some(mut part) = stream.recv_data().await.unwrap() {
                                body.extend_from_slice(&part.copy_to_bytes(part.remaining()));
                            }
                            let head = http::Response::new(());
                            stream.send_response(head).await.unwrap();
                            stream.send_data(body.into()).await.unwrap();
                            stream.finish().await.unwrap();
                        });
                    }
                });
            }
        });
    });
    address
}
