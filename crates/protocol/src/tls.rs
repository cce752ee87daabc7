//! TLS 1.3 by rustls, with one configuration for all servers and clients.
//!
//! The provider is aws-lc-rs as applications get it. The hybrid post-quantum key exchange
//! (X25519MLKEM768) is offered first.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::aws_lc_rs::hmac;
use rustls::{
    CommonState, DigitallySignedStruct, HandshakeKind, ProtocolVersion, RootCertStore,
    SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{
        CryptoProvider,
        aws_lc_rs::{self, Ticketer},
        verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName, UnixTime,
        pem::{self, PemObject},
    },
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};

use crate::{
    pki,
    secret_file::{self, SecretFileError},
};

pub use rustls::{CipherSuite, ClientConfig, ServerConfig};

/// ALPN of HTTP/2 (RFC 9113).
pub const ALPN_H2: &[u8] = b"h2";

/// ALPN of HTTP/3 (RFC 9114, section 3.1).
pub const ALPN_H3: &[u8] = b"h3";

/// ALPN of HTTP/1.1 (RFC 7301, section 6).
pub const ALPN_HTTP1: &[u8] = b"http/1.1";

/// ALPN of netping's frames on QUIC streams.
pub const ALPN_NETPING: &[u8] = b"netping/1";

/// First byte of a TLS client: a handshake record (RFC 8446, section 5.1). No line begins with it.
pub const HANDSHAKE: u8 = 0x16;

/// Limit on the size of a private key file, in bytes.
const MAX_KEY_FILE: usize = 1 << 20;

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A private key file could not be read, or others can read it.
    #[error(transparent)]
    Key(#[from] SecretFileError),
    /// A file does not hold the expected item.
    #[error("{} holds no {what} in PEM form; `netping certs` makes some", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
        /// Name of the missing item.
        what: &'static str,
    },
    /// Certificates and key do not belong together, or cannot be used.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// Path of the certificate file.
        path: PathBuf,
        /// The error of rustls.
        reason: rustls::Error,
    },
    /// rustls rejects the configuration.
    #[error("TLS cannot be set up: {0}")]
    Config(String),
    /// No certificate can be issued for the host.
    #[error("'{0}' cannot be a name in a certificate")]
    Name(String),
}

/// A certificate chain and its private key.
pub struct Identity {
    path: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads a chain and a key in PEM form. Only the owner may have access to the key file.
    ///
    /// # Errors
    /// Fails with a [`TlsError`].
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_certificates(certificates)?;
        let key_text = secret_file::read(key, MAX_KEY_FILE)?;
        let key = PrivateKeyDer::from_pem_slice(&key_text).map_err(|_| TlsError::Empty {
            path: key.to_owned(),
            what: "private key",
        })?;
        Ok(Self {
            path: certificates.to_owned(),
            chain,
            key,
        })
    }

    /// Derives a secret for one purpose from the private key: always the same one.
    pub fn derive(&self, purpose: &[u8]) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.secret_der());
        hmac::sign(&key, purpose).as_ref().to_vec()
    }

    /// Makes a self-signed certificate for this host, which no client trusts.
    ///
    /// # Errors
    /// Fails with [`TlsError::Config`].
    pub fn self_signed() -> Result<Self, TlsError> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let issued =
            pki::self_signed(&names).map_err(|error| TlsError::Config(error.to_string()))?;
        let broken = |error: pem::Error| TlsError::Config(error.to_string());
        let (certificate, key) = (issued.cert_pem.as_bytes(), issued.key_pem.as_bytes());
        Ok(Self {
            path: PathBuf::from("the self-signed certificate"),
            chain: vec![CertificateDer::from_pem_slice(certificate).map_err(broken)?],
            key: PrivateKeyDer::from_pem_slice(key).map_err(broken)?,
        })
    }
}

/// Returns the configuration of a server. With `client_ca`, each client needs a certificate from
/// one of these authorities.
///
/// # Errors
/// Fails with a [`TlsError`].
pub fn server(
    identity: Identity,
    client_ca: Option<&Path>,
    alpn: &[&[u8]],
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| TlsError::Config(error.to_string()))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| TlsError::Config(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let Identity { path, chain, key } = identity;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|reason| TlsError::Unusable { path, reason })?;
    config.alpn_protocols = owned(alpn);
    config.ticketer = Ticketer::new().map_err(|error| TlsError::Config(error.to_string()))?;
    Ok(config)
}

/// Options of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// File with the authorities to trust; `None`: the system's.
    pub ca: Option<PathBuf>,
    /// True to accept any certificate, from anybody.
    pub insecure: bool,
    /// Files with the client's own certificate and key, for servers that ask.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// True to resume the TLS session of an earlier connection to the same server.
    pub resume: bool,
    /// True to speak TLS 1.2 with servers that have no 1.3.
    pub tls12: bool,
    /// Preferred cipher suite; `None`: rustls's order, AES-256 first. The server decides.
    pub cipher: Option<CipherSuite>,
}

