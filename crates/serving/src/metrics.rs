//! The HTTP endpoint with a server's metrics, for Prometheus and for netping's client.
//!
//! Process metrics have Prometheus' standard names, so any dashboard finds them.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt, io,
    net::TcpListener,
    sync::{Arc, Weak},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode, body::Bytes, header, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use netping_system::{
    counters::HostCounters,
    cpu,
    host::{boot_id, somaxconn},
    limits::open_files,
    process::{
        own_context_switches, own_open_files, own_resident_bytes, own_start_time, own_threads,
    },
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::ConstGauge,
        info::Info,
    },
    registry::Registry,
};
use tokio::{runtime::Runtime, task::JoinHandle, time};

use crate::state::State;

/// Maximum number of concurrent scrapes: metrics must not disturb the measurement.
const MAX_SCRAPERS: usize = 16;

/// Time limit of a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit of a scrape.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);

/// Content type of the encoder's text format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves one server's metrics over HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Endpoint {
    listener: tokio::net::TcpListener,
    registry: Arc<Registry>,
    server: Weak<State>,
}

impl Endpoint {
    pub fn new(runtime: &Runtime, listener: TcpListener, server: &Arc<State>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let _context = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut registry = Registry::default();
        registry.register("netping_errors", "Errors, by kind", server.errors.clone());
        registry.register_collector(Box::new(ServerCollector(Arc::downgrade(server))));
        Ok(Self {
            listener,
            registry: Arc::new(registry),
            server: Arc::downgrade(server),
        })
    }

    /// Answers scrapes. Connections that send nothing keep nobody out: beyond the limit, the oldest
    /// one is closed.
    pub async fn serve(self) {
        let mut scrapes: VecDeque<JoinHandle<()>> = VecDeque::new();
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    if let Some(server) = self.server.upgrade() {
                        server.log_rarely(|| tracing::warn!("metrics: accept failed: {error}"));
                    }
                    time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            scrapes.retain(|scrape| !scrape.is_finished());
            if scrapes.len() >= MAX_SCRAPERS
                && let Some(oldest) = scrapes.pop_front()
            {
                oldest.abort();
            }
            let registry = Arc::clone(&self.registry);
            scrapes.push_back(tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let response = respond(&request, &registry);
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
}

fn respond<B>(request: &Request<B>, registry: &Registry) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    if request.method() != Method::GET {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    } else if !matches!(request.uri().path(), "/" | "/metrics") {
        *response.status_mut() = StatusCode::NOT_FOUND;
    } else {
        let mut body = String::new();
        if text::encode(&mut body, registry).is_err() {
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return response;
        }
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static(CONTENT_TYPE),
        );
        *response.body_mut() = Full::from(body);
    }
    response
}

/// Encodes the counters of the server, its process and its machine.
#[derive(Debug)]
struct ServerCollector(Weak<State>);

/// A metric, unless its value is unknown.
type Metric = Option<Box<dyn EncodeMetric>>;

impl Collector for ServerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(server) = self.0.upgrade() else {
            return Ok(());
        };
        let metrics = own(&server)
            .into_iter()
            .chain(of_the_process())
            .chain(of_the_machine());
        for (name, help, metric) in metrics {
            if let Some(metric) = metric {
                let kind = metric.metric_type();
                metric.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
            }
        }
        Ok(())
    }
}

fn own(server: &State) -> Vec<(&'static str, &'static str, Metric)> {
    let (open, admitted, requests) = server.connections.totals();
    vec![
        ("netping_requests", "Requests answered", count(requests)),
        (
            "netping_connections_admitted",
            "Connections admitted",
            count(admitted),
        ),
        (
            "netping_connections",
            "Connections open",
            level(open as u64),
        ),
        (
            "netping_max_connections",
            "Maximum number of open connections",
            level(server.max_connections as u64),
        ),
        (
            "netping_cores",
            "Cores that requests can be served on",
            level(server.cores as u64),
        ),
        (
            "netping_build",
            "The server's version",
            label("version", env!("CARGO_PKG_VERSION").to_owned()),
        ),
    ]
}

fn of_the_process() -> Vec<(&'static str, &'static str, Metric)> {
    vec![
        (
            "process_cpu_seconds",
            "CPU time used, user and system, in seconds",
            seconds(cpu::process_time()),
        ),
        (
            "process_context_switches",
            "Context switches of all threads",
            context_switches(),
        ),
        (
            "process_resident_memory_bytes",
            "Resident memory in bytes",
            level(own_resident_bytes()),
        ),
        ("process_threads", "Threads", level(own_threads())),
        (
            "process_open_fds",
            "Open file descriptors",
            level(own_open_files()),
        ),
        (
            "process_max_fds",
            "Maximum number of open file descriptors",
            level(open_files()),
        ),
        (
            "process_start_time_seconds",
            "Start of the process, in seconds since 1970",
            own_start_time().map(|start| Box::new(ConstGauge::new(start)) as _),
        ),
    ]
}

/// Returns the counters that explain slow requests, and what identifies the machine.
fn of_the_machine() -> Vec<(&'static str, &'static str, Metric)> {
    let host = HostCounters::read();
    vec![
        (
            "netping_host_somaxconn",
            "The kernel's limit on connections that wait to be accepted",
            level(somaxconn()),
        ),
        (
            "netping_host_steal_seconds",
            "CPU time that the hypervisor gave to others while a core wanted to run",
            seconds(host.steal),
        ),
        (
            "netping_host_throttled_seconds",
            "Time for which the limit on this cgroup's CPU time stopped its threads",
            seconds(host.throttled),
        ),
        (
            "netping_host_tcp_retransmits",
            "TCP segments sent again",
            count(host.tcp_retransmits),
        ),
        (
            "netping_host_listen_drops",
            "Incoming TCP connections dropped",
            count(host.listen_drops),
        ),
        (
            "netping_host_udp_drops",
            "Datagrams that found a UDP receive buffer full",
            count(host.udp_drops),
        ),
        (
            "netping_boot",
            "The kernel's boot id: the same for all processes of a machine",
            label("boot_id", boot_id()),
        ),
    ]
}

fn count(value: impl Into<Option<u64>>) -> Metric {
    let value = value.into()?;
    Some(Box::new(ConstCounter::new(value)))
}

fn seconds(value: impl Into<Option<Duration>>) -> Metric {
    let value = value.into()?;
    Some(Box::new(ConstCounter::new(value.as_secs_f64())))
}

fn level(value: impl Into<Option<u64>>) -> Metric {
    let value = value.into()?;
    Some(Box::new(ConstGauge::new(value)))
}

fn label(name: &'static str, value: impl Into<Option<String>>) -> Metric {
    let value = value.into()?;
    Some(Box::new(Info::new([(name, value)])))
}

fn context_switches() -> Metric {
    let switches = own_context_switches()?;
    let kinds = Family::<[(&str, &str); 1], Counter>::default();
    for (kind, count) in [
        ("voluntary", switches.voluntary),
        ("involuntary", switches.involuntary),
    ] {
        kinds.get_or_create(&[("kind", kind)]).inc_by(count);
    }
    Some(Box::new(kinds))
}
