//! Heads of requests.

use super::HEADER_LIST;
use crate::fields::{List, check_name, check_value, decimal};

/// Overhead of a field in the length of a list, in bytes (RFC 9113, section 6.5.2).
const OVERHEAD: usize = 32;

/// The meaning of a request's head to a server. It is determined once for each header block: most are equal
/// to an earlier one.
pub trait Route: Copy {
    /// Returns what this head means.
    fn of(request: &Request) -> Self;
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    list: List,
}

impl Request {
    /// Returns the method.
    pub fn method(&self) -> &[u8] {
        self.get(":method").unwrap_or_default()
    }

    /// Returns the path and the query; empty for CONNECT.
    pub fn path(&self) -> &[u8] {
        self.get(":path").unwrap_or_default()
    }

    /// Returns the value of the first field of this name, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut list = self.list.iter();
        let found = list.find(|(other, _)| other == name.as_bytes())?;
        Some(&found.1)
    }
}

/// The meaning of a header block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning<R> {
    /// The head of a request, and the length of the body that it promises.
    Request(R, Option<u64>),
    /// Fields without a pseudo-header.
    Trailers,
    /// The list is longer than the settings allow.
    TooLong,
    /// A rule of RFC 9113, sections 8.2 and 8.3, is broken.
    Malformed,
}

impl<R: Route> Meaning<R> {
    /// Returns what a list of fields means.
    pub(super) fn of(list: List) -> Self {
        let lengths = list
            .iter()
            .map(|(name, value)| name.len() + value.len() + OVERHEAD);
        if lengths.sum::<usize>() > HEADER_LIST as usize {
            return Self::TooLong;
        }
        let Ok(promised) = check(&list) else {
            return Self::Malformed;
        };
        if !list.first().is_some_and(|(name, _)| name.starts_with(b":")) {
            return Self::Trailers;
        }
        let request = Request { list };
        if has_target(&request) {
            Self::Request(R::of(&request), promised)
        } else {
            Self::Malformed
        }
    }
}

/// Checks the fields by themselves, and returns the content-length.
fn check(list: &List) -> Result<Option<u64>, &'static str> {
    let (mut promised, mut is_regular) = (None, false);
    for (place, (name, value)) in list.iter().enumerate() {
        check_value(value)?;
        if name.starts_with(b":") {
            let known: [&[u8]; 4] = [b":method", b":scheme", b":authority", b":path"];
            let is_twice = list[..place].iter().any(|(other, _)| other == name);
            if is_regular || is_twice || !known.contains(&&**name) {
                return Err("a pseudo-header is unknown, there twice, or after a header");
            }
            continue;
        }
        is_regular = true;
        check_name(name)?;
        match &**name {
            b"te" if value != b"trailers" => return Err("te asks for other than trailers"),
            b"content-length" => {
                let length = decimal(value).ok_or("a content-length is not a number")?;
                if promised.is_some_and(|other| other != length) {
                    return Err("there are two content-lengths");
                }
                promised = Some(length);
            }
            _ => {}
        }
    }
    Ok(promised)
}

/// Returns true if the pseudo-headers are there that the method asks for (RFC 9113, sections 8.3.1 and 8.5).
fn has_target(request: &Request) -> bool {
    let [scheme, path] = [":scheme", ":path"].map(|name| request.get(name));
    match request.method() {
        b"" => false,
        b"CONNECT" => scheme.is_none() && path.is_none() && request.get(":authority").is_some(),
        _ => scheme.is_some() && path.is_some_and(|path| !path.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Route for () {
        fn of(_: &Request) {}
    }

    fn meaning(list: &[(&str, &str)]) -> Meaning<()> {
        let list = list.iter();
        let owned = list.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        Meaning::of(owned.collect())
    }

    const METHOD: (&str, &str) = (":method", "POST");
    const SCHEME: (&str, &str) = (":scheme", "http");
    const PATH: (&str, &str) = (":path", "/");

    #[test]
    fn a_head_that_breaks_a_rule_is_malformed() {
        let whole = |more: &[_]| [&[METHOD, SCHEME, PATH], more].concat();
        let good = Meaning::Request((), None);
        assert_eq!(
            meaning(&whole(&[(":authority", "a"), ("te", "trailers")])),
            good
        );
        let sized = Meaning::Request((), Some(3));
        assert_eq!(meaning(&whole(&[("content-length", "3")])), sized);
        assert_eq!(meaning(&[("a", "b")]), Meaning::Trailers);
        assert_eq!(meaning(&[]), Meaning::Trailers);
        assert_eq!(
            meaning(&[(":method", "CONNECT"), (":authority", "a")]),
            good
        );
        for list in [
            vec![SCHEME, PATH],
            vec![METHOD, PATH],
            vec![METHOD, SCHEME],
            vec![METHOD, SCHEME, (":path", "")],
            vec![(":method", "CONNECT"), PATH, (":authority", "a")],
            vec![METHOD, SCHEME, ("a", "b"), PATH],
            whole(&[PATH]),
            whole(&[(":status", "200")]),
            whole(&[(":other", "x")]),
            whole(&[("te", "gzip")]),
            whole(&[("connection", "close")]),
            whole(&[("Upper", "x")]),
            whole(&[("a", "x\ny")]),
            whole(&[("content-length", "-1")]),
            whole(&[("content-length", "1"), ("content-length", "2")]),
        ] {
            assert_eq!(meaning(&list), Meaning::Malformed, "{list:?}");
        }
    }

    #[test]
    fn a_list_over_the_limit_is_too_long() {
        let list = |length| meaning(&[METHOD, SCHEME, PATH, ("a", &"x".repeat(length))]);
        let others = 11 + 11 + 6 + 1 + 4 * OVERHEAD;
        let room = HEADER_LIST as usize - others;
        assert_eq!(list(room), Meaning::Request((), None));
        assert_eq!(list(room + 1), Meaning::TooLong);
    }
}
