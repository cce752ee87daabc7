//! `netping ladder`: every server on this machine, from the plainest up.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context;
use netping_protocol::pki::PkiError;
use netping_report::table::{Column, Table};
use netping_results::{
    format::{nanos_as_micros, optional, signed, thousands},
    run::Step,
};

use crate::{
    args::{LadderArgs, SecureArgs},
    error::{Failed, StartError, Verdict},
    plan::{Plan, credentials},
    probe::process::ServerProcess,
    run::Session,
};

/// Where the page with charts goes unless it is said.
const PAGE: &str = "netping-ladder.html";

/// A rung: a way to reach a server.
struct Rung {
    name: &'static str,
    /// The server's name for `netping serve`.
    server: &'static str,
    security: Security,
    /// Which rung it is compared with, by its place.
    over: Option<usize>,
}

/// How a rung's connections are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Security {
    Plain,
    SharedKey,
    Tls,
    MutualTls,
}

/// The rungs, from the plainest up.
const RUNGS: [Rung; 8] = [
    Rung {
        name: "TCP, threads",
        server: "threads",
        security: Security::Plain,
        over: None,
    },
    Rung {
        name: "TCP, tokio",
        server: "tokio",
        security: Security::Plain,
        over: Some(0),
    },
    Rung {
        name: "TCP+PSK",
        server: "tokio",
        security: Security::SharedKey,
        over: Some(1),
    },
    Rung {
        name: "TCP+TLS",
        server: "tokio",
        security: Security::Tls,
        over: Some(1),
    },
    Rung {
        name: "TCP+mTLS",
        server: "tokio",
        security: Security::MutualTls,
        over: Some(3),
    },
    Rung {
        name: "QUIC",
        server: "quic",
        security: Security::Tls,
        over: Some(3),
    },
    Rung {
        name: "gRPC",
        server: "grpc",
        security: Security::Plain,
        over: Some(1),
    },
    Rung {
        name: "gRPC+TLS",
        server: "grpc",
        security: Security::Tls,
        over: Some(6),
    },
];

/// How often each rung is measured with one caller.
const ROUNDS: usize = 3;

const COLUMNS: [Column; 12] = [
    Column::text("", 0),
    Column::text("rung", 0),
    Column::text("over", 0),
    Column::number("p50 us", 0),
    Column::number("+-us", 0).spare(2),
    Column::number("+us", 0),
    Column::number("peak req/s", 0),
    Column::number("x", 0),
    Column::number("p99 us", 0).spare(1),
    Column::number("cli us", 0),
    Column::number("srv us", 0),
    Column::text("+cli +srv", 0).spare(3),
];

