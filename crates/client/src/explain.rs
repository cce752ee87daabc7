//! The cause of a start that failed, found by asking the server itself.

use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    scheme::{Protocol, Scheme},
    target::Target,
};

use crate::{error::StartError, plan::Destination, probe::spoken::Spoken, transport::Failure};

/// Returns the error of a server that could not be reached, or whose first reply was wrong: with the protocol
/// that it speaks instead, if it shows one.
pub(crate) fn explained(server: &Destination, failure: Failure) -> StartError {
    let url = &server.url;
    let spoken = may_be_foreign(&failure).then(|| spoken(server)).flatten();
    match spoken.and_then(|spoken| Some((spoken, spoken.meant(url.scheme)?))) {
        None => StartError::Server(url.clone(), failure),
        Some((spoken, meant)) => StartError::Speaks {
            failure,
            spoken,
            meant: with_scheme(url, meant),
            target: url.clone(),
        },
    }
}

/// Returns true for failures that a server of another protocol brings about.
fn may_be_foreign(failure: &Failure) -> bool {
    match failure.kind {
        // The two agree on TLS, and not on who is who.
        ErrorKind::Tls => !failure.detail.to_lowercase().contains("certificate"),
        kind => matches!(
            kind,
            ErrorKind::Protocol
                | ErrorKind::Eof
                | ErrorKind::Reset
                | ErrorKind::Timeout
                | ErrorKind::Goaway
                | ErrorKind::Mismatch
        ),
    }
}

/// Returns what the server of a target over TCP speaks, if it shows it.
fn spoken(server: &Destination) -> Option<Spoken> {
    let is_udp = server.url.scheme.protocol() == Protocol::Quic;
    if is_udp || server.unix_socket.is_some() || server.in_process.is_some() {
        return None;
    }
    let endpoint = server.endpoint().ok()?;
    Spoken::at(endpoint.addresses.first()?)
}

/// Returns a target's URL with another scheme.
fn with_scheme(target: &Target, scheme: Scheme) -> String {
    let path = match scheme.protocol() {
        same if same == target.scheme.protocol() => &target.path,
        Protocol::Http => "/",
        Protocol::Grpc if names_method(&target.path) => &target.path,
        _ => "",
    };
    format!("{}://{}{path}", scheme.as_str(), target.authority())
}

/// Returns true for a path that a gRPC call may have: `/package.Service/Method`.
fn names_method(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.contains(['?', '/']);
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts.is_some_and(|(service, method)| is_part(service) && is_part(method))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use netping_protocol::secure::Connector;

    use super::*;
    use crate::{plan::Trust, probe::metrics::ServerSource};

    #[test]
    fn a_server_that_speaks_something_else_may_be_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert_ne!(stream.read(&mut [0; 1024]).unwrap(), 0);
            // A TLS alert: unexpected message.
            stream.write_all(&[21, 3, 3, 0, 2, 2, 10]).unwrap();
        });
        let clear = (Connector::Plain, Trust::default());
        let target = Destination::new(url.parse().unwrap(), ServerSource::Nowhere, clear);
        let error = explained(&target, Failure::lost(ErrorKind::Eof, "no reply"));
        server.join().unwrap();
        let StartError::Speaks { spoken, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*spoken, Spoken::Tls);
        assert!(error.is_of_server());
    }

    #[test]
    fn the_url_that_was_meant_has_the_scheme_that_is_spoken() {
        let meant = |url: &str, spoken: Spoken| {
            let target: Target = url.parse().unwrap();
            Some(with_scheme(&target, spoken.meant(target.scheme)?))
        };
        let some = |url: &str| Some(url.to_owned());
        assert_eq!(meant("grpc://h:1/a.B/C", Spoken::Http), some("http://h:1/"));
        assert_eq!(meant("http://h:1/x?y", Spoken::Http2), some("grpc://h:1"));
        assert_eq!(
            meant("http://h:1/a.B/C", Spoken::Http2),
            some("grpc://h:1/a.B/C")
        );
        assert_eq!(meant("http://h:1/x", Spoken::Tls), some("https://h:1/x"));
        assert_eq!(meant("https://h:1/x", Spoken::Http), some("http://h:1/x"));
        assert_eq!(
            meant("grpc+tls://h:1/a.B/C", Spoken::Http2),
            some("grpc://h:1/a.B/C")
        );
        assert_eq!(meant("tcp+tls://h:1", Spoken::Lines), some("tcp://h:1"));
        assert_eq!(meant("tcp://h:1", Spoken::Lines), None);
    }
}
