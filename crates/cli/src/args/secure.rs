//! Flags about secured connections.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use netping_client::plan::Trust;
use netping_protocol::{
    psk::Key,
    scheme::Encryption,
    secure::Connector,
    target::Target,
    tls::{self, CipherSuite, ClientOptions, TlsError},
};
use url::Host;

use crate::{
    credentials,
    error::{PlanError, UsageError},
};

/// Flags about the credentials of either side.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "TLS and keys")]
pub struct SecureArgs {
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
    #[arg(long, value_name = "NAME")]
    tls_server_name: Option<String>,
    /// Resume TLS sessions of earlier connections; 0-RTT data is never sent
    #[arg(long, default_value = "off", value_name = "ON|OFF")]
    tls_resume: Resume,
    /// Preferred cipher suite; the result names the one that the server chose [default: aes256]
    #[arg(long, value_name = "CIPHER")]
    tls_cipher: Option<Cipher>,
    /// Pre-shared key of tcp+psk:// (32 bytes, see `netping certs --psk`)
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
}

/// Resumption of TLS sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Resume {
    /// Resume
    On,
    /// Full handshakes only
    Off,
}

/// The cipher suites of TLS 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cipher {
    /// TLS13_AES_128_GCM_SHA256
    Aes128,
    /// TLS13_AES_256_GCM_SHA384
    Aes256,
    /// TLS13_CHACHA20_POLY1305_SHA256
    Chacha20,
}

impl From<Cipher> for CipherSuite {
    fn from(cipher: Cipher) -> Self {
        match cipher {
            Cipher::Aes128 => Self::TLS13_AES_128_GCM_SHA256,
            Cipher::Aes256 => Self::TLS13_AES_256_GCM_SHA384,
            Cipher::Chacha20 => Self::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

impl SecureArgs {
    /// Returns the flags for a folder of [`credentials`]; with `mutual`, the client has a
    /// certificate too.
    pub fn of(folder: &Path, mutual: bool) -> Self {
        let file = |name: &str| Some(folder.join(name));
        Self {
            tls_ca: file(credentials::CA),
            tls_insecure: false,
            tls_cert: file(credentials::CLIENT_CERT).filter(|_| mutual),
            tls_key: file(credentials::CLIENT_KEY).filter(|_| mutual),
            tls_server_name: None,
            tls_resume: Resume::Off,
            tls_cipher: None,
            psk_file: file(credentials::SHARED_KEY),
        }
    }

    /// Rejects flags that concern none of these targets: their user believes in an encryption that
    /// does not exist.
    pub fn check(&self, targets: &[Target]) -> Result<(), UsageError> {
        let given = [
            ("--tls-ca", self.tls_ca.is_some(), Encryption::Tls),
            ("--tls-insecure", self.tls_insecure, Encryption::Tls),
            ("--tls-cert", self.tls_cert.is_some(), Encryption::Tls),
            (
                "--tls-resume",
                self.tls_resume == Resume::On,
                Encryption::Tls,
            ),
            ("--tls-cipher", self.tls_cipher.is_some(), Encryption::Tls),
            (
                "--tls-server-name",
                self.tls_server_name.is_some(),
                Encryption::Tls,
            ),
            ("--psk-file", self.psk_file.is_some(), Encryption::Psk),
        ];
        let useless = |encryption: Encryption| {
            targets
                .iter()
                .all(|target| target.scheme.encryption() != encryption)
        };
        match given
            .into_iter()
            .find(|(_, given, encryption)| *given && useless(*encryption))
        {
            None => Ok(()),
            Some((flag, _, Encryption::Psk)) => Err(UsageError(format!(
                "{flag} is for tcp+psk://, and no target is one"
            ))),
            Some((flag, ..)) => Err(UsageError(format!(
                "{flag} is for targets with TLS, such as tcp+tls://, grpc+tls://, quic:// or https://, and no target is one"
            ))),
        }
    }

    /// Returns the security of connections to `target`, and the trust it gives.
    pub fn connector(&self, target: &Target) -> Result<(Connector, Trust), PlanError> {
        self.connector_offering(target, target.scheme.alpn())
    }

    /// Does the same for a server that is not netping's own, whatever its URL looks like.
    pub fn connector_of_another(&self, target: &Target) -> Result<(Connector, Trust), PlanError> {
        self.connector_with(target, target.scheme.alpn(), true)
    }

    /// Does the same, and offers these application protocols to the server.
    pub fn connector_offering(
        &self,
        target: &Target,
        alpn: &[&[u8]],
    ) -> Result<(Connector, Trust), PlanError> {
        // netping's own servers speak 1.3 only.
        let is_own = !target.scheme.is_http() && target.path.is_empty();
        self.connector_with(target, alpn, !is_own)
    }

    fn connector_with(
        &self,
        target: &Target,
        alpn: &[&[u8]],
        tls12: bool,
    ) -> Result<(Connector, Trust), PlanError> {
        match target.scheme.encryption() {
            Encryption::None => Ok((Connector::Plain, Trust::default())),
            Encryption::Tls => {
                let config = tls::client(&self.options(tls12), alpn)?;
                let name = match &self.tls_server_name {
                    None => tls::server_name(&target.host)?,
                    Some(name) => {
                        let host = Host::parse(name).map_err(|_| TlsError::Name(name.clone()))?;
                        tls::server_name(&host)?
                    }
                };
                let connector = Connector::Tls(Arc::new(config), name);
                let trust = Trust {
                    server_verified: !self.tls_insecure,
                    client_certificate: self.tls_cert.is_some(),
                };
                Ok((connector, trust))
            }
            Encryption::Psk => {
                let path = self.psk_file.as_ref().ok_or_else(|| {
                    UsageError(format!(
                        "{target} needs a key shared with the server: --psk-file FILE"
                    ))
                })?;
                let trust = Trust {
                    server_verified: true,
                    client_certificate: false,
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
            resume: self.tls_resume == Resume::On,
            cipher: self.tls_cipher.map(Into::into),
        }
    }
}
