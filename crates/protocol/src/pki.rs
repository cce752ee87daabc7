//! Certificates for tests and quick tries, from an authority that exists only within the process.
//!
//! Keys are ECDSA on P-256. The key of an [`Authority`] is never written, so it can issue nothing
//! later. Do not use these certificates for servers that others rely on.

use std::{fmt, net::IpAddr, ops::Range};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::DnsName;
use time::{Duration, OffsetDateTime};

/// The result of making a certificate.
pub type Result<T, E = PkiError> = std::result::Result<T, E>;

/// A certificate could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PkiError {
    /// The text cannot be a name in a certificate.
    #[error("'{0}' is neither a DNS name nor an IP address")]
    Name(String),
    /// Making the key or signing with it failed.
    #[error(transparent)]
    Make(#[from] rcgen::Error),
}

/// The only use of a certificate (extended key usage, RFC 5280, section 4.2.1.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// TLS server: `serverAuth`.
    Server,
    /// TLS client: `clientAuth`.
    Client,
}

/// The time by which a period begins and ends earlier, for hosts whose clocks are behind: so the
/// period is no longer than its days.
const BEHIND: Duration = Duration::hours(1);

/// Period in which a certificate is valid, in days from an hour ago; negative days are in the past.
pub type Validity = Range<i16>;

/// Usual validity of a server's or a client's certificate, as public authorities have it: 90 days.
pub const LEAF: Validity = 0..90;

/// Validity of an authority's own certificate: ten years.
const AUTHORITY: Validity = 0..3650;

/// A certificate and its private key, both as PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate, which is not secret.
    pub cert_pem: String,
    /// The private key, as PKCS #8.
    pub key_pem: String,
}

impl Issued {
    /// Makes a key, and has it and what it is for signed by `issuer`, or by itself.
    fn new(params: &CertificateParams, issuer: Option<&Issuer<'_, KeyPair>>) -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = match issuer {
            Some(issuer) => params.signed_by(&key, issuer)?,
            None => params.self_signed(&key)?,
        };
        Ok(Self {
            cert_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }
}

impl fmt::Debug for Issued {
    /// Omits the key, which must not appear in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued")
            .field("cert_pem", &self.cert_pem)
            .finish_non_exhaustive()
    }
}

/// A certificate authority. It issues certificates for servers and clients, not for other
/// authorities.
#[derive(Debug)]
pub struct Authority {
    /// Its own certificate as PEM, for the other side to trust.
    pub ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// # Errors
    /// Fails with [`PkiError::Make`].
    pub fn new() -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = describe("netping test authority", &[], &AUTHORITY)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            ca_pem,
            issuer: Issuer::new(params, key),
        })
    }

    /// Issues a certificate with a new key for `names`, which are DNS names and IP addresses.
    ///
    /// # Errors
    /// Fails with a [`PkiError`].
    pub fn issue(&self, role: Role, names: &[String], validity: &Validity) -> Result<Issued> {
        Issued::new(&describe_leaf(role, names, validity)?, Some(&self.issuer))
    }
}

/// Makes a self-signed server certificate for `names`: a client must trust this very certificate,
/// or any.
///
/// # Errors
/// Fails with a [`PkiError`].
pub fn self_signed(names: &[String]) -> Result<Issued> {
    Issued::new(&describe_leaf(Role::Server, names, &LEAF)?, None)
}

fn describe_leaf(role: Role, names: &[String], validity: &Validity) -> Result<CertificateParams> {
    let (common_name, purpose) = match role {
        Role::Server => ("netping server", ExtendedKeyUsagePurpose::ServerAuth),
        Role::Client => ("netping client", ExtendedKeyUsagePurpose::ClientAuth),
    };
    let mut params = describe(common_name, names, validity)?;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn describe(common_name: &str, names: &[String], validity: &Validity) -> Result<CertificateParams> {
    if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
        return Err(PkiError::Name(wrong.clone()));
    }
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    let start = OffsetDateTime::now_utc() - BEHIND;
    params.not_before = start + Duration::days(validity.start.into());
    params.not_after = start + Duration::days(validity.end.into());
    Ok(params)
}

