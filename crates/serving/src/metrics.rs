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
    process::{OwnCounts, own_context_switches, own_start_time},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
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
        registry.register_collector(Box::new(ProcessCollector));
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

/// Encodes the server's own counters.
#[derive(Debug)]
struct ServerCollector(Weak<State>);

impl Collector for ServerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(server) = self.0.upgrade() else {
            return Ok(());
        };
        let (open, admitted, requests) = server.connections.totals();
        counter(
            &mut encoder,
            "netping_requests",
            "Requests answered",
            requests,
        )?;
        counter(
            &mut encoder,
            "netping_connections_admitted",
            "Connections admitted",
            admitted,
        )?;
        gauge(
            &mut encoder,
            "netping_connections",
            "Connections open",
            open as u64,
        )?;
        let limit = server.max_connections as u64;
        gauge(
            &mut encoder,
            "netping_max_connections",
            "Maximum number of open connections",
            limit,
        )?;
        let cores = server.cores as u64;
        gauge(
            &mut encoder,
            "netping_cores",
            "Cores that requests can be served on",
            cores,
        )
    }
}

/// Encodes the kernel's counters of this process.
#[derive(Debug)]
struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cpu = cpu::process_time().as_secs_f64();
        counter(
            &mut encoder,
            "process_cpu_seconds",
            "CPU time used, user and system, in seconds",
            cpu,
        )?;
        if let Some(switches) = own_context_switches() {
            let help = "Context switches of all threads";
            let kinds = [
                ("voluntary", switches.voluntary),
                ("involuntary", switches.involuntary),
            ];
            let mut metric = encoder.encode_descriptor(
                "process_context_switches",
                help,
                None,
                MetricType::Counter,
            )?;
            for (kind, count) in kinds {
                ConstCounter::new(count).encode(metric.encode_family(&[("kind", kind)])?)?;
            }
        }
        let counts = OwnCounts::read();
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Resident memory in bytes",
                counts.resident_bytes,
            ),
            ("process_threads", "Threads", counts.threads),
            (
                "process_open_fds",
                "Open file descriptors",
                counts.open_files,
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                gauge(&mut encoder, name, help, value)?;
            }
        }
        gauge(
            &mut encoder,
            "process_max_fds",
            "Maximum number of open file descriptors",
            open_files(),
        )?;
        encode_host(&mut encoder)?;
        if let Some(seconds) = own_start_time() {
            let help = "Start of the process, in seconds since 1970";
            ConstGauge::new(seconds).encode(encoder.encode_descriptor(
                "process_start_time_seconds",
                help,
                None,
                MetricType::Gauge,
            )?)?;
        }
        if let Some(id) = boot_id() {
            let help = "The kernel's boot id: the same for all processes of a machine";
            info(&mut encoder, "netping_boot_info", help, ("boot_id", &id))?;
        }
        let version = ("version", env!("CARGO_PKG_VERSION"));
        info(
            &mut encoder,
            "netping_build_info",
            "The server's version",
            version,
        )
    }
}

/// Encodes a text as the label of a gauge that is 1.
fn info(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: (&str, &str),
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(1_u64).encode(metric.encode_family(&[label])?)
}

/// Encodes the counters of the machine that explain slow requests.
fn encode_host(encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if let Some(most) = somaxconn() {
        let help = "The kernel's limit on connections that wait to be accepted";
        gauge(encoder, "netping_host_somaxconn", help, most)?;
    }
    let host = HostCounters::read();
    let times = [
        (
            "netping_host_steal_seconds",
            "CPU time that the hypervisor gave to others while a core wanted to run",
            host.steal,
        ),
        (
            "netping_host_throttled_seconds",
            "Time for which the limit on this cgroup's CPU time stopped its threads",
            host.throttled,
        ),
    ];
    for (name, help, value) in times {
        if let Some(value) = value {
            counter(encoder, name, help, value.as_secs_f64())?;
        }
    }
    let counts = [
        (
            "netping_host_tcp_retransmits",
            "TCP segments sent again",
            host.tcp_retransmits,
        ),
        (
            "netping_host_listen_drops",
            "Incoming TCP connections dropped",
            host.listen_drops,
        ),
        (
            "netping_host_udp_drops",
            "Datagrams that found a UDP receive buffer full",
            host.udp_drops,
        ),
    ];
    for (name, help, value) in counts {
        if let Some(value) = value {
            counter(encoder, name, help, value)?;
        }
    }
    Ok(())
}

fn counter<N>(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: N) -> fmt::Result
where
    ConstCounter<N>: EncodeMetric,
{
    let counter = ConstCounter::new(value);
    counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}
