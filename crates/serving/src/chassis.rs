//! What all servers do around their connections.

use std::{
    io::{self, Write},
    net::TcpStream,
    os::fd::AsFd,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use netping_system::limits;
use nix::libc;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use socket2::SockRef;
use tokio::time;

use crate::{
    clock,
    connection::{Connection, Connections, Deadlines, Ending, Guard, Overdue},
    effort::Effort,
    listen::Listening,
    metrics,
    options::CommonArgs,
};

/// How often the warden looks at the connections' deadlines.
const PATROL: Duration = Duration::from_millis(100);

/// The wait after an accept that failed for want of descriptors or memory.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Descriptors kept back for everything but connections.
const RESERVED_FILES: u64 = 64;

/// What differs between servers, as the chassis sees it.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Bytes that an honest client has sent by the first-byte deadline.
    pub first_bytes: u64,
    /// Whether a drain makes connections read as closed. A server whose protocol has a goodbye of its own says no.
    pub drain_by_eof: bool,
    /// File descriptors that each connection takes.
    pub files_per_connection: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ErrorLabels {
    kind: String,
}

/// The shared part of a running server. Clones are the same chassis.
#[derive(Debug, Clone)]
pub struct Chassis {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub connections: Arc<Connections>,
    pub errors: Family<ErrorLabels, Counter>,
    pub max_connections: usize,
    profile: Profile,
    drain_timeout: Duration,
    effort: Effort,
    last_complaint: Mutex<Option<Instant>>,
}

impl Chassis {
    /// Starts the housekeeping: metrics, and the warden that enforces the deadlines. It ends with the last clone. Says where
    /// the server listens: what could be wrong with its flags must have been looked at before.
    ///
    /// # Errors
    /// When the system refuses a thread or a socket.
    pub fn start<L>(
        listening: &mut Listening<L>,
        args: &CommonArgs,
        profile: Profile,
    ) -> io::Result<Self> {
        let files = limits::raise_open_files();
        let spare = files - RESERVED_FILES.min(files / 2);
        let allowed = (spare / profile.files_per_connection) as usize;
        let inner = Arc::new(Inner {
            connections: Arc::default(),
            errors: Family::default(),
            max_connections: args.max_connections.map_or(allowed, std::num::NonZero::get),
            profile,
            drain_timeout: args.drain_timeout,
            effort: Effort::new(&args.effort),
            last_complaint: Mutex::new(None),
        });
        let deadlines = Deadlines {
            first_byte: args.first_byte_timeout,
            first_bytes: profile.first_bytes,
            idle: args.idle_timeout,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let metrics = match listening.metrics.take() {
            Some(listener) => Some(metrics::Endpoint::new(&runtime, listener, &inner)?),
            None => None,
        };
        let warden = Arc::downgrade(&inner);
        thread::Builder::new()
            .name("housekeeping".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    if let Some(metrics) = metrics {
                        tokio::spawn(metrics.serve());
                    }
                    let mut patrol = time::interval(PATROL);
                    patrol.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
                    loop {
                        patrol.tick().await;
                        let Some(inner) = warden.upgrade() else {
                            return;
                        };
                        inner.patrol(deadlines);
                    }
                });
            })?;
        if let Some(announcement) = listening.announcement.take() {
            // A closed standard output is no reason not to serve.
            let _ = writeln!(io::stdout(), "{announcement}");
        }
        Ok(Self { inner })
    }

    /// What each request costs beyond the echo.
    pub fn effort(&self) -> Effort {
        self.inner.effort
    }

    /// Counts an error of this kind, a word in `snake_case`.
    pub fn count_error(&self, kind: &str) {
        self.inner.count_error(kind);
    }

    /// Admits a connection that a task will serve. `None`: there are too many, close it.
    pub fn admit_task(&self) -> Option<Guard> {
        let guard = self
            .inner
            .connections
            .admit_task(self.inner.max_connections);
        self.inner.note_admission(guard)
    }

    /// Admits a connection that a thread will serve. `None`: there are too many, close it.
    pub fn admit_socket(&self, socket: &Arc<TcpStream>) -> Option<Connection> {
        let connection = self
            .inner
            .connections
            .admit_socket(socket, self.inner.max_connections);
        self.inner.note_admission(connection)
    }

    /// What to do after an accept that failed: count it, and wait this long before the next.
    pub fn accept_failed(&self, error: &io::Error) -> Duration {
        // ECONNABORTED and its like concern one peer; a want of descriptors or memory goes on for a while, and a
        // loop that retries at once would spin.
        let scarce = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
        let back_off = error
            .raw_os_error()
            .is_some_and(|code| scarce.contains(&code));
        self.count_error(if back_off {
            "accept_exhausted"
        } else {
            "accept"
        });
        self.inner
            .complain(|| tracing::warn!("accept failed: {error}"));
        if back_off { BACK_OFF } else { Duration::ZERO }
    }

    /// Counts a thread that the system refused for a connection.
    pub fn spawn_failed(&self, error: &io::Error) {
        self.count_error("spawn");
        self.inner
            .complain(|| tracing::warn!("no thread for a connection: {error}"));
    }

    /// Ends all connections: politely first, then, after the drain timeout, at once.
    pub async fn drain(&self) {
        let connections = &self.inner.connections;
        if self.inner.profile.drain_by_eof {
            connections.end_all(Ending::Drain);
        }
        if time::timeout(self.inner.drain_timeout, connections.empty())
            .await
            .is_ok()
        {
            return;
        }
        let (open, ..) = connections.totals();
        tracing::warn!(
            connections = open,
            "closing what has not finished within the drain timeout"
        );
        connections.end_all(Ending::Close);
        // What does not go now is stuck in its own work; the process ends without it.
        let _ = time::timeout(Duration::from_secs(1), connections.empty()).await;
    }
}

impl Inner {
    fn count_error(&self, kind: &str) {
        self.errors
            .get_or_create(&ErrorLabels {
                kind: kind.to_owned(),
            })
            .inc();
    }

    fn note_admission<T>(&self, admitted: Option<T>) -> Option<T> {
        if admitted.is_none() {
            self.count_error("max_connections");
            self.complain(|| {
                tracing::warn!(
                    "{} connections are open: closing one more at once",
                    self.max_connections
                );
            });
        }
        admitted
    }

    fn patrol(&self, deadlines: Deadlines) {
        for overdue in self.connections.enforce(deadlines) {
            self.count_error(match overdue {
                Overdue::FirstByte => "first_byte_timeout",
                Overdue::Idle => "idle_timeout",
            });
        }
    }

    /// Logs at most once a second, whatever happens how often.
    pub fn complain(&self, log: impl FnOnce()) {
        let Ok(mut last) = self.last_complaint.lock() else {
            return;
        };
        let now = clock::now();
        if last.is_none_or(|last| now.duration_since(last) >= Duration::from_secs(1)) {
            *last = Some(now);
            log();
        }
    }
}

/// Sets what every accepted connection has: replies leave at once.
pub(crate) fn set_no_delay(stream: &impl AsFd) {
    // It fails only on a connection that is gone already; the first read tells.
    let _ = SockRef::from(stream).set_tcp_nodelay(true);
}
