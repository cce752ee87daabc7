//! `--live`: a full-screen view of the step that runs, and keys to end it.
//!
//! A thread of the view's own draws the step on standard error, and reads who has the CPUs, only where a
//! CPU has nothing else to do.

mod canvas;
mod cpu;
mod plot;
mod screen;
mod view;

use std::{
    cell::{Cell, RefCell},
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_client::{clock::Deadline, engine::Processes, interrupt::Interrupt, plan::Plan};
use netping_system::priority::run_when_idle;

use self::{
    cpu::CpuMeter,
    screen::{KeyPress, Screen},
};
use crate::run::running::RunningStep;

/// The time between two drawings.
const REDRAW: Duration = Duration::from_millis(250);

/// The view of the steps of a command.
#[derive(Debug)]
pub struct Live {
    keys: RefCell<Keys>,
    next: Cell<Option<Deadline>>,
    shown: RefCell<Option<Shown>>,
    /// The processes of both sides, while a step runs.
    running: RefCell<Option<Processes>>,
}

/// The flags that keys set.
#[derive(Debug, Clone)]
struct Keys {
    interrupt: Interrupt,
    ends_step: Interrupt,
}

/// The thread that has the screen.
#[derive(Debug)]
struct Shown {
    steps: Sender<RunningStep>,
    thread: JoinHandle<()>,
}

impl Live {
    /// Creates a view that is not shown yet, and whose keys may set `interrupt`.
    pub fn new(interrupt: Interrupt) -> Self {
        Self {
            keys: RefCell::new(Keys {
                interrupt,
                ends_step: Interrupt::default(),
            }),
            next: Cell::default(),
            shown: RefCell::default(),
            running: RefCell::default(),
        }
    }

    /// Shows a step that begins, of plans that are measured together.
    pub fn begin_step(&self, plans: &[Plan]) {
        self.keys.borrow_mut().ends_step = Interrupt::default();
        self.next.set(None);
        let targets = plans.iter().map(|plan| &plan.target);
        let is_one_of_several = plans.iter().any(|plan| plan.execution.in_step);
        let processes = Processes::find(targets, is_one_of_several);
        *self.running.borrow_mut() = Some(processes);
        self.hide();
        self.show();
    }

    /// Ends the step. Its picture stays until the next one begins, or something is written.
    pub fn end(&self) {
        *self.running.borrow_mut() = None;
    }

    /// Leaves the screen, and writes to the terminal; a step that runs is shown again.
    pub fn hidden(&self, write: impl FnOnce()) {
        self.hide();
        write();
        self.show();
    }

    /// Hands on how the step stands, if it is time to.
    pub fn tick(&self, step: &RunningStep) {
        if self.next.get().is_some_and(|next| !next.left().is_zero()) {
            return;
        }
        self.next.set(Some(Deadline::after(REDRAW)));
        if let Some(shown) = &*self.shown.borrow() {
            // The thread has ended at the user's wish, or the terminal is gone.
            let _ = shown.steps.send(step.clone());
        }
    }

    /// Returns true once the user wants the step to end.
    pub fn ends_step(&self) -> bool {
        self.keys.borrow().ends_step.is_set()
    }

    /// Shows the step that runs. A terminal, or a system, that refuses shows nothing; the measurement
    /// goes on.
    fn show(&self) {
        if let Some(processes) = &*self.running.borrow() {
            *self.shown.borrow_mut() = self.shown(processes.clone()).ok();
        }
    }

    fn shown(&self, processes: Processes) -> io::Result<Shown> {
        let screen = Screen::enter()?;
        let (steps, pictures) = mpsc::channel();
        let keys = self.keys.borrow().clone();
        let run = move || watch(screen, processes, &pictures, &keys);
        let thread = thread::Builder::new().name("live".to_owned()).spawn(run)?;
        Ok(Shown { steps, thread })
    }

    fn hide(&self) {
        if let Some(Shown { steps, thread }) = self.shown.borrow_mut().take() {
            drop(steps);
            // A panic there has left the screen too.
            let _ = thread.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Draws the newest step, and obeys keys, until there are no more. Leaves the screen at the end.
///
/// It looks for keys, and for a terminal of another size, also while no step tells of itself: while
/// connections are opened, or something is planted between two steps.
fn watch(mut screen: Screen, processes: Processes, steps: &Receiver<RunningStep>, keys: &Keys) {
    run_when_idle();
    let mut cpu = CpuMeter::new(processes);
    let mut newest = None;
    loop {
        match steps.recv_timeout(REDRAW) {
            // Only the newest counts where drawing is late.
            Ok(step) => newest = steps.try_iter().last().or(Some(step)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(step) = &newest {
            screen.draw(step, cpu.latest());
        }
        let measures = newest.as_ref().is_some_and(|step| step.measures);
        match screen.pressed() {
            Some(KeyPress::EndStep) if measures => keys.ends_step.set(),
            Some(KeyPress::Quit) => keys.interrupt.set(),
            _ => {}
        }
        // The next signal ends the process at once, and Ctrl-C is one on the first screen.
        if keys.interrupt.is_set() {
            return;
        }
    }
}
