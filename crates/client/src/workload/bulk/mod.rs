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

mod check;
mod cut;
mod frames;
mod grpc;
mod messages;
mod meter;
mod quic;
mod replies;
mod stream;
mod tcp;

use std::{rc::Rc, time::Duration};

use futures_util::future::try_join_all;
use netping_measure::{bulk::BulkRun, error_kind::ErrorKind};
use netping_protocol::{
    scheme::{Protocol, Scheme},
    tls::Negotiated,
};
use netping_results::bulk::BulkSettings;
use netping_system::{cpu, process::own_resident_bytes};
use tokio::{
    runtime::{Builder, LocalOptions, LocalRuntime},
    time,
};

use self::{
    cut::Carried,
    meter::Meter,
    stream::{Open, Opened, Shape, Spec},
};
use crate::{
    clock::{Clock, Monotonic},
    error::StartError,
    interrupt::Interrupt,
    plan::Destination,
    probe::metrics::{Probe, Reading},
    transport::{Endpoint, Failure},
};

/// Limit on the bytes of the warm-up.
pub const WARM_UP: u64 = 64 << 20;

/// Time between looks at interrupts and at progress.
const LOOK: Duration = Duration::from_millis(20);

/// Streams unused for this time, in nanoseconds, are opened anew before a server may think them
/// idle: 60 s.
const STALE: u64 = 60_000_000_000;

/// Bytes in a GiB.
const GIB: f64 = (1_u64 << 30) as f64;

/// The transports that carry bulk streams. A new one is a file here and a line in this table.
const CARRIERS: [(Protocol, Open); 3] = [
    (Protocol::Tcp, tcp::open),
    (Protocol::Quic, quic::open),
    (Protocol::Grpc, grpc::open),
];

/// Returns true if a target of this scheme can carry bulk streams.
pub fn is_carried(scheme: Scheme) -> bool {
    carrier(scheme).is_some()
}

