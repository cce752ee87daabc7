//! Replies are read as what they were made from.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

/// A reply, and its form.
#[derive(Debug, Clone)]
struct Described {
    status: u16,
    body: Vec<u8>,
    form: Form,
    closes: bool,
    interim: usize,
    other_headers: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
enum Form {
    /// With this number of `Content-Length` headers.
    Length(usize),
    /// In chunks of these sizes, with these extensions and trailers; with a `Content-Length` too.
    Chunked(Vec<usize>, String, Vec<(String, String)>, bool),
}

impl Described {
    fn rendered(&self) -> Vec<u8> {
        let interim = "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n".repeat(self.interim);
        let others = fields(&self.other_headers);
        let mut text = format!("{interim}HTTP/1.1 {}\r\n{others}", self.status);
        if self.closes {
            text += "Connection: x, Close\r\n";
        }
        let mut bytes = Vec::new();
        match &self.form {
            Form::Length(times) => {
                text += &format!("Content-Length: {}\r\n", self.body.len()).repeat(*times);
                bytes.extend_from_slice(&self.body);
            }
            Form::Chunked(sizes, extension, trailers, has_length) => {
                if *has_length {
                    text += "Content-Length: 3\r\n";
                }
                text += "Transfer-Encoding: chunked\r\n";
                bytes.extend(chunked(&self.body, sizes, extension, trailers));
            }
        }
        [text.as_bytes(), b"\r\n", &bytes].concat()
    }

    fn seen(&self) -> Seen {
        let is_doubtful = matches!(self.form, Form::Chunked(.., true));
        Seen {
            status: self.status,
            body: self.body.clone(),
            is_last: self.closes || is_doubtful,
        }
    }
}

fn fields(headers: &[(String, String)]) -> String {
    let line = |(name, value): &(String, String)| format!("{name}: {value}");
    let all: Vec<String> = headers.iter().map(line).collect();
    lines(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

fn chunked(
    mut body: &[u8],
    sizes: &[usize],
    extension: &str,
    trailers: &[(String, String)],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for size in sizes.iter().cycle() {
        if body.is_empty() {
            break;
        }
        let (chunk, rest) = body.split_at((*size).min(body.len()));
        bytes.extend(format!("{:X}{extension}\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        body = rest;
    }
    bytes.extend(format!("0{extension}\r\n{}\r\n", fields(trailers)).bytes());
    bytes
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    vec(("X-[a-z]{0,9}", "[!-~]([ -~]{0,20}[!-~])?"), 0..5)
}

fn form() -> impl Strategy<Value = Form> {
    let chunks = (
        vec(1..40_usize, 1..4),
        "( ?;[a-z]{1,5}(=[a-z]{1,3})?)?",
        headers(),
        any::<bool>(),
    );
    prop_oneof![
        (1..4_usize).prop_map(Form::Length),
        chunks.prop_map(|(sizes, extension, trailers, has_length)| {
            Form::Chunked(sizes, extension, trailers, has_length)
        }),
    ]
}

fn described() -> impl Strategy<Value = Described> {
    (
        select(vec![200, 201, 301, 404, 500, 999]),
        vec(any::<u8>(), 0..100),
        form(),
        any::<bool>(),
        0..3_usize,
        headers(),
    )
        .prop_map(
            |(status, body, form, closes, interim, other_headers)| Described {
                status,
                body,
                form,
                closes,
                interim,
                other_headers,
            },
        )
}

proptest! {
    #[test]
    fn replies_mean_the_same_however_they_are_framed_and_cut(
        replies in vec(described(), 1..4),
        cuts in vec(1..60_usize, 1..8),
        ends in option::of(vec(any::<u8>(), 0..50)),
    ) {
        let mut bytes: Vec<u8> = replies.iter().flat_map(Described::rendered).collect();
        let mut expected: Vec<Seen> = replies.iter().map(Described::seen).collect();
        if let Some(body) = ends {
            bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n");
            bytes.extend_from_slice(&body);
            expected.push(Seen { status: 200, body, is_last: true });
        }
        let mut parts = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (part, after) = rest.split_at((*cut).min(rest.len()));
            parts.push(part);
            rest = after;
        }
        prop_assert_eq!(read("GET", parts), (expected, Rest::Nothing));
    }

    #[test]
    fn any_bytes_are_read_the_same_however_they_are_cut(
        reply in described(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 1..60_usize,
    ) {
        let mut bytes = reply.rendered();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (seen, rest) = read("GET", [&bytes[..]]);
        let (cut_seen, cut_rest) = read("GET", bytes.chunks(cut));
        prop_assert_eq!(seen, cut_seen);
        prop_assert_eq!(mem::discriminant(&rest), mem::discriminant(&cut_rest));
    }
}
