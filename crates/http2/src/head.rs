//! Heads of requests and replies, prepared before they are sent.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The head of requests that are alike: the method, the target and the headers. Or that of replies: the
/// status and the headers, or their trailers. A connection encodes it once, and knows it again.
#[derive(Debug, Clone)]
pub struct Head(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    number: u64,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    is_head: bool,
}

/// The request's target and method, which go before its headers (RFC 9113, section 8.3.1).
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The method.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host and the port.
    pub authority: &'a str,
    /// The path and the query.
    pub path: &'a str,
}

impl Head {
    /// Prepares a head. Headers keep their order; their names are in lower case.
    pub fn new<'a>(
        target: Target<'_>,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Self {
        let pseudo = [
            (":method", target.method),
            (":scheme", target.scheme),
            (":path", target.path),
            (":authority", target.authority),
        ];
        let pseudo = pseudo.map(|(name, value)| (name.into(), value.into()));
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_vec(), value.to_vec()));
        let fields = pseudo.into_iter().chain(headers);
        Self::of(fields.collect(), target.method == "HEAD")
    }

    /// Prepares the head of replies, or their trailers, which have no status. Fields keep their order; their
    /// names are in lower case.
    pub fn of_reply(status: Option<u16>, fields: &[(&str, &str)]) -> Self {
        let status = status.map(|status| (b":status".to_vec(), status.to_string().into_bytes()));
        let fields = fields.iter();
        let fields =
            fields.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        Self::of(status.into_iter().chain(fields).collect(), false)
    }

    fn of(fields: Vec<(Vec<u8>, Vec<u8>)>, is_head: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(Inner {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            fields,
            is_head,
        }))
    }

    /// Returns a number that no other head in this process has.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn fields(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.0.fields
    }

    /// Returns true if the method is `HEAD`: a reply's content-length then counts a body that does not come.
    pub(crate) fn is_head(&self) -> bool {
        self.0.is_head
    }
}