/// Returns the configuration of a client.
///
/// # Errors
/// Fails with a [`TlsError`].
pub fn client(options: &ClientOptions, alpn: &[&[u8]]) -> Result<ClientConfig, TlsError> {
    let mut provider = aws_lc_rs::default_provider();
    if let Some(first) = options.cipher {
        provider
            .cipher_suites
            .sort_by_key(|suite| suite.suite() != first);
    }
    let provider = Arc::new(provider);
    let versions: &[_] = if options.tls12 {
        &[&TLS13, &TLS12]
    } else {
        &[&TLS13]
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| TlsError::Config(error.to_string()))?;
    let builder = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else {
        let roots = match &options.ca {
            Some(path) => roots(path)?,
            None => system_roots()?,
        };
        builder.with_root_certificates(roots)
    };
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            let Identity { path, chain, key } = Identity::read(certificates, key)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|reason| TlsError::Unusable { path, reason })?
        }
    };
    config.alpn_protocols = owned(alpn);
    if !options.resume {
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

/// Returns the name that the server's certificate must have.
///
/// # Errors
/// Fails with [`TlsError::Name`].
pub fn server_name(host: &url::Host) -> Result<ServerName<'static>, TlsError> {
    match host {
        url::Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name.clone()))
        }
        url::Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        url::Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
    }
}

/// The result of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// Protocol and version.
    pub protocol: String,
    /// Cipher suite.
    pub cipher_suite: String,
    /// Group of the key exchange.
    pub key_exchange: String,
    /// True if an earlier session was resumed; `None`: unknown.
    pub resumed: Option<bool>,
}

impl Negotiated {
    /// Reads the result from a TLS connection whose handshake is done.
    pub fn of(state: &CommonState) -> Self {
        let protocol = match state.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
            other => format!("{other:?}"),
        };
        let unknown = || "unknown".to_owned();
        let (suite, group) = (
            state.negotiated_cipher_suite(),
            state.negotiated_key_exchange_group(),
        );
        let kind = state.handshake_kind();
        Self {
            protocol,
            cipher_suite: suite.map_or_else(unknown, |suite| format!("{:?}", suite.suite())),
            key_exchange: group.map_or_else(unknown, |group| format!("{:?}", group.name())),
            resumed: kind.map(|kind| kind == HandshakeKind::Resumed),
        }
    }
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.to_vec()).collect()
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = std::fs::read(path).map_err(|reason| TlsError::File {
        path: path.to_owned(),
        reason,
    })?;
    match CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>() {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        _ => Err(TlsError::Empty {
            path: path.to_owned(),
            what: "certificate",
        }),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|reason| TlsError::Unusable {
            path: path.to_owned(),
            reason,
        })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let reason =
            "this system has no certificate authorities: give the server's with --tls-ca FILE";
        return Err(TlsError::Config(reason.to_owned()));
    }
    Ok(roots)
}

/// Accepts every certificate, but still only from a peer that has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version that a client agrees on with a server that has no TLS 1.3.
    fn agreed_with_an_old_server(tls12: bool) -> Result<ProtocolVersion, rustls::Error> {
        let Identity { chain, key, .. } = Identity::self_signed().unwrap();
        let server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS12])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let options = ClientOptions {
            insecure: true,
            tls12,
            ..ClientOptions::default()
        };
        let config = Arc::new(client(&options, &[]).unwrap());
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = rustls::ClientConnection::new(config, name).unwrap();
        let mut server = rustls::ServerConnection::new(Arc::new(server)).unwrap();
        while client.is_handshaking() {
            let mut sent = Vec::new();
            client.write_tls(&mut sent).unwrap();
            server.read_tls(&mut &*sent).unwrap();
            server.process_new_packets()?;
            let mut answer = Vec::new();
            server.write_tls(&mut answer).unwrap();
            client.read_tls(&mut &*answer).unwrap();
            client.process_new_packets()?;
        }
        Ok(client.protocol_version().unwrap())
    }

    #[test]
    fn tls_1_2_is_spoken_only_where_it_is_allowed() {
        assert_eq!(
            agreed_with_an_old_server(true),
            Ok(ProtocolVersion::TLSv1_2)
        );
        assert!(agreed_with_an_old_server(false).is_err());
    }

    #[test]
    fn the_hybrid_key_exchange_comes_first() {
        assert_eq!(
            aws_lc_rs::default_provider()
                .kx_groups
                .first()
                .map(|group| group.name()),
            Some(rustls::NamedGroup::X25519MLKEM768)
        );
    }
}
