//! Files with certificates, their keys and pre-shared keys.
//!
//! An authority issues one certificate for servers and one for clients. Its own key is not kept, so
//! a new set replaces all of the old one.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process,
};

use anyhow::{Context, ensure};
use netping_protocol::{
    pki::{Authority, PkiError, Role, Validity},
    psk::Key,
};

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

/// A file to be written.
pub struct NewFile {
    pub name: &'static str,
    /// Permissions, as in chmod(1).
    mode: u32,
    contents: Vec<u8>,
}

impl NewFile {
    fn public(name: &'static str, contents: String) -> Self {
        Self {
            name,
            mode: 0o644,
            contents: contents.into_bytes(),
        }
    }

    fn secret(name: &'static str, contents: impl Into<Vec<u8>>) -> Self {
        Self {
            name,
            mode: 0o600,
            contents: contents.into(),
        }
    }
}

/// Returns a new pre-shared key.
///
/// # Errors
/// If the system gives no random numbers.
pub fn shared_key() -> anyhow::Result<NewFile> {
    let key = Key::generate().context("the system gives no random numbers")?;
    Ok(NewFile::secret(SHARED_KEY, *key.bytes()))
}

/// Returns the certificate of a new authority, and those that it issued for a server at `hosts` and
/// for a client, with their keys. They are valid for so long.
///
/// # Errors
/// [`PkiError`].
pub fn certificates(hosts: &[String], validity: Validity) -> Result<Vec<NewFile>, PkiError> {
    let authority = Authority::new()?;
    let server = authority.issue_valid(Role::Server, hosts, validity)?;
    // A server checks the issuer of a client's certificate, not its name.
    let client = authority.issue_valid(Role::Client, &[], validity)?;
    Ok(vec![
        NewFile::public(CA, authority.ca_pem()),
        NewFile::public(SERVER_CERT, server.cert_pem),
        NewFile::secret(SERVER_KEY, server.key_pem),
        NewFile::public(CLIENT_CERT, client.cert_pem),
        NewFile::secret(CLIENT_KEY, client.key_pem),
    ])
}

/// Returns an error if one of the files exists, or anything else of its name.
///
/// # Errors
/// If so, with the names.
pub fn refuse_existing(folder: &Path, files: &[NewFile]) -> anyhow::Result<()> {
    let mut existing = Vec::new();
    for file in files {
        let path = folder.join(file.name);
        match fs::symlink_metadata(&path) {
            Ok(_) => existing.push(path.display().to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot look at {}", path.display()));
            }
        }
    }
    ensure!(
        existing.is_empty(),
        "already there: {}; --force replaces the whole set",
        existing.join(", ")
    );
    Ok(())
}

/// Writes all of the files, or none. With `force`, existing files stay until all of the new ones
/// are complete; if one of them cannot be replaced then, those before it already are.
///
/// # Errors
/// If the system refuses one.
pub fn write(folder: &Path, files: &[NewFile], force: bool) -> anyhow::Result<()> {
    let suffix = if force {
        format!(".new-{}", process::id())
    } else {
        String::new()
    };
    let mut created = Vec::new();
    let mut write_all = || {
        for file in files {
            let path = folder.join(format!("{}{suffix}", file.name));
            create(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
            created.push(path);
        }
        if force {
            for (file, path) in files.iter().zip(&created) {
                let target = folder.join(file.name);
                fs::rename(path, &target)
                    .with_context(|| format!("cannot replace {}", target.display()))?;
            }
        }
        anyhow::Ok(())
    };
    let result = write_all();
    if result.is_err() {
        // A part of a set is useless, and would be in the way of the next attempt.
        for path in &created {
            let _ = fs::remove_file(path);
        }
    }
    result
}

/// Creates a file with its final permissions. Fails if anything has its name already, so that of
/// two concurrent runs only one succeeds.
fn create(path: &Path, file: &NewFile) -> io::Result<()> {
    let mut opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(file.mode)
        .open(path)?;
    let result = opened
        .write_all(&file.contents)
        .and_then(|()| opened.sync_all());
    if result.is_err() {
        let _ = fs::remove_file(path);
    }
    result
}
