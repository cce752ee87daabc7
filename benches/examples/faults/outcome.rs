//! The outcome of a fault, and how often a fault is tried until it is known.

use std::panic::{self, AssertUnwindSafe};

/// The outcome of a fault.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub came: String,
    pub verdict: Verdict,
}

/// The judgement of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Kept,
    Broken,
    /// It cannot be tried here.
    NotTried,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "BROKEN",
            Self::NotTried => "not tried",
        }
    }
}

impl Outcome {
    pub fn new(kept: bool, came: impl Into<String>) -> Self {
        Self {
            came: came.into(),
            verdict: if kept { Verdict::Kept } else { Verdict::Broken },
        }
    }

    /// Returns that of a fault that cannot be tried here, for this reason.
    pub fn not_tried(reason: impl Into<String>) -> Self {
        Self {
            came: reason.into(),
            verdict: Verdict::NotTried,
        }
    }

    /// Adds a further part of the promise.
    pub fn and(self, kept: bool, came: &str) -> Self {
        let mut both = self.noting(came);
        if !kept {
            both.verdict = Verdict::Broken;
        }
        both
    }

    /// Adds what came besides, if anything.
    pub fn noting(mut self, came: &str) -> Self {
        if !came.is_empty() {
            self.came = format!("{}; {came}", self.came);
        }
        self
    }
}

/// Tries of a fault that has to be sure.
const TRIES: usize = 5;

/// Tries a fault until its outcome is known.
///
/// A promise that is broken at the first try may have been broken by a busy machine. Then it is kept only
/// if the four tries that follow all keep it: one that fails every other time is BROKEN. With `is_long`, five
/// tries all have to keep it, the first one too.
pub fn tried(is_long: bool, try_it: impl Fn() -> Outcome) -> Outcome {
    let try_it = || once(&try_it);
    let first = try_it();
    let is_known = match first.verdict {
        Verdict::Kept => !is_long,
        Verdict::Broken => is_long,
        Verdict::NotTried => true,
    };
    if is_known {
        return first;
    }
    let mut last = try_it();
    for _ in 2..TRIES {
        if last.verdict != Verdict::Kept {
            break;
        }
        last = try_it();
    }
    if first.verdict == Verdict::Broken {
        last.came = format!("{}; at first {}", last.came, first.came);
    }
    last
}

/// Tries a fault once. A panic breaks the promise: it says what could not be done, as a connection that the
/// server did not accept.
fn once(try_it: impl Fn() -> Outcome) -> Outcome {
    let caught = panic::catch_unwind(AssertUnwindSafe(try_it));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Outcome::new(false, format!("panicked: {}", text.unwrap_or("no text")))
    })
}
