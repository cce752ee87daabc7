//! `--live`: a full-screen view of the step that runs, and keys to end it.
//!
//! The thread that collects the workers' intervals draws it on standard error, four times a second:
//! no worker waits for it. Processor time is read once a second, by a thread of its own.

mod cpu;
mod screen;
mod state;
mod view;

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use netping_measure::recorder::Interval;

pub use self::state::Head;
use self::{cpu::CpuMeter, screen::Screen, state::State};
use crate::{clock::Deadline, interrupt::Interrupt, plan::Plan};

/// The time between two drawings.
const REDRAW: Duration = Duration::from_millis(250);

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    /// End the step, and keep what it measured.
    EndStep,
    /// End the command.
    Quit,
}

/// The view of the step that runs.
#[derive(Debug)]
pub struct Live {
    interrupt: Interrupt,
    screen: RefCell<Option<Screen>>,
    state: RefCell<State>,
    cpu: RefCell<Option<CpuMeter>>,
    next: Cell<Option<Deadline>>,
    ends_step: Cell<bool>,
}

impl Live {
    /// Creates a view that is not shown yet, and whose keys may set `interrupt`.
    pub fn new(interrupt: Interrupt) -> Self {
        Self {
            interrupt,
            screen: RefCell::default(),
            state: RefCell::default(),
            cpu: RefCell::default(),
            next: Cell::default(),
            ends_step: Cell::default(),
        }
    }

    /// Begins a step, which `what` describes.
    pub fn begin_step(&self, plan: &Plan, what: &str) {
        *self.state.borrow_mut() = State::new(what);
        // Without a thread for it, the view has no processor time.
        *self.cpu.borrow_mut() = CpuMeter::start(&plan.target.server).ok();
        self.ends_step.set(false);
        self.next.set(None);
        // A terminal that refuses shows nothing; the measurement goes on.
        *self.screen.borrow_mut() = Screen::enter().ok();
    }

    /// Leaves the screen until the next step.
    pub fn end(&self) {
        *self.cpu.borrow_mut() = None;
        *self.screen.borrow_mut() = None;
    }

    /// Leaves the screen while `write` writes to the terminal.
    pub fn hidden(&self, write: impl FnOnce()) {
        let was_shown = self.screen.borrow_mut().take().is_some();
        write();
        if was_shown {
            *self.screen.borrow_mut() = Screen::enter().ok();
        }
    }

    /// Takes an interval that a worker has finished.
    pub fn interval(&self, interval: &Interval) {
        self.state.borrow_mut().add(interval);
    }

    /// Draws the step as it stands, and obeys keys.
    pub fn tick(&self, head: Head) {
        match screen::pressed() {
            Some(Key::EndStep) if head.measures => self.ends_step.set(true),
            Some(Key::Quit) => self.interrupt.set(),
            Some(Key::EndStep) | None => {}
        }
        if self.next.get().is_some_and(|next| !next.left().is_zero()) {
            return;
        }
        self.next.set(Some(Deadline::after(REDRAW)));
        let mut state = self.state.borrow_mut();
        if let Some(cpu) = &*self.cpu.borrow() {
            state.cores = cpu.latest();
        }
        state.head = head;
        if let Some(screen) = &mut *self.screen.borrow_mut() {
            screen.draw(&state);
        }
    }

    /// Returns true once the user wants the step to end.
    pub fn ends_step(&self) -> bool {
        self.ends_step.get()
    }
}
