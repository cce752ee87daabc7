//! `netping grpc`: the methods of a server.

use clap::{Args, Subcommand};
use netping_client::{plan::Destination, probe::metrics::ServerSource, service};
use netping_protocol::{scheme::Protocol, target::Target};

use crate::{
    args::{export::print, secure::CredentialArgs, service::SchemaArgs},
    error::{Verdict, require},
};

/// Flags of `netping grpc`.
#[derive(Debug, Args)]
pub struct MethodsArgs {
    /// The kind of answer.
    #[command(subcommand)]
    command: GrpcCommand,
}

/// The answers of `netping grpc`.
#[derive(Debug, Subcommand)]
pub enum GrpcCommand {
    /// List the methods of a server
    List(GrpcTarget),
    /// Show methods with their messages and an example of each call
    Describe(GrpcTarget),
}

/// A server, and how to learn what it has.
#[derive(Debug, Args)]
pub struct GrpcTarget {
    /// Server: grpc://HOST:PORT; to describe, also with /package.Service or
    /// /package.Service/Method
    #[arg(value_name = "URL")]
    target: Target,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    secure: CredentialArgs,
}

pub fn run(args: &MethodsArgs) -> anyhow::Result<Verdict> {
    let (args, show): (_, fn(&_, &_) -> _) = match &args.command {
        GrpcCommand::List(args) => (args, service::list),
        GrpcCommand::Describe(args) => (args, service::describe),
    };
    let target = &args.target;
    require(
        target.scheme.protocol() == Protocol::Grpc,
        format!("{target} is no grpc:// or grpc+tls:// target"),
    )?;
    args.secure.check(std::slice::from_ref(target))?;
    let alpn = target.scheme.alpn();
    // The server is not netping's own, whatever its URL looks like.
    let secured = args.secure.connector_with(target, alpn, true)?;
    let destination = Destination::new(target.clone(), ServerSource::Nowhere, secured);
    print(show(&args.schema.schema(), &destination)?)?;
    Ok(Verdict::Success)
}
