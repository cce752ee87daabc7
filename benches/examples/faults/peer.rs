//! A peer of a server under test: a connection after its handshake, and any bytes on it.

use std::{future, time::Duration};

use netping_benches::processes::{Server, time_of_day};
use netping_protocol::secure::{Connector, Stream};
use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::{Builder, Runtime},
    time,
};

/// Longest wait for the end of a connection.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A connection of a peer that waits for each of its steps.
pub struct Peer {
    stream: Stream,
    runtime: Runtime,
}

impl Peer {
    /// Connects, and performs the handshake of the connector.
    pub fn new(server: &Server, connector: &Connector) -> Self {
        Self::on(connected(server), connector)
    }

    /// Connects so that dropping the peer resets the connection.
    pub fn resetting(server: &Server, connector: &Connector) -> Self {
        let stream = async {
            let stream = connected(server).await;
            stream.set_zero_linger().expect("a socket");
            stream
        };
        Self::on(stream, connector)
    }

    fn on(stream: impl Future<Output = TcpStream>, connector: &Connector) -> Self {
        let runtime = runtime();
        let secure = async { connector.connect(stream.await).await };
        let stream = runtime.block_on(secure).expect("a handshake");
        Self { stream, runtime }
    }

    /// Sends bytes, all of them within this time.
    pub fn send(&mut self, bytes: &[u8], patience: Duration) -> io::Result<()> {
        let Self { stream, runtime } = self;
        runtime.block_on(async {
            let sent = async {
                stream.write_all(bytes).await?;
                stream.flush().await
            };
            time::timeout(patience, sent).await?
        })
    }

    /// Ends its side of the connection.
    pub fn finish(&mut self) {
        // The server may have closed the connection.
        let _ = self.runtime.block_on(self.stream.shutdown());
    }

    /// Returns true if the server leaves the connection open for so long, whatever it says.
    pub fn stays_open(&mut self, patience: Duration) -> bool {
        let Self { stream, runtime } = self;
        runtime.block_on(async {
            let mut sink = io::sink();
            let ended = io::copy(stream, &mut sink);
            time::timeout(patience, ended).await.is_err()
        })
    }

    /// Adds what the server sends within so long to `came`; returns true if it leaves the connection open.
    pub fn hear(&mut self, came: &mut Vec<u8>, patience: Duration) -> bool {
        let Self { stream, runtime } = self;
        runtime.block_on(async {
            let ended = stream.read_to_end(came);
            time::timeout(patience, ended).await.is_err()
        })
    }

    /// Returns the bytes that the server still sends, if it ends the connection.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        let Self { stream, runtime } = self;
        runtime.block_on(async {
            let mut bytes = Vec::new();
            // A reset is an end too.
            let ended = stream.read_to_end(&mut bytes);
            let is_ended = time::timeout(PATIENCE, ended).await.is_ok();
            is_ended.then_some(bytes)
        })
    }

    /// Returns the seconds from `since` until the server ends the connection, if it does.
    pub fn end(&mut self, since: f64) -> Option<f64> {
        let ended = !self.stays_open(PATIENCE);
        ended.then(|| time_of_day() - since)
    }
}

/// Returns the runtime of a peer.
pub fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

/// Connects over TCP.
async fn connected(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).await;
    let stream = stream.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Connects, and performs the handshake of the connector.
pub async fn open(server: &Server, connector: &Connector) -> Stream {
    let stream = try_open(server, connector).await;
    stream.expect("a handshake")
}

/// Does so with a server that may refuse it.
pub async fn try_open(server: &Server, connector: &Connector) -> io::Result<Stream> {
    connector.connect(connected(server).await).await
}

/// The end of what was poured on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it was taken.
    Taken,
    /// The server took nothing for a second.
    Stalled,
    /// The server closed the connection.
    Closed,
}

/// Sends these blocks one after the other, and meanwhile takes what comes if the peer `reads`. Returns the
/// bytes that left, and how it ended.
pub async fn pour(
    stream: &mut Stream,
    blocks: impl Iterator<Item = Vec<u8>>,
    reads: bool,
) -> (usize, End) {
    let (mut from, mut to) = io::split(stream);
    let mut sent = 0;
    let pouring = async {
        for block in blocks {
            match time::timeout(Duration::from_secs(1), to.write_all(&block)).await {
                Ok(Ok(())) => sent += block.len(),
                Ok(Err(_)) => return End::Closed,
                Err(_) => return End::Stalled,
            }
        }
        End::Taken
    };
    let reading = async {
        if reads {
            // It ends as the server does.
            let _ = io::copy(&mut from, &mut io::sink()).await;
        } else {
            future::pending::<()>().await;
        }
    };
    let end = tokio::select! {
        end = pouring => end,
        () = reading => End::Closed,
    };
    (sent, end)
}
