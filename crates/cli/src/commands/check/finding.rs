//! Findings about this machine and servers.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The machine or server: `this host`, or a URL.
    pub of: String,
    /// The name of the property.
    pub what: &'static str,
    /// Its value, with the unit.
    pub value: String,
    /// Its meaning for a run.
    pub state: State,
    /// The remedy; empty where all is well.
    pub remedy: String,
}

/// The meaning of a finding for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It does no harm.
    Ok,
    /// It may distort results.
    Warning,
    /// It would spoil the run.
    Wrong,
}

impl State {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        }
    }
}

/// Collects the findings about one machine or server.
#[derive(Debug)]
pub struct Findings {
    of: String,
    pub all: Vec<Finding>,
}

impl Findings {
    /// Begins with none, about a machine or the server of this URL.
    pub fn about(of: &str) -> Self {
        Self {
            of: of.to_owned(),
            all: Vec::new(),
        }
    }

    /// Adds a property that does no harm.
    pub fn ok(&mut self, what: &'static str, value: impl Into<String>) {
        self.add(what, value, State::Ok, "");
    }

    /// Adds a property that is not `good`, with the remedy.
    pub fn unless(
        &mut self,
        good: bool,
        state: State,
        (what, value): (&'static str, String),
        remedy: &str,
    ) {
        if good {
            self.ok(what, value);
        } else {
            self.add(what, value, state, remedy);
        }
    }

    /// Adds a property.
    pub fn add(
        &mut self,
        what: &'static str,
        value: impl Into<String>,
        state: State,
        remedy: &str,
    ) {
        self.all.push(Finding {
            of: self.of.clone(),
            what,
            value: value.into(),
            state,
            remedy: remedy.to_owned(),
        });
    }
}
