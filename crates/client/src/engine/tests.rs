//! Steps against a server of a few lines.

use std::{
    io::{self, Read},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use netping_protocol::secure::Connector;

use super::*;
use crate::{
    plan::{Destination, Extent, Trust, Warmup},
    probe::metrics::ServerSource,
    transport::Kind,
};

/// The events of a test, in their order.
type Events = Arc<Mutex<Vec<&'static str>>>;

impl Observer for Events {
    fn phase(&self, phase: Phase, _: Option<Duration>) {
        self.lock().unwrap().push(match phase {
            Phase::Connect => "connect",
            Phase::Warmup => "warm-up",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
        });
    }

    fn tick(&self, _: Duration, _: f64) {}
}

/// Starts an echo server.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = io::copy(&mut stream.try_clone().unwrap(), &mut stream);
    });
    address
}

/// Starts a port for metrics that takes requests and stays silent until the client gives up.
fn silent_metrics(events: &Events) -> ServerSource {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let events = Arc::clone(events);
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        events.lock().unwrap().push("asked");
        while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
        events.lock().unwrap().push("given up");
    });
    ServerSource::Url { url, asked: true }
}

#[test]
fn a_silent_metrics_port_does_not_delay_a_step() {
    let events = Events::default();
    let url = format!("tcp://{}", echo()).parse().unwrap();
    let clear = (Connector::Plain, Trust::default());
    let target = Destination::new(url, silent_metrics(&events), clear);
    let mut plan = Plan::new(target, Kind::Line);
    plan.execution.warmup = Warmup::Time(Duration::ZERO);
    plan.execution.extent = Extent::Time(Duration::from_millis(300));
    let measurement = run(&plan, &Interrupt::default(), &events).unwrap();

    let events = events.lock().unwrap();
    let at = |name| events.iter().position(|event| *event == name);
    assert!(at("asked").is_some() && at("drain").is_some(), "{events:?}");
    // The window has ended while the first reading was still awaited.
    assert!(
        at("given up").is_none_or(|given_up| Some(given_up) > at("drain")),
        "{events:?}"
    );
    let note = measurement.server_note.unwrap();
    assert!(note.contains("cannot read"), "{note}");
    assert!(measurement.totals.accounting.ok > 0);
}
