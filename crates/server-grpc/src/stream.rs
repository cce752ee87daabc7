//! A stream of HTTP/2 on its connection.

use std::{ops::Deref, sync::Arc};

use netping_serving::{Active, Connection};

/// An open stream: it counts on its connection until its call and all parts of its reply are gone.
#[derive(Debug, Clone)]
pub(crate) struct Stream(Arc<Active<Arc<Connection>>>);

impl Stream {
    /// Begins one.
    pub(crate) fn begin(connection: Arc<Connection>) -> Self {
        Self(Arc::new(Active::begin(connection)))
    }
}

impl Deref for Stream {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}
