//! Flags of `netping ladder`.

use std::{path::Path, time::Duration};

use clap::Args;
use netping_protocol::{scheme::Protocol, target::Target};
use netping_system::cores;

use super::{load::callers_in_range, output::OutputArgs, range::Range, secure::SecureArgs};
use crate::{
    error::{PlanError, UsageError},
    plan::{Destination, Extent, Plan, Warmup},
    probe::metrics::ServerSource,
    transport::Kind,
};

/// Flags of `netping ladder`.
#[derive(Debug, Clone, Args)]
pub struct LadderArgs {
    /// Shorter steps: about 15 s in all instead of about 40 s
    #[arg(long)]
    quick: bool,
    /// Callers of the sweep, of which the best step is shown; one caller is always measured, apart
    /// from the sweep
    #[arg(short = 'c', long, default_value = "16,64,256", value_name = "RANGE")]
    callers: Range,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Durations of a ladder's parts.
struct Lengths {
    warmup: Duration,
    latency: Duration,
    step: Duration,
}

impl LadderArgs {
    /// Rejects an empty sweep.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.callers.values().iter().all(|&callers| callers == 1) {
            return Err(UsageError(
                "the sweep needs more than one caller, such as -c 16".to_owned(),
            ));
        }
        Ok(())
    }

    fn lengths(&self) -> Lengths {
        let ms = Duration::from_millis;
        if self.quick {
            Lengths {
                warmup: ms(100),
                latency: ms(150),
                step: ms(300),
            }
        } else {
            Lengths {
                warmup: ms(200),
                latency: ms(400),
                step: ms(800),
            }
        }
    }

    /// Returns the steps of one rung: one caller, and the sweep. The credentials are in `folder`;
    /// with `mutual`, the client shows its certificate.
    pub fn plans(
        &self,
        rung: &str,
        target: &Target,
        server: &ServerSource,
        (folder, mutual): (&Path, bool),
    ) -> Result<(Plan, Vec<Plan>), PlanError> {
        let kind = match target.scheme.protocol() {
            Protocol::Tcp => Kind::Line,
            Protocol::Grpc => Kind::GrpcH2,
            Protocol::Quic => Kind::Quic,
            // No rung is a web server.
            Protocol::Http => Kind::Http1,
        };
        let lengths = self.lengths();
        let secured = SecureArgs::of(folder, mutual).connector(target)?;
        let mut destination = Destination::new(target.clone(), server.clone(), secured);
        destination.label = Some(rung.to_owned());
        let mut base = Plan::new(destination, kind);
        base.load.payload = 16;
        base.execution.warmup = Warmup::Time(lengths.warmup);
        let cores = cores::own().len().max(1);
        let plan = |callers: u64, length: Duration| -> Result<Plan, PlanError> {
            let callers = callers_in_range(callers)?;
            let connections = if target.scheme.shares_connections() {
                callers.min(MOST_SHARED_CONNECTIONS)
            } else {
                callers
            };
            let mut plan = base.clone();
            plan.load.callers = callers;
            plan.load.connections = connections;
            plan.execution.workers = cores.min(connections);
            plan.execution.extent = Extent::Time(length);
            Ok(plan)
        };
        // The rounds measure one caller; in the sweep it would look like another round.
        let sweep = self.callers.values().iter().filter(|&&callers| callers > 1);
        let sweep = sweep.map(|&callers| plan(callers, lengths.step));
        Ok((plan(1, lengths.latency)?, sweep.collect::<Result<_, _>>()?))
    }
}

/// Most connections that gRPC and QUIC callers share, as in applications.
const MOST_SHARED_CONNECTIONS: usize = 16;
