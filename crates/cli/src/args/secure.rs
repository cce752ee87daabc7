//! Flags about secured connections.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{ArgAction, Args};
use netping_client::plan::Trust;
use netping_protocol::{
    psk::Key,
    scheme::Encryption,
    secure::Connector,
    target::Target,
    tls::{self, CipherSuite, ClientOptions},
};
use url::Host;

use super::choice::{one_of, reject_unused};
use crate::{credentials, error::usage};

/// Flags about the credentials of either side.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS and keys")]
pub struct CredentialArgs {
    /// Authorities that servers' certificates must come from (PEM) [default: the system's]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Accept any certificate; the server is not authenticated
    #[arg(long, conflicts_with = "tls_ca")]
    tls_insecure: bool,
    /// The client's certificate chain, for servers that ask for one (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM), readable only by its owner
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The name that the server is asked for and has to prove [default: the URL's host]
    #[arg(long, value_name = "NAME", value_parser = Host::parse)]
    tls_server_name: Option<Host>,
    /// Resume TLS sessions of earlier connections; 0-RTT data is never sent
    #[arg(long, default_value = "off", value_name = "ON|OFF", value_parser = one_of(&SWITCH), action = ArgAction::Set)]
    tls_resume: bool,
    /// Preferred cipher suite; the result names the one that the server chose [default: aes256]
    #[arg(long, value_name = "CIPHER", value_parser = one_of(&CIPHERS))]
    tls_cipher: Option<CipherSuite>,
    /// Pre-shared key of tcp+psk:// (32 bytes, see `netping certs --psk`)
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
}

/// The values of a flag that is on or off.
static SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The cipher suites of TLS 1.3.
static CIPHERS: [(&str, CipherSuite); 3] = [
    ("aes128", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("aes256", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("chacha20", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

impl CredentialArgs {
    /// Returns the flags for a folder of [`credentials`]; with `mutual`, the client has a
    /// certificate too.
    pub fn of(folder: &Path, mutual: bool) -> Self {
        let file = |name: &str| Some(folder.join(name));
        Self {
            tls_ca: file(credentials::CA),
            tls_cert: file(credentials::CLIENT_CERT).filter(|_| mutual),
            tls_key: file(credentials::CLIENT_KEY).filter(|_| mutual),
            psk_file: file(credentials::SHARED_KEY),
            ..Self::default()
        }
    }

    /// Rejects flags that concern none of these targets: their user believes in an encryption that
    /// does not exist.
    pub fn check(&self, targets: &[Target]) -> anyhow::Result<()> {
        let tls = [
            ("--tls-ca", self.tls_ca.is_some()),
            ("--tls-insecure", self.tls_insecure),
            ("--tls-cert", self.tls_cert.is_some()),
            ("--tls-resume", self.tls_resume),
            ("--tls-cipher", self.tls_cipher.is_some()),
            ("--tls-server-name", self.tls_server_name.is_some()),
        ];
        let is = |encryption| move |target: &Target| target.scheme.encryption() == encryption;
        let kind = "targets with TLS, such as tcp+tls://, grpc+tls://, quic:// or https://";
        reject_unused(targets, kind, is(Encryption::Tls), &tls)?;
        let psk = [("--psk-file", self.psk_file.is_some())];
        reject_unused(targets, "tcp+psk://", is(Encryption::Psk), &psk)
    }

    /// Returns the security of connections to `target`, and the trust it gives.
    pub fn connector(&self, target: &Target) -> anyhow::Result<(Connector, Trust)> {
        // netping's own servers speak 1.3 only.
        let is_own = !target.scheme.is_http() && target.path.is_empty();
        self.connector_with(target, target.scheme.alpn(), !is_own)
    }

    /// Does the same with these application protocols, and with TLS 1.2 for servers that are not
    /// netping's own.
    pub fn connector_with(
        &self,
        target: &Target,
        alpn: &[&[u8]],
        tls12: bool,
    ) -> anyhow::Result<(Connector, Trust)> {
        match target.scheme.encryption() {
            Encryption::None => Ok((Connector::Plain, Trust::default())),
            Encryption::Tls => {
                let config = tls::client(&self.options(tls12), alpn)?;
                let host = self.tls_server_name.as_ref().unwrap_or(&target.host);
                let name = tls::server_name(host)?;
                let trust = Trust {
                    server_verified: !self.tls_insecure,
                    client_certificate: self.tls_cert.is_some(),
                };
                Ok((Connector::Tls(Arc::new(config), name), trust))
            }
            Encryption::Psk => {
                let path = self.psk_file.as_ref().ok_or_else(|| {
                    usage(format!(
                        "{target} needs a key shared with the server: --psk-file FILE"
                    ))
                })?;
                let (server_verified, client_certificate) = (true, false);
                let trust = Trust {
                    server_verified,
                    client_certificate,
                };
                Ok((Connector::Psk(Arc::new(Key::read(path)?)), trust))
            }
        }
    }

    fn options(&self, tls12: bool) -> ClientOptions {
        ClientOptions {
            tls12,
            ca: self.tls_ca.clone(),
            insecure: self.tls_insecure,
            identity: self.tls_cert.clone().zip(self.tls_key.clone()),
            resume: self.tls_resume,
            cipher: self.tls_cipher,
        }
    }
}
