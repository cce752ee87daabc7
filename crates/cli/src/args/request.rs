//! Flags about requests, shared by the measuring commands.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use netping_client::{
    plan::{Destination, Plan, Trust},
    probe::metrics::ServerSource,
    transport::Kind,
};
use netping_protocol::{
    frame::{self, Reply},
    line, message,
    scheme::{Encryption, Protocol, Scheme},
    secure::Connector,
    target::Target,
    tls::{ALPN_H2, ALPN_H3},
    units::bytes_in,
};

use super::{
    output::ServerArgs,
    secure::SecureArgs,
    service::{Service, ServiceArgs, is_call},
    time::positive,
};
use crate::error::{PlanError, UsageError};

/// Default payload of each request, in bytes.
const PAYLOAD: usize = 4;

/// Flags about requests.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Requests")]
pub struct RequestArgs {
    /// Payload of each request, in bytes [default: 4]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<usize>(..), conflicts_with = "message")]
    payload: Option<usize>,
    /// Length of each reply, in bytes [default: the payload is echoed]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<u32>(..))]
    response: Option<u32>,
    /// Send a message instead, serialized and parsed on both sides: by Hello/Say over gRPC, in a
    /// frame elsewhere
    #[arg(long, value_name = "MESSAGE", conflicts_with = "response")]
    message: Option<Message>,
    /// Limit on the time of a request, and of opening a connection
    #[arg(long, default_value = "5s", value_parser = positive, value_name = "TIME")]
    timeout: Duration,
    /// Do not send one request to each target first, to see that it answers
    #[arg(long)]
    no_first_call: bool,
    /// Framing of tcp:// requests [default: line; frame with --response, --message or a payload
    /// longer than 64 KiB]
    #[arg(long, value_name = "FORM")]
    framing: Option<Framing>,
    /// Client for grpc://: HTTP/2 driven directly, or a tonic channel as in an application
    #[arg(long, default_value = "h2", value_name = "CLIENT")]
    grpc_client: GrpcClient,
    #[command(flatten)]
    http: HttpVersion,
    /// Connect to this Unix domain socket instead of the URL's host; '@NAME' is an abstract one
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// Never sleep: each worker polls its sockets all the time and uses a full core
    #[arg(long)]
    busy_poll: bool,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    secure: SecureArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// The version of HTTP.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Requests")]
struct HttpVersion {
    /// HTTP/2 with prior knowledge for http://, and only HTTP/2 for https://
    /// [default: HTTP/1.1 for http://, the server's choice for https://]
    #[arg(long)]
    http2: bool,
    /// HTTP/3 for https://, over QUIC
    #[arg(long, conflicts_with_all = ["http2", "unix_socket"])]
    http3: bool,
}

/// The framing of requests on a TCP stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Framing {
    /// A line, echoed
    Line,
    /// A length-prefixed frame
    Frame,
}

/// The messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Message {
    /// The 581 bytes of rpcx-benchmark, in 39 fields
    Benchmark,
}

/// The clients of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GrpcClient {
    /// HTTP/2 driven directly
    H2,
    /// A tonic channel
    Tonic,
}

