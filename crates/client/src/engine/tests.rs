//! Steps against a server of a few lines.

use std::{
    fs,
    io::{self, Read},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use netping_measure::recorder::Interval;
use netping_protocol::secure::Connector;

use super::*;
use crate::{
    clock::{Clock, Monotonic},
    plan::{Companion, Destination, Extent, OwnServer, PartNumber, Trust, Warmup, together},
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

#[test]
fn an_automatic_warm_up_that_finds_no_steady_rate_is_told() {
    let url = format!("tcp://{}", echo()).parse().unwrap();
    let clear = (Connector::Plain, Trust::default());
    let target = Destination::new(url, ServerSource::Nowhere, clear);
    let mut plan = Plan::new(target, Kind::Line);
    plan.execution.warmup = Warmup::Auto;
    // Too short for the rule.
    plan.execution.warmup_max = Duration::from_millis(1);
    plan.execution.extent = Extent::Requests(10);
    let measurement = run(&plan, &Interrupt::default(), &Events::default()).unwrap();
    assert!(measurement.warmup_failed);
    assert_eq!(measurement.totals.accounting.ok, 10);
    assert!(measurement.warmup >= plan.execution.warmup_max);
}

#[test]
fn no_request_waits_for_a_huge_page() {
    let url = format!("tcp://{}", echo()).parse().unwrap();
    let clear = (Connector::Plain, Trust::default());
    let plan = Plan::new(
        Destination::new(url, ServerSource::Nowhere, clear),
        Kind::Line,
    );
    let workers = Workers::launch(&[plan]).unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    // Kernels before 5.0 do not tell.
    assert!(!status.contains("THP_enabled:\t1"), "{status}");
    workers.join().unwrap();
}

/// Keeps the times at which the intervals were added up, in nanoseconds.
struct AddedUp(Monotonic, Mutex<Vec<u64>>);

impl Observer for AddedUp {
    fn phase(&self, _: Phase, _: Option<Duration>) {}
    fn tick(&self, _: Duration, _: f64) {}

    fn interval(&self, _: &Interval) {
        self.1.lock().unwrap().push(self.0.now());
    }
}

#[test]
fn the_last_of_several_clients_adds_up_its_seconds_after_the_others() {
    let url = format!("tcp://{}", echo()).parse().unwrap();
    let clear = (Connector::Plain, Trust::default());
    let target = Destination::new(url, ServerSource::Nowhere, clear);
    let mut plan = Plan::new(target, Kind::Line);
    (plan.load.callers, plan.load.connections) = (4, 4);
    let last = PartNumber { number: 4, of: 4 };
    plan.take_part(last).unwrap();
    plan.execution.warmup = Warmup::Time(Duration::ZERO);
    plan.execution.extent = Extent::Time(Duration::from_secs(5));
    let added_up = AddedUp(Monotonic::start(), Mutex::default());
    run(&plan, &Interrupt::default(), &added_up).unwrap();
    let times = added_up.1.into_inner().unwrap();
    // A thread that wakes late takes a second before its turn; it will hardly do so each time.
    let mut seconds = times.iter().zip(1..);
    let in_turn = seconds.any(|(at, second)| *at >= second * 1_000_000_000 + 375_000_000);
    assert!(in_turn, "{times:?}");
}

/// Returns a plan for 20 echoes of a server that the worker starts itself.
fn on_worker(url: &str, companion: Companion) -> Plan {
    let clear = (Connector::Plain, Trust::default());
    let mut target = Destination::new(url.parse().unwrap(), ServerSource::Nowhere, clear);
    target.in_process = Some(OwnServer::OnWorker(companion));
    let mut plan = Plan::new(target, Kind::Line);
    plan.execution.warmup = Warmup::Time(Duration::ZERO);
    plan.execution.extent = Extent::Requests(20);
    plan
}

#[test]
fn a_server_on_the_workers_thread_answers_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    let threads = Arc::new(Mutex::new(Vec::new()));
    let served = Arc::clone(&threads);
    let companion = Companion::new(move || {
        let (listener, served) = (listener.try_clone()?, Arc::clone(&served));
        Ok(Box::pin(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let thread = thread::current().name().map(str::to_owned);
            served.lock().unwrap().push(thread);
            let (mut reader, mut writer) = stream.split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        }))
    });
    let plan = on_worker(&url, companion);
    // Each step has a server of its own.
    for _ in 0..2 {
        let measured = run(&plan, &Interrupt::default(), &Events::default()).unwrap();
        let accounting = &measured.totals.accounting;
        assert_eq!((accounting.ok, accounting.scheduled()), (20, 20));
    }
    let worker = Some("client-0".to_owned());
    assert_eq!(*threads.lock().unwrap(), [worker.clone(), worker]);
}

#[test]
fn a_server_that_cannot_start_on_the_workers_thread_is_no_measurement() {
    let companion = Companion::new(|| Err(io::Error::other("no server")));
    let plan = on_worker("tcp://127.0.0.1:1", companion);
    let error = run(&plan, &Interrupt::default(), &Events::default()).unwrap_err();
    assert!(error.to_string().contains("no server"), "{error}");
}

#[test]
fn targets_that_are_measured_together_are_called_by_turns() {
    let plan = || {
        let url = format!("tcp://{}", echo()).parse().unwrap();
        let clear = (Connector::Plain, Trust::default());
        let target = Destination::new(url, ServerSource::Nowhere, clear);
        let mut plan = Plan::new(target, Kind::Line);
        plan.execution.warmup = Warmup::Time(Duration::ZERO);
        plan.execution.extent = Extent::Requests(50);
        plan.execution.keep_samples = true;
        plan
    };
    let plans = together(&[plan(), plan(), plan()], 5);
    let measured = run_together(&plans, &Interrupt::default(), &Events::default()).unwrap();
    let mut calls = Vec::new();
    for (party, own) in measured.iter().enumerate() {
        assert_eq!(own.totals.accounting.ok, 50);
        let samples = own.report.samples.iter();
        calls.extend(samples.map(|sample| (sample.start, sample.end, party)));
    }
    calls.sort_unstable();
    for pair in calls.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
    let mut firsts = [0; 3];
    for cycle in calls.chunks(3) {
        let mut parties: Vec<usize> = cycle.iter().map(|call| call.2).collect();
        firsts[parties[0]] += 1;
        parties.sort_unstable();
        assert_eq!(parties, [0, 1, 2]);
    }
    assert!(firsts.iter().all(|count| *count > 5), "{firsts:?}");
}
