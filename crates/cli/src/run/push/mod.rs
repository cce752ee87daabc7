//! Live numbers for Prometheus, through a Pushgateway.
//!
//! The intervals of the workers are added up where the engine collects them, off the path of
//! requests. A thread of its own sends the sums, one push at a time: a slow gateway gets fewer
//! pushes, a missing one none, and the run goes on.

mod metrics;

use std::{
    cell::{Cell, RefCell},
    io,
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_client::{plan::Plan, probe::http_agent::http_agent};
use netping_measure::recorder::Interval;
use netping_results::{format::on_one_line, run::Step};

use self::metrics::Metrics;

/// Longest time for a push.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The Prometheus text format, in the subset that it shares with OpenMetrics.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A pusher of live numbers.
#[derive(Debug)]
pub struct Push {
    metrics: RefCell<Metrics>,
    /// Second of the phase in which the last push was made.
    pushed: Cell<Option<u64>>,
    pushes: Sender<String>,
    troubles: Receiver<String>,
    thread: JoinHandle<()>,
}

impl Push {
    /// Starts the thread; nothing is pushed before the first step.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(url: String) -> io::Result<Self> {
        let (pushes, queue) = mpsc::channel();
        let (trouble, troubles) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("push".to_owned())
            .spawn(move || run(&url, &queue, &trouble))?;
        Ok(Self {
            metrics: RefCell::new(Metrics::new()),
            pushed: Cell::default(),
            pushes,
            troubles,
            thread,
        })
    }

    /// Begins a step of each of these, which are measured together.
    pub fn begin_step(&self, plans: &[Plan]) {
        self.metrics.borrow_mut().begin(plans);
    }

    /// Pushes the final numbers of a step. Returns the first failure of a push, once.
    pub fn end_step(&self, step: &Step) -> Option<String> {
        self.metrics.borrow().end(step);
        self.push();
        self.troubles.try_recv().ok()
    }

    /// Marks a step that failed as no longer running.
    pub fn abandon_step(&self) {
        self.metrics.borrow().abandon();
        self.push();
    }

    /// Ends after the last push. Returns the first failure of a push, unless it was returned
    /// before.
    pub fn end(self) -> Option<String> {
        drop(self.pushes);
        // A panic there breaks no invariant here, and its failures have been reported.
        let _ = self.thread.join();
        self.troubles.try_recv().ok()
    }

    /// Notes the current rate, in replies per second; pushes once in each second of a phase.
    pub fn tick(&self, elapsed: Duration, rate: f64) {
        self.metrics.borrow().set_rate(rate);
        let second = Some(elapsed.as_secs());
        if self.pushed.replace(second) != second {
            self.push();
        }
    }

    /// Adds an interval of a worker.
    pub fn interval(&self, interval: &Interval) {
        self.metrics.borrow().add(interval);
    }

    fn push(&self) {
        if let Ok(text) = self.metrics.borrow().text() {
            // The thread may have ended.
            let _ = self.pushes.send(text);
        }
    }
}

/// Pushes until the sender is gone. Every push has all numbers, so only the newest one in the queue
/// is sent. Reports the first failure.
fn run(url: &str, pushes: &Receiver<String>, trouble: &Sender<String>) {
    // A proxy of the environment is meant for other traffic.
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .proxy(None)
        .build();
    let agent = http_agent(config);
    let mut complained = false;
    while let Ok(first) = pushes.recv() {
        let newest = pushes.try_iter().last().unwrap_or(first);
        let sent = agent.put(url).content_type(CONTENT_TYPE).send(&newest);
        if let Err(error) = sent
            && !complained
        {
            complained = true;
            // The run may be over.
            let _ = trouble.send(format!(
                "warning: --prometheus-push: cannot push to {url}: {}; the run goes on without it",
                on_one_line(&error.to_string())
            ));
        }
    }
}
