//! Rungs that the user's commands start.

use std::{path::Path, slice, str::FromStr, time::Duration};

use anyhow::Context;
use humantime::format_duration;
use netping_client::{
    clock::Deadline,
    error::StartError,
    plan::{Plan, ReplyLength},
    transport::Kind,
};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    scheme::{Encryption, Scheme},
    target::Target,
};

use super::rungs::{Form, Rung};
use crate::{
    args::target::checked_name,
    credentials,
    launcher::{Launcher, Values, await_listening, free_addresses},
    run::Runner,
    server_process::ServerProcess,
};

/// Stand for the files of the certificate that the ladder has made for servers, and of its key.
const CERT: &str = "{cert}";
const KEY: &str = "{key}";

/// A protocol of such rungs.
#[derive(Debug)]
struct Spoken {
    name: &'static str,
    scheme: Scheme,
    kind: Kind,
    /// The rung of netping's own over which they stand, unless the user wishes another.
    over: &'static str,
}

static SPOKEN: [Spoken; 8] = [
    Spoken::new("tcp", Scheme::Tcp, Kind::Line, "TCP tokio"),
    Spoken::new("frame", Scheme::Tcp, Kind::Frame, "TCP tokio"),
    Spoken::new("tcp+tls", Scheme::TcpTls, Kind::Line, "TCP+TLS"),
    Spoken::new("grpc", Scheme::Grpc, Kind::GrpcH2, "gRPC"),
    Spoken::new("grpc+tls", Scheme::GrpcTls, Kind::GrpcH2, "gRPC+TLS"),
    Spoken::new("quic", Scheme::Quic, Kind::Quic, "QUIC"),
    Spoken::new("http", Scheme::Http, Kind::Http1, "TCP tokio"),
    Spoken::new("https", Scheme::Https, Kind::HttpChosen, "TCP+TLS"),
];

impl Spoken {
    const fn new(name: &'static str, scheme: Scheme, kind: Kind, over: &'static str) -> Self {
        Self {
            name,
            scheme,
            kind,
            over,
        }
    }

    fn named(name: &str) -> Result<&'static Self, String> {
        let found = SPOKEN.iter().find(|own| own.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = SPOKEN.iter().map(|own| own.name).collect();
            format!(
                "a rung cannot speak '{name}'; before the command may stand one of {}, as in mine=grpc:'COMMAND'",
                names.join(", ")
            )
        })
    }
}

/// A rung that a command starts: `NAME=COMMAND`, or `NAME=PROTOCOL:COMMAND`.
#[derive(Debug, Clone)]
pub struct StartedRung {
    pub name: String,
    spoken: &'static Spoken,
    launcher: Launcher,
}

impl FromStr for StartedRung {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "a rung looks like mine='./server {listen}' or mine=grpc:'./server {listen}'";
        let (name, rest) = text.split_once('=').ok_or(FORM)?;
        let name = checked_name(name, "a rung", "mine='./server {listen}'")?;
        // No program's name, but a protocol's, ends with a colon.
        let word = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
        };
        let (spoken, command) = match rest.trim_start().split_once(':') {
            Some((spoken, command)) if word(spoken) => (Spoken::named(spoken)?, command),
            _ => (&SPOKEN[0], rest),
        };
        let launcher: Launcher = command.parse()?;
        if spoken.scheme.encryption() == Encryption::Tls
            && !(launcher.has(CERT) && launcher.has(KEY))
        {
            return Err(format!(
                "a server that speaks {} needs the certificate that the client trusts: write {CERT} and {KEY} for its files",
                spoken.name
            ));
        }
        Ok(Self {
            name,
            spoken,
            launcher,
        })
    }
}

impl StartedRung {
    /// Starts the server at a free address, on these CPUs, or on any if there are none, with the credentials in `folder`.
    pub fn start(
        &self,
        address: &str,
        folder: &Path,
        cpus: &[usize],
    ) -> anyhow::Result<ServerProcess> {
        let path = if self.spoken.scheme.is_http() {
            "/"
        } else {
            ""
        };
        let url = format!("{}://{address}{path}", self.spoken.scheme.as_str());
        let target = url
            .parse::<Target>()
            .context("a free address makes no URL")?;
        let file = |name: &str| folder.join(name).display().to_string();
        let values = Values::of(address)
            .with(CERT, file(credentials::SERVER_CERT))
            .with(KEY, file(credentials::SERVER_KEY));
        self.launcher.start(target, &values, cpus)
    }

