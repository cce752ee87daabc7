//! `netping certs`: keys that only their owner can read, and no file replaced by accident.

mod common;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::Path, process::Output};

use common::{netping, stderr};

/// A set of certificates, in the order of their names.
const SET: [&str; 5] = [
    "ca.pem",
    "client.key",
    "client.pem",
    "server.key",
    "server.pem",
];

fn certs(out: &Path, flags: &[&str]) -> Output {
    netping()
        .args(["certs", "--out"])
        .arg(out)
        .args(flags)
        .output()
        .unwrap()
}

fn certs_fine(out: &Path, flags: &[&str]) -> String {
    let output = certs(out, flags);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// All that is in a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

fn names(contents: &BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    contents.keys().map(String::as_str).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_set_has_secret_keys_and_says_how_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/certs");
    let said = certs_fine(&out, &[]);
    let made = contents(&out);
    // Above all, no key of the authority.
    assert_eq!(names(&made), SET);
    assert_eq!(mode(&out), 0o700);
    for name in SET {
        let text = std::str::from_utf8(&made[name]).unwrap();
        let secret = Path::new(name).extension().unwrap() == "key";
        assert_eq!(text.contains("BEGIN PRIVATE KEY"), secret, "{name}");
        assert_eq!(text.contains("BEGIN CERTIFICATE"), !secret, "{name}");
        if secret {
            assert_eq!(mode(&out.join(name)), 0o600, "{name}");
        }
        assert!(
            said.contains(&format!("wrote {}\n", out.join(name).display())),
            "{said}"
        );
    }
    let out = out.display();
    for command in [
        format!("netping-server-tokio --tls-cert {out}/server.pem --tls-key {out}/server.key\n"),
        format!("netping latency tcp+tls://localhost:8004 --tls-ca {out}/ca.pem\n"),
        format!(" --tls-client-ca {out}/ca.pem\n"),
        format!(" --tls-cert {out}/client.pem --tls-key {out}/client.key\n"),
    ] {
        assert!(said.contains(&command), "{command}\n{said}");
    }
    assert!(said.contains("own key is not kept"), "{said}");
    assert!(!said.contains("PRIVATE"), "{said}");
}

#[test]
fn suggested_commands_use_the_given_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let said = certs_fine(
        &folder.path().join("name"),
        &["--host", "server.example", "--host", "10.0.0.1"],
    );
    assert!(said.contains("tcp+tls://server.example:8004"), "{said}");
    let said = certs_fine(&folder.path().join("address"), &["--host", "fd00::1"]);
    assert!(said.contains("tcp+tls://[fd00::1]:8004"), "{said}");
}

#[test]
fn existing_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    certs_fine(folder.path(), &[]);
    let before = contents(folder.path());
    let output = certs(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(
        SET.iter().all(|name| text.contains(name)) && text.contains("--force"),
        "{text}"
    );
    assert!(output.stdout.is_empty());
    assert!(contents(folder.path()) == before);
}

#[test]
fn one_existing_file_prevents_the_whole_set() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("client.key"), "another's").unwrap();
    let output = certs(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(
        text.contains("client.key") && !text.contains("server.key"),
        "{text}"
    );
    let after = contents(folder.path());
    assert_eq!(names(&after), ["client.key"]);
    assert_eq!(after["client.key"], b"another's");
}

#[test]
fn force_replaces_the_whole_set() {
    let folder = tempfile::tempdir().unwrap();
    certs_fine(folder.path(), &[]);
    let before = contents(folder.path());
    let key = folder.path().join("server.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    certs_fine(folder.path(), &["--force"]);
    let after = contents(folder.path());
    assert_eq!(names(&after), SET);
    for name in SET {
        assert!(before[name] != after[name], "{name}");
    }
    assert_eq!(mode(&key), 0o600);
}

#[test]
fn a_failed_replacement_leaves_no_keys_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("ca.pem")).unwrap();
    let output = certs(folder.path(), &["--force"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("cannot replace"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn invalid_hosts_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("certs");
    for host in [
        "two words",
        "a..b",
        "300.1.1.1",
        "[::1]",
        "localhost:8004",
        "",
    ] {
        let output = certs(&out, &["--host", "localhost", "--host", host]);
        assert_eq!(output.status.code(), Some(2), "{host}");
        let text = stderr(&output);
        assert!(
            text.contains(&format!(
                "--host '{host}' is neither a DNS name nor an IP address"
            )),
            "{text}"
        );
    }
    assert_eq!(
        certs(&out, &["--psk", "--host", "localhost"]).status.code(),
        Some(2)
    );
    assert_eq!(
        netping().arg("certs").output().unwrap().status.code(),
        Some(2)
    );
    assert!(!out.exists());
}

#[test]
fn errors_name_the_folder_that_cannot_be_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for out in [file.clone(), file.join("certs")] {
        let output = certs(&out, &[]);
        assert_eq!(output.status.code(), Some(3));
        let text = stderr(&output);
        assert!(
            text.contains(&format!("cannot create the folder {}", out.display())),
            "{text}"
        );
    }
}

#[test]
fn a_pre_shared_key_is_a_single_secret_file_of_32_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("psk.key");
    let said = certs_fine(folder.path(), &["--psk"]);
    let first = contents(folder.path());
    assert_eq!(names(&first), ["psk.key"]);
    assert_eq!((first["psk.key"].len(), mode(&key)), (32, 0o600));
    let psk = format!("--psk-file {}\n", key.display());
    assert_eq!(said.matches(&psk).count(), 2, "{said}");

    assert_eq!(certs(folder.path(), &["--psk"]).status.code(), Some(3));
    assert!(contents(folder.path()) == first);
    certs_fine(folder.path(), &["--psk", "--force"]);
    assert!(contents(folder.path()) != first);
}