impl RequestArgs {
    /// Returns a plan of such requests to each target, from one caller. Data and schemas are read
    /// only once.
    pub fn plans<'a>(
        &self,
        targets: impl IntoIterator<Item = &'a Target>,
    ) -> Result<Vec<Plan>, PlanError> {
        let service = self.service.read()?;
        let plan = |target| self.plan(target, &service);
        targets.into_iter().map(plan).collect()
    }

    fn plan(&self, target: &Target, service: &Service<'_>) -> Result<Plan, PlanError> {
        let (kind, secured) = (self.kind(target)?, self.connector(target)?);
        let mut destination = Destination::new(target.clone(), self.server(target), secured);
        if let Some(socket) = &self.unix_socket {
            destination.unix_socket = Some(socket_path(socket));
            if !self.server.is_given() {
                destination.server = ServerSource::Nowhere;
            }
        }
        service.prepare(&mut destination)?;
        let mut plan = Plan::new(destination, kind);
        // Of the exchanges of prepared requests, only the numbers are used.
        plan.load.payload = if kind.is_prepared() {
            0
        } else {
            self.payload()
        };
        plan.load.reply = self.reply();
        plan.load.timeout = self.timeout;
        plan.target.first_call = !self.no_first_call;
        plan.execution.busy_poll = self.busy_poll;
        Ok(plan)
    }

    /// Returns the way to a server that is not measured itself.
    pub fn destination(&self, target: &Target) -> Result<Destination, PlanError> {
        let secured = self.connector(target)?;
        Ok(Destination::new(
            target.clone(),
            ServerSource::Nowhere,
            secured,
        ))
    }

    /// Returns true if a Unix socket stands for the targets' hosts.
    pub fn has_unix_socket(&self) -> bool {
        self.unix_socket.is_some()
    }

    /// Returns the source of the counters of the server at `target`.
    pub fn server(&self, target: &Target) -> ServerSource {
        self.server.source(target)
    }

    /// Returns true if no metrics are to be read.
    pub fn without_metrics(&self) -> bool {
        self.server.is_off()
    }

    /// Rejects flags that concern none of these targets.
    pub fn check(&self, targets: &[Target]) -> Result<(), UsageError> {
        let is_grpc = |target: &Target| target.scheme.protocol() == Protocol::Grpc;
        if self.grpc_client != GrpcClient::H2 && !targets.iter().any(is_grpc) {
            return Err(UsageError(
                "--grpc-client is for grpc:// and grpc+tls://, and no target is one".to_owned(),
            ));
        }
        let is_clear = |target: &Target| target.scheme.encryption() == Encryption::None;
        if self.unix_socket.is_some()
            && let Some(other) = targets.iter().find(|target| !is_clear(target))
        {
            return Err(UsageError(format!(
                "--unix-socket is for tcp://, grpc:// and http://, and not for {other}"
            )));
        }
        self.service.check(targets)?;
        self.secure.check(targets)
    }

    /// Returns the reply that each request asks for.
    fn reply(&self) -> Reply {
        match (self.message, self.response) {
            (Some(Message::Benchmark), _) => Reply::Message,
            (None, Some(length)) => Reply::Bytes(length),
            (None, None) => Reply::Echo,
        }
    }

    /// Returns the payload of each of netping's own requests, in bytes.
    fn payload(&self) -> usize {
        match self.message {
            Some(Message::Benchmark) => message::LENGTH,
            None => self.payload.unwrap_or(PAYLOAD),
        }
    }

    /// Returns the security of connections to `target`, and the trust it gives.
    fn connector(&self, target: &Target) -> Result<(Connector, Trust), PlanError> {
        if self.http.http2 && target.scheme == Scheme::Https {
            return self.secure.connector_offering(target, &[ALPN_H2]);
        }
        if self.http.http3 && target.scheme == Scheme::Https {
            return self.secure.connector_offering(target, &[ALPN_H3]);
        }
        self.secure.connector(target)
    }

    /// Returns the form of requests to a target.
    pub fn kind(&self, target: &Target) -> Result<Kind, UsageError> {
        let scheme = target.scheme;
        if self.payload().max(self.response.unwrap_or(0) as usize) > frame::DEFAULT_MAX {
            return Err(UsageError(format!(
                "payloads and replies have at most {} bytes",
                frame::DEFAULT_MAX
            )));
        }
        Ok(match scheme.protocol() {
            Protocol::Http => self.http_kind(scheme)?,
            // gRPC is always on HTTP/2.
            Protocol::Tcp | Protocol::Quic if self.http.http2 => {
                let scheme = scheme.as_str();
                return Err(UsageError(format!(
                    "--http2 is for http:// and https://, not for {scheme}://"
                )));
            }
            _ if self.http.http3 => {
                let scheme = scheme.as_str();
                return Err(UsageError(format!(
                    "--http3 is for https://, not for {scheme}://"
                )));
            }
            Protocol::Tcp => self.tcp_kind()?,
            Protocol::Quic if self.framing == Some(Framing::Line) => {
                return Err(UsageError(
                    "QUIC streams carry frames only: leave out --framing line".to_owned(),
                ));
            }
            Protocol::Quic => Kind::Quic,
            Protocol::Grpc if is_call(target) => {
                self.reject_own("a gRPC method gets the messages that --data gives")?;
                if self.grpc_client != GrpcClient::H2 {
                    return Err(UsageError(format!(
                        "--grpc-client tonic calls the methods of netping's own servers, and not {target}"
                    )));
                }
                Kind::GrpcCall
            }
            Protocol::Grpc if self.response == Some(0) => {
                return Err(UsageError(
                    "gRPC requests cannot ask for a reply of 0 bytes; use 1 or more".to_owned(),
                ));
            }
            Protocol::Grpc => match self.grpc_client {
                GrpcClient::H2 => Kind::GrpcH2,
                GrpcClient::Tonic => Kind::GrpcTonic,
            },
        })
    }

    /// Rejects flags about the payloads of netping's own requests.
    fn reject_own(&self, instead: &str) -> Result<(), UsageError> {
        let given = [
            ("--payload", self.payload.is_some()),
            ("--response", self.response.is_some()),
            ("--message", self.message.is_some()),
            ("--framing", self.framing.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(UsageError(format!(
                "{flag} is for requests to netping's own servers: {instead}"
            ))),
        }
    }

    fn http_kind(&self, scheme: Scheme) -> Result<Kind, UsageError> {
        self.reject_own(
            "an HTTP request has the body that --data gives, and the server chooses its reply",
        )?;
        Ok(match scheme {
            Scheme::Https if self.http.http3 => Kind::Http3,
            _ if self.http.http3 => {
                return Err(UsageError(
                    "--http3 is for https://: HTTP/3 is always encrypted".to_owned(),
                ));
            }
            _ if self.http.http2 => Kind::Http2,
            Scheme::Https => Kind::HttpChosen,
            _ => Kind::Http1,
        })
    }

    fn tcp_kind(&self) -> Result<Kind, UsageError> {
        let payload = self.payload.unwrap_or(PAYLOAD);
        let needs_frames =
            self.response.is_some() || self.message.is_some() || payload > line::DEFAULT_MAX;
        match self.framing {
            Some(Framing::Line) if needs_frames => Err(UsageError(format!(
                "a line is echoed, and has at most {} bytes: use --framing frame with --response, --message or a longer \
                 --payload",
                line::DEFAULT_MAX
            ))),
            Some(Framing::Line) => Ok(Kind::Line),
            None if !needs_frames => Ok(Kind::Line),
            Some(Framing::Frame) | None => Ok(Kind::Frame),
        }
    }
}

/// Returns the path of a Unix socket as the system has it.
fn socket_path(given: &Path) -> PathBuf {
    let name = given.to_str().and_then(|text| text.strip_prefix('@'));
    name.map_or_else(
        || given.to_owned(),
        |name| PathBuf::from(format!("\0{name}")),
    )
}
