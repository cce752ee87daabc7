//! Flags about requests to a service that is not netping's own.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header::ACCEPT};
use netping_client::{
    plan::Destination,
    service::{self, Check, Data, Schema},
    transport::{
        prepared::{Kept, Prepared},
        split_messages,
    },
};
use netping_protocol::{pool::Order, scheme::Protocol, target::Target, units::number_in};

use super::{
    choice::{one_of, reject_unused},
    time::positive,
};
use crate::error::{require, usage};

/// The orders in which a caller sends several data.
static ORDERS: [(&str, Order); 2] = [("turn", Order::Turn), ("random", Order::Random)];

/// Flags about requests to a service that is not netping's own.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Your own service")]
pub struct ServiceArgs {
    /// JSON of gRPC messages, or the body of HTTP requests: text, @FILE, or - for standard input
    ///
    /// It may be repeated. Several documents, and the lines of a .jsonl file, are sent in turn. The
    /// words n and uuid between double braces are filled in before the run.
    #[arg(long, value_name = "DATA")]
    data: Vec<String>,
    /// Order in which a caller sends several data
    #[arg(long, value_name = "ORDER", default_value = "turn", requires = "data", value_parser = one_of(&ORDERS))]
    data_order: Order,
    /// Header of HTTP requests, or metadata of gRPC calls; may be repeated
    #[arg(short = 'H', long = "header", visible_alias = "metadata", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Method of HTTP requests [default: GET, with --data POST]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,
    /// Statuses of good HTTP replies, such as 200,204 [default: 200 to 299]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number_in::<u16>(100..=599))]
    expect_status: Vec<u16>,
    /// HTTP replies are streams of events (text/event-stream), whose times are measured; one without events is bad
    #[arg(long)]
    events: bool,
    /// Contents of good replies: a file with an HTTP body, or with the fields of a gRPC message as
    /// JSON; or 'any' [default: any message; with GET, as many bytes as the first reply]
    #[arg(long, visible_alias = "expect-body", value_name = "FILE|any")]
    expect: Option<String>,
    /// Send N requests first, and print their replies
    #[arg(long, value_name = "N", value_parser = number_in::<u16>(1..), conflicts_with = "no_first_call")]
    sample_replies: Option<u16>,
    /// Deadline that is sent to the gRPC server
    #[arg(long, value_name = "TIME", value_parser = positive)]
    deadline: Option<Duration>,
    #[command(flatten)]
    schema: SchemaArgs,
}

/// Flags about the schema of a gRPC service.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// Schema of a gRPC service [default: the server's own, by reflection]
    #[arg(long, value_name = "FILE", conflicts_with = "protoset")]
    proto: Vec<PathBuf>,
    /// Folder of --proto files and their imports; may be repeated [default: the files' own]
    #[arg(
        short = 'I',
        long = "proto-path",
        value_name = "DIR",
        requires = "proto"
    )]
    proto_path: Vec<PathBuf>,
    /// The same as an encoded FileDescriptorSet (protoc --descriptor_set_out --include_imports)
    #[arg(long, value_name = "FILE")]
    protoset: Option<PathBuf>,
}

/// The flags, with the files read that they name.
#[derive(Debug)]
pub struct ServiceRequests<'a> {
    args: &'a ServiceArgs,
    data: Data,
    headers: HeaderMap,
}

impl ServiceArgs {
    /// Rejects flags that concern none of these targets.
    pub fn check(&self, targets: &[Target]) -> anyhow::Result<()> {
        let is_http = |target: &Target| target.scheme.is_http();
        let http = [
            ("--method", self.method.is_some()),
            ("--expect-status", !self.expect_status.is_empty()),
            ("--events", self.events),
        ];
        reject_unused(targets, "http:// and https://", is_http, &http)?;
        let calls = [
            ("--deadline", self.deadline.is_some()),
            ("--proto", !self.schema.proto.is_empty()),
            ("--protoset", self.schema.protoset.is_some()),
        ];
        let kind =
            "gRPC methods (grpc://HOST:PORT/package.Service/Method; netping grpc list names them)";
        reject_unused(targets, kind, is_call, &calls)?;
        let given = [
            ("--data", !self.data.is_empty()),
            ("--header", !self.headers.is_empty()),
            ("--expect", self.expect.is_some()),
            ("--sample-replies", self.sample_replies.is_some()),
        ];
        let is_other = |target: &&Target| !is_http(target) && !is_call(target);
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given)
            && let Some(other) = targets.iter().find(is_other)
        {
            return Err(usage(format!(
                "{flag} is for gRPC methods, http:// and https://, and {other} is none of them; a target names its method: \
                 grpc://HOST:PORT/package.Service/Method"
            )));
        }
        Ok(())
    }

    /// Reads the data, once for all targets.
    pub fn read(&self) -> anyhow::Result<ServiceRequests<'_>> {
        Ok(ServiceRequests {
            args: self,
            data: Data::read(&self.data, self.data_order)?,
            headers: self.headers.iter().cloned().collect(),
        })
    }
}

