//! The work of every server around its connections: admission, counting, deadlines, drain.

use std::{
    hint, io,
    net::TcpStream,
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use netping_protocol::secure;
use netping_system::{cores, limits, memory, process::own_resident_bytes};
use nix::libc;
use socket2::SockRef;
use tokio::time;

use crate::{
    Connection, Drain, Guard, Profile,
    args::{CommonArgs, LoadArgs},
    clock,
    connection::{Connections, Deadlines, Ending, MAX_CONNECTIONS, Shared},
    reply_memory::MAX_MEMORY,
    request_limit::RequestLimit,
    shutdown::Shutdown,
};

/// Interval at which the reaper checks the connections' deadlines.
pub(crate) const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// Pause after an accept that failed for lack of descriptors or memory.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Time in which closed connections free their memory, and the allocator gives it back to the system.
const FREEING: Duration = Duration::from_secs(3);

/// Time that connections get to end after the drain has closed them.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Time in which the peers of a protocol with a goodbye answer it.
const GOODBYE: Duration = Duration::from_secs(1);

/// File descriptors reserved for everything but connections and the readers of metrics.
const RESERVED_FILES: u64 = 64;

/// Limit on the scrapes of metrics at a time. Clients that measure in step all scrape at one moment.
pub(crate) const MAX_SCRAPES: usize = 256;

/// File descriptors of a runtime: its poll, its timer's wake and a listener of its own.
const RUNTIME_FILES: u64 = 4;

/// The part of a running server that all its connections share.
#[derive(Debug)]
pub struct Chassis {
    /// Switch that ends the server.
    pub shutdown: Shutdown,
    pub(crate) connections: Arc<Connections>,
    pub(crate) max_connections: usize,
    /// Memory of the process above which no connection is admitted, in bytes.
    max_memory: Option<u64>,
    /// Cores that can serve requests.
    pub(crate) cores: usize,
    drain: Drain,
    drain_timeout: Duration,
    deadlines: Deadlines,
    /// The load that each request causes beyond its reply.
    pub load: LoadArgs,
    /// Bytes that connections held which were closed for lack of memory, and when they were.
    freeing: Mutex<Vec<(u64, Instant)>>,
}

impl Chassis {
    pub(crate) fn new(args: &CommonArgs, profile: Profile, shutdown: Shutdown) -> Self {
        memory::refuse_huge_pages();
        let files = limits::raise_open_files();
        let cores = cores::own().len();
        let others = RESERVED_FILES + MAX_SCRAPES as u64 + RUNTIME_FILES * cores as u64;
        let spare = files - others.min(files / 2);
        let affordable = (spare / profile.files_per_connection) as usize;
        let request_limit = RequestLimit::new(args.request_timeout);
        let shared = Shared::new(profile.most_held, request_limit);
        Self {
            shutdown,
            connections: Arc::new(Connections::new(shared)),
            max_connections: args.max_connections.unwrap_or(affordable),
            max_memory: args.max_memory.or_else(|| Some(memory::available()? / 2)),
            cores: profile.workers.map_or(cores, |workers| workers.min(cores)),
            drain: profile.drain,
            drain_timeout: args.drain_timeout,
            deadlines: Deadlines {
                first_byte: args.first_byte_timeout,
                preface: profile.preface,
                idle: args.idle_timeout,
                reply: args.reply_timeout,
            },
            load: args.load,
            freeing: Mutex::default(),
        }
    }

    /// Returns the time in which a peer has to take a part of a reply; `None` without a limit.
    pub fn reply_timeout(&self) -> Option<Duration> {
        let limit = self.deadlines.reply;
        (!limit.is_zero()).then_some(limit)
    }

    /// Returns what all connections share: errors are counted there.
    pub fn shared(&self) -> &Shared {
        self.connections.shared()
    }

    /// Counts the failure of a connection.
    pub fn count_failure(&self, error: &io::Error) {
        let security = secure::is_security_error(error);
        self.shared().count(if security { "tls" } else { "io" });
    }

    /// Admits a connection that a task will serve. Returns `None` if too many are open or the process
    /// holds too much memory: close it.
    pub fn admit_task(&self) -> Option<Guard> {
        self.admit(Connections::admit_task)
    }

    /// Admits a connection that a thread will serve. Returns `None` as [`Chassis::admit_task`] does.
    pub fn admit_socket(&self, socket: &Arc<TcpStream>) -> Option<Connection> {
        self.admit(|connections, limit| connections.admit_socket(socket, limit))
    }

    fn admit<T>(&self, admit: impl Fn(&Arc<Connections>, usize) -> Option<T>) -> Option<T> {
        if self.connections.is_full() {
            self.shared().count(MAX_MEMORY);
            self.shared()
                .log_rarely(|| tracing::warn!("--max-memory is reached: refusing new connections"));
            return None;
        }
        let open = self.max_connections;
        let admitted = admit(&self.connections, open);
        if admitted.is_some() {
            return admitted;
        }
        if self.connections.make_room() {
            let idle = "closing those that have been idle longest";
            self.shared()
                .log_rarely(|| tracing::warn!("{open} connections are open: {idle}"));
            // The place may be another's by now.
            let admitted = admit(&self.connections, open);
            if admitted.is_some() {
                return admitted;
            }
        }
        self.shared().count(MAX_CONNECTIONS);
        self.shared()
            .log_rarely(|| tracing::warn!("{open} connections are open: refusing new ones"));
        None
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
        self.shared().count(kind);
        self.shared()
            .log_rarely(|| tracing::warn!("accept failed: {error}"));
        pause
    }

    /// Counts a thread that the system refused for a connection.
    pub fn spawn_failed(&self, error: &io::Error) {
        self.shared().count("spawn");
        self.shared()
            .log_rarely(|| tracing::warn!("no thread for a connection: {error}"));
    }

    /// Closes overdue connections, and while the process holds too much memory, those that hold most. Where that is not
    /// enough, refuses new ones.
    pub(crate) fn reap(&self) {
        let memory = || Some((own_resident_bytes()?, self.max_memory?));
        let lacking = memory().map_or(0, |(resident, most)| self.relieve(resident, most));
        self.connections.set_full(lacking > 0);
        for kind in self.connections.reap(self.deadlines) {
            self.shared().log_deadline(kind);
        }
    }

    /// Where the process has more `resident` bytes than the `most` that it may have, closes the connections that hold
    /// most, until it should come down to three quarters of this; returns how many bytes it has too many without these.
    /// Memory of connections that were closed in the last three seconds counts as free: up to `most`, since new ones may
    /// have it by now, and for those that are to be admitted up to half of `most`.
    fn relieve(&self, resident: u64, most: u64) -> u64 {
        let now = clock::now();
        // Every change is a single step.
        let mut freeing = self.freeing.lock().unwrap_or_else(PoisonError::into_inner);
        freeing.retain(|(_, since)| now - *since < FREEING);
        let excess = resident.saturating_sub(most);
        if excess == 0 {
            return 0;
        }
        give_memory_back();
        let before = freeing
            .iter()
            .map(|(bytes, _)| bytes)
            .sum::<u64>()
            .min(most);
        let lacking = (excess + most / 4).saturating_sub(before);
        let rest = resident.saturating_sub(before);
        let (closed, bytes) = self.connections.close_largest(lacking, rest);
        if closed > 0 {
            freeing.push((bytes, now));
            tracing::warn!(
                closed,
                "--max-memory is reached: closing the connections that hold most"
            );
        }
        excess.saturating_sub((before + bytes).min(most / 2))
    }

    /// Lets all connections finish. Closes those whose peers have nothing in flight, but do not answer a
    /// goodbye.
    async fn finish_connections(&self) {
        let connections = &self.connections;
        match self.drain {
            Drain::ByEof => {
                connections.end_all(Ending::Drain);
                return connections.empty().await;
            }
            Drain::ByPeers => return connections.empty().await,
            Drain::ByGoodbye => {}
        }
        // An honest peer has answered by the end of the first wait.
        let mut wait = GOODBYE;
        while time::timeout(wait, connections.empty()).await.is_err() {
            connections.close_idle();
            wait = REAP_INTERVAL;
        }
    }

    /// Waits until the server has been ending for as long as an honest peer needs.
    pub(crate) async fn goodbye_is_over(&self) {
        self.shutdown.triggered().await;
        time::sleep(GOODBYE).await;
    }

    /// Ends all connections: lets them finish first, then, after the drain timeout, closes them.
    pub async fn drain(&self) {
        let connections = &self.connections;
        let finished = time::timeout(self.drain_timeout, self.finish_connections());
        if finished.await.is_ok() {
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

/// Has the allocator give freed memory back to the system. mimalloc does that only when it is asked for a large block
/// after the time for which it keeps what is freed: a process that is at rest would keep all of it.
fn give_memory_back() {
    const LARGE: usize = 8 << 20;
    drop(hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// Sets the option that every accepted connection has: replies leave at once.
pub(crate) fn set_no_delay(stream: &impl AsFd) {
    // It fails only on a connection that is gone already, which the first read shows.
    let _ = SockRef::from(stream).set_tcp_nodelay(true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connection::Held, testing::accepted};

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn memory_that_closed_connections_held_counts_no_longer() {
        let (accepted, chassis, _) = accepted();
        let others = [(); 3].map(|()| chassis.admit_task().unwrap());
        let held = |connection, mib| {
            let mut held = Held::nothing(connection);
            held.set(mib * MIB).unwrap();
            held
        };
        let _held = [
            held(accepted.connection(), 8),
            held(others[0].connection(), 7),
            held(others[1].connection(), 6),
        ];
        let closed = || chassis.freeing.lock().unwrap().len();
        let relieve = |resident, most| chassis.relieve(resident * MIB, most * MIB) / MIB;
        assert_eq!((relieve(40, 40), closed()), (0, 0));
        // A quarter of what it may have is freed besides.
        assert_eq!((relieve(43, 40), closed()), (0, 1));
        assert_eq!((relieve(45, 40), closed()), (0, 1));
        assert_eq!((relieve(46, 40), closed()), (0, 2));
        // All have been closed: they held 21 MiB, of which those who are admitted may count on 20.
        assert_eq!((relieve(61, 40), closed()), (1, 2));
        for (_, since) in &mut *chassis.freeing.lock().unwrap() {
            *since -= FREEING;
        }
        assert_eq!((relieve(46, 40), closed()), (6, 0));
    }

    #[tokio::test]
    async fn however_much_was_closed_a_process_that_grows_closes_more() {
        let (accepted, chassis, _) = accepted();
        let mut held = Held::nothing(accepted.connection());
        held.set(8 * MIB).unwrap();
        chassis
            .freeing
            .lock()
            .unwrap()
            .push((1000 * MIB, clock::now()));
        chassis.relieve(70 * MIB, 40 * MIB);
        assert_eq!(accepted.connection().closed(), None);
        chassis.relieve(71 * MIB, 40 * MIB);
        assert_eq!(accepted.connection().closed(), Some(MAX_MEMORY));
    }

    #[tokio::test]
    async fn connections_hold_no_more_than_the_process() {
        let (accepted, chassis, _) = accepted();
        let other = chassis.admit_task().unwrap();
        let mut held = [accepted.connection(), other.connection()].map(|own| Held::nothing(own));
        for held in &mut held {
            held.set(100 * MIB).unwrap();
        }
        // Both had 15 MiB, of which those who are admitted may count on five.
        assert_eq!(chassis.relieve(30 * MIB, 10 * MIB), 15 * MIB);
        let closed = [accepted.connection(), other.connection()].map(|own| own.closed());
        assert_eq!(closed, [Some(MAX_MEMORY); 2]);
    }
}
