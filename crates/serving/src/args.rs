//! Flags that servers share. A flag's doc comment is its help text.

use std::{
    io, net::SocketAddr, num::NonZeroUsize, os::fd::AsFd, path::PathBuf, str::FromStr, sync::Arc,
    time::Duration,
};

use clap::{Args, Parser, ValueEnum};
use netping_protocol::{
    codec::Limits,
    frame, line,
    psk::Key,
    scheme::Scheme,
    secure::Acceptor,
    tls::{self, Identity},
    units::{bytes_in, number_in, time},
};
use socket2::SockRef;

use crate::{Profile, Result, ServeError};

/// Flags of a server: those of every server, then its own.
#[derive(Debug, Clone, Parser)]
#[command(version)]
pub struct ServerArgs<A: Args> {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub own: A,
}

/// Flags of every server.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// Address to listen on; port 0 takes a free port [default: 127.0.0.1 and the server's own
    /// port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Address of the Prometheus metrics, or 'off' [default: the listening address, port + 1000]
    #[arg(long, value_name = "ADDR|off")]
    pub metrics: Option<MetricsAddress>,
    /// Maximum number of pending connections (the kernel caps it at net.core.somaxconn)
    #[arg(long, default_value = "4096", value_name = "N", value_parser = number_in::<i32>(1..))]
    pub backlog: i32,
    /// Let several servers share the port (SO_REUSEPORT)
    #[arg(long)]
    pub reuse_port: bool,
    /// Receive buffer of each connection, in bytes (SO_RCVBUF) [default: the kernel's; a UDP socket's:
    /// 2 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<usize>(..))]
    pub recv_buffer: Option<usize>,
    /// Send buffer of each connection, in bytes (SO_SNDBUF) [default: the kernel's; a UDP socket's:
    /// 2 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<usize>(..))]
    pub send_buffer: Option<usize>,
    /// Maximum number of open connections; for one more, that which has been idle longest is closed if it has been for
    /// a second, else the new one; both are counted [default: as the limit on open files allows]
    #[arg(long, value_name = "N", value_parser = number_in::<usize>(1..))]
    pub max_connections: Option<usize>,
    /// Time limit for the handshake of a connection, and for the preface of HTTP/2; 0s: none
    #[arg(long, default_value = "10s", value_parser = time, value_name = "TIME")]
    pub first_byte_timeout: Duration,
    /// Close a connection on which nothing has come for this time; 0s: never
    #[arg(long, default_value = "1h", value_parser = time, value_name = "TIME")]
    pub idle_timeout: Duration,
    /// Time limit for a request, from its first byte to its last, and one second more for each 64 KiB
    /// of it; 0s: none
    #[arg(long, default_value = "30s", value_parser = time, value_name = "TIME")]
    pub request_timeout: Duration,
    /// Close a connection whose client takes less than 16 KiB of a waiting reply in this time; 0s: never
    #[arg(long, default_value = "30s", value_parser = time, value_name = "TIME")]
    pub reply_timeout: Duration,
    /// While the process holds more memory, in bytes, close the connections that hold most, and refuse
    /// new ones if that is not enough [default: half of the machine's, or of what its cgroup may use]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<u64>(1..))]
    pub max_memory: Option<u64>,
    /// Time for requests in flight to finish after SIGTERM or SIGINT
    #[arg(long, default_value = "5s", value_parser = time, value_name = "TIME")]
    pub drain_timeout: Duration,
    #[command(flatten)]
    pub load: LoadArgs,
}

impl CommonArgs {
    /// Sets the sizes of a socket's buffers, to `default` bytes where no flag sets them.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn size_buffers(&self, socket: &impl AsFd, default: Option<usize>) -> io::Result<()> {
        let socket = SockRef::from(socket);
        if let Some(bytes) = self.recv_buffer.or(default) {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.send_buffer.or(default) {
            socket.set_send_buffer_size(bytes)?;
        }
        Ok(())
    }
}

/// Flags of the synthetic load.
#[derive(Debug, Clone, Copy, Args)]
pub struct LoadArgs {
    /// CPU time to burn for each request, such as 20us
    #[arg(long, default_value = "0s", value_parser = time, value_name = "TIME")]
    pub work: Duration,
    /// Threads that burn the --work
    #[arg(long, default_value = "inline", value_name = "WHERE")]
    pub work_on: WorkOn,
    /// Time to wait before each reply, without using CPU; 'exp:5ms': exponentially distributed, with
    /// this mean
    #[arg(long, default_value = "0s", value_name = "TIME|exp:TIME")]
    pub delay: Delay,
}

/// The time to wait before each reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The time, or its mean.
    pub mean: Duration,
    /// True for exponentially distributed times.
    pub is_random: bool,
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mean = text.strip_prefix("exp:");
        match time(mean.unwrap_or(text)) {
            Ok(time) => Ok(Self {
                mean: time,
                is_random: mean.is_some(),
            }),
            Err(error) => Err(format!("{error}; a delay looks like 5ms or exp:5ms")),
        }
    }
}

