//! Bulk over TCP, in the clear or secured: one connection per stream.

use std::rc::Rc;

use netping_protocol::frame;
use tokio::io::{AsyncWriteExt, split};

use super::{
    frames::Frames,
    stream::{BulkStream, Meter, Opened, Shape},
};
use crate::transport::{Milestones, ServerEndpoint, connect};

/// Opens the connections. A window is the size of the socket's buffers.
pub(super) async fn open(endpoint: &ServerEndpoint, shape: &Rc<Shape>, meter: &Meter) -> Opened {
    let (mut streams, mut negotiated) = (Vec::<Box<dyn BulkStream>>::new(), None);
    for _ in 0..shape.settings.streams {
        let mut milestones = Milestones::untimed();
        let mut stream = connect::open(endpoint, shape.window(), &mut milestones).await?;
        stream.write_all(&frame::MAGIC).await?;
        stream.flush().await?;
        negotiated = negotiated.or(milestones.negotiated);
        let (recv, send) = split(stream);
        streams.push(Box::new(Frames::new(recv, send, shape)));
        meter.opened();
    }
    Ok((streams, negotiated))
}
