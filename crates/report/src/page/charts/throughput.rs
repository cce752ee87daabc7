//! How many requests there are in a second, and what each costs, against the load.

use super::load::{self, Against, Finding};
use crate::page::{chart::Chart, scale::Scale, unit::Unit};
use netping_results::run::Run;

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let panel = |title, unit, value| Finding {
        title,
        unit,
        scale: Scale::Linear,
        value,
        beside: None,
    };
    let panels = vec![
        panel("rate", Unit::Rate, |step| {
            let range = step
                .summary
                .precision
                .rate_half_width
                .map(|half| [step.summary.rate - half, step.summary.rate + half]);
            Some((step.summary.rate.into(), range))
        }),
        panel("client CPU per request", Unit::Micros, |step| {
            Some((step.cost.client_cpu_us_per_request?.into(), None))
        }),
        panel("server CPU per request", Unit::Micros, |step| {
            Some((step.cost.server_cpu_us_per_request()?.into(), None))
        }),
    ];
    let note = "Verified replies within the window, per second of it, and the CPU time of client and server for each. \
                Bars are 95 % intervals: over the trials where there are several, else over the seconds of the step.";
    load::charts(
        runs,
        &Against {
            kind: "throughput",
            title: "Throughput",
            note,
            panels,
        },
    )
}
