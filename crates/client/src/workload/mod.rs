//! The kinds of measurement. A new one is a folder here that implements [`Workload`], and a line
//! below.

pub mod bulk;
pub mod requests;

use crate::{engine::Observer, error::StartError, interrupt::Interrupt};

/// A kind of measurement of one target: what one measured unit is, and how a run is made.
pub trait Workload: Sized {
    /// A validated measurement.
    type Plan;
    /// The data of one run.
    type Outcome;
    /// The reason why a run has no data.
    type Error;

    /// Connects to the targets of all plans before any is measured, so that a target that cannot be
    /// reached is reported at once. Returns the measurements in the plans' order.
    ///
    /// # Errors
    /// [`StartError`].
    fn open(plans: &[Self::Plan], watch: Watch<'_>) -> Result<Vec<Self>, StartError>;

    /// Makes one run.
    ///
    /// # Errors
    /// If there is no data.
    fn run(&mut self, watch: Watch<'_>) -> Result<Self::Outcome, Self::Error>;
}

/// The ways in which a command takes part in a run: by ending it, and by watching it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// The user's wish to end.
    pub interrupt: &'a Interrupt,
    /// The watcher of phases, rates and intervals.
    pub observer: &'a dyn Observer,
}
