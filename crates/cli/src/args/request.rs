//! Flags about requests, shared by the measuring commands.

use std::{
    num::{NonZeroU32, NonZeroU64},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use netping_client::{
    plan::{Destination, Plan, StreamLimits, Trust},
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
    units::{bytes_in, number_in},
};

use super::{
    choice::{one_of, reject_unused},
    output::CounterArgs,
    secure::CredentialArgs,
    service::{ServiceArgs, ServiceRequests, is_call},
    target::{self, NamedTarget, urls},
    time::positive,
};
use crate::error::{require, usage};

/// The messages, and the replies that requests with them ask for.
static MESSAGES: [(&str, Reply); 2] = [("benchmark", Reply::Message), ("times", Reply::Times)];

/// The framings of requests on a TCP stream.
static FRAMINGS: [(&str, Kind); 2] = [("line", Kind::Line), ("frame", Kind::Frame)];

/// The clients of gRPC.
static GRPC_CLIENTS: [(&str, Kind); 2] = [("h2", Kind::GrpcH2), ("tonic", Kind::GrpcTonic)];

/// Default payload of each request, in bytes.
const PAYLOAD: usize = 4;

/// Most bytes of a payload or a reply.
const MOST: u64 = frame::DEFAULT_MAX as u64;

/// Flags about requests.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Requests")]
pub struct RequestArgs {
    /// Payload of each request, in bytes [default: 4]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<usize>(..=MOST), conflicts_with = "message")]
    payload: Option<usize>,
    /// Length of each reply, in bytes [default: the payload is echoed]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<u32>(..=MOST))]
    response: Option<u32>,
    /// Ask for another reply. benchmark: a message that both sides serialize and parse, by Hello/Say over gRPC, in a
    /// frame elsewhere. times: when the server received the frame and when it replied, so that --anatomy tells its
    /// time from the network's
    #[arg(long, value_name = "MESSAGE", conflicts_with = "response", value_parser = one_of(&MESSAGES))]
    message: Option<Reply>,
    /// Limit on the time of a request, and of opening a connection
    #[arg(long, default_value = "5s", value_parser = positive, value_name = "TIME")]
    timeout: Duration,
    /// Do not send one request to each target first, to see that it answers
    #[arg(long)]
    no_first_call: bool,
    /// Framing of tcp:// requests [default: line; frame with --response, --message or a payload
    /// longer than 64 KiB]
    #[arg(long, value_name = "FORM", value_parser = one_of(&FRAMINGS))]
    framing: Option<Kind>,
    /// Client for grpc://: HTTP/2 driven directly, or a tonic channel as in an application
    #[arg(long, default_value = "h2", value_name = "CLIENT", value_parser = one_of(&GRPC_CLIENTS))]
    grpc_client: Kind,
    #[command(flatten)]
    messages: MessageArgs,
    #[command(flatten)]
    http: HttpVersion,
    /// Connect to this Unix domain socket instead of the URL's host; '@NAME' is an abstract one
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// Never sleep: each worker polls its sockets all the time and uses a full core
    #[arg(long)]
    busy_poll: bool,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    secure: CredentialArgs,
    #[command(flatten)]
    pub server: CounterArgs,
}

/// Messages on open streams.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Requests")]
struct MessageArgs {
    /// Let each gRPC request be a message on a stream that stays open, answered by a message: an echo by netping's own
    /// servers (Echo/Chat), or a method that streams both ways
    #[arg(long, conflicts_with = "message")]
    per_message: bool,
    /// With --per-message: streams on each connection, which its callers share [default: each caller has its own]
    #[arg(long, value_name = "N", requires = "per_message", value_parser = number_in::<u32>(1..))]
    streams_per_connection: Option<u32>,
    /// With --per-message: open each stream anew after N messages [default: it stays open]
    #[arg(long, value_name = "N", requires = "per_message", value_parser = number_in::<NonZeroU64>(1..))]
    messages_per_stream: Option<NonZeroU64>,
    /// With --per-message and a method: a reply belongs to the message that has the same value in this field, or in
    /// FIELD=REPLY_FIELD where the names differ [default: replies come in the messages' order]
    #[arg(long = "match", value_name = "FIELD", requires = "per_message")]
    matching: Option<String>,
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

impl RequestArgs {
    /// Returns a plan of such requests to each target, from one caller. Data and schemas are read
    /// only once.
    pub fn plans<'a>(
        &self,
        targets: impl IntoIterator<Item = &'a Target>,
    ) -> anyhow::Result<Vec<Plan>> {
        let service = self.service.read()?;
        let plan = |target| self.plan(target, &service);
        targets.into_iter().map(plan).collect()
    }

    /// Returns a plan of such requests to each target, as [`RequestArgs::plans`] does, with its name.
    pub fn named_plans(&self, targets: &[NamedTarget]) -> anyhow::Result<Vec<Plan>> {
        target::check_names(targets)?;
        let urls = urls(targets);
        self.check(&urls)?;
        let mut plans = self.plans(&urls)?;
        target::name(&mut plans, targets);
        Ok(plans)
    }

    fn plan(&self, target: &Target, service: &ServiceRequests<'_>) -> anyhow::Result<Plan> {
        let (kind, secured) = (self.kind(target)?, self.connector(target)?);
        let mut destination = Destination::new(target.clone(), self.server.source(target), secured);
        if let Some(socket) = &self.unix_socket {
            destination.unix_socket = Some(socket_path(socket));
            if !self.server.is_given() {
                destination.server = ServerSource::Nowhere;
            }
        }
        if kind.has_open_streams() {
            destination.streams = StreamLimits {
                per_connection: self
                    .messages
                    .streams_per_connection
                    .and_then(NonZeroU32::new),
                messages: self.messages.messages_per_stream,
            };
        }
        let messages = &self.messages;
        let matching = messages.matching.as_deref();
        service.prepare(&mut destination, messages.per_message, matching)?;
        let mut plan = Plan::new(destination, kind);
        // Of the exchanges of prepared requests, only the numbers are used.
        let payload = self.payload();
        plan.load.payload = if kind.is_prepared() { 0 } else { payload };
        plan.load.reply = self.reply();
        plan.load.timeout = self.timeout;
        plan.target.first_call = !self.no_first_call;
        plan.execution.busy_poll = self.busy_poll;
        Ok(plan)
    }

    /// Returns the way to a server that is not measured itself.
    pub fn destination(&self, target: &Target) -> anyhow::Result<Destination> {
        let secured = self.connector(target)?;
        let url = target.clone();
        Ok(Destination::new(url, ServerSource::Nowhere, secured))
    }

    /// Rejects flags that concern none of these targets.
    pub fn check(&self, targets: &[Target]) -> anyhow::Result<()> {
        let is_grpc = |target: &Target| target.scheme.protocol() == Protocol::Grpc;
        let given = [
            ("--grpc-client", self.grpc_client == Kind::GrpcTonic),
            ("--per-message", self.messages.per_message),
        ];
        reject_unused(targets, "grpc:// and grpc+tls://", is_grpc, &given)?;
        let is_secured = |target: &&Target| target.scheme.encryption() != Encryption::None;
        if let (Some(_), Some(other)) = (&self.unix_socket, targets.iter().find(is_secured)) {
            return Err(usage(format!(
                "--unix-socket is for tcp://, grpc:// and http://, and not for {other}"
            )));
        }
        self.service.check(targets)?;
        self.secure.check(targets)
    }

    /// Returns the reply that each request asks for.
    fn reply(&self) -> Reply {
        let reply = self.message.or(self.response.map(Reply::Bytes));
        reply.unwrap_or(Reply::Echo)
    }

    /// Returns the payload of each of netping's own requests, in bytes.
    fn payload(&self) -> usize {
        match self.message {
            Some(Reply::Message) => message::LENGTH,
            _ => self.payload.unwrap_or(PAYLOAD),
        }
    }

    /// Returns the security of connections to `target`, and the trust it gives.
    fn connector(&self, target: &Target) -> anyhow::Result<(Connector, Trust)> {
        match target.scheme {
            Scheme::Https if self.http.http2 => {
                self.secure.connector_with(target, &[ALPN_H2], true)
            }
            Scheme::Https if self.http.http3 => {
                self.secure.connector_with(target, &[ALPN_H3], true)
            }
            _ => self.secure.connector(target),
        }
    }

    /// Returns the form of requests to a target.
    pub fn kind(&self, target: &Target) -> anyhow::Result<Kind> {
        let (scheme, protocol) = (target.scheme, target.scheme.protocol());
        let name = scheme.as_str();
        let HttpVersion { http2, http3 } = self.http;
        // gRPC is always on HTTP/2.
        require(
            !http2 || matches!(protocol, Protocol::Http | Protocol::Grpc),
            format!("--http2 is for http:// and https://, not for {name}://"),
        )?;
        require(
            !http3 || scheme == Scheme::Https,
            format!("--http3 is for https://, and not for {name}://"),
        )?;
        Ok(match protocol {
            Protocol::Http => {
                self.reject_own("an HTTP request has the body that --data gives, and the server chooses its reply")?;
                match scheme {
                    _ if http3 => Kind::Http3,
                    _ if http2 => Kind::Http2,
                    Scheme::Https => Kind::HttpChosen,
                    _ => Kind::Http1,
                }
            }
            Protocol::Tcp => self.tcp_kind()?,
            Protocol::Quic => {
                require(
                    self.framing != Some(Kind::Line),
                    "QUIC streams carry frames only: leave out --framing line",
                )?;
                Kind::Quic
            }
            Protocol::Grpc if is_call(target) => {
                self.reject_own("a gRPC method gets the messages that --data gives")?;
                require(
                    self.grpc_client == Kind::GrpcH2,
                    format!(
                        "--grpc-client tonic calls the methods of netping's own servers, and not {target}"
                    ),
                )?;
                if self.messages.per_message {
                    Kind::GrpcMessages
                } else {
                    Kind::GrpcCall
                }
            }
            Protocol::Grpc => {
                require(
                    self.message != Some(Reply::Times),
                    "gRPC servers do not tell their times: --message times is for tcp:// and quic://",
                )?;
                require(
                    self.messages.matching.is_none(),
                    "--match is for the fields of a method: netping's own servers answer in the messages' order",
                )?;
                require(
                    self.response != Some(0),
                    "gRPC requests cannot ask for a reply of 0 bytes; use 1 or more",
                )?;
                require(
                    !self.messages.per_message || self.grpc_client == Kind::GrpcH2,
                    "--grpc-client tonic makes calls, and no messages on open streams: leave out --per-message",
                )?;
                if self.messages.per_message {
                    Kind::GrpcChat
                } else {
                    self.grpc_client
                }
            }
        })
    }

    /// Rejects flags about the payloads of netping's own requests.
    fn reject_own(&self, instead: &str) -> anyhow::Result<()> {
        let given = [
            ("--payload", self.payload.is_some()),
            ("--response", self.response.is_some()),
            ("--message", self.message.is_some()),
            ("--framing", self.framing.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(usage(format!(
                "{flag} is for requests to netping's own servers: {instead}"
            ))),
        }
    }

    fn tcp_kind(&self) -> anyhow::Result<Kind> {
        let most = line::DEFAULT_MAX;
        let in_frames = self.reply() != Reply::Echo || self.payload() > most;
        require(
            !in_frames || self.framing != Some(Kind::Line),
            format!("a line is echoed, and has at most {most} bytes: use --framing frame"),
        )?;
        let default = if in_frames { Kind::Frame } else { Kind::Line };
        Ok(self.framing.unwrap_or(default))
    }
}

/// Returns the path of a Unix socket as the system has it.
fn socket_path(given: &Path) -> PathBuf {
    let name = given.to_str().and_then(|text| text.strip_prefix('@'));
    name.map_or_else(|| given.to_owned(), |name| format!("\0{name}").into())
}
