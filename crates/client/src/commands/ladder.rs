//! `netping ladder`: every server on this machine, from the plainest up.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context;
use netping_protocol::{pki::PkiError, scheme::Encryption};
use netping_report::table::{Column, Table};
use netping_results::{
    format::{nanos_as_micros, optional, signed, thousands},
    run::Step,
};
use netping_system::cores;

use crate::{
    args::LadderArgs,
    error::{Failed, StartError, Verdict},
    plan::{Plan, credentials},
    probe::process::ServerProcess,
    run::{self, Runner},
};

/// Default name of the page with charts.
const PAGE: &str = "netping-ladder.html";

/// A rung: a way to reach a server.
struct Rung {
    name: &'static str,
    /// Name of the server for `netping serve`.
    server: &'static str,
    security: Encryption,
    /// The client shows a certificate.
    mutual: bool,
    /// Index of the rung it is compared with.
    over: Option<usize>,
}

/// The rungs, from the plainest up.
const RUNGS: [Rung; 8] = [
    Rung::new("TCP, threads", "threads", Encryption::None, None),
    Rung::new("TCP, tokio", "tokio", Encryption::None, Some(0)),
    Rung::new("TCP+PSK", "tokio", Encryption::Psk, Some(1)),
    Rung::new("TCP+TLS", "tokio", Encryption::Tls, Some(1)),
    Rung::new("TCP+mTLS", "tokio", Encryption::Tls, Some(3)).mutual(),
    Rung::new("QUIC", "quic", Encryption::Tls, Some(3)),
    Rung::new("gRPC", "grpc", Encryption::None, Some(1)),
    Rung::new("gRPC+TLS", "grpc", Encryption::Tls, Some(6)),
];

/// Rounds of measuring each rung with one caller.
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
    const fn new(
        name: &'static str,
        server: &'static str,
        security: Encryption,
        over: Option<usize>,
    ) -> Self {
        Self {
            name,
            server,
            security,
            mutual: false,
            over,
        }
    }

    const fn mutual(mut self) -> Self {
        self.mutual = true;
        self
    }

    /// Returns the server's flags, with the credentials in `folder`.
    fn flags(&self, folder: &Path) -> Vec<OsString> {
        let mut files = match self.security {
            Encryption::None => Vec::new(),
            Encryption::Psk => vec![("--psk-file", credentials::SHARED_KEY)],
            Encryption::Tls => vec![
                ("--tls-cert", credentials::SERVER_CERT),
                ("--tls-key", credentials::SERVER_KEY),
            ],
        };
        if self.mutual {
            files.push(("--tls-client-ca", credentials::CA));
        }
        files
            .into_iter()
            .flat_map(|(flag, file)| [OsString::from(flag), folder.join(file).into()])
            .collect()
    }
}

pub fn run(args: &LadderArgs) -> Result<Verdict, Failed> {
    args.check()?;
    let mut options = args.output.options()?;
    let page = options.exports.page_or(&default_page());
    run::run(options, |runner| {
        let folder = tempfile::tempdir().context("cannot create a folder for certificates")?;
        let folder = folder.path();
        make_credentials(folder)?;
        let [own, others] = sides(&cores::own());
        let servers = RUNGS
            .iter()
            .map(|rung| ServerProcess::start(rung.server, &rung.flags(folder), &others))
            .collect::<Result<Vec<_>, _>>()?;
        if !own.is_empty() {
            cores::confine(&own);
        }
        let plans = RUNGS
            .iter()
            .zip(&servers)
            .map(|(rung, server)| {
                let credentials = (folder, rung.mutual);
                args.plans(rung.name, server.target(), server.source(), credentials)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let measured = climb(runner, &plans)?;
        runner.say(&table(&measured));
        runner.say(
            "p50: one caller, the median of three rounds over all rungs; +-: half their range. peak: the best step of\n\
             the sweep, with its p99 and the CPU time of client and server per request. +us, x, +cli, +srv: compared with\n\
             the rung in the column 'over'. Client and servers share this machine and its loopback, each on its own half\n\
             of the cores: compare rungs, not machines.",
        );
        runner.say(&format!("charts: {}", page.display()));
        Ok(())
    })
}

/// Returns the cores of the client and those of the servers: half of these each, so that times do not
/// depend on whether the two meet on a core. Both are empty if there is one core.
fn sides(cores: &[usize]) -> [Vec<usize>; 2] {
    match cores.split_at(cores.len() / 2) {
        ([], _) => Default::default(),
        (own, others) => [own.to_vec(), others.to_vec()],
    }
}

/// Measures every rung: one caller, in rounds over all rungs, and the sweep.
fn climb(runner: &mut Runner, plans: &[(Plan, Vec<Plan>)]) -> Result<Vec<Figures>, StartError> {
    let mut measured: Vec<Figures> = plans.iter().map(|_| Figures::default()).collect();
    let mut measure = |plan: &Plan, steps: &mut Vec<Step>| -> Result<(), StartError> {
        if !runner.is_interrupted() {
            steps.push(runner.measure(plan, |_| None)?.clone());
        }
        Ok(())
    };
    // The times of one caller drift with the machine: rounds spread the drift over all rungs.
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
    Ok(measured)
}

/// Returns the default path of the page: here, or in a folder where everybody may write.
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

/// The steps of a rung.
#[derive(Debug, Default)]
struct Figures {
    /// Steps with one caller, one for each round.
    alone: Vec<Step>,
    sweep: Vec<Step>,
}

impl Figures {
    /// Returns the median over the rounds of the median time with one caller, in microseconds.
    fn p50(&self) -> Option<f64> {
        let medians = self.medians();
        medians.get(medians.len() / 2).copied()
    }

    /// Returns half the range of the rounds' median times, in microseconds.
    fn spread(&self) -> Option<f64> {
        let medians = self.medians();
        Some((medians.last()? - medians.first()?) / 2.0)
    }

    /// Returns the median time of each round in ascending order, in microseconds.
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

    /// Returns the step of the sweep with the highest rate.
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
