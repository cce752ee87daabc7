//! Lag of the requests of an open loop, without and with busy polling.

use std::time::Duration;

use netping_benches::{plan, run, start};
use netping_client::plan::{Arrival, Extent};
use netping_measure::{summary::Summary, times::Time};
use netping_report::table::{Column, Table};
use netping_results::format::{nanos_as_micros, thousands};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let target = start(&netping_server_tokio::SERVICE, &["--workers", "1"]);
    let mut rows = Vec::new();
    for busy_poll in [false, true] {
        for rate in [1_000.0, 10_000.0, 50_000.0] {
            let mut plan = plan(&target, Extent::Time(Duration::from_secs(2)));
            (plan.load.callers, plan.load.connections) = (64, 64);
            plan.load.arrival = Arrival::Constant(rate);
            plan.execution.busy_poll = busy_poll;
            let lag = &Summary::of(&run(&plan).totals).times[Time::Lag];
            let quantiles =
                [50.0, 90.0, 99.0].map(|percent| nanos_as_micros(lag.quantile(percent)));
            rows.push(
                [
                    vec![
                        if busy_poll { "yes" } else { "no" }.to_owned(),
                        thousands(rate),
                    ],
                    quantiles.into(),
                ]
                .concat(),
            );
        }
    }
    let columns = [
        Column::text("busy poll"),
        Column::number("req/s"),
        Column::number("lag p50 us"),
        Column::number("p90 us"),
        Column::number("p99 us"),
    ];
    println!("{}", Table::whole(&columns, &rows));
}