impl ServiceRequests<'_> {
    /// Prepares the requests to the destination, if they are not netping's own; with `per_message`, each is a message,
    /// whose reply has the same value in the field `matching`.
    pub fn prepare(
        &self,
        destination: &mut Destination,
        per_message: bool,
        matching: Option<&str>,
    ) -> anyhow::Result<()> {
        let prepared = if destination.url.scheme.is_http() {
            self.http()?
        } else if is_call(&destination.url) {
            self.grpc(destination, per_message, matching)?
        } else {
            return Ok(());
        };
        destination.prepared = Arc::new(prepared);
        let limit = self.args.sample_replies.map(u64::from);
        destination.kept = limit.map(Kept::new);
        Ok(())
    }

    fn http(&self) -> anyhow::Result<Prepared> {
        let args = self.args;
        let has_body = !self.data.is_empty();
        let default = if has_body { Method::POST } else { Method::GET };
        let method = args.method.clone().unwrap_or(default);
        let check = match args.expect.as_deref() {
            Some("any") => Check::Any,
            Some(file) => service::expected_body(file.as_ref())?,
            None if !has_body && method == Method::GET && !args.events => Check::Form,
            None => Check::Any,
        };
        let mut headers = self.headers.clone();
        if args.events {
            let kind = HeaderValue::from_static("text/event-stream");
            headers.entry(ACCEPT).or_insert(kind);
        }
        Ok(Prepared {
            method,
            headers,
            has_events: args.events,
            bodies: self.data.bodies()?,
            statuses: args.expect_status.clone(),
            check,
            data_hash: self.data.hash(),
            ..Prepared::default()
        })
    }

    fn grpc(
        &self,
        destination: &Destination,
        per_message: bool,
        matching: Option<&str>,
    ) -> anyhow::Result<Prepared> {
        let method = service::Method::find(&self.args.schema.schema(), destination)?;
        let check = match self.args.expect.as_deref() {
            None | Some("any") => Check::Form,
            Some(file) => method.expecting(file.as_ref())?,
        };
        let mut prepared = service::prepared(&method, &self.data, check)?;
        prepared.headers = self.headers.clone();
        prepared.deadline = self.args.deadline;
        let matching = matching.map(|fields| method.matching(fields));
        prepared.matching = matching.transpose()?.map(Arc::new);
        if per_message {
            require(
                prepared.streams_requests && prepared.streams_replies,
                format!(
                    "--per-message is for methods that stream both ways, which {} does not",
                    destination.url
                ),
            )?;
            require(
                prepared.deadline.is_none(),
                "--deadline is that of a whole call: leave it out with --per-message",
            )?;
            require(
                split_messages(&mut prepared),
                "--per-message needs a message, and --data has none",
            )?;
        }
        Ok(prepared)
    }
}

impl SchemaArgs {
    /// Returns the place that the schema comes from.
    pub fn schema(&self) -> Schema {
        match &self.protoset {
            Some(file) => Schema::Encoded(file.clone()),
            None if self.proto.is_empty() => Schema::Server,
            None => Schema::Sources {
                files: self.proto.clone(),
                folders: self.proto_path.clone(),
            },
        }
    }
}

/// Returns true for targets that name a gRPC method.
pub fn is_call(target: &Target) -> bool {
    target.scheme.protocol() == Protocol::Grpc && !target.path.is_empty()
}

/// Reads a header.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parts = text.split_once(':');
    let (name, value) = parts.ok_or("a header looks like 'name: value'")?;
    let name = name.trim().parse::<HeaderName>();
    let name = name.map_err(|error| error.to_string())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|error| error.to_string())?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let (name, value) = header("X-Key:  a:b ").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-key", "a:b"));
        for wrong in ["x", "a b: c", "x: \u{7f}"] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
    }
}
