//! `netping grpc`: the methods of a server.

use clap::{Args, Subcommand};
use netping_client::{
    plan::Destination,
    probe::metrics::ServerSource,
    service::{self, Schema},
};
use netping_protocol::{scheme::Protocol, target::Target};

use super::text::print_text;
use crate::{
    args::{secure::SecureArgs, service::SchemaArgs},
    error::{Failed, PlanError, UsageError, Verdict},
};

/// Flags of `netping grpc`.
#[derive(Debug, Args)]
pub struct GrpcArgs {
    /// The kind of answer.
    #[command(subcommand)]
    pub command: GrpcCommand,
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
    secure: SecureArgs,
}

impl GrpcTarget {
    /// Returns the place of the schema, and the server.
    pub fn read(&self) -> Result<(Schema, Destination), PlanError> {
        if self.target.scheme.protocol() != Protocol::Grpc {
            let wrong = format!("{} is no grpc:// or grpc+tls:// target", self.target);
            return Err(UsageError(wrong).into());
        }
        self.secure.check(std::slice::from_ref(&self.target))?;
        let secured = self.secure.connector_of_another(&self.target)?;
        let destination = Destination::new(self.target.clone(), ServerSource::Nowhere, secured);
        Ok((self.schema.schema(), destination))
    }
}

pub fn run(args: &GrpcArgs) -> Result<Verdict, Failed> {
    let (target, show): (_, fn(&_, &_) -> _) = match &args.command {
        GrpcCommand::List(target) => (target, service::list),
        GrpcCommand::Describe(target) => (target, service::describe),
    };
    let (schema, destination) = target.read()?;
    let text = show(&schema, &destination).map_err(PlanError::from)?;
    print_text(&text)?;
    Ok(Verdict::Success)
}