/// Returns true if a TLS client could look for the name in a certificate. A dot at the end has a
/// meaning for resolvers only.
fn is_name(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || (!text.ends_with('.') && DnsName::try_from(text).is_ok())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
    use webpki::{EndEntityCert, Error, KeyUsage};

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    /// Verifies a certificate as a peer that trusts `trusted` would.
    fn check(trusted: &str, certificate: &str, usage: KeyUsage, name: &str) -> Result<(), Error> {
        let (trusted, certificate) = (der(trusted), der(certificate));
        let anchors = [webpki::anchor_from_trusted_cert(&trusted)?];
        let seconds = OffsetDateTime::now_utc().unix_timestamp().unsigned_abs();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let entity = EndEntityCert::try_from(&certificate)?;
        entity.verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &anchors,
            &[],
            now,
            usage,
            None,
            None,
        )?;
        entity.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap())
    }

    #[test]
    fn a_certificate_is_valid_for_its_role_and_its_names_only() {
        let authority = Authority::new().unwrap();
        let roles = [
            (
                Role::Server,
                KeyUsage::server_auth(),
                KeyUsage::client_auth(),
            ),
            (
                Role::Client,
                KeyUsage::client_auth(),
                KeyUsage::server_auth(),
            ),
        ];
        for (role, own, other) in roles {
            let certificate = authority
                .issue(role, &names(&["localhost", "127.0.0.1", "::1"]), &LEAF)
                .unwrap()
                .cert_pem;
            for name in ["localhost", "127.0.0.1", "::1"] {
                assert_eq!(
                    check(&authority.ca_pem, &certificate, own, name),
                    Ok(()),
                    "{role:?} {name}"
                );
            }
            for name in ["server.example", "127.0.0.2"] {
                let answer = check(&authority.ca_pem, &certificate, own, name);
                assert!(
                    matches!(answer, Err(Error::CertNotValidForName(_))),
                    "{role:?} {name}: {answer:?}"
                );
            }
            let answer = check(&authority.ca_pem, &certificate, other, "localhost");
            assert!(
                matches!(answer, Err(Error::RequiredEkuNotFoundContext(_))),
                "{role:?}: {answer:?}"
            );
        }
    }

    #[test]
    fn an_expired_or_future_certificate_is_rejected() {
        let authority = Authority::new().unwrap();
        let answer = |from_days, until_days| {
            let issued = authority
                .issue(
                    Role::Server,
                    &names(&["localhost"]),
                    &(from_days..until_days),
                )
                .unwrap();
            check(
                &authority.ca_pem,
                &issued.cert_pem,
                KeyUsage::server_auth(),
                "localhost",
            )
        };
        assert_eq!(answer(-1, 1), Ok(()));
        assert!(matches!(answer(-10, -1), Err(Error::CertExpired { .. })));
        assert!(matches!(answer(1, 10), Err(Error::CertNotValidYet { .. })));
    }

    #[test]
    fn an_authority_vouches_only_for_its_own_certificates() {
        let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let issued = one
            .issue(Role::Server, &names(&["localhost"]), &LEAF)
            .unwrap();
        assert!(
            check(
                &other.ca_pem,
                &issued.cert_pem,
                KeyUsage::server_auth(),
                "localhost"
            )
            .is_err()
        );
        let answer = check(
            &one.ca_pem,
            &one.ca_pem,
            KeyUsage::server_auth(),
            "localhost",
        );
        assert_eq!(answer, Err(Error::CaUsedAsEndEntity));
    }

    #[test]
    fn a_self_signed_certificate_is_trusted_by_itself_only() {
        let [one, other] = [(); 2].map(|()| self_signed(&names(&["localhost"])).unwrap());
        let usage = KeyUsage::server_auth();
        assert_eq!(
            check(&one.cert_pem, &one.cert_pem, usage, "localhost"),
            Ok(())
        );
        assert!(check(&other.cert_pem, &one.cert_pem, usage, "localhost").is_err());
    }

    #[test]
    fn the_private_key_fits_the_certificate_and_debug_omits_it() {
        let authority = Authority::new().unwrap();
        let issued = authority.issue(Role::Client, &[], &LEAF).unwrap();
        let key = KeyPair::from_pem(&issued.key_pem).unwrap();
        let public = key.public_key_raw();
        assert!(
            der(&issued.cert_pem)
                .windows(public.len())
                .any(|window| window == public)
        );
        let shown = format!("{issued:?}");
        assert!(shown.contains("BEGIN CERTIFICATE"));
        let secret = issued.key_pem.lines().nth(1).unwrap();
        assert!(
            !shown.contains(secret) && !shown.contains("PRIVATE"),
            "{shown}"
        );
    }

    #[test]
    fn wrong_names_are_rejected() {
        for wrong in [
            "",
            "two words",
            "a..b",
            "-a",
            "localhost.",
            "300.1.1.1",
            "[::1]",
            "host:8004",
            "münchen.de",
        ] {
            assert_eq!(
                self_signed(&names(&["localhost", wrong])).unwrap_err(),
                PkiError::Name(wrong.to_owned())
            );
        }
    }
}
