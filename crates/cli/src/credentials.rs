//! Files with certificates, their keys and pre-shared keys.
//!
//! An authority issues one certificate for servers and one for clients. Its own key is not kept, so
//! a new set replaces all of the old one.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use anyhow::{Context, ensure};
use netping_protocol::{
    pki::{Authority, PkiError, Role, Validity},
    psk::Key,
};
use netping_system::signals;

/// The authority's certificate.
pub const CA: &str = "ca.pem";
/// The server's certificate.
pub const SERVER_CERT: &str = "server.pem";
/// The server's private key.
pub const SERVER_KEY: &str = "server.key";
/// The client's certificate.
pub const CLIENT_CERT: &str = "client.pem";
/// The client's private key.
pub const CLIENT_KEY: &str = "client.key";
/// The pre-shared key.
pub const SHARED_KEY: &str = "psk.key";

/// The name and the contents of a file to be written. Only its owner can read it, unless it holds
/// certificates, whose names end in `.pem`.
pub type NewFile = (&'static str, Vec<u8>);

/// Returns a new pre-shared key.
///
/// # Errors
/// If the system gives no random numbers.
pub fn shared_key() -> anyhow::Result<NewFile> {
    let key = Key::generate().context("the system gives no random numbers")?;
    Ok((SHARED_KEY, key.bytes().to_vec()))
}

/// Returns the certificate of a new authority, and those that it issued for a server at `hosts` and
/// for a client, with their keys, all with this validity.
///
/// # Errors
/// [`PkiError`].
pub fn certificates(hosts: &[String], validity: &Validity) -> Result<Vec<NewFile>, PkiError> {
    let authority = Authority::new()?;
    let server = authority.issue(Role::Server, hosts, validity)?;
    // A server checks the issuer of a client's certificate, not its name.
    let client = authority.issue(Role::Client, &[], validity)?;
    Ok(vec![
        (CA, authority.ca_pem.into_bytes()),
        (SERVER_CERT, server.cert_pem.into_bytes()),
        (SERVER_KEY, server.key_pem.into()),
        (CLIENT_CERT, client.cert_pem.into_bytes()),
        (CLIENT_KEY, client.key_pem.into()),
    ])
}

/// Writes all of the files, or none; without `force`, none if one of them exists. Existing files stay
/// until all of the new ones are complete; if one of them cannot be replaced then, those before it
/// already are.
pub fn write(folder: &Path, files: &[NewFile], force: bool) -> anyhow::Result<()> {
    let paths = files.iter().map(|(name, _)| folder.join(name));
    let existing = paths.filter(|path| fs::symlink_metadata(path).is_ok());
    let existing: Vec<_> = existing.map(|path| path.display().to_string()).collect();
    ensure!(
        force || existing.is_empty(),
        "already there: {}; --force replaces the whole set",
        existing.join(", ")
    );
    let _whole = signals::whole();
    let mut complete = Vec::new();
    for (name, contents) in files {
        let path = folder.join(name);
        let is_public = path.extension().is_some_and(|ending| ending == "pem");
        let mode = if is_public { 0o644 } else { 0o600 };
        let create = || {
            let permissions = Permissions::from_mode(mode);
            let mut new = tempfile::Builder::new()
                .permissions(permissions)
                .tempfile_in(folder)?;
            new.write_all(contents)?;
            new.as_file().sync_all()?;
            io::Result::Ok(new)
        };
        let new = create().with_context(|| format!("cannot write {}", path.display()))?;
        complete.push((new, path));
    }
    for (new, path) in complete {
        // Of two concurrent runs, only one succeeds.
        let replaced = if force {
            new.persist(&path)
        } else {
            new.persist_noclobber(&path)
        };
        replaced.with_context(|| format!("cannot replace {}", path.display()))?;
    }
    Ok(())
}
