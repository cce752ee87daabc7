//! Bulk streams: the rate of many bytes in one direction.
//!
//! A [`BulkPlan`] is one target with one set of settings. Its streams are opened once and kept, on
//! the one thread and runtime that all plans share: so plans can be measured in turns, and none of
//! them pays for connections. If a stream fails, all of its plan are closed, and the plan's next
//! run opens them anew; so does a run long after the last.
//!
//! A run is measured from the first request until the last byte of the last stream has arrived:
//! [`Down`](netping_measure::bulk::Direction::Down) at the client,
//! [`Up`](netping_measure::bulk::Direction::Up) at the server, which says so. Before a plan's first
//! run, and after streams were opened anew, at most [`WARM_UP`] bytes go over them that do not
//! count; a whole run, if the server chooses its size.
//!
//! The bytes are carried by a [`stream::BulkStream`]: frames on a byte stream ([`tcp`], [`quic`])
//! or the messages of a gRPC call ([`grpc`]).

mod frames;
mod grpc;
mod incoming;
mod probe;
mod quic;
mod stream;
mod tcp;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    rc::Rc,
    time::Duration,
};

use futures_util::future::try_join_all;
use netping_measure::{
    bulk::BulkRun,
    cost::Balance,
    error_kind::ErrorKind,
    path::{PathAccount, PathReading},
};
use netping_protocol::{scheme::Protocol, tls::Negotiated};
use netping_results::bulk::BulkSettings;
use netping_system::{cpu, process::own_resident_bytes};
use tokio::{
    runtime::{Builder, LocalOptions, LocalRuntime},
    time,
};

use self::stream::{BulkStream, Meter, Opened, Shape, Volume, shares};
use crate::{
    clock::{Clock, Moment, Monotonic},
    engine::{BalanceMeter, Counted, Processes, complete_balances, tcp_readings},
    error::{CANNOT_CONNECT, StartError},
    interrupt::Interrupt,
    plan::Destination,
    probe::metrics::{Probe, Reading},
    transport::{Failure, ServerEndpoint},
    workload::first_call::without_answer,
};

/// Limit on the bytes of the warm-up.
pub const WARM_UP: u64 = 64 << 20;

/// Time between looks at interrupts and at progress.
const LOOK: Duration = Duration::from_millis(20);

/// Streams unused for this time, in nanoseconds, are opened anew before a server may think them
/// idle: 60 s.
const STALE: u64 = 60_000_000_000;

/// The account of connections by their numbers.
type Readings = BTreeMap<u64, PathReading>;

async fn open(endpoint: &ServerEndpoint, shape: &Rc<Shape>, meter: &Meter) -> Opened {
    match endpoint.destination.url.scheme.protocol() {
        Protocol::Tcp => tcp::open(endpoint, shape, meter).await,
        Protocol::Quic => quic::open(endpoint, shape, meter).await,
        Protocol::Grpc => grpc::open(endpoint, shape, meter).await,
        // Flags make no such plan.
        Protocol::Http => Err(Failure::lost(ErrorKind::Other, "HTTP has no bulk streams")),
    }
}

/// One bulk measurement: one target, one set of settings.
#[derive(Debug, Clone)]
pub struct BulkPlan {
    /// The server.
    pub target: Destination,
    /// The settings to measure.
    pub settings: BulkSettings,
    /// Time limit for streams without progress, and for opening each connection or stream.
    pub timeout: Duration,
}

/// The reason why a run, or the opening of streams, has ended early.
#[derive(Debug)]
pub enum Ended {
    /// Not every byte arrived.
    Failed(Failure),
    /// The user ended it.
    Interrupted,
}

/// One plan and its streams.
pub struct Bulk {
    plan: BulkPlan,
    endpoint: ServerEndpoint,
    shape: Rc<Shape>,
    /// None unless they are open. Dropped before the runtime.
    streams: Vec<Box<dyn BulkStream>>,
    runtime: Rc<LocalRuntime>,
    clock: Monotonic,
    /// The open streams have had their warm-up.
    warm: bool,
    /// Time of their last use, in nanoseconds.
    used: u64,
    negotiated: Option<Negotiated>,
    /// Reads the server's counters; `None` if there are none.
    probe: Option<Probe>,
    server_note: Option<String>,
    /// When the last run began, in nanoseconds since 1970.
    started_at: u64,
    /// Connections to the server that are not the streams'.
    others: BTreeSet<u64>,
    /// The balance of the CPUs over the last run.
    balances: Vec<Balance>,
    /// The account of the TCP connections over the last run.
    path: Option<PathAccount>,
}

