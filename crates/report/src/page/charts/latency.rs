//! Quantiles of the times, against the load.

use super::load::{self, Against, Finding};
use crate::page::{
    chart::{Chart, Exact},
    scale::Scale,
    unit::Unit,
};
use netping_measure::{statistics::precision::Precision, summary::Summary};
use netping_results::run::{Run, Step};

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let panel = |title, value, service| Finding {
        title,
        unit: Unit::Nanos,
        scale: Scale::Log,
        value,
        beside: Some(("service time", service)),
    };
    let panels = vec![
        panel(
            "p50",
            |step| response(step, 50.0, |precision| precision.p50),
            |step| service(step, 50.0),
        ),
        panel(
            "p99",
            |step| response(step, 99.0, |precision| precision.p99),
            |step| service(step, 99.0),
        ),
        panel(
            "p99.9",
            |step| response(step, 99.9, |_| None),
            |step| service(step, 99.9),
        ),
    ];
    let note = "Response time, from when a request was due. In a closed loop that is the service time; in an open loop \
                the service time, from when it was sent, is dashed. A quantile is shown where enough samples lie beyond it.";
    load::charts(
        runs,
        &Against {
            kind: "latency",
            title: "Latency",
            note,
            panels,
        },
    )
}

fn response(
    step: &Step,
    percent: f64,
    of: fn(&Precision) -> Option<[u64; 2]>,
) -> Option<(Exact, Option<[f64; 2]>)> {
    let Summary {
        response_time,
        precision,
        ..
    } = &step.summary;
    let range = of(precision).map(|range| range.map(|end| end as f64));
    Some((response_time.quantile(percent)?.into(), range))
}

fn service(step: &Step, percent: f64) -> Option<(Exact, Option<[f64; 2]>)> {
    Some((step.summary.service_time.quantile(percent)?.into(), None))
}
