//! Bulk streams: how fast many bytes go one way.
//!
//! A [`BulkPlan`] is one target with one set of settings. Its streams are opened once and kept, on the one thread and
//! runtime that all plans share: so plans can be measured in turns, and none of them pays for connections. A stream
//! that failed is closed with all of its plan, and the plan's next run opens them anew; as does a run long after the
//! last.
//!
//! A run is measured from the first request until the last byte of the last stream is there: on the way
//! [`Down`](netping_measure::bulk::Direction::Down) at the client, on the way [`Up`](netping_measure::bulk::Direction::Up) at the
//! server, which says so. Before a plan's first run, and after streams were opened anew, a run of at most [`WARM_UP`]
//! bytes goes over them that does not count.
//!
//! What carries the bytes is a [`stream::BulkStream`]: frames on a byte stream ([`tcp`], [`quic`]) or the messages of a
//! gRPC call ([`grpc`]).

mod check;
mod cut;
mod frames;
mod grpc;
mod messages;
mod meter;
mod quic;
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
    meter::Meter,
    stream::{Open, Opened, Spec},
};
use crate::{
    clock::{Clock, Monotonic},
    error::StartError,
    interrupt::Interrupt,
    plan::Destination,
    probe::metrics::{Probe, Reading},
    transport::{Endpoint, Failure},
};

/// The most bytes of the run that comes before the measured ones.
pub const WARM_UP: u64 = 64 << 20;

/// How often a run is looked at: at interrupts, and at whether it stands still.
const LOOK: Duration = Duration::from_millis(20);

/// Streams that were not used for so long are opened anew before a server may think them idle, in nanoseconds: 60 s.
const STALE: u64 = 60_000_000_000;

/// Bytes in a GiB.
const GIB: f64 = (1_u64 << 30) as f64;

/// The transports that carry bulk streams. A new one is a file here and a line in this table.
const CARRIERS: [(Protocol, Open); 3] = [
    (Protocol::Tcp, tcp::open),
    (Protocol::Quic, quic::open),
    (Protocol::Grpc, grpc::open),
];

/// Whether a target of this scheme can carry bulk streams.
pub fn is_carried(scheme: Scheme) -> bool {
    carrier(scheme).is_some()
}

fn carrier(scheme: Scheme) -> Option<Open> {
    CARRIERS
        .into_iter()
        .find(|(own, _)| *own == scheme.protocol())
        .map(|(_, open)| open)
}

/// One bulk measurement: one target, one set of settings. What is measured sees only this.
#[derive(Debug, Clone)]
pub struct BulkPlan {
    /// The server.
    pub target: Destination,
    /// What is asked for.
    pub settings: BulkSettings,
    /// How long streams may stand still, and how long opening each connection or stream may take.
    pub timeout: Duration,
}

/// What came of one run.
#[derive(Debug)]
pub enum Outcome {
    /// Every byte arrived.
    Done(BulkRun),
    /// Not every byte arrived.
    Failed(Failure),
    /// The user ended it.
    Interrupted,
}

/// What ends a run, or the opening of streams, before its time.
enum Ended {
    Failed(Failure),
    Interrupted,
}

/// The plans of an invocation, with their streams.
#[derive(Debug)]
pub struct Benches {
    // Dropped before the runtime that drives their streams.
    all: Vec<Bench>,
    clock: Monotonic,
    interrupt: Interrupt,
    runtime: LocalRuntime,
}

impl Benches {
    /// Opens the streams of every plan.
    ///
    /// # Errors
    /// [`StartError`], and then nothing was sent.
    pub fn open(plans: &[BulkPlan], interrupt: &Interrupt) -> Result<Self, StartError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())?;
        let clock = Monotonic::start();
        let mut benches = Vec::new();
        for plan in plans {
            let mut bench = Bench::new(plan)?;
            runtime
                .block_on(bench.open(clock, interrupt))
                .map_err(|ended| match ended {
                    Ended::Failed(failure) => StartError::Connect {
                        target: plan.target.url.clone(),
                        failure,
                    },
                    Ended::Interrupted => StartError::Interrupted,
                })?;
            benches.push(bench);
        }
        Ok(Self {
            all: benches,
            clock,
            interrupt: interrupt.clone(),
            runtime,
        })
    }

    /// How the connections of plan number `plan` are secured; `None` in the clear.
    pub fn negotiated(&self, plan: usize) -> Option<&Negotiated> {
        self.all[plan].negotiated.as_ref()
    }

    /// Why the server's counters could not be read for plan number `plan`, where they were to be expected.
    pub fn server_note(&self, plan: usize) -> Option<&str> {
        self.all[plan].server_note.as_deref()
    }

    /// Measures one run of plan number `plan`.
    pub fn run(&mut self, plan: usize) -> Outcome {
        let bench = &mut self.all[plan];
        match bench.run(&self.runtime, self.clock, &self.interrupt) {
            Ok(run) => Outcome::Done(run),
            Err(Ended::Failed(failure)) => {
                bench.opened = None;
                Outcome::Failed(failure)
            }
            Err(Ended::Interrupted) => Outcome::Interrupted,
        }
    }
}

