//! The work of every server around its connections: admission, counting, deadlines, drain.

use std::{
    future,
    io::{self, Write},
    net::TcpStream,
    os::fd::AsFd,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use netping_protocol::secure;
use netping_system::{cores, limits, memory};
use nix::libc;
use socket2::SockRef;
use tokio::{runtime::Builder, time};

use crate::{
    args::CommonArgs,
    connection::{Connection, Connections, Deadlines, Ending, Guard, Overdue},
    listen::Listening,
    metrics,
    profile::Profile,
    request_limit::{REQUEST_TIMEOUT, RequestLimit},
    state::State,
    synthetic_load::SyntheticLoad,
};

/// Interval at which the reaper checks the connections' deadlines.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// Pause after an accept that failed for lack of descriptors or memory.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Time that connections get to end after the drain has closed them.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time in which the peers of a protocol with a goodbye answer it.
const GOODBYE: Duration = Duration::from_secs(1);

/// File descriptors reserved for everything but connections.
const RESERVED_FILES: u64 = 64;

/// The shared part of a running server. Clones are the same chassis.
#[derive(Debug, Clone)]
pub struct Chassis {
    state: Arc<State>,
    profile: Profile,
    drain_timeout: Duration,
    request_limit: RequestLimit,
    load: SyntheticLoad,
}

impl Chassis {
    /// Starts the housekeeping thread, which serves metrics and enforces deadlines until the last
    /// clone is dropped, and announces the server on standard output. Check flags before.
    ///
    /// # Errors
    /// Fails if the system refuses a thread or a socket.
    pub fn start<L>(
        listening: &mut Listening<L>,
        args: &CommonArgs,
        profile: Profile,
    ) -> io::Result<Self> {
        let files = limits::raise_open_files();
        let spare = files - RESERVED_FILES.min(files / 2);
        let affordable = (spare / profile.files_per_connection) as usize;
        let max_connections = args.max_connections.unwrap_or(affordable);
        let cores = cores::own().len();
        let cores = profile.workers.map_or(cores, |workers| workers.min(cores));
        let max_memory = args.max_memory.or_else(|| Some(memory::available()? / 2));
        let state = Arc::new(State::new(max_connections, max_memory, cores));
        let deadlines = Deadlines {
            first_byte: args.first_byte_timeout,
            first_bytes: profile.first_bytes,
            idle: args.idle_timeout,
            request: RequestLimit::new(args.request_timeout),
        };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let metrics = match listening.metrics.take() {
            Some(listener) => Some(metrics::Endpoint::new(&runtime, listener, &state)?),
            None => None,
        };
        let reaper = reap(Arc::downgrade(&state), deadlines);
        thread::Builder::new()
            .name("housekeeping".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    if let Some(metrics) = metrics {
                        tokio::spawn(metrics.serve());
                    }
                    reaper.await;
                });
            })?;
        if let Some(announcement) = listening.announcement.take() {
            // A closed standard output is no reason not to serve.
            let _ = writeln!(io::stdout(), "{announcement}");
        }
        Ok(Self {
            state,
            profile,
            drain_timeout: args.drain_timeout,
            request_limit: deadlines.request,
            load: SyntheticLoad::new(&args.load),
        })
    }

    /// Returns the load that each request causes beyond its reply.
    pub fn load(&self) -> SyntheticLoad {
        self.load
    }

    /// Returns the time that a request may take to come.
    pub fn request_limit(&self) -> RequestLimit {
        self.request_limit
    }

    /// Counts an error of this kind, a word in `snake_case`.
    pub fn count_error(&self, kind: &str) {
        self.state.count_error(kind);
    }

    /// Counts the failure of a connection.
    pub fn count_failure(&self, error: &io::Error) {
        let security = secure::is_security_error(error);
        self.count_error(if security { "tls" } else { "io" });
    }

    /// Admits a connection that a task will serve. Returns `None` if too many are open: close it.
    pub fn admit_task(&self) -> Option<Guard> {
        let state = &self.state;
        state.admit(Connections::admit_task)
    }

    /// Admits a connection that a thread will serve. Returns `None` if too many are open: close it.
    pub fn admit_socket(&self, socket: &Arc<TcpStream>) -> Option<Connection> {
        let state = &self.state;
        state.admit(|connections, limit| connections.admit_socket(socket, limit))
    }

    /// Counts a failed accept and returns the time to wait before the next one.
    pub fn accept_failed(&self, error: &io::Error) -> Duration {
        // ECONNABORTED and the like concern one peer. A lack of descriptors or memory lasts, and a
        // loop that retries at once would spin.
        let scarce = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
        let (kind, pause) = match error.raw_os_error() {
            Some(code) if scarce.contains(&code) => ("accept_exhausted", BACK_OFF),
            _ => ("accept", Duration::ZERO),
        };
        self.count_error(kind);
        self.state
            .log_rarely(|| tracing::warn!("accept failed: {error}"));
        pause
    }

    /// Counts a thread that the system refused for a connection.
    pub fn spawn_failed(&self, error: &io::Error) {
        self.count_error("spawn");
        self.state
            .log_rarely(|| tracing::warn!("no thread for a connection: {error}"));
    }

    /// Closes the connections whose peers have nothing in flight, but do not answer a goodbye.
    async fn close_idle(&self) {
        if self.profile.drain_by_eof {
            return future::pending().await;
        }
        // An honest peer has answered by then.
        time::sleep(GOODBYE).await;
        loop {
            self.state.connections.close_idle();
            time::sleep(REAP_INTERVAL).await;
        }
    }

    /// Ends all connections: lets them finish first, then, after the drain timeout, closes them.
    pub async fn drain(&self) {
        let connections = &self.state.connections;
        if self.profile.drain_by_eof {
            connections.end_all(Ending::Drain);
        }
        let drained = async {
            tokio::select! {
                () = connections.empty() => {}
                () = self.close_idle() => {}
            }
        };
        if time::timeout(self.drain_timeout, drained).await.is_ok() {
            return;
        }
        let (open, ..) = connections.totals();
        tracing::warn!(
            connections = open,
            "closing connections that did not finish within the drain timeout"
        );
        connections.end_all(Ending::Close);
        // A connection that stays now is stuck in its own work; the process ends without it.
        let _ = time::timeout(CLOSE_TIMEOUT, connections.empty()).await;
    }
}

/// Closes overdue connections until the server is gone.
async fn reap(state: Weak<State>, deadlines: Deadlines) {
    let mut interval = time::interval(REAP_INTERVAL);
    interval.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(state) = state.upgrade() else {
            return;
        };
        state.look_at_memory();
        for overdue in state.connections.reap(deadlines) {
            state.count_error(match overdue {
                Overdue::FirstByte => "first_byte_timeout",
                Overdue::Idle => "idle_timeout",
                Overdue::Request => REQUEST_TIMEOUT,
            });
        }
    }
}

/// Sets the option that every accepted connection has: replies leave at once.
pub(crate) fn set_no_delay(stream: &impl AsFd) {
    // It fails only on a connection that is gone already, which the first read shows.
    let _ = SockRef::from(stream).set_tcp_nodelay(true);
}
