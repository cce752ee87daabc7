//! One step of a run.

use std::collections::BTreeMap;

use netping_measure::{
    aggregate::Totals, bulk::BulkRun, connect::ConnectPhase, cost::Cost, fairness::Fairness,
    interval::IntervalSummary, messages::HeldBack, path::PathAccount, status::Status,
    summary::Summary, times::Histograms,
};
use serde::{Deserialize, Serialize};

use super::settings::StepSettings;
use crate::{
    anatomy::AnatomySummary, connect::ChannelSecurity, file::time_of_day, messages::MessageSummary,
    probe::ProbeSummary, times::Times, warning::Warning,
};

/// One measurement: one target with one set of settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The target's URL.
    pub target: String,
    /// A name for it, such as a ladder's rung.
    pub label: Option<String>,
    /// The measurement of the run that it is a trial of, from 0 on.
    #[serde(default)]
    pub measurement: usize,
    /// Which of the trials of its measurement it is, from 1 on. Trials of one number were measured
    /// in one round.
    pub trial: u32,
    /// Completeness.
    pub status: Status,
    /// When the window began, by the client's time of day, as RFC 3339 in UTC.
    #[serde(with = "time_of_day", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub window_started_at: Option<u64>,
    /// The settings.
    pub settings: StepSettings,
    /// The numbers that describe it.
    #[serde(flatten)]
    pub summary: Summary,
    /// The resources that it used.
    pub cost: Cost,
    /// The security of its connections; absent in the clear.
    pub security: Option<ChannelSecurity>,
    /// The times of opening connections within the window; the total includes the first call.
    pub connect: BTreeMap<ConnectPhase, Times>,
    /// The bytes that a bulk stream moved, if it is one and all of them arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<BulkRun>,
    /// The small requests beside the streams, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Box<ProbeSummary>>,
    /// The messages of its calls, if these stream.
    #[serde(default)]
    pub messages: Option<MessageSummary>,
    /// The messages that the server's flow control held back; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// The parts of its round trips, if they were asked for; in a ladder, of those in a window of their own in the same
    /// round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anatomy: Option<AnatomySummary>,
    /// The spread of its requests over connections; absent with fewer than two.
    pub fairness: Option<Fairness>,
    /// The account that TCP or QUIC gives of its connections; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathAccount>,
    /// The warnings about its numbers.
    pub warnings: Vec<Warning>,
    /// True where a search does not rely on it: the condition was not kept, or the window was disturbed and
    /// its rate was measured after all. Its warnings do not invalidate the run.
    #[serde(default)]
    pub set_aside: bool,
    /// Second by second.
    pub intervals: Vec<IntervalSummary>,
    /// The histograms of the summary's times.
    pub histograms: Histograms,
}

/// Requests of each caller below which a counted step has no rate: too much of it is the callers'
/// start.
const FEWEST_FOR_RATE: u64 = 10;

impl Step {
    /// Returns the step that came to these totals, about which nothing else is known yet.
    pub fn of(target: String, place: Place, settings: StepSettings, totals: &Totals) -> Self {
        Self {
            target,
            label: None,
            measurement: place.measurement,
            trial: place.trial,
            status: Status::Complete,
            window_started_at: None,
            settings,
            summary: Summary::of(totals),
            cost: Cost::default(),
            security: None,
            connect: BTreeMap::new(),
            bulk: None,
            probe: None,
            messages: None,
            held_back: None,
            anatomy: None,
            fairness: None,
            path: None,
            warnings: Vec::new(),
            set_aside: false,
            intervals: totals.intervals.clone(),
            histograms: totals.histograms.clone(),
        }
    }

    /// Returns its target, after its label if it has one.
    pub fn full_name(&self) -> String {
        let label = self.label.as_ref().map(|label| format!("{label}  "));
        label.unwrap_or_default() + &self.target
    }

    /// Returns its label, or its target where it has none.
    pub fn name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.target)
    }

    /// Returns the verified replies per second; `None` for a bulk stream, for a counted step of fewer than
    /// ten requests for each caller, and for a target that was called by turns with others, whose speed
    /// decides on its rate, too.
    pub fn rate(&self) -> Option<f64> {
        if self.settings.bulk.is_some() || self.settings.is_by_turns() {
            return None;
        }
        let fewest = FEWEST_FOR_RATE * self.settings.callers as u64;
        let is_short = self.settings.requests.is_some_and(|count| count < fewest);
        (!is_short).then_some(self.summary.rate)
    }
}

/// The place of a step in its run: a trial of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the measurement, from 0 on.
    pub measurement: usize,
    /// The number of the trial, from 1 on.
    pub trial: u32,
}

impl Place {
    /// The only trial of the only measurement.
    pub const ALONE: Self = Self {
        measurement: 0,
        trial: 1,
    };
}
