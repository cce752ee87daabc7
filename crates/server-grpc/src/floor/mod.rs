//! Echo and Say on netping's own HTTP/2, with nothing between the socket and the message: what a call costs at
//! least.

mod calls;
mod connection;
mod echo;
mod routes;

use std::{io, sync::Arc};

use netping_http2::{Config, server};
use netping_protocol::{codec::LINGER, tls};
use netping_serving::{Accepted, Chassis, echo::goodbye};

use self::{connection::Connection, routes::Heads};
use crate::{GrpcArgs, connected::linger};

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Floor {
    chassis: Arc<Chassis>,
    config: server::Config,
    max_message: usize,
    heads: Heads,
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// Both sides are done.
    Done,
    /// The server closes it. What decided that has counted it.
    Closed,
    /// The client broke a rule of HTTP/2.
    Violation(netping_http2::Error),
    /// The client speaks TLS to a port without it.
    Tls,
    /// The stream failed.
    Failed(io::Error),
}

impl Floor {
    pub(crate) fn new(chassis: Arc<Chassis>, args: &GrpcArgs) -> Self {
        Self {
            chassis,
            config: server::Config {
                receiving: Config {
                    stream_window: args.stream_window,
                    connection_window: args.connection_window,
                    frame: args.http2_frame,
                },
                streams: args.max_streams,
            },
            max_message: args.max_message,
            heads: Heads::new(args.max_message),
        }
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, accepted: Accepted) {
        let (stream, guard) = accepted.into_parts();
        let mut connection = Connection::new(Arc::clone(&self), stream, guard);
        let end = connection.run().await;
        let mut time = LINGER;
        match &end {
            End::Done => {}
            End::Closed => match connection.tell_why() {
                Some(kind) => time = linger(kind),
                None => return,
            },
            End::Violation(error) => {
                tracing::debug!("closing a connection: {error}");
                let name = error.reason.name().unwrap_or("unknown").to_lowercase();
                self.chassis.shared().count(&format!("http2_goaway_{name}"));
            }
            End::Tls => self.chassis.shared().count(TLS),
            End::Failed(error) => {
                tracing::debug!("connection: {error}");
                return self.chassis.count_failure(error);
            }
        }
        let (mut stream, guard, last) = connection.into_parts();
        tokio::select! {
            () = goodbye(&mut stream, &last, time) => {}
            () = guard.closed(), if !matches!(end, End::Closed) => {}
        }
    }
}

/// The kind under which a client that speaks TLS to a port without it is counted.
const TLS: &str = "tls";

/// Returns true if the first byte of a connection is that of a TLS handshake.
fn is_tls(bytes: &[u8]) -> bool {
    bytes.first() == Some(&tls::HANDSHAKE)
}

#[cfg(test)]
mod tests {
    use netping_serving::{IDLE_TIMEOUT, testing::accepted};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{
        connected::tests::{assert_place, heads},
        services::tests::args,
    };

    #[tokio::test(start_paused = true)]
    async fn a_closed_connection_answers_no_more_and_says_why() {
        for kind in [IDLE_TIMEOUT, "max_held"] {
            let (accepted, chassis, mut peer) = accepted();
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
            let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
            let bytes = [&preface[..], &settings, &heads(9)].concat();
            peer.write_all(&bytes).await.unwrap();
            let connection = Arc::downgrade(accepted.connection());
            accepted.connection().close(kind);
            let floor = Arc::new(Floor::new(chassis, &args()));
            let serving = tokio::spawn(floor.serve(accepted));
            assert_place(kind, connection).await;
            serving.await.unwrap();
            let mut told = Vec::new();
            let _ = peer.read_to_end(&mut told).await;
            assert!(told.ends_with(kind.as_bytes()), "{kind}");
            // RST_STREAM is the answer to each of these requests.
            let reset = [0, 0, 4, 3];
            assert!(!told.windows(4).any(|frame| frame == reset), "{kind}");
        }
    }
}
