//! Observations about this machine and servers.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The machine or server: `this host`, or a URL.
    pub of: String,
    /// The name of the property.
    pub what: &'static str,
    /// Its value, with the unit.
    pub value: String,
    /// Its meaning for a run.
    pub state: Grade,
    /// The remedy; empty where all is well.
    pub remedy: String,
}

/// The meaning of an observation for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// It does no harm.
    Ok,
    /// It may distort results.
    Warning,
    /// It would spoil the run.
    Wrong,
}

impl Grade {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        }
    }
}

impl Observation {
    /// Notes that the property may distort results unless it is `good`, and the remedy.
    pub fn warn_unless(&mut self, good: bool, remedy: impl Into<String>) {
        self.unless(good, Grade::Warning, remedy.into());
    }

    /// Notes that the property would spoil the run unless it is `good`, and the remedy.
    pub fn object_unless(&mut self, good: bool, remedy: impl Into<String>) {
        self.unless(good, Grade::Wrong, remedy.into());
    }

    fn unless(&mut self, good: bool, state: Grade, remedy: String) {
        if !good {
            (self.state, self.remedy) = (state, remedy);
        }
    }
}

/// The observations about one machine or server.
#[derive(Debug)]
pub struct Observations {
    of: String,
    pub all: Vec<Observation>,
}

impl Observations {
    /// Begins with none, about a machine or the server of this URL.
    pub fn about(of: &str) -> Self {
        Self {
            of: of.to_owned(),
            all: Vec::new(),
        }
    }

    /// Adds a property that does no harm.
    pub fn add(&mut self, what: &'static str, value: impl Into<String>) -> &mut Observation {
        self.all.push(Observation {
            of: self.of.clone(),
            what,
            value: value.into(),
            state: Grade::Ok,
            remedy: String::new(),
        });
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    /// Returns a line for each property that does harm.
    pub fn objections(&self) -> Vec<String> {
        let harmful = self.all.iter().filter(|own| own.state != Grade::Ok);
        let line = |own: &Observation| format!("{} {}: {}", own.what, own.value, own.remedy);
        harmful.map(line).collect()
    }
}
