//! The flags that servers share. A flag's doc is its help text.

use std::{
    net::SocketAddr, num::NonZeroUsize, path::PathBuf, str::FromStr, sync::Arc, time::Duration,
};

use clap::{Args, ValueEnum};
use humantime::parse_duration;
use netping_protocol::{
    codec::Limits,
    frame, line,
    psk::Key,
    secure::Acceptor,
    tls::{self, Identity, ServerConfig},
};

use crate::listen::StartError;

/// Flags of every server.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1 and the server's own port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Where Prometheus metrics are served, or 'off' [default: the listening address, port + 1000]
    #[arg(long, value_name = "ADDR|off")]
    pub metrics: Option<MetricsAddress>,
    /// Pending connections that the kernel keeps (it caps this at net.core.somaxconn)
    #[arg(long, default_value_t = 4096, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub backlog: i32,
    /// Let several servers listen on one port (SO_REUSEPORT)
    #[arg(long)]
    pub reuse_port: bool,
    /// Receive buffer of each connection, in bytes (SO_RCVBUF) [default: the kernel's]
    #[arg(long, value_name = "BYTES")]
    pub recv_buffer: Option<usize>,
    /// Send buffer of each connection, in bytes (SO_SNDBUF) [default: the kernel's]
    #[arg(long, value_name = "BYTES")]
    pub send_buffer: Option<usize>,
    /// Connections at once; one more is closed at once and counted [default: what the limit on open files allows]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<NonZeroUsize>,
    /// Close a connection whose first bytes, after any handshake, have not come by then; 0s: never
    #[arg(long, default_value = "10s", value_parser = parse_duration, value_name = "TIME")]
    pub first_byte_timeout: Duration,
    /// Close a connection that neither sends bytes nor gets replies for this long; 0s: never
    #[arg(long, default_value = "5m", value_parser = parse_duration, value_name = "TIME")]
    pub idle_timeout: Duration,
    /// After SIGTERM or SIGINT, how long requests in flight may take to finish
    #[arg(long, default_value = "5s", value_parser = parse_duration, value_name = "TIME")]
    pub drain_timeout: Duration,
    /// What the requests cost beyond the echo.
    #[command(flatten)]
    pub effort: EffortArgs,
}

/// Flags that make a request cost more.
#[derive(Debug, Clone, Args)]
pub struct EffortArgs {
    /// CPU time to burn for each request, such as 20us
    #[arg(long, default_value = "0s", value_parser = parse_duration, value_name = "TIME")]
    pub work: Duration,
    /// Where to burn it
    #[arg(long, default_value = "inline", value_name = "WHERE")]
    pub work_on: WorkOn,
    /// Time to wait, without using CPU, before each reply
    #[arg(long, default_value = "0s", value_parser = parse_duration, value_name = "TIME")]
    pub delay: Duration,
}

/// Where `--work` runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkOn {
    /// On the thread that serves the connection.
    Inline,
    /// On tokio's pool for blocking work (the threads server has none: it burns inline).
    BlockingPool,
}

/// Flags of servers that speak lines and frames.
#[derive(Debug, Clone, Args)]
pub struct StreamArgs {
    /// The longest line accepted, in bytes
    #[arg(long, default_value_t = line::DEFAULT_MAX, value_name = "BYTES")]
    pub max_line: usize,
    /// The longest frame accepted and the longest reply given, in bytes
    #[arg(long, default_value_t = frame::DEFAULT_MAX, value_name = "BYTES")]
    pub max_frame: usize,
}

impl StreamArgs {
    /// What a peer may send.
    pub fn limits(&self) -> Limits {
        Limits {
            max_line: self.max_line,
            max_frame: self.max_frame,
        }
    }
}

/// Flags of servers that speak TLS.
#[derive(Debug, Clone, Args)]
pub struct TlsArgs {
    /// Speak TLS 1.3 only, with this certificate chain (PEM; `netping certs` makes one)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM), readable by its owner only
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Speak TLS 1.3 only, with a certificate made up for this run: for a quick try with --tls-insecure
    #[arg(long, conflicts_with = "tls_cert")]
    pub tls_self_signed: bool,
    /// Take only clients whose certificate comes from one of these authorities (PEM): mutual TLS
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
}

impl TlsArgs {
    /// Whether they ask for TLS.
    pub fn is_on(&self) -> bool {
        self.tls_cert.is_some() || self.tls_self_signed
    }

    /// The configuration that they ask for; `None` in the clear.
    ///
    /// # Errors
    /// [`StartError`] when a file is of no use, or the flags do not go together.
    pub fn config(&self, alpn: &[&[u8]]) -> Result<Option<ServerConfig>, StartError> {
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(certificates), Some(key)) => Identity::read(certificates, key)?,
            _ if self.tls_self_signed => Identity::self_signed()?,
            _ if self.tls_client_ca.is_some() => {
                let reason = "--tls-client-ca needs the server's own --tls-cert and --tls-key (or --tls-self-signed)";
                return Err(StartError::Flags(reason.to_owned()));
            }
            _ => return Ok(None),
        };
        Ok(Some(tls::server(
            identity,
            self.tls_client_ca.as_deref(),
            alpn,
        )?))
    }
}

/// Flags of servers that can also speak to clients with a pre-shared key.
#[derive(Debug, Clone, Args)]
pub struct SecureArgs {
    /// Flags about TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Speak Noise with this pre-shared key only (32 bytes; `netping certs --psk` makes one)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tls_cert", "tls_self_signed", "tls_client_ca"])]
    pub psk_file: Option<PathBuf>,
}

impl SecureArgs {
    /// How connections are secured.
    ///
    /// # Errors
    /// As [`TlsArgs::config`].
    pub fn acceptor(&self, alpn: &[&[u8]]) -> Result<Acceptor, StartError> {
        if let Some(path) = &self.psk_file {
            return Ok(Acceptor::Psk(Arc::new(Key::read(path)?)));
        }
        Ok(self
            .tls
            .config(alpn)?
            .map_or(Acceptor::Plain, |config| Acceptor::Tls(Arc::new(config))))
    }
}

/// Flags of servers that run on tokio.
#[derive(Debug, Clone, Args)]
pub struct RuntimeArgs {
    /// How connections get to cores
    #[arg(long, default_value = "per-core", value_name = "KIND")]
    pub runtime: RuntimeKind,
    /// Runtimes (per-core) or worker threads (multi-thread) [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// Never sleep: poll the sockets all the time, one full core for each worker (only with --runtime per-core)
    #[arg(long)]
    pub busy_poll: bool,
}

impl RuntimeArgs {
    /// How many runtimes to run.
    pub fn runtime_count(&self) -> usize {
        match self.runtime {
            RuntimeKind::PerCore => self.worker_count(),
            RuntimeKind::MultiThread => 1,
        }
    }

    /// How many workers to run.
    pub fn worker_count(&self) -> usize {
        self.workers
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }
}

/// How connections get to cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuntimeKind {
    /// One single-threaded tokio runtime for each core; connections are handed out in turn and stay.
    PerCore,
    /// One tokio runtime with work stealing, as tokio does out of the box.
    MultiThread,
}

/// Where to serve metrics, if at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAddress {
    /// Nowhere.
    Off,
    /// At this address.
    At(SocketAddr),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse()
            .map(Self::At)
            .map_err(|_| "neither 'off' nor an address such as 127.0.0.1:9004".to_owned())
    }
}
