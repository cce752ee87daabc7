//! `netping ladder`: every server on this machine, from the plainest up.

use std::{ffi::OsString, path::Path};

use anyhow::Context;
use netping_protocol::pki::PkiError;
use netping_report::{
    Step,
    format::{micros, nanos_as_micros, optional, thousands},
    table::{Column, Table},
};

use super::Failed;
use crate::{
    args::{LadderArgs, SecureArgs},
    credentials,
    server_process::ServerProcess,
    session::{Session, Verdict},
};

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
    Rung { name: "TCP, threads", server: "threads", security: Security::Plain, over: None },
    Rung { name: "TCP, tokio", server: "tokio", security: Security::Plain, over: Some(0) },
    Rung { name: "TCP+PSK", server: "tokio", security: Security::SharedKey, over: Some(1) },
    Rung { name: "TCP+TLS", server: "tokio", security: Security::Tls, over: Some(1) },
    Rung { name: "TCP+mTLS", server: "tokio", security: Security::MutualTls, over: Some(3) },
    Rung { name: "QUIC", server: "quic", security: Security::Tls, over: Some(3) },
    Rung { name: "gRPC", server: "grpc", security: Security::Plain, over: Some(1) },
    Rung { name: "gRPC+TLS", server: "grpc", security: Security::Tls, over: Some(6) },
];

const COLUMNS: [Column; 11] = [
    Column::text("", 0),
    Column::text("rung", 0),
    Column::text("over", 0),
    Column::number("p50 us", 0),
    Column::number("+us", 0),
    Column::number("peak req/s", 0),
    Column::number("x", 0),
    Column::number("p99 us", 0),
    Column::number("cli us", 0),
    Column::number("srv us", 0),
    Column::text("+cli +srv", 0),
];

impl Rung {
    /// The server's flags, with the credentials in `folder`.
    fn flags(&self, folder: &Path) -> Vec<OsString> {
        let files: &[(&str, &str)] = match self.security {
            Security::Plain => &[],
            Security::SharedKey => &[("--psk-file", credentials::SHARED_KEY)],
            Security::Tls => &[("--tls-cert", credentials::SERVER_CERT), ("--tls-key", credentials::SERVER_KEY)],
            Security::MutualTls => &[
                ("--tls-cert", credentials::SERVER_CERT),
                ("--tls-key", credentials::SERVER_KEY),
                ("--tls-client-ca", credentials::CA),
            ],
        };
        files.iter().flat_map(|(flag, file)| [OsString::from(flag), folder.join(file).into()]).collect()
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &LadderArgs) -> Result<Verdict, Failed> {
    let mut session = Session::begin(&args.output)?;
    let folder = tempfile::tempdir().context("cannot make a folder for certificates")?;
    make_credentials(folder.path())?;
    let mut measured = Vec::new();
    for rung in &RUNGS {
        if session.is_interrupted() {
            break;
        }
        let server = ServerProcess::start(rung.server, &rung.flags(folder.path()))?;
        let secure = SecureArgs::of(folder.path(), rung.security == Security::MutualTls);
        let mut steps = Vec::new();
        for plan in args.plans(rung.name, server.target(), server.source(), &secure)? {
            if session.is_interrupted() {
                break;
            }
            match session.measure(&plan, |_| None) {
                Ok(step) => steps.push(step.clone()),
                Err(error) => return Err(session.abandon(error)),
            }
        }
        measured.push(steps);
    }
    session.say(&table(&measured));
    session.say(
        "p50: one caller. peak: the best step of the sweep, with its p99, and CPU of client and server per request.\n\
         +us, x, +cli, +srv: against the rung in the column 'over'. Client and servers share this machine and its\n\
         loopback: compare rungs, not machines.",
    );
    Ok(session.finish())
}

fn make_credentials(folder: &Path) -> anyhow::Result<()> {
    let hosts = ["127.0.0.1".to_owned()];
    let mut files = credentials::certificates(&hosts).map_err(|error: PkiError| anyhow::anyhow!("{error}"))?;
    files.push(credentials::shared_key()?);
    credentials::write(folder, &files, false)
}

/// What is shown of a rung.
struct Figures<'a> {
    p50: Option<f64>,
    peak: &'a Step,
}

impl<'a> Figures<'a> {
    /// From the steps: one caller, then the sweep.
    fn of(steps: &'a [Step]) -> Option<Self> {
        let (alone, sweep) = steps.split_first()?;
        let peak = sweep.iter().max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate)).unwrap_or(alone);
        Some(Self { p50: alone.summary.service_time.quantile(50.0).map(|time| time as f64 / 1e3), peak })
    }
}

fn table(measured: &[Vec<Step>]) -> String {
    let figures: Vec<_> = measured.iter().map(|steps| Figures::of(steps)).collect();
    let row = |(place, own): (usize, &Option<Figures<'_>>)| {
        let own = own.as_ref()?;
        let rung = &RUNGS[place];
        let base = rung.over.and_then(|over| figures.get(over)?.as_ref());
        let added = |of: fn(&Figures<'_>) -> Option<f64>| {
            base.and_then(|base| Some(of(own)? - of(base)?)).map_or_else(String::new, signed)
        };
        Some(vec![
            (place + 1).to_string(),
            rung.name.to_owned(),
            rung.over.map(|over| (over + 1).to_string()).unwrap_or_default(),
            optional(own.p50),
            added(|figures| figures.p50),
            thousands(own.peak.summary.rate),
            base.map(|base| format!("{:.2}", own.peak.summary.rate / base.peak.summary.rate)).unwrap_or_default(),
            nanos_as_micros(own.peak.summary.service_time.quantile(99.0)),
            optional(own.peak.cost.client_cpu_us_per_request),
            optional(own.peak.cost.server_cpu_us_per_request()),
            format!(
                "{} {}",
                added(|figures| figures.peak.cost.client_cpu_us_per_request),
                added(|figures| figures.peak.cost.server_cpu_us_per_request())
            ),
        ])
    };
    let rows: Vec<_> = figures.iter().enumerate().filter_map(row).collect();
    Table::whole(&COLUMNS, &rows)
}

fn signed(difference: f64) -> String {
    format!("{}{}", if difference < 0.0 { "" } else { "+" }, micros(difference))
}
