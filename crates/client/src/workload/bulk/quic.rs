//! Bulk over QUIC: streams side by side on one connection.

use std::{rc::Rc, sync::Arc};

use netping_measure::error_kind::ErrorKind;
use quinn::{RecvStream, SendStream};

use super::{
    frames::Frames,
    stream::{BulkStream, Meter, Opened, Shape, Transferring},
};
use crate::transport::{
    Milestones, ServerEndpoint, Transport,
    quic::{Quic, WINDOWS, explained},
};

/// The reason for the lack of a stream on an open connection.
const NO_STREAM: &str = "no further stream within --timeout: the server lets a connection have fewer than --streams \
                         (netping's own: --max-streams)";

/// A stream, and the connection that knows the reason of its end.
struct QuicStream {
    connection: Arc<quinn::Connection>,
    frames: Frames<RecvStream, SendStream>,
}

impl BulkStream for QuicStream {
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Rc<Meter>) -> Transferring<'a> {
        Box::pin(async move {
            let result = self.frames.transfer(bytes, meter).await;
            explained(result, &self.connection)
        })
    }
}

/// Opens the connection and its streams. A window is that of a stream; the connection's is the sum.
pub(super) async fn open(endpoint: &ServerEndpoint, shape: &Rc<Shape>, meter: &Meter) -> Opened {
    let streams = shape.settings.streams;
    let window = shape.window().unwrap_or(WINDOWS[0]);
    let together = window.saturating_mul(streams as u32);
    let transport = Quic::with(endpoint.clone(), [window, together], 0);
    let mut milestones = Milestones::untimed();
    let handle = transport.connect(&mut milestones).await?;
    meter.opened();
    meter.overdue.set((ErrorKind::Other, NO_STREAM));
    let mut opened: Vec<Box<dyn BulkStream>> = Vec::new();
    for _ in 0..streams {
        let connection = Arc::clone(&handle.connection);
        let (send, recv) = connection.open_bi().await?;
        let frames = Frames::new(recv, send, shape);
        opened.push(Box::new(QuicStream { connection, frames }));
        meter.opened();
    }
    Ok((opened, milestones.negotiated))
}
