//! Whatever a server's metrics say, a result that has them can be written and read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_client::probe::metrics::Reading;
use netping_results::{fixtures, run::Run};

fuzz_target!(|readings: ([(&str, [u8; 2]); 2], u8)| {
    let ([start, end], unsure) = readings;
    let read = |(text, replies): (&str, [u8; 2])| {
        let [first, second] = replies.map(u64::from);
        Reading::within_an_hour(text, [first, first + second])
    };
    let (Ok(start), Ok(end)) = (read(start), read(end)) else {
        return;
    };
    let mut step = fixtures::step(1, |_| vec![1000; 10]);
    let requests = start.requests_until(&end, unsure.into());
    step.cost.balances.extend(start.balance_until(&end));
    step.cost.server = start.demand_until(&end, unsure.into()).ok().flatten();
    if let Some(server) = &mut step.cost.server {
        server.requests = requests;
    }
    let text = fixtures::run(vec![step]).to_json().expect("it can be written");
    Run::from_json(text.as_bytes()).expect("it can be read");
});