impl Bulk {
    /// Opens the streams of all plans before any is measured, so that a target that cannot be
    /// reached is reported at once. Returns them in the plans' order.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn open(plans: &[BulkPlan], interrupt: &Interrupt) -> Result<Vec<Self>, StartError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())?;
        let (runtime, clock) = (Rc::new(runtime), Monotonic::start());
        let open = |plan: &BulkPlan| {
            let mut bulk = Self {
                plan: plan.clone(),
                endpoint: plan.target.endpoint()?,
                shape: Rc::new(Shape::new(&plan.settings)),
                streams: Vec::new(),
                runtime: Rc::clone(&runtime),
                clock,
                warm: false,
                used: 0,
                negotiated: None,
                probe: Some(Probe::new(plan.target.server.clone())),
                server_note: None,
                started_at: 0,
                others: BTreeSet::new(),
                balances: Vec::new(),
                path: None,
            };
            let opened = runtime.block_on(bulk.open_streams(interrupt));
            opened.map_err(|ended| match ended {
                Ended::Failed(failure) => without_answer(&plan.target, failure.at(CANNOT_CONNECT)),
                Ended::Interrupted => StartError::Interrupted,
            })?;
            Ok(bulk)
        };
        plans.iter().map(open).collect()
    }

    /// Carries the bytes once. Streams that fail are opened anew by the next run.
    ///
    /// # Errors
    /// [`Ended`] if the bytes do not arrive.
    pub fn run(&mut self, interrupt: &Interrupt) -> Result<BulkRun, Ended> {
        let run = self.measure(interrupt);
        if let Err(Ended::Failed(_)) = run {
            self.streams.clear();
        }
        run
    }

    /// Returns the security of the connections; `None` in the clear.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Returns the time at which the last run began, in nanoseconds since 1970; 0 before any.
    pub fn started_at(&self) -> u64 {
        self.started_at
    }

    /// Returns the balance of the CPUs over the last run.
    pub fn balances(&self) -> &[Balance] {
        &self.balances
    }

    /// Returns the account of the TCP connections over the last run; `None` if it is not known.
    pub fn path(&self) -> Option<&PathAccount> {
        self.path.as_ref()
    }

    /// Returns the reason why expected counters of the server could not be read.
    pub fn server_note(&self) -> Option<&str> {
        self.server_note.as_deref()
    }

    async fn open_streams(&mut self, interrupt: &Interrupt) -> Result<(), Ended> {
        let (kind, detail) = (ErrorKind::ConnectTimeout, "no connection within --timeout");
        let meter = Meter::new(self.clock, kind, detail);
        let opening = open(&self.endpoint, &self.shape, &meter);
        (self.streams, self.negotiated) =
            watched(opening, &meter, self.plan.timeout, interrupt).await?;
        (self.warm, self.used) = (false, self.clock.now());
        Ok(())
    }

    fn measure(&mut self, interrupt: &Interrupt) -> Result<BulkRun, Ended> {
        let runtime = Rc::clone(&self.runtime);
        let size = self.plan.settings.size_bytes;
        // A run that fails has nothing of the one before it.
        (self.balances, self.path) = (Vec::new(), None);
        self.started_at = Moment::now().nanos();
        if self.clock.now() - self.used > STALE {
            self.streams.clear();
        }
        if self.streams.is_empty() {
            runtime.block_on(self.open_streams(interrupt))?;
        }
        if !self.warm {
            // A size that the server chooses is that of the warm-up too.
            runtime.block_on(self.transfer(size.min(WARM_UP), interrupt))?;
            self.warm = true;
        }
        let before = self.read_counters();
        let connections = tcp_readings(&self.plan.target);
        let balance = BalanceMeter::start(Processes::find(iter::once(&self.plan.target), false));
        let cpu = cpu::process_time();
        self.started_at = Moment::now().nanos();
        let (volume, [seconds, first_byte_seconds]) =
            runtime.block_on(self.transfer(size, interrupt))?;
        let cpu = cpu::process_time().saturating_sub(cpu);
        self.balances = balance.finish();
        let connections = connections.zip(tcp_readings(&self.plan.target));
        self.path = connections.and_then(|(start, end)| {
            // Connections of other plans to this server are idle meanwhile.
            let used = |all: &Readings| -> Readings {
                let used = all.iter().filter(|(own, _)| start.get(own) != end.get(own));
                let used = used.filter(|(own, _)| !self.others.contains(own));
                used.map(|(own, reading)| (*own, reading.clone())).collect()
            };
            PathAccount::between(&used(&start), &used(&end))
        });
        let readings = before.and_then(|before| Some((before, self.read_counters()?)));
        let demand = readings
            .as_ref()
            .map_or(Ok(None), |(start, end)| start.demand_until(end, 0));
        self.server_note = demand.as_ref().err().cloned().or(self.server_note.take());
        let server = demand.ok().flatten();
        let counted = Counted {
            target: &self.plan.target,
            demand: server.as_ref(),
            readings: readings.as_ref(),
        };
        complete_balances(&mut self.balances, &[counted]);
        let gib = volume.bytes as f64 / (1_u64 << 30) as f64;
        Ok(BulkRun {
            seconds,
            first_byte_seconds,
            bytes: volume.bytes,
            message_bytes: Some(volume.longest),
            gib_per_second: gib / seconds,
            client_cpu_seconds_per_gib: Some(cpu.as_secs_f64() / gib),
            server_cpu_seconds_per_gib: server.as_ref().map(|server| server.cpu_seconds / gib),
            server_system_seconds_per_gib: server
                .as_ref()
                .and_then(|server| Some(server.system_seconds? / gib)),
            server_softirq_seconds_per_gib: server
                .as_ref()
                .and_then(|server| Some(server.host.softirq_seconds? / gib)),
            client_resident_bytes: own_resident_bytes(),
            server_resident_bytes: server.and_then(|server| server.resident_bytes),
        })
    }

    /// Carries `bytes` over the streams, each its share. Returns what they carried, and the time
    /// until the last byte and until the first, in seconds.
    async fn transfer(
        &mut self,
        bytes: u64,
        interrupt: &Interrupt,
    ) -> Result<(Volume, [f64; 2]), Ended> {
        let (kind, detail) = (ErrorKind::Timeout, "no byte came or went within --timeout");
        let meter = Rc::new(Meter::new(self.clock, kind, detail));
        let shared = shares(bytes, self.streams.len());
        let start = self.clock.now();
        let streams = self.streams.iter_mut().zip(shared);
        let work = try_join_all(streams.map(|(stream, share)| stream.transfer(share, &meter)));
        let carried = watched(work, &meter, self.plan.timeout, interrupt).await?;
        self.used = self.clock.now();
        let times = [self.used, meter.first_answer.get().unwrap_or(self.used)];
        let seconds = times.map(|time| time.saturating_sub(start).max(1) as f64 / 1e9);
        Ok((carried.into_iter().sum(), seconds))
    }

    /// Reads the server's counters. A server that does not answer is not asked again: each attempt
    /// may take a while.
    fn read_counters(&mut self) -> Option<Reading> {
        match self.probe.as_mut()?.read() {
            Ok(reading) => Some(reading),
            Err(note) => {
                self.probe = None;
                self.server_note = Some(note).filter(|note| !note.is_empty());
                None
            }
        }
    }
}

/// Returns the result of `work`, unless there is no progress for as long as `patience`, or the user
/// ends it.
async fn watched<T>(
    work: impl Future<Output = Result<T, Failure>>,
    meter: &Meter,
    patience: Duration,
    interrupt: &Interrupt,
) -> Result<T, Ended> {
    tokio::pin!(work);
    let mut looks = time::interval(LOOK);
    looks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    let (mut moved, mut since) = (meter.moved.get(), meter.clock.now());
    loop {
        // In random order: work that is always ready must not keep the looks away.
        tokio::select! {
            result = &mut work => return result.map_err(Ended::Failed),
            _ = looks.tick() => {
                if interrupt.is_set() {
                    return Err(Ended::Interrupted);
                }
                let now = meter.clock.now();
                if moved != meter.moved.get() {
                    (moved, since) = (meter.moved.get(), now);
                } else if u128::from(now - since) >= patience.as_nanos() {
                    let (kind, detail) = meter.overdue.get();
                    return Err(Ended::Failed(Failure::lost(kind, detail)));
                }
            }
        }
    }
}
