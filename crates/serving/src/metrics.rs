//! The HTTP endpoint with a server's metrics, for Prometheus and for netping's client.
//!
//! Process metrics have Prometheus' standard names, so any dashboard finds them.

use std::{
    collections::VecDeque,
    convert::Infallible,
    process,
    sync::{Weak, atomic::AtomicU64},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode, body::Bytes, header, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use netping_system::{
    balance::CpuReading,
    cores,
    counters::HostCounters,
    cpu,
    host::{boot_id, somaxconn},
    limits::open_files,
    process::{
        own_context_switches, own_open_files, own_resident_bytes, own_start_time, own_threads,
    },
};
use prometheus_client::{
    encoding::text,
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::ConstGauge,
        info::Info,
    },
    registry::Registry,
};
use tokio::{net::TcpListener, task::JoinHandle, time};

use crate::{
    chassis::{Chassis, MAX_SCRAPES},
    runtime::WORKER,
};

/// Time that the oldest scrape beyond the limit still has, many times what one takes.
const PATIENCE: Duration = Duration::from_millis(10);

/// Time limit of a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit of a scrape.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);

/// Content type of the encoder's text format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers scrapes of one server's metrics over HTTP/1.1. Beyond the limit, a connection waits for the oldest one to end.
/// One that sends nothing is closed then, and keeps nobody out.
pub(crate) async fn serve(listener: TcpListener, server: Weak<Chassis>) {
    let mut scrapes: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if let Some(server) = server.upgrade() {
                    server
                        .shared()
                        .log_rarely(|| tracing::warn!("metrics: accept failed: {error}"));
                }
                time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        scrapes.retain(|scrape| !scrape.is_finished());
        if scrapes.len() >= MAX_SCRAPES
            && let Some(mut oldest) = scrapes.pop_front()
            && time::timeout(PATIENCE, &mut oldest).await.is_err()
        {
            oldest.abort();
        }
        let server = Weak::clone(&server);
        scrapes.push_back(tokio::spawn(async move {
            let service = service_fn(move |request| {
                let response = respond(&request, &server);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .keep_alive(false)
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // A scraper that breaks off or is slow only harms itself.
            let _ = time::timeout(SCRAPE_TIMEOUT, connection).await;
        }));
    }
}

fn respond<B>(request: &Request<B>, server: &Weak<Chassis>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let mut body = String::new();
    *response.status_mut() = if request.method() != Method::GET {
        StatusCode::METHOD_NOT_ALLOWED
    } else if !matches!(request.uri().path(), "/" | "/metrics") {
        StatusCode::NOT_FOUND
    } else if let Some(server) = server.upgrade()
        && text::encode(&mut body, &registry(&server)).is_ok()
    {
        let kind = header::HeaderValue::from_static(CONTENT_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        *response.body_mut() = Full::from(body);
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    response
}

/// Reads the counters of the server, its process and its machine.
fn registry(server: &Chassis) -> Registry {
    let mut registry = Registry::default();
    registry.register(
        "netping_errors",
        "Errors, by kind",
        server.shared().errors.clone(),
    );
    read_server(server, &mut registry);
    read_workers(&mut registry);
    read_process(&mut registry);
    read_machine(&mut registry);
    read_cpus(&mut registry);
    registry
}

fn read_server(server: &Chassis, registry: &mut Registry) {
    let mut metrics = MetricGroup(registry.sub_registry_with_prefix("netping"));
    let (open, admitted, requests) = server.connections.totals();
    let (most, cores) = (server.max_connections as u64, server.cores as u64);
    metrics.count("requests", "Requests answered", requests);
    metrics.count("connections_admitted", "Connections admitted", admitted);
    metrics.level("connections", "Connections open", open as u64);
    metrics.level("max_connections", "Limit on open connections", most);
    metrics.level("cores", "Cores that can serve requests", cores);
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    metrics.0.register("build", "The server's version", version);
    if let Some(id) = boot_id() {
        let boot = Info::new([("boot_id", id)]);
        let help = "The kernel's boot id: the same for all processes of a machine";
        metrics.0.register("boot", help, boot);
    }
}

/// Reads the CPU times of the threads that serve, where there are several.
fn read_workers(registry: &mut Registry) {
    let times = Family::<[(&str, String); 1], Counter<f64, AtomicU64>>::default();
    for (number, time) in cpu::times_of_threads(WORKER) {
        let own = times.get_or_create_owned(&[("worker", number)]);
        own.inc_by(time.as_secs_f64());
    }
    let help = "CPU time of each thread that serves";
    registry.register("netping_worker_cpu_seconds", help, times);
}

fn read_process(registry: &mut Registry) {
    let mut metrics = MetricGroup(registry.sub_registry_with_prefix("process"));
    metrics.seconds("cpu", "CPU time, user and system", cpu::process_time());
    let system = cpu::process_system_time();
    metrics.seconds("cpu_system", "CPU time in the kernel", system);
    let waited = cpu::run_delay(process::id());
    metrics.seconds("run_delay", "Time that threads waited for a CPU", waited);
    let resident = own_resident_bytes();
    metrics.level("resident_memory_bytes", "Resident memory", resident);
    metrics.level("threads", "Threads", own_threads());
    metrics.level("open_fds", "Open file descriptors", own_open_files());
    metrics.level("max_fds", "Limit on open file descriptors", open_files());
    if let Some(start) = own_start_time() {
        let (help, start) = ("Start, in seconds since 1970", ConstGauge::new(start));
        metrics.0.register("start_time_seconds", help, start);
    }
    if let Some(switches) = own_context_switches() {
        let kinds = Family::<[(&str, &str); 1], Counter>::default();
        for (kind, count) in [
            ("voluntary", switches.voluntary),
            ("involuntary", switches.involuntary),
        ] {
            kinds.get_or_create(&[("kind", kind)]).inc_by(count);
        }
        let help = "Context switches of all threads";
        metrics.0.register("context_switches", help, kinds);
    }
}

/// Reads the counters that explain slow requests.
fn read_machine(registry: &mut Registry) {
    let mut metrics = MetricGroup(registry.sub_registry_with_prefix("netping_host"));
    let host = HostCounters::read();
    metrics.level("somaxconn", "Limit on pending connections", somaxconn());
    metrics.seconds("steal", "CPU time kept by the hypervisor", host.steal);
    metrics.seconds("softirq", "CPU time of soft interrupts", host.softirq);
    let throttled = host.throttled;
    metrics.seconds("throttled", "Time stopped by the cgroup's limit", throttled);
    let retransmits = host.tcp_retransmits;
    metrics.count("tcp_retransmits", "TCP segments sent again", retransmits);
    let listen_drops = host.listen_drops;
    metrics.count("listen_drops", "TCP connections dropped", listen_drops);
    let help = "Datagrams that found a UDP receive buffer full";
    metrics.count("udp_drops", help, host.udp_drops);
}

/// Reads the times of the CPUs that the server may use, all counted from the machine's start.
fn read_cpus(registry: &mut Registry) {
    let mut metrics = MetricGroup(registry.sub_registry_with_prefix("netping_cpus"));
    let (cpus, reading) = (cores::of_process(process::id()), CpuReading::read_cpus());
    let Some(ticks) = reading.ticks(&cpus).filter(|_| !cpus.is_empty()) else {
        return;
    };
    let all = reading.uptime() * u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let usable = cpus.len() as u64;
    metrics.level("usable", "CPUs that the server may use", usable);
    metrics.seconds("time", "Time that the server's CPUs have had", all);
    metrics.seconds("idle", "Part of it in which they were idle", ticks.idle);
    metrics.seconds("steal", "Part that the hypervisor kept", ticks.steal);
    metrics.seconds("interrupt", "Part of interrupts", ticks.interrupts);
}

/// Metrics with one prefix; one whose value is unknown is left out.
struct MetricGroup<'a>(&'a mut Registry);

impl MetricGroup<'_> {
    fn count(&mut self, name: &str, help: &str, value: impl Into<Option<u64>>) {
        if let Some(value) = value.into() {
            self.0.register(name, help, ConstCounter::new(value));
        }
    }

    fn seconds(&mut self, name: &str, help: &str, value: impl Into<Option<Duration>>) {
        if let Some(value) = value.into() {
            let counter = ConstCounter::new(value.as_secs_f64());
            self.0.register(format!("{name}_seconds"), help, counter);
        }
    }

    fn level(&mut self, name: &str, help: &str, value: impl Into<Option<u64>>) {
        if let Some(value) = value.into() {
            self.0.register(name, help, ConstGauge::new(value));
        }
    }
}