/// One plan and its streams.
#[derive(Debug)]
struct Bench {
    plan: BulkPlan,
    carrier: Open,
    endpoint: Endpoint,
    opened: Option<Opened>,
    /// Whether the open streams have had their warm-up.
    warm: bool,
    /// When they were last used, in nanoseconds.
    used: u64,
    negotiated: Option<Negotiated>,
    /// Reads the server's counters; `None` where there are none.
    probe: Option<Probe>,
    server_note: Option<String>,
}

impl Bench {
    fn new(plan: &BulkPlan) -> Result<Self, StartError> {
        // Flags without a carrier make no plan.
        let carrier = carrier(plan.target.url.scheme).ok_or(StartError::Broken)?;
        Ok(Self {
            plan: plan.clone(),
            carrier,
            endpoint: plan.target.endpoint()?,
            opened: None,
            warm: false,
            used: 0,
            negotiated: None,
            probe: Some(Probe::new(plan.target.server.clone())),
            server_note: None,
        })
    }

    async fn open(&mut self, clock: Monotonic, interrupt: &Interrupt) -> Result<(), Ended> {
        let meter = Rc::new(Meter::new(clock));
        let spec = Spec::new(
            self.endpoint.clone(),
            self.plan.settings.clone(),
            Rc::clone(&meter),
        );
        let overdue = || match meter.lack() {
            Some(lack) => Failure::lost(ErrorKind::Other, lack),
            None => Failure::lost(ErrorKind::ConnectTimeout, "no connection within --timeout"),
        };
        let opened = watched(
            (self.carrier)(spec),
            &meter,
            self.plan.timeout,
            overdue,
            interrupt,
        )
        .await?;
        self.negotiated.clone_from(&opened.negotiated);
        self.opened = Some(opened);
        (self.warm, self.used) = (false, clock.now());
        Ok(())
    }

    fn run(
        &mut self,
        runtime: &LocalRuntime,
        clock: Monotonic,
        interrupt: &Interrupt,
    ) -> Result<BulkRun, Ended> {
        let size = self.plan.settings.size_bytes;
        if clock.now() - self.used > STALE {
            self.opened = None;
        }
        if self.opened.is_none() {
            runtime.block_on(self.open(clock, interrupt))?;
        }
        if !self.warm {
            runtime.block_on(self.transfer(size.min(WARM_UP), clock, interrupt))?;
            self.warm = true;
        }
        let before = self.read_counters();
        let cpu = cpu::process_time();
        let times = runtime.block_on(self.transfer(size, clock, interrupt))?;
        let cpu = cpu::process_time().saturating_sub(cpu);
        let server = before.and_then(|before| {
            before
                .demand_until(&self.read_counters()?, 0)
                .ok()
                .flatten()
        });
        let gib = size as f64 / GIB;
        Ok(BulkRun {
            seconds: times.whole,
            first_byte_seconds: times.first_byte,
            bytes: size,
            gib_per_second: gib / times.whole,
            client_cpu_seconds_per_gib: Some(cpu.as_secs_f64() / gib),
            server_cpu_seconds_per_gib: server.as_ref().map(|server| server.cpu_seconds / gib),
            client_resident_bytes: own_resident_bytes(),
            server_resident_bytes: server.and_then(|server| server.resident_bytes),
        })
    }

    /// Lets `bytes` go over the streams, each its share.
    async fn transfer(
        &mut self,
        bytes: u64,
        clock: Monotonic,
        interrupt: &Interrupt,
    ) -> Result<Times, Ended> {
        let Some(opened) = &mut self.opened else {
            return Err(Ended::Failed(Failure::lost(
                ErrorKind::Other,
                "no stream is open",
            )));
        };
        let meter = Meter::new(clock);
        let shares = cut::shares(bytes, opened.streams.len());
        let overdue = || Failure::lost(ErrorKind::Timeout, "no byte came or went within --timeout");
        let start = clock.now();
        let streams = opened
            .streams
            .iter_mut()
            .zip(shares)
            .map(|(stream, share)| stream.transfer(share, &meter));
        watched(
            try_join_all(streams),
            &meter,
            self.plan.timeout,
            overdue,
            interrupt,
        )
        .await?;
        let end = clock.now();
        self.used = end;
        let seconds = |time: u64| time.saturating_sub(start).max(1) as f64 / 1e9;
        Ok(Times {
            whole: seconds(end),
            first_byte: seconds(meter.first_answer().unwrap_or(end)),
        })
    }

    /// The server's counters. A server that does not tell is not asked again: each attempt may take a while.
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

/// What a run took, in seconds.
struct Times {
    whole: f64,
    first_byte: f64,
}

/// The result of `work`, unless nothing moves for as long as `patience`, or the user does not want to wait.
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
