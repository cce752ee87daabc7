//! Flags about what requests take, and where their time goes.

use clap::Args;
use netping_client::{plan::Plan, transport::Kind};
use netping_system::perf_events::PerfEvents;

use crate::error::{require, usage};

/// Flags about what requests take, and where their time goes.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Requests")]
pub struct AnatomyArgs {
    /// Take each request apart by the kernel's time stamps: until it is sent, while it is away, until this client has
    /// woken up and read the reply. Over TCP, with one request at a time on each connection; costs time itself
    #[arg(long)]
    anatomy: bool,
    /// Count the instructions and system calls of each request: of this client, and of the server with --server-pid, as
    /// far as the machine and this user can; costs time itself
    #[arg(long)]
    perf_events: bool,
}

impl AnatomyArgs {
    /// Lets the plan's requests be taken apart, and what they take be counted, if that is wished.
    ///
    /// # Errors
    /// A usage error where the time stamps would not be those of one request, or nothing can be counted.
    pub fn apply(self, plan: &mut Plan) -> anyhow::Result<()> {
        require(
            !self.perf_events || !PerfEvents::of_this_thread().read().is_unknown(),
            "--perf-events can count nothing here: instructions need a machine that has counters, as few virtual ones \
             have, and kernel.perf_event_paranoid of at most 2; system calls need root",
        )?;
        plan.execution.perf_events = self.perf_events;
        if !self.anatomy {
            return Ok(());
        }
        if let Some(objection) = objection(plan) {
            return Err(usage(objection));
        }
        plan.execution.anatomy = true;
        Ok(())
    }
}

/// Says why a plan's requests cannot be taken apart, if that is so.
pub fn objection(plan: &Plan) -> Option<String> {
    let (load, url) = (&plan.load, &plan.target.url);
    let (callers, connections) = (load.callers, load.connections);
    if !load.kind.is_over_tcp() {
        return Some(format!(
            "--anatomy is by the time stamps of TCP, and {url} is over QUIC: leave it out"
        ));
    }
    if callers > connections {
        return Some(format!(
            "--anatomy needs one request at a time on each connection, whose time stamps are otherwise nobody's: \
             give {callers} callers --connections {callers}, not {connections}"
        ));
    }
    let others = [
        (
            load.kind == Kind::GrpcTonic,
            "--anatomy is not for --grpc-client tonic, which does not give its sockets: use --grpc-client h2",
        ),
        (
            plan.target.unix_socket.is_some(),
            "--anatomy is by the time stamps of TCP, which a Unix socket does not have: leave one of them out",
        ),
        (
            load.requests_per_connection.is_some(),
            "--anatomy is of requests on open connections: leave out --requests-per-connection and \
             --new-connection-per-request",
        ),
    ];
    let found = others.into_iter().find(|(is_so, _)| *is_so);
    found.map(|(_, objection)| objection.to_owned())
}
