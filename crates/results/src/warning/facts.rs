//! The facts that the checks of a step look at.

use std::iter;

use netping_measure::{
    cost::Cost,
    counts::Counts,
    course::{Gap, Slot},
    fairness::PerConnection,
    messages::HeldBack,
    path::PathAccount,
    summary::Summary,
};

use crate::run::settings::StepSettings;

/// The subject of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The server: a client that limits it distorts the numbers.
    Server,
    /// Client and server together, either of which may use all of its CPUs.
    Both,
}

/// The facts that warnings are derived from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The settings.
    pub settings: &'a StepSettings,
    /// The numbers that describe the step.
    pub summary: &'a Summary,
    /// The resources that it used.
    pub cost: &'a Cost,
    /// What happened in each 100 ms of the window.
    pub slots: &'a [Slot],
    /// The stretches of the window without a reply.
    pub gaps: &'a [Gap],
    /// The mean number of requests that were out in the window, of those that were answered or failed.
    pub outstanding: f64,
    /// The requests of each connection.
    pub connections: &'a [PerConnection],
    /// The account of its connections, if it is known.
    pub path: Option<&'a PathAccount>,
    /// The messages that the server held back, if any.
    pub held_back: Option<HeldBack>,
    /// Service times of successes.
    pub service_time: &'a Counts,
    /// The subject of the step.
    pub subject: Subject,
    /// True where an automatic warm-up found no steady rate in its time.
    pub warmup_failed: bool,
    /// True where the server is on the client's host.
    pub shared_host: bool,
    /// True where the server was restarted meanwhile.
    pub server_restarted: bool,
    /// By how much the time of day was set meanwhile, in nanoseconds.
    pub clock_step: i64,
}

/// Returns the CPU time of the busiest client worker over a window of `seconds`, as a share of what it
/// could get.
pub(crate) fn busiest_worker(cost: &Cost, seconds: f64) -> f64 {
    // A thread that waits for its CPU cannot get all of it.
    let delays = cost.client_worker_run_delay_seconds.iter().copied();
    let delays = delays.chain(iter::repeat(0.0));
    let workers = cost.client_worker_cpu_seconds.iter().zip(delays);
    let share = |(cpu, delay): (&f64, f64)| cpu / (seconds - delay).max(*cpu);
    workers.map(share).fold(0.0, f64::max)
}

/// A trial of a measurement, as far as warnings over several trials look at it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trial {
    /// Its number, from 1 on.
    pub number: u32,
    /// True where all bytes of bulk streams arrived; `None` where requests were measured.
    pub is_transferred: Option<bool>,
    /// The names of metrics and their values; a value that the trial lacks is left out.
    pub values: Vec<(&'static str, f64)>,
}

/// A step of a target that is held against those of others, as far as warnings look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rival<'a> {
    /// The target's label or URL.
    pub name: &'a str,
    /// Its connections.
    pub connections: usize,
}
