//! TLS 1.3 by rustls, with one configuration for all servers and clients.
//!
//! The provider is aws-lc-rs as applications get it. The hybrid post-quantum key exchange
//! (X25519MLKEM768) is offered first.

use std::{
    fmt, fs,
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
        WebPkiSupportedAlgorithms,
        aws_lc_rs::{self, Ticketer},
        verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};

use crate::{
    pki,
    secret_file::{self, CredentialError, unreadable},
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

/// A certificate chain and its private key, which `Debug` does not show.
#[derive(Debug)]
pub struct Identity {
    path: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a chain and a key in PEM form. Only the owner may have access to the key file.
    ///
    /// # Errors
    /// Fails with a [`CredentialError`].
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, CredentialError> {
        let chain = read_certificates(certificates)?;
        let key_text = secret_file::read(key, MAX_KEY_FILE)?;
        let key =
            PrivateKeyDer::from_pem_slice(&key_text).map_err(|_| without("private key", key))?;
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
    /// Fails with a [`CredentialError`].
    pub fn self_signed() -> Result<Self, CredentialError> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let issued = pki::self_signed(&names).map_err(setup)?;
        let (certificate, key) = (issued.cert_pem.as_bytes(), issued.key_pem.as_bytes());
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(setup)?;
        Ok(Self {
            path: PathBuf::from("the self-signed certificate"),
            chain: vec![certificate],
            key: PrivateKeyDer::from_pem_slice(key).map_err(setup)?,
        })
    }
}

/// Returns the configuration of a server. With `client_ca`, each client needs a certificate from
/// one of these authorities.
///
/// # Errors
/// Fails with a [`CredentialError`].
pub fn server(
    identity: Identity,
    client_ca: Option<&Path>,
    alpn: &[&[u8]],
) -> Result<ServerConfig, CredentialError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(setup)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(setup)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let Identity { path, chain, key } = identity;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|reason| of_file(&path, reason))?;
    config.alpn_protocols = owned(alpn);
    config.ticketer = Ticketer::new().map_err(setup)?;
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
/// Fails with a [`CredentialError`].
pub fn client(options: &ClientOptions, alpn: &[&[u8]]) -> Result<ClientConfig, CredentialError> {
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
        .map_err(setup)?;
    let builder = if options.insecure {
        let verifier = AnyCertificate(provider.signature_verification_algorithms);
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
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
                .map_err(|reason| of_file(&path, reason))?
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
/// Fails with a [`CredentialError`] if no certificate can be issued for the host.
pub fn server_name(host: &url::Host) -> Result<ServerName<'static>, CredentialError> {
    let shown = host.to_string();
    let name = shown.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(name)
        .map_err(|_| CredentialError(format!("'{shown}' cannot be a name in a certificate")))
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
        let suite = state.negotiated_cipher_suite();
        let group = state.negotiated_key_exchange_group();
        let kind = state.handshake_kind();
        Self {
            protocol,
            cipher_suite: suite.map_or_else(unknown, |suite| format!("{:?}", suite.suite())),
            key_exchange: group.map_or_else(unknown, |group| format!("{:?}", group.name())),
            resumed: kind.map(|kind| kind == HandshakeKind::Resumed),
        }
    }
}

fn setup(reason: impl fmt::Display) -> CredentialError {
    CredentialError(format!("TLS cannot be set up: {reason}"))
}

fn of_file(path: &Path, reason: impl fmt::Display) -> CredentialError {
    CredentialError(format!("{}: {reason}", path.display()))
}

fn without(what: &str, path: &Path) -> CredentialError {
    let reason = format!("holds no {what} in PEM form; `netping certs` makes some");
    CredentialError(format!("{} {reason}", path.display()))
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.to_vec()).collect()
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let text = fs::read(path).map_err(unreadable(path))?;
    match CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>() {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        _ => Err(without("certificate", path)),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots
            .add(certificate)
            .map_err(|reason| of_file(path, reason))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let reason = "this system has no certificate authorities: give the server's with --tls-ca";
        return Err(setup(reason));
    }
    Ok(roots)
}

