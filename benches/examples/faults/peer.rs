//! A peer of a server under test: a connection after its handshake, and any bytes on it.

use std::time::Duration;

use netping_benches::processes::{Server, time_of_day};
use netping_protocol::secure::{Connector, Stream};
use tokio::{
    io::{self, AsyncWriteExt},
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
pub async fn connected(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).await;
    let stream = stream.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream
}