impl Rung {
    /// The server's flags, with the credentials in `folder`.
    fn flags(&self, folder: &Path) -> Vec<OsString> {
        let files: &[(&str, &str)] = match self.security {
            Security::Plain => &[],
            Security::SharedKey => &[("--psk-file", credentials::SHARED_KEY)],
            Security::Tls => &[
                ("--tls-cert", credentials::SERVER_CERT),
                ("--tls-key", credentials::SERVER_KEY),
            ],
            Security::MutualTls => &[
                ("--tls-cert", credentials::SERVER_CERT),
                ("--tls-key", credentials::SERVER_KEY),
                ("--tls-client-ca", credentials::CA),
            ],
        };
        files
            .iter()
            .flat_map(|(flag, file)| [OsString::from(flag), folder.join(file).into()])
            .collect()
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &LadderArgs) -> Result<Verdict, Failed> {
    args.check()?;
    let mut output = args.output.clone();
    let page = output.export.page_or(&default_page());
    let mut session = Session::begin(&output)?;
    let folder = tempfile::tempdir().context("cannot make a folder for certificates")?;
    make_credentials(folder.path())?;
    let servers = RUNGS
        .iter()
        .map(|rung| ServerProcess::start(rung.server, &rung.flags(folder.path())));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let mut plans = Vec::new();
    for (rung, server) in RUNGS.iter().zip(&servers) {
        let secure = SecureArgs::of(folder.path(), rung.security == Security::MutualTls);
        plans.push(args.plans(rung.name, server.target(), server.source(), &secure)?);
    }
    let mut measured: Vec<Figures> = plans.iter().map(|_| Figures::default()).collect();
    let mut measure = |plan: &Plan, steps: &mut Vec<Step>| -> Result<(), StartError> {
        if !session.is_interrupted() {
            steps.push(session.measure(plan, |_| None)?.clone());
        }
        Ok(())
    };
    let mut climb = || -> Result<(), StartError> {
        // Times of one caller move with the machine's mood: rounds let all rungs meet the same one.
        for _ in 0..ROUNDS {
            for ((alone, _), figures) in plans.iter().zip(&mut measured) {
                measure(alone, &mut figures.alone)?;
            }
        }
        for ((_, sweep), figures) in plans.iter().zip(&mut measured) {
            for plan in sweep {
                measure(plan, &mut figures.sweep)?;
            }
        }
        Ok(())
    };
    if let Err(error) = climb() {
        return Err(session.abandon(error));
    }
    session.say(&table(&measured));
    session.say(
        "p50: one caller, the median of three rounds over all rungs; +-: half their range. peak: the best step of\n\
         the sweep, with its p99 and the CPU of client and server per request. +us, x, +cli, +srv: against the rung in\n\
         the column 'over'. Client and servers share this machine and its loopback: compare rungs, not machines.",
    );
    session.say(&format!("charts: {}", page.display()));
    Ok(session.finish())
}

/// Where the page goes unless it is said: here, or where everybody may write.
fn default_page() -> PathBuf {
    let writable = tempfile::tempfile_in(".").is_ok();
    if writable {
        PAGE.into()
    } else {
        std::env::temp_dir().join(PAGE)
    }
}

fn make_credentials(folder: &Path) -> anyhow::Result<()> {
    let hosts = ["127.0.0.1".to_owned()];
    let mut files =
        credentials::certificates(&hosts).map_err(|error: PkiError| anyhow::anyhow!("{error}"))?;
    files.push(credentials::shared_key()?);
    credentials::write(folder, &files, false)
}

/// What was measured of a rung.
#[derive(Debug, Default)]
struct Figures {
    /// One caller, once in each round.
    alone: Vec<Step>,
    sweep: Vec<Step>,
}

impl Figures {
    /// The median over the rounds of the median time with one caller, in microseconds.
    fn p50(&self) -> Option<f64> {
        let medians = self.medians();
        medians.get(medians.len() / 2).copied()
    }

    /// Half the distance between the rounds' lowest and highest, in microseconds.
    fn spread(&self) -> Option<f64> {
        let medians = self.medians();
        Some((medians.last()? - medians.first()?) / 2.0)
    }

    /// The median time of each round, ascending.
    fn medians(&self) -> Vec<f64> {
        let median = |step: &Step| {
            step.summary
                .service_time
                .quantile(50.0)
                .map(|time| time as f64 / 1e3)
        };
        let mut medians: Vec<f64> = self.alone.iter().filter_map(median).collect();
        medians.sort_unstable_by(f64::total_cmp);
        medians
    }

    /// The step of the sweep with the highest rate.
    fn peak(&self) -> Option<&Step> {
        self.sweep
            .iter()
            .max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate))
    }

    fn client(&self) -> Option<f64> {
        self.peak()?.cost.client_cpu_us_per_request
    }

    fn server(&self) -> Option<f64> {
        self.peak()?.cost.server_cpu_us_per_request()
    }
}

fn table(measured: &[Figures]) -> String {
    let row = |(place, own): (usize, &Figures)| {
        let (rung, peak) = (&RUNGS[place], own.peak()?);
        let base = rung.over.and_then(|over| measured.get(over));
        let added = |of: fn(&Figures) -> Option<f64>| {
            base.and_then(|base| Some(of(own)? - of(base)?))
                .map_or_else(String::new, signed)
        };
        let times = base
            .and_then(Figures::peak)
            .map(|base| format!("{:.2}", peak.summary.rate / base.summary.rate));
        Some(vec![
            (place + 1).to_string(),
            rung.name.to_owned(),
            rung.over
                .map(|over| (over + 1).to_string())
                .unwrap_or_default(),
            optional(own.p50()),
            optional(own.spread()),
            added(Figures::p50),
            thousands(peak.summary.rate),
            times.unwrap_or_default(),
            nanos_as_micros(peak.summary.service_time.quantile(99.0)),
            optional(own.client()),
            optional(own.server()),
            format!("{} {}", added(Figures::client), added(Figures::server)),
        ])
    };
    let rows: Vec<_> = measured.iter().enumerate().filter_map(row).collect();
    Table::whole(&COLUMNS, &rows)
}
