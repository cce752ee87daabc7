//! Bulk over QUIC: streams side by side on one connection.

use futures_util::future::LocalBoxFuture;
use quinn::{RecvStream, SendStream};

use super::{
    frames::Frames,
    meter::Meter,
    stream::{BulkStream, Opened, Spec, Transfer},
};
use crate::transport::{
    Connection, Failure, Milestones, Transport,
    quic::{Quic, STREAM_WINDOW, explained},
};

/// The reason for the lack of a stream on an open connection.
const NO_STREAM: &str = "no further stream within --timeout: the server lets a connection have fewer than --streams \
                         (netping's own: --max-streams)";

/// A stream, and the connection that knows the reason of its end.
struct Stream {
    connection: quinn::Connection,
    frames: Frames<RecvStream, SendStream>,
}

impl BulkStream for Stream {
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Meter) -> Transfer<'a> {
        Box::pin(async move {
            let result = self.frames.transfer(bytes, meter).await;
            explained(result, &self.connection)
        })
    }
}

/// Opens the connection and its streams. A window is that of a stream; the connection's is the sum.
pub(super) fn open(spec: Spec) -> LocalBoxFuture<'static, Result<Opened, Failure>> {
    Box::pin(async move {
        let window = spec.window().unwrap_or(STREAM_WINDOW);
        let together = window.saturating_mul(spec.settings.streams as u32);
        let transport = Quic::with_windows(spec.endpoint.clone(), window, together);
        // The time of opening is not measured here.
        let handle = transport.connect(&mut Milestones::start(&|| 0)).await?;
        spec.meter.opened();
        spec.meter.wait(NO_STREAM);
        let mut opened = Opened {
            streams: Vec::new(),
            negotiated: handle.negotiated(),
        };
        for _ in 0..spec.settings.streams {
            let connection = handle.connection().clone();
            let (send, recv) = connection.open_bi().await?;
            opened.streams.push(Box::new(Stream {
                connection,
                frames: Frames::new(recv, send, &spec.shape),
            }));
            spec.meter.opened();
        }
        Ok(opened)
    })
}