/// Accepts every certificate, but still only from a peer that has its key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

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
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustls::HandshakeKind;

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
        Ok(shaken(&config, &Arc::new(server))?
            .protocol_version()
            .unwrap())
    }

    /// Returns the client's side of a connection after the handshake and what follows it, unless
    /// one side refuses the other.
    fn shaken(
        client: &Arc<ClientConfig>,
        server: &Arc<ServerConfig>,
    ) -> Result<rustls::ClientConnection, rustls::Error> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = rustls::ClientConnection::new(Arc::clone(client), name).unwrap();
        let mut server = rustls::ServerConnection::new(Arc::clone(server)).unwrap();
        while client.wants_write() || server.wants_write() {
            let mut sent = Vec::new();
            client.write_tls(&mut sent).unwrap();
            server.read_tls(&mut &*sent).unwrap();
            server.process_new_packets()?;
            let mut answer = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut answer).unwrap();
            }
            client.read_tls(&mut &*answer).unwrap();
            client.process_new_packets()?;
        }
        Ok(client)
    }

    /// Credentials of one authority, in a folder.
    struct Credentials {
        folder: tempfile::TempDir,
        authority: pki::Authority,
    }

    impl Credentials {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let authority = pki::Authority::new().unwrap();
            fs::write(folder.path().join("ca.pem"), &authority.ca_pem).unwrap();
            Self { folder, authority }
        }

        fn ca(&self) -> PathBuf {
            self.folder.path().join("ca.pem")
        }

        /// Writes a certificate and its key.
        fn issue(&self, role: pki::Role) -> (PathBuf, PathBuf) {
            let issued = self
                .authority
                .issue(role, &["localhost".to_owned()], &pki::LEAF)
                .unwrap();
            let [certificate, key] =
                ["own.pem", "own.key"].map(|name| self.folder.path().join(name));
            fs::write(&certificate, &issued.cert_pem).unwrap();
            fs::write(&key, &issued.key_pem).unwrap();
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
            (certificate, key)
        }

        fn server(&self, client_ca: Option<&Path>) -> Arc<ServerConfig> {
            let (certificate, key) = self.issue(pki::Role::Server);
            let identity = Identity::read(&certificate, &key).unwrap();
            Arc::new(server(identity, client_ca, &[]).unwrap())
        }

        /// Returns a client that trusts this authority.
        fn client(&self, options: ClientOptions) -> Arc<ClientConfig> {
            let options = ClientOptions {
                ca: Some(self.ca()),
                ..options
            };
            Arc::new(client(&options, &[]).unwrap())
        }
    }

    #[test]
    fn a_client_trusts_its_own_authority_alone() {
        let [own, other] = [Credentials::new(), Credentials::new()];
        let server = own.server(None);
        let trusting = ClientOptions::default;
        assert!(shaken(&own.client(trusting()), &server).is_ok());
        assert!(shaken(&other.client(trusting()), &server).is_err());
        let insecure = ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        };
        assert!(shaken(&other.client(insecure), &server).is_ok());
    }

    #[test]
    fn a_server_lets_in_clients_of_its_authority_alone() {
        let [own, other] = [Credentials::new(), Credentials::new()];
        let server = own.server(Some(&own.ca()));
        let with = |identity| {
            own.client(ClientOptions {
                identity,
                ..ClientOptions::default()
            })
        };
        assert!(shaken(&with(Some(own.issue(pki::Role::Client))), &server).is_ok());
        assert!(shaken(&with(Some(other.issue(pki::Role::Client))), &server).is_err());
        assert!(shaken(&with(None), &server).is_err());
    }

    #[test]
    fn sessions_are_resumed_only_where_that_is_asked() {
        let own = Credentials::new();
        let server = own.server(None);
        let kinds = |resume| {
            let client = own.client(ClientOptions {
                resume,
                ..ClientOptions::default()
            });
            [(); 2].map(|()| shaken(&client, &server).unwrap().handshake_kind())
        };
        let full = Some(HandshakeKind::Full);
        assert_eq!(kinds(true), [full, Some(HandshakeKind::Resumed)]);
        assert_eq!(kinds(false), [full, full]);
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
