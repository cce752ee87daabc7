//! A client and servers of nothing but tokio, and a server of nothing but tonic: what their kind takes at least.

use std::{cell::Cell, net::SocketAddr, rc::Rc};

use netping_protocol::echopb::{
    EchoRequest, EchoResponse, Tick, WatchRequest,
    echo_server::{Echo, EchoServer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    task::{LocalSet, spawn_local},
};
use tonic::{
    Request, Response, Status, Streaming, codegen::tokio_stream::Empty, transport::Server,
};

/// A line of four bytes, as netping's clients send it by default.
const LINE: &[u8] = b"ping\n";

/// A reply of 100 bytes, with headers as nginx sends them.
const REPLY: &str = "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: \
                     application/octet-stream\r\nContent-Length: 100\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 \
                     GMT\r\nConnection: keep-alive\r\nETag: \"65f2b0c0-64\"\r\nAccept-Ranges: bytes\r\n\r\n";

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

/// The request of a client, and the test for the whole of its reply.
struct Speech {
    request: Vec<u8>,
    is_whole: fn(&[u8]) -> bool,
}

/// Sends lines on so many connections, until so many have been answered; returns their number.
pub fn send_lines(address: &str, connections: usize, requests: u64) -> u64 {
    let speech = Speech {
        request: LINE.to_vec(),
        is_whole: |reply| reply == LINE,
    };
    send(address, connections, requests, speech)
}

/// Does the same with requests of HTTP/1.1, whose replies have a body of 100 bytes.
pub fn send_http(address: &str, connections: usize, requests: u64) -> u64 {
    let speech = Speech {
        request: format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").into(),
        is_whole: |reply| {
            let head = reply.len().checked_sub(100);
            head.is_some_and(|head| reply[..head].ends_with(b"\r\n\r\n"))
        },
    };
    send(address, connections, requests, speech)
}

fn send(address: &str, connections: usize, requests: u64, speech: Speech) -> u64 {
    let (left, speech) = (Rc::new(Cell::new(requests)), Rc::new(speech));
    let send = async {
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await.expect("a connection");
            stream.set_nodelay(true).expect("an option");
            let (left, speech) = (Rc::clone(&left), Rc::clone(&speech));
            tasks.push(spawn_local(send_on(stream, left, speech)));
        }
        for task in tasks {
            task.await.expect("its end");
        }
    };
    LocalSet::new().block_on(&runtime(), send);
    requests
}

async fn send_on(mut stream: TcpStream, left: Rc<Cell<u64>>, speech: Rc<Speech>) {
    let mut reply = [0; 512];
    while left.get() > 0 {
        left.set(left.get() - 1);
        stream.write_all(&speech.request).await.expect("a request");
        let mut length = 0;
        while !(speech.is_whole)(&reply[..length]) {
            let read = stream.read(&mut reply[length..]).await.expect("a reply");
            assert!(read > 0, "a longer or another reply");
            length += read;
        }
    }
}

/// Serves HTTP/1.1: the same reply to every read.
pub fn serve_http(address: SocketAddr) {
    let reply = format!("{REPLY}{}", "x".repeat(100));
    let reply: Rc<[u8]> = reply.into_bytes().into();
    let serve = async {
        let listener = TcpListener::bind(address).await.expect("a free address");
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let reply = Rc::clone(&reply);
            spawn_local(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    if stream.write_all(&reply).await.is_err() {
                        return;
                    }
                }
            });
        }
    };
    LocalSet::new().block_on(&runtime(), serve);
}

struct Echoes;

#[tonic::async_trait]
impl Echo for Echoes {
    type ChatStream = Empty<Result<EchoResponse, Status>>;
    type WatchStream = Empty<Result<Tick, Status>>;

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("it has calls alone"))
    }

    async fn echo(&self, request: Request<EchoRequest>) -> Result<Response<EchoResponse>, Status> {
        let output = request.into_inner().input;
        Ok(Response::new(EchoResponse { output }))
    }

    async fn chat(
        &self,
        _: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        Err(Status::unimplemented("it has calls alone"))
    }
}

/// Serves gRPC on a tonic server with one service and nothing else.
pub fn serve_tonic(address: SocketAddr) {
    let serve = Server::builder()
        .add_service(EchoServer::new(Echoes))
        .serve(address);
    runtime().block_on(serve).expect("a server");
}
