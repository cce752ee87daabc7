//! One worker thread: its runtime, its connections, and its end of the channels to the engine.

use std::{
    io,
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
};

use futures_util::{StreamExt, TryStreamExt, stream};
use netping_measure::{
    error_kind::ErrorKind,
    recorder::{Interval, Sink},
};
use netping_protocol::tls::Negotiated;
use netping_system::cores;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::watch,
    time,
};

use crate::{
    clock::Monotonic,
    engine::{
        connection_slot::ConnectionSlot,
        timeline::Timeline,
        worker::{self, Job, Progress, WorkerReport},
    },
    transport::{Failure, Transport},
};

/// Connections that a worker opens at the same time.
const OPENING_AT_ONCE: usize = 64;

/// What workers tell the engine.
pub enum Event {
    /// A worker has its connections, secured in this way, or not.
    Ready(Result<Option<Negotiated>, Failure>),
    /// A worker's interval is full.
    Interval {
        worker: usize,
        interval: Box<Interval>,
    },
    /// A worker is done.
    Done(WorkerReport),
    /// A worker has no runtime.
    Failed(io::Error),
}

/// A worker's end of the two channels on which intervals go round.
pub struct Loop {
    pub worker: usize,
    pub full: Sender<Event>,
    pub empty: Receiver<Interval>,
}

impl Sink for Loop {
    fn hand_on(&mut self, interval: Interval) {
        // The engine waits for its workers; if it is gone, nobody wants the result.
        let _ = self.full.send(Event::Interval {
            worker: self.worker,
            interval: Box::new(interval),
        });
    }

    fn spare(&mut self) -> Option<Interval> {
        self.empty.try_recv().ok()
    }
}

/// What one worker thread is given.
pub struct WorkerThread<T> {
    pub transport: T,
    pub job: Job,
    pub lanes: usize,
    pub requests_per_connection: Option<u64>,
    pub core: Option<usize>,
    pub clock: Monotonic,
    pub timeline: Arc<Timeline>,
    pub progress: Arc<Progress>,
    pub go: watch::Receiver<bool>,
    pub channels: Loop,
}

impl<T: Transport> WorkerThread<T> {
    /// The life of a worker thread.
    pub fn run(self) {
        if let Some(core) = self.core {
            cores::pin(core);
        }
        match Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
        {
            Ok(runtime) => runtime.block_on(self.work()),
            Err(error) => drop(self.channels.full.send(Event::Failed(error))),
        }
    }

    async fn work(mut self) {
        if self.job.busy_poll {
            tokio::task::spawn_local(async {
                loop {
                    tokio::task::yield_now().await;
                }
            });
        }
        let events = self.channels.full.clone();
        let lanes = self.connect().await;
        // Where the engine is gone, the word to go never comes either.
        let (lanes, ready) = match lanes {
            Ok((lanes, negotiated)) => (lanes, Ok(negotiated)),
            Err(failure) => (Vec::new(), Err(failure)),
        };
        let connected = ready.is_ok();
        let _ = events.send(Event::Ready(ready));
        if !connected || self.go.wait_for(|going| *going).await.is_err() {
            return;
        }
        let report = worker::run(
            self.job,
            &lanes,
            self.clock,
            self.timeline,
            self.progress,
            self.channels,
        )
        .await;
        let _ = events.send(Event::Done(report));
    }

    /// Opens this worker's connections. With a limited number of requests on each, only the first is tried: the others
    /// would be closed anew at once, and their opening belongs to the requests.
    async fn connect(&self) -> Result<(Vec<Rc<ConnectionSlot<T>>>, Option<Negotiated>), Failure> {
        let limit = self.requests_per_connection;
        let lane = || Rc::new(ConnectionSlot::new(self.transport.clone(), limit));
        let lanes: Vec<_> = (0..self.lanes).map(|_| lane()).collect();
        let opened = if limit.is_some() {
            vec![lane()]
        } else {
            lanes.clone()
        };
        let negotiated: Vec<_> = stream::iter(opened)
            .map(|lane| async move {
                let opening = time::timeout(self.job.timeout, lane.open());
                let overdue =
                    || Failure::lost(ErrorKind::ConnectTimeout, "no connection within --timeout");
                opening.await.unwrap_or_else(|_| Err(overdue()))
            })
            .buffer_unordered(OPENING_AT_ONCE)
            .try_collect()
            .await?;
        Ok((lanes, negotiated.into_iter().flatten().next()))
    }
}