/// Threads that burn `--work`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkOn {
    /// On the thread that serves the connection.
    Inline,
    /// On tokio's pool for blocking work. The threads server has none and burns inline.
    BlockingPool,
}

/// Flags of servers that speak lines and frames.
#[derive(Debug, Clone, Args)]
pub struct StreamArgs {
    /// Longest line accepted, in bytes
    #[arg(long, default_value_t = line::DEFAULT_MAX, value_name = "BYTES", value_parser = bytes_in::<usize>(..))]
    pub max_line: usize,
    /// Longest frame accepted and longest reply given, in bytes
    #[arg(long, default_value_t = frame::DEFAULT_MAX, value_name = "BYTES", value_parser = bytes_in::<usize>(..))]
    pub max_frame: usize,
}

impl StreamArgs {
    /// Returns the limits on lines and frames.
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
    /// Certificate chain (PEM; `netping certs` makes one); accept TLS 1.3 only
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM), readable by its owner only
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Use a self-signed certificate made for this run, for clients with --tls-insecure; accept TLS
    /// 1.3 only
    #[arg(long, conflicts_with = "tls_cert")]
    pub tls_self_signed: bool,
    /// Accept only clients with a certificate from one of these authorities (PEM): mutual TLS
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
}

impl TlsArgs {
    /// Returns the scheme of the server's URLs, which is `tls` if the flags ask for TLS.
    pub fn scheme(&self, plain: Scheme, tls: Scheme) -> Scheme {
        let has_tls = self.tls_cert.is_some() || self.tls_self_signed;
        if has_tls { tls } else { plain }
    }

    /// Returns the server's certificate and key, or `None` for clear text.
    ///
    /// # Errors
    /// Fails if a file cannot be used or the flags contradict each other.
    pub fn identity(&self) -> Result<Option<Identity>> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificates), Some(key)) => Ok(Some(Identity::read(certificates, key)?)),
            _ if self.tls_self_signed => Ok(Some(Identity::self_signed()?)),
            _ if self.tls_client_ca.is_some() => {
                let reason = "--tls-client-ca needs --tls-cert and --tls-key, or --tls-self-signed";
                Err(ServeError::Flags(reason))
            }
            _ => Ok(None),
        }
    }

    /// Returns the server's side of the handshake.
    ///
    /// # Errors
    /// Fails as [`TlsArgs::identity`], or if the authorities' file cannot be used.
    pub fn acceptor(&self, alpn: &[&[u8]]) -> Result<Acceptor> {
        let Some(identity) = self.identity()? else {
            return Ok(Acceptor::Plain);
        };
        let config = tls::server(identity, self.tls_client_ca.as_deref(), alpn)?;
        Ok(Acceptor::Tls(Arc::new(config)))
    }
}

/// Flags of servers that speak TLS or Noise.
#[derive(Debug, Clone, Args)]
pub struct SecureArgs {
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Pre-shared key (32 bytes; `netping certs --psk` makes one); accept Noise only
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tls_cert", "tls_self_signed", "tls_client_ca"])]
    pub psk_file: Option<PathBuf>,
}

impl SecureArgs {
    /// Returns the server's side of the handshake.
    ///
    /// # Errors
    /// Fails as [`TlsArgs::identity`], or if the key file cannot be used.
    pub fn acceptor(&self, alpn: &[&[u8]]) -> Result<Acceptor> {
        match &self.psk_file {
            Some(path) => Ok(Acceptor::Psk(Arc::new(Key::read(path)?))),
            None => self.tls.acceptor(alpn),
        }
    }
}

/// Flags of servers that run on tokio.
#[derive(Debug, Clone, Args)]
pub struct RuntimeArgs {
    /// Distribution of connections over cores
    #[arg(long, default_value = "per-core", value_name = "KIND")]
    pub runtime: RuntimeKind,
    /// Number of runtimes (per-core) or worker threads (multi-thread) [default: the number of
    /// cores]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// Poll the sockets without sleeping: each worker uses a full core (only with --runtime
    /// per-core)
    #[arg(long)]
    pub busy_poll: bool,
}

impl RuntimeArgs {
    /// Returns the number of runtimes.
    pub fn runtime_count(&self) -> usize {
        match self.runtime {
            RuntimeKind::PerCore => self.worker_count(),
            RuntimeKind::MultiThread => 1,
        }
    }

    /// Returns the properties of an echo server on these threads.
    pub fn profile(&self) -> Profile {
        Profile {
            workers: Some(self.worker_count()),
            ..Profile::ECHO
        }
    }

    /// Returns the number of runtimes or worker threads.
    pub fn worker_count(&self) -> usize {
        self.workers
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }
}

/// Distribution of connections over cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuntimeKind {
    /// One single-threaded tokio runtime per core; connections are handed out in turn and stay.
    PerCore,
    /// One tokio runtime with work stealing: tokio's default.
    MultiThread,
}

/// Value of `--metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAddress {
    /// No metrics.
    Off,
    /// Metrics at this address.
    At(SocketAddr),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "off" => Ok(Self::Off),
            Ok(address) => Ok(Self::At(address)),
            Err(_) => Err("expected 'off' or an address such as 127.0.0.1:9004".to_owned()),
        }
    }
}
