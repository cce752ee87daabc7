//! The properties of one kind of server.

/// The properties of a server that its chassis needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Bytes that a client sends by itself, after any handshake: until then, it has not begun.
    pub preface: u64,
    /// True if connections read as closed during a drain. False for a protocol that has a goodbye
    /// of its own.
    pub drain_by_eof: bool,
    /// File descriptors that each connection takes.
    pub files_per_connection: u64,
    /// Threads that serve requests; `None`: one for each connection.
    pub workers: Option<usize>,
}

impl Profile {
    /// The properties of a server whose connections end after a whole request.
    pub const ECHO: Self = Self {
        preface: 0,
        drain_by_eof: true,
        files_per_connection: 1,
        workers: None,
    };
}
