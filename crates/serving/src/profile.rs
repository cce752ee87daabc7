//! The properties of one kind of server.

/// The properties of a server that its chassis needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Bytes that a client sends by itself, after any handshake: until then, it has not begun.
    pub preface: u64,
    /// The way in which connections end during a drain.
    pub drain: Drain,
    /// File descriptors that each connection takes.
    pub files_per_connection: u64,
    /// Threads that serve requests; `None`: one for each connection.
    pub workers: Option<usize>,
    /// Most that the requests, replies and streams of a connection may hold, in bytes; `u64::MAX` where its protocol is
    /// the limit.
    pub most_held: u64,
}

/// The way in which connections end during a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// They read as closed.
    ByEof,
    /// The protocol has a goodbye of its own. Those on which nothing is under way are closed once a peer has had time
    /// to answer it.
    ByGoodbye,
    /// Their peers end them: nobody else knows what is under way.
    ByPeers,
}

impl Profile {
    /// The properties of a server whose connections end after a whole request.
    pub const ECHO: Self = Self {
        preface: 0,
        drain: Drain::ByEof,
        files_per_connection: 1,
        workers: None,
        most_held: u64::MAX,
    };
}
