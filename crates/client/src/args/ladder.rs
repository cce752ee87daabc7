//! Flags of `netping ladder`.

use std::time::Duration;

use clap::Args;
use netping_protocol::target::{Scheme, Target};

use super::{OutputArgs, Range, SecureArgs};
use crate::{
    cores,
    error::{PlanError, UsageError},
    plan::{Extent, Plan, Warmup},
    probe::metrics::ServerSource,
    transport::Kind,
};

/// Flags of `netping ladder`.
#[derive(Debug, Clone, Args)]
pub struct LadderArgs {
    /// Shorter steps: about 15 s in all instead of about 40 s
    #[arg(long)]
    quick: bool,
    /// Callers of the sweep whose best step is shown; one caller is measured in any case, and not again in the sweep
    #[arg(short = 'c', long, default_value = "16,64,256", value_name = "RANGE")]
    callers: Range,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How long the parts of a ladder are.
struct Lengths {
    warmup: Duration,
    latency: Duration,
    step: Duration,
}

impl LadderArgs {
    /// Refuses a sweep that is none.
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn check(&self) -> Result<(), UsageError> {
        if self.callers.values().iter().all(|&callers| callers == 1) {
            return Err(UsageError(
                "a sweep needs more than one caller, such as -c 16".to_owned(),
            ));
        }
        if self.output.names_server() {
            let reason = "the ladder starts its servers itself and knows where their counters are: leave out \
                          --server-metrics and --server-pid";
            return Err(UsageError(reason.to_owned()));
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

    /// The steps of one rung: with one caller, and the sweep.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plans(
        &self,
        rung: &str,
        target: &Target,
        server: &ServerSource,
        secure: &SecureArgs,
    ) -> Result<(Plan, Vec<Plan>), PlanError> {
        let kind = match target.scheme {
            Scheme::Tcp | Scheme::TcpTls | Scheme::TcpPsk => Kind::Line,
            Scheme::Grpc | Scheme::GrpcTls => Kind::GrpcH2,
            Scheme::Quic => Kind::Quic,
            // No rung is a web server.
            Scheme::Http | Scheme::Https => Kind::Http1,
        };
        let lengths = self.lengths();
        let base = Plan {
            label: Some(rung.to_owned()),
            payload: 16,
            warmup: Warmup::Time(lengths.warmup),
            ..Plan::new(
                target.clone(),
                kind,
                server.clone(),
                secure.connector(target)?,
            )
        };
        let cores = cores::own().len().max(1);
        let plan = |callers: u64, length: Duration| -> Result<Plan, PlanError> {
            let callers = u32::try_from(callers)
                .map_err(|_| UsageError(format!("{callers} callers are too many")))?;
            let callers = callers as usize;
            let connections = if kind.multiplexes() {
                callers.min(MOST_SHARED_CONNECTIONS)
            } else {
                callers
            };
            Ok(Plan {
                callers,
                connections,
                workers: cores.min(connections),
                extent: Extent::Time(length),
                ..base.clone()
            })
        };
        // The rounds measure one caller; once more in the sweep, and it would look like another round.
        let sweep = self.callers.values().iter().filter(|&&callers| callers > 1);
        let sweep = sweep.map(|&callers| plan(callers, lengths.step));
        Ok((plan(1, lengths.latency)?, sweep.collect::<Result<_, _>>()?))
    }
}

/// gRPC and QUIC callers share at most so many connections, as applications do.
const MOST_SHARED_CONNECTIONS: usize = 16;
