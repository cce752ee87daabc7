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
        let mut opened = Opened {
            streams: Vec::new(),
            negotiated: None,
        };
        for _ in 0..spec.settings.streams {
            // The time of opening is not measured here.
            let mut milestones = Milestones::start(&|| 0);
            let mut stream = connect::open(&spec.endpoint, spec.window(), &mut milestones).await?;
            stream.write_all(&frame::MAGIC).await?;
            stream.flush().await?;
            opened.negotiated = opened.negotiated.or_else(|| stream.negotiated());
            let (recv, send) = split(stream);
            let stream: Box<dyn BulkStream> = Box::new(Frames::new(recv, send, &spec.shape));
            opened.streams.push(stream);
            spec.meter.opened();
        }
        Ok(opened)
    })
}
