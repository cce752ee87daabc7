//! `netping certs`: certificates or a pre-shared key to try the encrypted transports.

use std::{
    fs::DirBuilder,
    net::Ipv6Addr,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use netping_protocol::{pki::PkiError, scheme::port};

use crate::{
    args::export::print,
    credentials::{
        CA, CLIENT_CERT, CLIENT_KEY, SERVER_CERT, SERVER_KEY, SHARED_KEY, certificates, shared_key,
        write,
    },
    error::{Verdict, usage},
};

/// Flags of `netping certs`.
#[derive(Debug, Clone, Args)]
pub struct CertsArgs {
    /// Folder for the files; created if missing, readable by its owner only
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A name or address of the server, for its certificate; may be repeated
    #[arg(long = "host", value_name = "NAME|IP", default_values = ["localhost", "127.0.0.1", "::1"])]
    hosts: Vec<String>,
    /// Days for which the server's and the client's certificates are valid
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(i16).range(1..=3650))]
    days: i16,
    /// Create a pre-shared key, psk.key, and no certificates
    #[arg(long, conflicts_with_all = ["hosts", "days"])]
    psk: bool,
    /// Replace existing files; new certificates do not work with old ones
    #[arg(long)]
    force: bool,
}

pub fn run(args: &CertsArgs) -> anyhow::Result<Verdict> {
    let folder = &args.out;
    let files = if args.psk {
        vec![shared_key()?]
    } else {
        certificates(&args.hosts, &(0..args.days)).map_err(|error| match error {
            PkiError::Name(_) => usage(format!("--host {error}")),
            PkiError::Make(_) => error.into(),
        })?
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    write(folder, &files, args.force)?;
    let guide = if args.psk {
        shared_key_guide(folder)
    } else {
        certificates_guide(folder, &args.hosts)
    };
    for (name, _) in &files {
        print(format!("wrote {}\n", folder.join(name).display()))?;
    }
    print(format!("\n{guide}\n"))?;
    Ok(Verdict::Success)
}

/// Returns instructions for the certificates.
fn certificates_guide(folder: &Path, hosts: &[String]) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut host = hosts.first().map_or("localhost", String::as_str).to_owned();
    if host.parse::<Ipv6Addr>().is_ok() {
        host = format!("[{host}]");
    }
    let [ca, server_cert, server_key] = [CA, SERVER_CERT, SERVER_KEY].map(at);
    let [client_cert, client_key] = [CLIENT_CERT, CLIENT_KEY].map(at);
    let port = port::TOKIO;
    let server = format!("netping-server-tokio --tls-cert {server_cert} --tls-key {server_key}");
    let client = format!("netping latency tcp+tls://{host}:{port} --tls-ca {ca}");
    let client_shows = format!("--tls-cert {client_cert} --tls-key {client_key}");
    format!(
        "The authority's own key is not kept: this set cannot be extended, only replaced as a whole.\n\
         \n\
         A server, and a client that checks its certificate:\n  {server}\n  {client}\n\
         \n\
         The same, and the server checks the client's certificate too:\n  \
         {server} --tls-client-ca {ca}\n  {client} {client_shows}\n\
         \n\
         A server listens on 127.0.0.1 unless told otherwise: for other hosts, --listen 0.0.0.0:{port}."
    )
}

/// Returns instructions for a pre-shared key.
fn shared_key_guide(folder: &Path) -> String {
    let key = folder.join(SHARED_KEY);
    let key = key.display();
    format!(
        "A server, and a client that has the same key:\n  \
         netping-server-tokio --psk-file {key}\n  \
         netping latency tcp+psk://localhost:{} --psk-file {key}\n\
         \n\
         Whoever has the file can be either side: copy it over a secure channel, such as scp.",
        port::TOKIO,
    )
}
