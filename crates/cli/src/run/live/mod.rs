//! `--live`: a full-screen view of the step that runs, and keys to end it.
//!
//! The thread that collects the workers' intervals adds them up, and sends the sums to a thread of the
//! view's own: it draws them on standard error, and reads the processor time of both sides, only
//! where a CPU has nothing else to do.

mod cpu;
mod screen;
mod state;
mod view;

use std::{
    cell::{Cell, RefCell},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_client::{
    clock::Deadline, interrupt::Interrupt, plan::Plan, probe::metrics::ServerSource,
};
use netping_measure::recorder::Interval;
use netping_system::priority::run_when_idle;

pub use self::state::Head;
use self::{
    cpu::CpuMeter,
    screen::{Key, Screen, pressed},
    state::State,
};

/// The time between two drawings.
const REDRAW: Duration = Duration::from_millis(250);

/// The view of the steps of a command.
#[derive(Debug)]
pub struct Live {
    interrupt: Interrupt,
    state: RefCell<State>,
    next: Cell<Option<Deadline>>,
    shown: RefCell<Option<Shown>>,
    /// The source of the server's counters, while a step runs.
    running: RefCell<Option<ServerSource>>,
    ends_step: Arc<AtomicBool>,
}

/// The thread that has the screen.
#[derive(Debug)]
struct Shown {
    states: Sender<State>,
    thread: JoinHandle<()>,
}

impl Live {
    /// Creates a view that is not shown yet, and whose keys may set `interrupt`.
    pub fn new(interrupt: Interrupt) -> Self {
        Self {
            interrupt,
            state: RefCell::default(),
            next: Cell::default(),
            shown: RefCell::default(),
            running: RefCell::default(),
            ends_step: Arc::default(),
        }
    }

    /// Shows a step that begins, which `what` describes.
    pub fn begin_step(&self, plan: &Plan, what: &str) {
        *self.state.borrow_mut() = State::new(what);
        self.ends_step.store(false, Ordering::Relaxed);
        self.next.set(None);
        *self.running.borrow_mut() = Some(plan.target.server.clone());
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

    /// Takes an interval that a worker has finished.
    pub fn interval(&self, interval: &Interval) {
        self.state.borrow_mut().add(interval);
    }

    /// Hands on how the step stands, if it is time to.
    pub fn tick(&self, head: Head) {
        if self.next.get().is_some_and(|next| !next.left().is_zero()) {
            return;
        }
        self.next.set(Some(Deadline::after(REDRAW)));
        let mut state = self.state.borrow_mut();
        state.head = head;
        if let Some(shown) = &*self.shown.borrow() {
            // The thread has ended at the user's wish, or the terminal is gone.
            let _ = shown.states.send(state.clone());
        }
    }

    /// Returns true once the user wants the step to end.
    pub fn ends_step(&self) -> bool {
        self.ends_step.load(Ordering::Relaxed)
    }

    /// Shows the step that runs. A terminal, or a system, that refuses shows nothing; the measurement
    /// goes on.
    fn show(&self) {
        if let Some(server) = &*self.running.borrow() {
            *self.shown.borrow_mut() = self.shown(server.clone()).ok();
        }
    }

    fn shown(&self, server: ServerSource) -> io::Result<Shown> {
        let screen = Screen::enter()?;
        let (states, pictures) = mpsc::channel();
        let keys = Keys {
            interrupt: self.interrupt.clone(),
            ends_step: Arc::clone(&self.ends_step),
        };
        let run = move || watch(screen, &server, &pictures, &keys);
        let thread = thread::Builder::new().name("live".to_owned()).spawn(run)?;
        Ok(Shown { states, thread })
    }

    fn hide(&self) {
        if let Some(Shown { states, thread }) = self.shown.borrow_mut().take() {
            drop(states);
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

/// The flags that keys set.
struct Keys {
    interrupt: Interrupt,
    ends_step: Arc<AtomicBool>,
}

/// Draws each state that comes, and obeys keys, until there are no more. Leaves the screen at the
/// end.
fn watch(mut screen: Screen, server: &ServerSource, states: &Receiver<State>, keys: &Keys) {
    run_when_idle();
    let mut cpu = CpuMeter::new(server);
    while let Ok(first) = states.recv() {
        // Only the newest counts where drawing is late.
        let state = states.try_iter().last().unwrap_or(first);
        screen.draw(&state, cpu.cores());
        match pressed() {
            Some(Key::EndStep) if state.head.measures => {
                keys.ends_step.store(true, Ordering::Relaxed);
            }
            Some(Key::Quit) => keys.interrupt.set(),
            Some(Key::EndStep) | None => {}
        }
        // The next signal ends the process at once, and Ctrl-C is one on the first screen.
        if keys.interrupt.is_set() {
            return;
        }
    }
}
