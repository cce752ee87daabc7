//! Bulk over TCP, in the clear or secured: one connection per stream.

use futures_util::future::LocalBoxFuture;
use netping_protocol::frame;
use tokio::io::{AsyncWriteExt, split};

use super::{
    frames::Frames,
    stream::{BulkStream, Opened, Spec},
};
use crate::transport::{Failure, Milestones, connect};

/// Opens the connections. A window is the size of the socket's buffers.
pub(super) fn open(spec: Spec) -> LocalBoxFuture<'static, Result<Opened, Failure>> {
    Box::pin(async move {
        // The time of opening is not measured here.
        let now = || 0_u64;
        let mut opened = Opened {
            streams: Vec::new(),
            negotiated: None,
        };
        for _ in 0..spec.settings.streams {
            let mut milestones = Milestones::start(&now);
            let mut stream =
                connect::open_buffered(&spec.endpoint, spec.window(), &mut milestones).await?;
            stream
                .write_all(&frame::MAGIC)
                .await
                .map_err(|error| connect::io_failure(&error))?;
            stream
                .flush()
                .await
                .map_err(|error| connect::io_failure(&error))?;
            opened.negotiated = opened.negotiated.or_else(|| stream.negotiated());
            let (recv, send) = split(stream);
            let stream: Box<dyn BulkStream> = Box::new(Frames::new(recv, send, &spec.shape));
            opened.streams.push(stream);
            spec.meter.opened();
        }
        Ok(opened)
    })
}
