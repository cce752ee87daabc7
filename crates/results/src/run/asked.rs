//! The comparison of what windows were asked for: clients that are added up, trials of one run and windows of one
//! search must have been asked for the same.

use serde_json::{Value, json};

use super::Step;
use crate::{
    burst::BurstSettings,
    connect::ChannelSecurity,
    environment_diff::{EnvironmentDiff, diff},
};

/// Settings that each client decides for itself.
const OWN: [&str; 3] = ["workers", "seed", "warmup_seconds"];

impl Step {
    /// Returns what was asked for. Clients that share a load were asked for the whole.
    pub(crate) fn asked(&self) -> Value {
        let mut settings = self.settings.clone();
        let whole = settings.part.as_mut().map(|part| {
            (settings.callers, settings.connections) = (part.callers, part.connections);
            settings.planned_rate = part.planned_rate;
            settings.bursts = settings.bursts.map(BurstSettings::shape);
            part.number = 0;
            // Their random arrivals belong together.
            json!({ "clients": part.of, "arrivals": settings.seed })
        });
        json!({
            "target": self.target,
            "label": self.label,
            "trial": self.trial,
            "settings": settings,
            "whole": whole,
            "security": self.unresumed(),
        })
    }

    /// Returns the protection of its connections, without whether sessions were resumed.
    pub(crate) fn unresumed(&self) -> Option<ChannelSecurity> {
        self.security.clone().map(|security| ChannelSecurity {
            resumed: None,
            ..security
        })
    }

    /// Returns the first thing, by its name in a result file, that this window was asked for and `base` was not, but
    /// for those with these names, and for random arrivals.
    pub fn unlike(&self, base: &Self, but_for: &[&str]) -> Option<EnvironmentDiff> {
        let but_for = [but_for, &["arrivals"]].concat();
        unlike(&base.asked(), &self.asked(), &but_for)
    }
}

/// Returns the first difference between what two were asked for that is not one of these.
pub(crate) fn unlike(base: &Value, new: &Value, but_for: &[&str]) -> Option<EnvironmentDiff> {
    let mut all = diff(base, new, 1).into_iter();
    all.find(|own| {
        let what = own.what.as_str();
        !OWN.contains(&what) && !but_for.contains(&what)
    })
}
