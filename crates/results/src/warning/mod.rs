//! The table of warnings: reasons why numbers may mislead, each with its check, its words and its
//! remedy. A new one is a type that implements [`WarningKind`], and a row of `warnings!`.

mod arrivals;
mod client;
mod connections;
mod counters;
mod facts;
mod failures;
mod foreign;
mod levels;
mod machine;
mod of_run;
mod parts;
mod retransmits;
mod sample;
mod server;
mod silence;
#[cfg(test)]
mod tests;
mod trials;

use std::fmt;

use serde::{Deserialize, Serialize};

use facts::{Rival, Trial};

pub use connections::TargetConnections;
pub(crate) use facts::busiest_worker;
pub use facts::{Facts, Subject};
pub use foreign::SideOfCpus;
pub use of_run::{Found, Warnings};

/// The weight of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The numbers hold; read them with this in mind.
    Note,
    /// The numbers do not describe the server under the planned load.
    Invalid,
}

impl Severity {
    /// Returns [`Severity::Invalid`] if `is_invalid` holds.
    fn invalid_if(is_invalid: bool) -> Self {
        if is_invalid {
            Self::Invalid
        } else {
            Self::Note
        }
    }
}

/// A remedy in pieces: a text, and the flags and programs that do what it says.
type Remedy = &'static [(&'static str, &'static [&'static str])];

/// Everything that is said of a warning.
struct Told {
    severity: Severity,
    /// The measure by which the worst of several warnings of a kind is found.
    extent: f64,
    /// The evidence in words.
    sentence: String,
    remedy: Remedy,
}

/// A kind of warning: the evidence, how it is found, and what is said of it.
trait WarningKind: Sized {
    /// True if it is about the client rather than the server or the path to it.
    const OF_CLIENT: bool = false;

    /// Looks for it in the facts of one step.
    fn of_step(_facts: &Facts<'_>) -> Option<Self> {
        None
    }

    /// Looks for it in the trials of one measurement, and returns the places of those concerned. It
    /// is not stored in their steps.
    fn of_trials(_trials: &[Trial]) -> Vec<(usize, Self)> {
        Vec::new()
    }

    /// Looks for it in steps that are held against each other. It is not stored in them.
    fn of_rivals(_rivals: &[Rival<'_>]) -> Option<Self> {
        None
    }

    /// Returns what is said of it.
    fn tell(&self) -> Told;
}

/// Declares the table: each row has the path of a [`WarningKind`], and its name.
macro_rules! warnings {
    ($($module:ident::$kind:ident = $name:literal),* $(,)?) => {
        $(pub use $module::$kind;

        impl From<$kind> for Warning {
            fn from(kind: $kind) -> Self {
                Self::$kind(kind)
            }
        })*

        /// A reason why a number may mislead.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "name")]
        #[expect(missing_docs, reason = "each kind has its own")]
        pub enum Warning {
            $(#[serde(rename = $name)] $kind($kind)),*
        }

        /// The names of all warnings.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Warning {
            /// Returns its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name),*
                }
            }

            /// Returns true if it is about the client rather than the server or the path to it.
            pub fn is_of_client(&self) -> bool {
                match self {
                    $(Self::$kind(_) => $kind::OF_CLIENT),*
                }
            }

            fn tell(&self) -> Told {
                match self {
                    $(Self::$kind(kind) => kind.tell()),*
                }
            }

            /// Returns every warning about a step; without any, it is valid.
            pub fn of_step(facts: &Facts<'_>) -> Vec<Self> {
                let found = [$($kind::of_step(facts).map(Self::$kind)),*];
                found.into_iter().flatten().collect()
            }

            /// Returns every warning that the trials of one measurement give rise to, with the place of
            /// the trial that it is about.
            fn of_trials(trials: &[Trial]) -> Vec<(usize, Self)> {
                let mut found = Vec::new();
                $(found.extend($kind::of_trials(trials).into_iter().map(|(at, kind)| (at, Self::$kind(kind))));)*
                found
            }

            /// Returns every warning that steps give rise to by being held against each other.
            fn of_rivals(rivals: &[Rival<'_>]) -> Vec<Self> {
                let found = [$($kind::of_rivals(rivals).map(Self::$kind)),*];
                found.into_iter().flatten().collect()
            }
        }
    };
}

warnings! {
    client::ClientBound = "CLIENT_BOUND",
    client::ClientStarved = "CLIENT_STARVED",
    client::ClientThrottled = "CLIENT_THROTTLED",
    foreign::ForeignLoad = "FOREIGN_LOAD",
    arrivals::NoCallerFree = "NO_CALLER_FREE",
    arrivals::BehindSchedule = "BEHIND_SCHEDULE",
    levels::NotSteady = "NOT_STEADY",
    silence::Stalled = "STALLED",
    silence::ServerGone = "SERVER_GONE",
    failures::ServerRestarted = "SERVER_RESTARTED",
    counters::ServerShared = "SERVER_SHARED",
    counters::CountersDisagree = "COUNTERS_DISAGREE",
    server::UnevenServer = "UNEVEN_SERVER",
    server::BlockedByPeer = "BLOCKED_BY_PEER",
    sample::Noisy = "NOISY",
    sample::TooFewSamples = "TOO_FEW_SAMPLES",
    sample::FewRuns = "FEW_RUNS",
    failures::Errors = "ERRORS",
    arrivals::LittlesLaw = "LITTLES_LAW",
    levels::Bimodal = "BIMODAL",
    machine::SharedHost = "SHARED_HOST",
    machine::ClockStep = "CLOCK_STEP",
    trials::UnlikeTrials = "UNLIKE_TRIALS",
    connections::UnequalConnections = "UNEQUAL_CONNECTIONS",
    connections::SlowConnection = "SLOW_CONNECTION",
    retransmits::Retransmits = "RETRANSMITS",
    parts::PartsMissing = "PARTS_MISSING",
}

impl Warning {
    /// Returns its severity.
    pub fn severity(&self) -> Severity {
        self.tell().severity
    }

    /// Returns true if it weighs more than another of its kind, or says more of the same.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let weight = |told: Told| (told.severity == Severity::Invalid, told.extent);
        weight(self.tell()) > weight(other.tell())
    }

    /// Returns the remedy with all flags that help.
    pub fn remedy(&self) -> String {
        self.remedy_with(|_| true)
    }

    /// Returns the remedy, naming only those flags for which `has` holds.
    pub fn remedy_with(&self, has: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        for (piece, means) in self.tell().remedy {
            text.push_str(piece);
            let is_there = |word: &&&str| !word.starts_with('-') || has(word);
            let known: Vec<&str> = means.iter().filter(is_there).copied().collect();
            if !known.is_empty() {
                text.extend([" (", &known.join(", "), ")"]);
            }
        }
        text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tell().sentence)
    }
}
