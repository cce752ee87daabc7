//! A connection to a server under test whose handshake is done, byte by byte.

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
    /// Connects, with the server's handshake or [`Connector::Plain`].
    pub fn new(server: &Server, connector: &Connector) -> Self {
        let runtime = runtime();
        let stream = runtime.block_on(async {
            let stream = connected(server).await;
            connector.connect(stream).await.expect("a handshake")
        });
        Self { stream, runtime }
    }

    /// Connects; dropping the peer then resets the connection.
    pub fn resetting(server: &Server, connector: &Connector) -> Self {
        let runtime = runtime();
        let stream = runtime.block_on(async {
            let stream = connected(server).await;
            stream.set_zero_linger().expect("a socket");
            connector.connect(stream).await.expect("a handshake")
        });
        Self { stream, runtime }
    }

    /// Sends bytes, unless the server takes none for so long.
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

    /// Sends the end of what it has to say.
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
