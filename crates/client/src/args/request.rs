//! Flags about requests, shared by the measuring commands.

use std::time::Duration;

use clap::{Args, ValueEnum};
use humantime::parse_duration;
use netping_protocol::{
    frame::{self, Reply},
    line, message,
    secure::Connector,
    target::{Scheme, Target},
    tls::ALPN_H2,
};

use super::{OutputArgs, secure::SecureArgs};
use crate::{
    error::{PlanError, UsageError},
    plan::{Plan, Trust, Warmup},
    transport::Kind,
};

/// Payload of each request unless told otherwise, in bytes.
const PAYLOAD: usize = 4;

/// What requests are like, and how they are put on the wire.
#[derive(Debug, Clone, Args)]
pub struct RequestArgs {
    /// Payload of each request, in bytes [default: 4; over http:// there is none]
    #[arg(long, value_name = "BYTES", conflicts_with = "message")]
    payload: Option<usize>,
    /// Length of each reply, in bytes [default: the payload is echoed]
    #[arg(long, value_name = "BYTES")]
    pub response: Option<u32>,
    /// Send a message instead, serialised and parsed on both sides: by Hello/Say over gRPC, in a frame elsewhere
    #[arg(long, value_name = "MESSAGE", conflicts_with = "response")]
    message: Option<Message>,
    /// The most a request may take; opening a connection too
    #[arg(long, default_value = "5s", value_parser = positive, value_name = "TIME")]
    pub timeout: Duration,
    /// How tcp:// requests are framed [default: line, but frame with --response, --message or a
    /// payload longer than 64 KiB]
    #[arg(long, value_name = "FORM")]
    pub framing: Option<Framing>,
    /// The client for grpc://: HTTP/2 driven directly, or a tonic channel as in an application
    #[arg(long, default_value = "h2", value_name = "CLIENT")]
    pub grpc_client: GrpcClient,
    /// HTTP/2 for http://, without asking the server, and nothing else for https://
    /// [default: HTTP/1.1 for http://, what the server chooses for https://]
    #[arg(long)]
    pub http2: bool,
    /// Never sleep: each worker polls its sockets all the time, and uses a full core
    #[arg(long)]
    pub busy_poll: bool,
    /// How connections are secured.
    #[command(flatten)]
    pub secure: SecureArgs,
}

/// How requests on a TCP stream are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Framing {
    /// A line, echoed
    Line,
    /// A length-prefixed frame
    Frame,
}

/// The messages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Message {
    /// The 581 bytes of rpcx-benchmark, in 39 fields
    Benchmark,
}

/// The clients for gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GrpcClient {
    /// HTTP/2 driven directly
    H2,
    /// A tonic channel
    Tonic,
}

impl RequestArgs {
    /// Such requests to `target`, from one caller.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan(&self, target: &Target, output: &OutputArgs) -> Result<Plan, PlanError> {
        let (kind, secured) = (self.kind(target.scheme)?, self.connector(target)?);
        Ok(Plan {
            busy_poll: self.busy_poll,
            payload: self.payload(target.scheme),
            reply: self.reply(),
            timeout: self.timeout,
            ..Plan::new(target.clone(), kind, output.server(target), secured)
        })
    }

    /// Refuses flags that have no use with any of these targets.
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn check(&self, targets: &[Target]) -> Result<(), UsageError> {
        let is_grpc = |target: &Target| matches!(target.scheme, Scheme::Grpc | Scheme::GrpcTls);
        if self.grpc_client != GrpcClient::H2 && !targets.iter().any(is_grpc) {
            return Err(UsageError(
                "--grpc-client is for grpc:// and grpc+tls://, and no target is one".to_owned(),
            ));
        }
        self.secure.check(targets)
    }

    /// What each request asks to get back.
    fn reply(&self) -> Reply {
        match (self.message, self.response) {
            (Some(Message::Benchmark), _) => Reply::Message,
            (None, Some(length)) => Reply::Bytes(length),
            (None, None) => Reply::Echo,
        }
    }

    /// Bytes of payload in each request to a target of this scheme.
    fn payload(&self, scheme: Scheme) -> usize {
        match self.message {
            _ if scheme.is_http() => 0,
            Some(Message::Benchmark) => message::LENGTH,
            None => self.payload.unwrap_or(PAYLOAD),
        }
    }

    /// How connections to `target` are secured, and who then knows whom.
    ///
    /// # Errors
    /// [`PlanError`].
    fn connector(&self, target: &Target) -> Result<(Connector, Trust), PlanError> {
        if self.http2 && target.scheme == Scheme::Https {
            return self.secure.connector_offering(target, &[ALPN_H2]);
        }
        self.secure.connector(target)
    }

    /// How requests to a target of this scheme are put on the wire.
    pub fn kind(&self, scheme: Scheme) -> Result<Kind, UsageError> {
        if self
            .payload(scheme)
            .max(self.response.unwrap_or(0) as usize)
            > frame::DEFAULT_MAX
        {
            return Err(UsageError(format!(
                "payloads and replies have at most {} bytes",
                frame::DEFAULT_MAX
            )));
        }
        Ok(match scheme {
            Scheme::Http | Scheme::Https => self.http_kind(scheme)?,
            // gRPC is always on HTTP/2.
            Scheme::Tcp | Scheme::TcpTls | Scheme::TcpPsk | Scheme::Quic if self.http2 => {
                let scheme = scheme.as_str();
                return Err(UsageError(format!(
                    "--http2 is for http:// and https://: there is no HTTP in {scheme}://"
                )));
            }
            Scheme::Tcp | Scheme::TcpTls | Scheme::TcpPsk => self.tcp_kind()?,
            Scheme::Quic if self.framing == Some(Framing::Line) => {
                return Err(UsageError(
                    "QUIC streams carry frames only: leave out --framing line".to_owned(),
                ));
            }
            Scheme::Quic => Kind::Quic,
            Scheme::Grpc | Scheme::GrpcTls if self.response == Some(0) => {
                return Err(UsageError(
                    "over gRPC a reply of 0 bytes cannot be asked for; use 1 or more".to_owned(),
                ));
            }
            Scheme::Grpc | Scheme::GrpcTls => match self.grpc_client {
                GrpcClient::H2 => Kind::GrpcH2,
                GrpcClient::Tonic => Kind::GrpcTonic,
            },
        })
    }

    fn http_kind(&self, scheme: Scheme) -> Result<Kind, UsageError> {
        let given = [
            ("--payload", self.payload.is_some()),
            ("--response", self.response.is_some()),
            ("--message", self.message.is_some()),
            ("--framing", self.framing.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(UsageError(format!(
                "{flag} is not for {}://: a GET has no payload, and the server decides what it sends",
                scheme.as_str()
            )));
        }
        Ok(match scheme {
            _ if self.http2 => Kind::Http2,
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

/// A warm-up: a time, or `auto`.
pub(super) fn warmup(text: &str) -> Result<Warmup, String> {
    if text == "auto" {
        return Ok(Warmup::Auto);
    }
    let wrong = |error| format!("{error}; a warm-up is a time such as 500ms or 2s, or 'auto'");
    parse_duration(text).map(Warmup::Time).map_err(wrong)
}

/// A time that is more than none.
pub(super) fn positive(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("0 is too short".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; a time looks like 500ms, 2s or 1m")),
    }
}
