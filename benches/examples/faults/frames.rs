//! Frames of HTTP/2, whole or not, as no client sends them: RFC 9113, section 6.

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// The setting of the streams' first window.
const INITIAL_WINDOW_SIZE: u8 = 4;

/// The beginning of every connection.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Methods that all stacks have, and that of bulk data.
pub const ECHO: &str = "/echopb.Echo/Echo";
pub const BULK: &str = "/grpc_bench.DataService/GiveMeData";
pub const CHAT: &str = "/echopb.Echo/Chat";
pub const WATCH: &str = "/echopb.Echo/Watch";

/// Returns a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Returns the preface and the settings of a client with this window for each stream.
pub fn opening(window: u32) -> Vec<u8> {
    let setting = [&[0, INITIAL_WINDOW_SIZE], &window.to_be_bytes()[..]].concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()
}

/// Returns true if one of these frames ends a call: its trailers, a reset, or the goodbye to its connection.
pub fn ends_call(mut frames: &[u8]) -> bool {
    while let Some((&[a, b, c, kind, flags, ..], rest)) = frames.split_first_chunk::<9>() {
        if [RST_STREAM, GOAWAY].contains(&kind) || (kind == HEADERS && flags & END_STREAM > 0) {
            return true;
        }
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        frames = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Returns a PING.
pub fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

/// Returns the beginning of a request: its headers.
pub fn headers(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block(path))
}

/// Returns a request with one message.
pub fn request(stream: u32, path: &str, message: &[u8]) -> Vec<u8> {
    let data = frame(DATA, END_STREAM, stream, &prefixed(message));
    [headers(stream, path), data].concat()
}

/// Returns the header block of a request of gRPC, which adds nothing to the dynamic table.
pub fn block(path: &str) -> Vec<u8> {
    // :method POST and :scheme http of the static table (RFC 7541, appendix A).
    let mut block = vec![0x83, 0x86];
    for (name, value) in [
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        // A literal that is not indexed, with a new name (RFC 7541, section 6.2.2); no text is long.
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    block
}

/// Returns a message of gRPC.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// `EchoRequest` of one byte, whose reply is to have 100.
pub const SHORT_ECHO: &[u8] = b"\x0A\x01x\x10\x64";

/// `EchoRequest` of one byte, whose reply is to have 16 MiB.
pub const LARGE_ECHO: &[u8] = b"\x0A\x01x\x10\x80\x80\x80\x08";

/// `EchoRequest` of one byte, whose reply is to have 300,000.
pub const ECHO_OF_300_KB: &[u8] = b"\x0A\x01x\x10\xE0\xA7\x12";

/// `WatchRequest` of a million messages of 4,000 bytes, a microsecond apart.
pub const TICKER: &[u8] = b"\x08\x01\x10\xC0\x84\x3D\x18\xA0\x1F";

/// `DataRequest` of 16 MiB in chunks of a KiB.
pub const SHORT_CHUNKS: &[u8] = b"\x08\x80\x80\x80\x08\x10\x80\x08";

/// `DataRequest` of 16 MiB in one chunk.
pub const LARGE_BULK: &[u8] = b"\x08\x80\x80\x80\x08\x10\x80\x80\x80\x08";

/// Returns the numbers of so many streams of a client.
pub fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}
