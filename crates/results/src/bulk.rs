//! The settings of bulk streams.

use netping_measure::bulk::Direction;
use serde::{Deserialize, Serialize};

use crate::format::{self, plural};

/// A size or a length in [`BulkSettings`] that the server chooses.
pub const SERVERS_CHOICE: u64 = 0;

/// The settings of bulk streams, which one step measures as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkSettings {
    /// Which way the bytes go.
    pub direction: Direction,
    /// Bytes of each run, over all streams; 0: the server's own choice on each stream.
    pub size_bytes: u64,
    /// Bytes of each message; a stream's last one has what is left. 0: the server's own choice.
    pub chunk_bytes: u64,
    /// Streams side by side.
    pub streams: usize,
    /// The flow-control window of each stream, in bytes; absent where the transport has none, or
    /// its own is kept.
    pub window_bytes: Option<u64>,
    /// The largest HTTP/2 frame that is taken, in bytes; absent where the transport has none, or
    /// its own is kept.
    pub frame_bytes: Option<u64>,
    /// True where every byte was compared.
    pub verify: bool,
    /// Small requests per second beside the streams; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes_per_s: Option<f64>,
}

impl BulkSettings {
    /// Returns a size or a length as people read it.
    pub fn shown(bytes: u64) -> String {
        if bytes == SERVERS_CHOICE {
            return "server's".to_owned();
        }
        format::bytes(bytes)
    }

    /// Returns all settings as people read them.
    pub fn in_words(&self) -> String {
        let mut parts = vec![
            format!("bulk {}", self.direction.name()),
            format!("{} size", Self::shown(self.size_bytes)),
            format!("{} chunks", Self::shown(self.chunk_bytes)),
            plural(self.streams as u64, "stream"),
        ];
        let (window, frame) = (self.window_bytes, self.frame_bytes);
        parts.extend(window.map(|bytes| format!("window of {bytes} bytes")));
        parts.extend(frame.map(|bytes| format!("frame of {bytes} bytes")));
        parts.extend(self.verify.then(|| "verified".to_owned()));
        let probes = self
            .probes_per_s
            .map(|rate| format!("{} probes/s", format::thousands(rate)));
        parts.extend(probes);
        parts.join(", ")
    }
}