    /// Returns the rung, over the one that the user wishes, if any.
    pub fn rung(&self, over: Option<&Over>) -> Rung {
        Rung {
            name: self.name.clone(),
            over: Some(over.map_or(self.spoken.over.to_owned(), |own| own.base.clone())),
            form: Form::Fixed(self.spoken.kind),
            mutual: false,
            reply_length: ReplyLength::default(),
        }
    }
}

/// Starts the servers of all rungs, each at an address of its own.
pub fn start_all(
    rungs: &[StartedRung],
    folder: &Path,
    cpus: &[usize],
) -> anyhow::Result<Vec<ServerProcess>> {
    let addresses = free_addresses(rungs.len())?;
    let start = |(rung, address): (&StartedRung, &String)| rung.start(address, folder, cpus);
    rungs.iter().zip(&addresses).map(start).collect()
}

/// Waits until the server of a rung answers a first request, within a time from now on.
pub fn await_answer(
    runner: &mut Runner,
    server: &mut ServerProcess,
    first: &Plan,
    patience: Duration,
) -> anyhow::Result<()> {
    let deadline = Deadline::after(patience);
    await_listening(server, &runner.interrupt, patience)?;
    let answered = runner.call_started(slice::from_ref(first), |failure| {
        server.require_running("before it answered")?;
        Ok(!is_wrong_answer(failure) && !deadline.left().is_zero())
    });
    answered.map_err(|error| match error.downcast_ref() {
        Some(StartError::Interrupted) | None => error,
        Some(failure) if is_wrong_answer(failure) => error
            .context("it answers, but not with the bytes that it has to, so it is not compared"),
        Some(_) => error.context(format!(
            "'{}' gives no answer within {}{}",
            server.line(),
            format_duration(patience),
            server.last_words()
        )),
    })
}

/// Returns true for a reply with other bytes than those that were asked for: to wait would not help.
fn is_wrong_answer(failure: &StartError) -> bool {
    match failure {
        StartError::Server(_, failure) | StartError::Speaks { failure, .. } => {
            failure.kind == ErrorKind::Mismatch
        }
        _ => false,
    }
}

/// The rung over which another stands: `NAME=BASE`.
#[derive(Debug, Clone)]
pub struct Over {
    pub name: String,
    pub base: String,
}

impl FromStr for Over {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, base) = text
            .split_once('=')
            .ok_or("two rungs look like mine=gRPC")?;
        let [name, base] = [name, base].map(|own| own.trim().to_owned());
        Ok(Self { name, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ladder::rungs::RUNGS;

    fn rung(text: &str) -> Result<StartedRung, String> {
        text.parse()
    }

    #[test]
    fn a_protocol_stands_before_the_command() {
        let read = |text: &str| {
            let rung = rung(text).unwrap();
            (rung.name, rung.spoken.name)
        };
        let named = |name: &str, spoken| (name.to_owned(), spoken);
        assert_eq!(read("mine=./a {listen}"), named("mine", "tcp"));
        assert_eq!(read("a b = grpc:./a {port}"), named("a b", "grpc"));
        assert_eq!(read("mine=grpc:./a {port}"), named("mine", "grpc"));
        // Further colons and equals signs are the command's.
        assert_eq!(read("m=env A=b:c ./a {port}"), named("m", "tcp"));
        assert_eq!(read("m=http:env A=b:c ./a {port}"), named("m", "http"));
        assert!(rung("mine=quic:./a {listen} {cert}").is_err());
        assert!(rung("mine=quic:./a {listen} {cert} {key}").is_ok());
    }

    #[test]
    fn a_rung_stands_over_one_with_the_same_encryption() {
        let expected = [
            ("tcp", "TCP tokio"),
            ("frame", "TCP tokio"),
            ("tcp+tls", "TCP+TLS"),
            ("grpc", "gRPC"),
            ("grpc+tls", "gRPC+TLS"),
            ("quic", "QUIC"),
            ("http", "TCP tokio"),
            ("https", "TCP+TLS"),
        ];
        for (spoken, over) in expected {
            let rung = rung(&format!("mine={spoken}:./a {{listen}} {{cert}} {{key}}")).unwrap();
            assert_eq!(rung.rung(None).over.as_deref(), Some(over), "{spoken}");
            let base = RUNGS.iter().find(|own| own.name == over).unwrap();
            assert!(!base.is_extra, "{spoken}");
        }
    }
}
