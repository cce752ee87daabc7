//! `netping grpc`: the methods of a server.

use netping_client::service;

use super::print_text;
use crate::{
    args::{GrpcArgs, GrpcCommand},
    error::{Failed, PlanError, Verdict},
};

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