fn carrier(scheme: Scheme) -> Option<Open> {
    CARRIERS
        .into_iter()
        .find(|(own, _)| *own == scheme.protocol())
        .map(|(_, open)| open)
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

/// The thread and the clock that all plans share.
#[derive(Debug)]
struct Driver {
    runtime: LocalRuntime,
    clock: Monotonic,
}

/// One plan and its streams.
#[derive(Debug)]
pub struct Bulk {
    plan: BulkPlan,
    carrier: Open,
    endpoint: Endpoint,
    // Dropped before the driver.
    opened: Option<Opened>,
    driver: Rc<Driver>,
    /// The open streams have had their warm-up.
    warm: bool,
    /// Time of their last use, in nanoseconds.
    used: u64,
    negotiated: Option<Negotiated>,
    /// Reads the server's counters; `None` if there are none.
    probe: Option<Probe>,
    server_note: Option<String>,
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
        let clock = Monotonic::start();
        let driver = Rc::new(Driver { runtime, clock });
        let open = |plan: &BulkPlan| {
            let mut bulk = Self::new(plan, &driver)?;
            let opened = driver.runtime.block_on(bulk.open_streams(interrupt));
            opened.map_err(|ended| match ended {
                Ended::Failed(failure) => StartError::Connect {
                    target: plan.target.url.clone(),
                    failure,
                },
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
            self.opened = None;
        }
        run
    }

    fn new(plan: &BulkPlan, driver: &Rc<Driver>) -> Result<Self, StartError> {
        Ok(Self {
            plan: plan.clone(),
            // Flags without a carrier make no plan.
            carrier: carrier(plan.target.url.scheme).ok_or(StartError::Broken)?,
            endpoint: plan.target.endpoint()?,
            driver: Rc::clone(driver),
            opened: None,
            warm: false,
            used: 0,
            negotiated: None,
            probe: Some(Probe::new(plan.target.server.clone())),
            server_note: None,
        })
    }

    /// Returns the security of the connections; `None` in the clear.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Returns the reason why expected counters of the server could not be read.
    pub fn server_note(&self) -> Option<&str> {
        self.server_note.as_deref()
    }

    async fn open_streams(&mut self, interrupt: &Interrupt) -> Result<(), Ended> {
        let clock = self.driver.clock;
        let meter = Rc::new(Meter::new(clock));
        let spec = Spec {
            endpoint: self.endpoint.clone(),
            settings: self.plan.settings.clone(),
            shape: Rc::new(Shape::new(&self.plan.settings)),
            meter: Rc::clone(&meter),
        };
        let overdue = || match meter.lack() {
            Some(lack) => Failure::lost(ErrorKind::Other, lack),
            None => Failure::lost(ErrorKind::ConnectTimeout, "no connection within --timeout"),
        };
        let (opening, patience) = ((self.carrier)(spec), self.plan.timeout);
        let opened = watched(opening, &meter, patience, overdue, interrupt).await?;
        self.negotiated.clone_from(&opened.negotiated);
        self.opened = Some(opened);
        (self.warm, self.used) = (false, clock.now());
        Ok(())
    }

    fn measure(&mut self, interrupt: &Interrupt) -> Result<BulkRun, Ended> {
        let driver = Rc::clone(&self.driver);
        let runtime = &driver.runtime;
        let size = self.plan.settings.size_bytes;
        if driver.clock.now() - self.used > STALE {
            self.opened = None;
        }
        if self.opened.is_none() {
            runtime.block_on(self.open_streams(interrupt))?;
        }
        if !self.warm {
            // A size that the server chooses is that of the warm-up too.
            runtime.block_on(self.transfer(size.min(WARM_UP), interrupt))?;
            self.warm = true;
        }
        let before = self.read_counters();
        let cpu = cpu::process_time();
        let times = runtime.block_on(self.transfer(size, interrupt))?;
        let cpu = cpu::process_time().saturating_sub(cpu);
        let server = before.and_then(|before| {
            let demand = before.demand_until(&self.read_counters()?, 0);
            demand.ok().flatten()
        });
        let Carried { bytes, longest } = times.carried;
        let gib = bytes as f64 / GIB;
        Ok(BulkRun {
            seconds: times.whole,
            first_byte_seconds: times.first_byte,
            bytes,
            message_bytes: Some(longest),
            gib_per_second: gib / times.whole,
            client_cpu_seconds_per_gib: Some(cpu.as_secs_f64() / gib),
            server_cpu_seconds_per_gib: server.as_ref().map(|server| server.cpu_seconds / gib),
            client_resident_bytes: own_resident_bytes(),
            server_resident_bytes: server.and_then(|server| server.resident_bytes),
        })
    }

    /// Carries `bytes` over the streams, each its share.
    async fn transfer(&mut self, bytes: u64, interrupt: &Interrupt) -> Result<Times, Ended> {
        let clock = self.driver.clock;
        let Some(opened) = &mut self.opened else {
            let failure = Failure::lost(ErrorKind::Other, "no stream is open");
            return Err(Ended::Failed(failure));
        };
        let meter = Meter::new(clock);
        let shares = cut::shares(bytes, opened.streams.len());
        let overdue = || Failure::lost(ErrorKind::Timeout, "no byte came or went within --timeout");
        let start = clock.now();
        let streams = opened.streams.iter_mut().zip(shares);
        let streams = try_join_all(streams.map(|(stream, share)| stream.transfer(share, &meter)));
        let carried = watched(streams, &meter, self.plan.timeout, overdue, interrupt).await?;
        let end = clock.now();
        self.used = end;
        let seconds = |time: u64| time.saturating_sub(start).max(1) as f64 / 1e9;
        Ok(Times {
            carried: Carried {
                bytes: carried.iter().map(|stream| stream.bytes).sum(),
                longest: carried
                    .iter()
                    .map(|stream| stream.longest)
                    .max()
                    .unwrap_or_default(),
            },
            whole: seconds(end),
            first_byte: seconds(meter.first_answer().unwrap_or(end)),
        })
    }

    /// Reads the server's counters. A server that does not answer is not asked again: each attempt
    /// may take a while.
    fn read_counters(&mut self) -> Option<Reading> {
        match self.probe.as_ref()?.read() {
            Ok(reading) => Some(reading),
            Err(note) => {
                self.probe = None;
                self.server_note = Some(note).filter(|note| !note.is_empty());
                None
            }
        }
    }
}

/// The bytes that a run carried, and its times in seconds.
struct Times {
    carried: Carried,
    whole: f64,
    first_byte: f64,
}

/// Returns the result of `work`, unless there is no progress for as long as `patience`, or the user
/// ends it.
async fn watched<T>(
    work: impl Future<Output = Result<T, Failure>>,
    meter: &Meter,
    patience: Duration,
    overdue: impl Fn() -> Failure,
    interrupt: &Interrupt,
) -> Result<T, Ended> {
    tokio::pin!(work);
    let mut looks = time::interval(LOOK);
    looks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    let (mut moved, mut since) = (meter.moved(), meter.now());
    loop {
        // In random order: work that is always ready must not keep the looks away.
        tokio::select! {
            result = &mut work => return result.map_err(Ended::Failed),
            _ = looks.tick() => {
                if interrupt.is_set() {
                    return Err(Ended::Interrupted);
                }
                let now = meter.now();
                if moved != meter.moved() {
                    (moved, since) = (meter.moved(), now);
                } else if u128::from(now - since) >= patience.as_nanos() {
                    return Err(Ended::Failed(overdue()));
                }
            }
        }
    }
}
