use std::fmt::Write as _;

use super::*;

mod described;

/// A connection's replies, as a client reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    status: u16,
    body: Vec<u8>,
    is_last: bool,
}

/// The result of a connection: its whole replies, and how it went on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rest {
    /// Nothing is left.
    Nothing,
    /// A reply has begun.
    Cut,
    Refused(ReplyError),
}

/// Reads replies that come in these parts, and then the connection's end.
fn read<'a>(method: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, Rest) {
    let mut reader = ReplyReader::new(method);
    let (mut input, mut body, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_begun = false;
    for part in parts {
        input.extend_from_slice(part);
        while !input.is_empty() {
            has_begun = true;
            let progress = match reader.read(&input, |part| body.extend_from_slice(part)) {
                Ok(progress) => progress,
                Err(error) => return (seen, Rest::Refused(error)),
            };
            input.drain(..progress.used);
            if !progress.is_whole {
                break;
            }
            has_begun = false;
            seen.push(taken(&reader, &mut body));
        }
    }
    if !has_begun {
        return (seen, Rest::Nothing);
    }
    if !reader.end() {
        return (seen, Rest::Cut);
    }
    seen.push(taken(&reader, &mut body));
    (seen, Rest::Nothing)
}

fn taken(reader: &ReplyReader, body: &mut Vec<u8>) -> Seen {
    Seen {
        status: reader.status(),
        body: mem::take(body),
        is_last: reader.is_last(),
    }
}

/// Returns what is seen of a connection to which requests with the method are sent.
fn asked(method: &str, text: &str) -> (Vec<Seen>, Rest) {
    let whole = read(method, [text.as_bytes()]);
    // Whatever the parts, the result is the same.
    let bytes = text.as_bytes().chunks(1);
    let (seen, rest) = read(method, bytes);
    assert_eq!(seen, whole.0, "{text}");
    assert_eq!(
        mem::discriminant(&rest),
        mem::discriminant(&whole.1),
        "{text}"
    );
    whole
}

/// Returns the only reply to a GET.
#[track_caller]
fn reply(text: &str) -> Seen {
    let (mut seen, rest) = asked("GET", text);
    assert_eq!((seen.len(), rest), (1, Rest::Nothing), "{text}");
    seen.remove(0)
}

/// Returns why the reply to a GET is refused.
#[track_caller]
fn refusal(text: &str) -> String {
    match asked("GET", text) {
        (_, Rest::Refused(error)) => error.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

fn body(text: &str) -> String {
    String::from_utf8(reply(text).body).unwrap()
}

/// Returns a reply with these header lines and body.
fn ok(headers: &[&str], body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{}\r\n{body}", lines(headers))
}

fn lines(headers: &[&str]) -> String {
    let mut text = String::new();
    for line in headers {
        // A string takes all that is written to it.
        let _ = write!(text, "{line}\r\n");
    }
    text
}

#[test]
fn a_body_is_delimited_by_its_length_by_chunks_or_by_the_end() {
    for (headers, sent) in [
        (&["Content-Length: 5"][..], "hello"),
        (&["content-length:5", "CONTENT-LENGTH:  5 "], "hello"),
        (
            &["Transfer-Encoding: chunked"],
            "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ),
        (
            &["Transfer-Encoding: , Chunked ,"],
            "005 ;a=b;c\r\nhello\r\n0;last\r\nX-Sum: 1\r\n\r\n",
        ),
        (&[], "hello"),
    ] {
        assert_eq!(body(&ok(headers, sent)), "hello", "{headers:?}");
    }
    assert_eq!(body(&ok(&["Content-Length: 0"], "")), "");
}

#[test]
fn some_replies_have_no_body_whatever_their_headers_say() {
    let sized = |status| format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
    let chunked = |status| format!("HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n");
    let unsized_ = |status| format!("HTTP/1.1 {status} X\r\n\r\n");
    for (method, status) in [("HEAD", 200), ("HEAD", 404), ("GET", 204), ("GET", 304)] {
        for text in [sized(status), chunked(status), unsized_(status)] {
            // The next one is not taken for a body.
            let (seen, rest) = asked(method, &text.repeat(2));
            let expected = Seen {
                status,
                body: Vec::new(),
                is_last: false,
            };
            assert_eq!(seen, [expected.clone(), expected], "{method} {text}");
            assert_eq!(rest, Rest::Nothing);
        }
    }
    let (seen, _) = asked("CONNECT", &sized(200));
    assert_eq!((seen[0].body.len(), seen[0].is_last), (0, true));
    let (_, rest) = asked("CONNECT", &sized(407));
    assert_eq!(rest, Rest::Cut);
}

#[test]
fn interim_replies_are_skipped_up_to_a_limit() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n\r\n";
    let last = ok(&["Content-Length: 2"], "ok");
    let seen = reply(&format!("{interim}{last}"));
    assert_eq!((seen.status, &*seen.body), (200, &b"ok"[..]));
    let most = MAX_INTERIM as usize / 2;
    // The limit holds for each reply.
    let text = format!("{}{last}", interim.repeat(most)).repeat(2);
    assert_eq!(asked("GET", &text).0.len(), 2);
    assert_eq!(
        refusal(&interim.repeat(most + 1)),
        "more interim replies (status 1xx) than the limit of 20 before the reply"
    );
    assert_eq!(
        refusal("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
        "the reply switches to another protocol (status 101), which was not asked for"
    );
}

#[test]
fn a_connection_is_kept_unless_the_server_ends_it() {
    let length = "Content-Length: 0";
    for (version, headers, is_last) in [
        ("1.1", &[length][..], false),
        ("1.1", &[length, "Connection: keep-alive"], false),
        ("1.1", &[length, "Connection: close"], true),
        ("1.1", &[length, "Connection: Upgrade, CLOSE"], true),
        (
            "1.1",
            &[length, "Connection: close", "Connection: keep-alive"],
            true,
        ),
        ("1.1", &[length, "Connection: closed"], false),
        ("1.0", &[length], true),
        ("1.0", &[length, "Connection: x, Keep-Alive"], false),
        ("1.0", &[length, "Connection: keep-alive, close"], true),
        ("1.1", &[], true),
        ("1.0", &["Connection: keep-alive"], true),
    ] {
        let text = format!("HTTP/{version} 200 OK\r\n{}\r\n", lines(headers));
        assert_eq!(reply(&text).is_last, is_last, "{text}");
    }
}

#[test]
fn chunks_win_over_a_length_and_end_the_connection() {
    for headers in [
        ["Content-Length: 3", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 3"],
    ] {
        let seen = reply(&ok(&headers, "5\r\nhello\r\n0\r\n\r\n"));
        assert_eq!((&*seen.body, seen.is_last), (&b"hello"[..], true));
    }
}

#[test]
fn a_length_that_is_not_one_number_is_refused() {
    let refused = |value: &str| refusal(&ok(&[&format!("Content-Length: {value}")], ""));
    for value in [
        "", "x", "+5", "-5", "5 5", "5, 5", "5,6", "0x5", "5.0", "\u{661}",
    ] {
        let text = refused(value);
        let start = "the Content-Length of the reply is not a number";
        assert!(text.starts_with(start), "{value}: {text}");
    }
    for value in ["18446744073709551616", "99999999999999999999"] {
        let expected = format!("the Content-Length of the reply is too large: {value}");
        assert_eq!(refused(value), expected);
    }
    let two = ok(&["Content-Length: 5", "Content-Length: 7"], "");
    assert_eq!(
        refusal(&two),
        "the reply has two different Content-Lengths: 5 and 7"
    );
    let largest = ok(&["Content-Length: 18446744073709551615"], "");
    assert_eq!(asked("GET", &largest).1, Rest::Cut);
}

#[test]
fn transfer_codings_other_than_chunked_are_refused_by_name() {
    let refused = |lines: &[&str]| refusal(&ok(lines, "0\r\n\r\n"));
    for (lines, coding) in [
        (&["Transfer-Encoding: gzip, chunked"][..], "gzip"),
        (&["Transfer-Encoding: chunked, gzip"], "gzip"),
        (
            &["Transfer-Encoding: chunked", "Transfer-Encoding: br"],
            "br",
        ),
        (&["Transfer-Encoding: identity"], "identity"),
        (&["Transfer-Encoding: chunked;q=1"], "chunked;q=1"),
        (&["Transfer-Encoding: xchunked"], "xchunked"),
    ] {
        assert_eq!(
            refused(lines),
            format!("the reply has the transfer coding \"{coding}\"; only \"chunked\" is known")
        );
    }
    let twice = "the reply has the transfer coding \"chunked\" more than once";
    assert_eq!(refused(&["Transfer-Encoding: chunked, chunked"]), twice);
    assert_eq!(refused(&["Transfer-Encoding: chunked"; 2]), twice);
    assert_eq!(
        refused(&["Transfer-Encoding: ,"]),
        "the Transfer-Encoding of the reply is empty"
    );
    assert_eq!(
        refusal("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "the reply is of HTTP/1.0 and has a Transfer-Encoding, which only HTTP/1.1 has"
    );
}

#[test]
fn each_head_counts_whether_it_is_that_of_the_last_reply_or_not() {
    let replies = [
        (ok(&["Content-Length: 4"], "pong"), "pong"),
        (ok(&["Content-Length: 4"], "ping"), "ping"),
        (ok(&["Content-Length: 5"], "pongs"), "pongs"),
        (ok(&["Content-Length: 4", "A: b"], "pong"), "pong"),
        (ok(&["Content-Length: 4"], "pong"), "pong"),
        // Interim ones too, and long ones.
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(2), ""),
        (ok(&["Content-Length: 4"], "pong"), "pong"),
        (
            ok(
                &["Content-Length: 1", &format!("A: {}", "b".repeat(5_000))],
                "x",
            ),
            "x",
        ),
        (ok(&["Content-Length: 4"], "pong"), "pong"),
    ];
    let text: String = replies.iter().map(|(text, _)| text.as_str()).collect();
    let (seen, rest) = read("GET", text.as_bytes().chunks(500));
    let bodies: Vec<_> = seen
        .into_iter()
        .map(|seen| String::from_utf8(seen.body).unwrap())
        .collect();
    let expected: Vec<_> = replies
        .iter()
        .map(|(_, body)| *body)
        .filter(|body| !body.is_empty())
        .collect();
    assert_eq!(
        (bodies, rest),
        (
            expected.iter().map(ToString::to_string).collect(),
            Rest::Nothing
        )
    );
}

#[test]
fn a_long_head_is_not_kept() {
    let mut reader = ReplyReader::new("GET");
    for (length, kept) in [(2 << 10, 2 << 10), ((2 << 10) + 1, 0)] {
        let rest = ok(&["Content-Length: 0", "A: "], "").len();
        let line = format!("A: {}", "b".repeat(length - rest));
        let head = ok(&["Content-Length: 0", &line], "");
        assert!(reader.read(head.as_bytes(), |_| {}).unwrap().is_whole);
        assert_eq!(reader.known.0.len(), kept);
    }
}

#[test]
fn malformed_chunks_are_refused() {
    let refused = |chunks: &str| refusal(&ok(&["Transfer-Encoding: chunked"], chunks));
    for line in [
        "\r\n",
        "x\r\n",
        "-1\r\n",
        "+1\r\n",
        " 1\r\n",
        "0x1\r\n",
        "1 2\r\n",
        "1\n",
        "1;a\n",
        "1;a\rb\r\n",
        "1_0\r\n",
    ] {
        let text = refused(line);
        let start = "the size of a chunk of the reply is malformed";
        assert!(text.starts_with(start), "{line:?}: {text}");
    }
    assert_eq!(
        refused("10000000000000000\r\n"),
        "the size of a chunk of the reply is too large: 10000000000000000"
    );
    for chunks in [
        "2\r\nabc\r\n",
        "2\r\nab0\r\n",
        "2\r\nab\n0\r\n",
        "2\r\nab\rx",
    ] {
        let text = refused(chunks);
        let start = "a chunk of the reply is longer than its size, or has no end of line";
        assert!(text.starts_with(start), "{chunks:?}: {text}");
    }
    for trailers in ["X\r\n\r\n", "X: 1\r\n folded\r\n\r\n", "X : 1\r\n\r\n"] {
        refused(&format!("0\r\n{trailers}"));
    }
}

#[test]
fn the_parts_of_a_reply_are_bounded() {
    let long = |length: usize| "x".repeat(length);
    let chunked = |chunks: &str| ok(&["Transfer-Encoding: chunked"], chunks);

    let head = |length| {
        let rest = ok(&["Content-Length: 0", "X: "], "").len();
        ok(
            &["Content-Length: 0", &format!("X: {}", long(length - rest))],
            "",
        )
    };
    assert_eq!(read("GET", [head(MAX_HEAD).as_bytes()]).0.len(), 1);
    let too_long = "the head of the reply is longer than the limit of 64 KiB";
    let refused = |text: &str| match read("GET", text.as_bytes().chunks(10_000)).1 {
        Rest::Refused(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&head(MAX_HEAD + 1)), too_long);
    assert_eq!(refused(&head(MAX_HEAD * 3)), too_long);
    // One that never ends is not waited for.
    let endless = ok(&[&format!("X: {}", long(MAX_HEAD))], "");
    assert_eq!(refused(endless.trim_ascii_end()), too_long);

    let many = |count: usize| ok(&vec!["A: b"; count], "");
    assert_eq!(asked("GET", &many(MAX_HEADERS)).0.len(), 1);
    let too_many = "the reply has more headers than the limit of 100";
    assert_eq!(refusal(&many(MAX_HEADERS + 1)), too_many);

    let extended = |length: usize| chunked(&format!("1;{}\r\na\r\n0\r\n\r\n", long(length - 4)));
    assert_eq!(body(&extended(4 << 10)), "a");
    let too_long =
        "the line with the size of a chunk of the reply is longer than the limit of 4 KiB";
    assert_eq!(refusal(&extended((4 << 10) + 1)), too_long);
    assert_eq!(refusal(&chunked(&"0".repeat(MAX_CHUNK_LINE))), too_long);

    let trailed = |length: usize| chunked(&format!("0\r\nX: {}\r\n\r\n", long(length - 7)));
    assert_eq!(read("GET", [trailed(MAX_HEAD).as_bytes()]).0.len(), 1);
    let too_long = "the trailers of the reply are longer than the limit of 64 KiB";
    assert_eq!(refused(&trailed(MAX_HEAD + 1)), too_long);
    let many = chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1)));
    assert_eq!(refusal(&many), too_many);
}

#[test]
fn a_malformed_head_is_refused_with_the_line_that_is_wrong() {
    for (text, expected) in [
        (
            "SSH-2.0-OpenSSH_9.9\r\n",
            "the reply does not begin with HTTP/1.1 or HTTP/1.0: \"SSH-2.0-OpenSSH_9.9\\r\\n\"",
        ),
        (
            "HTTP/2 200\r\n\r\n",
            "the reply does not begin with HTTP/1.1 or HTTP/1.0: \"HTTP/2 200\\r\\n\\r\\n\"",
        ),
        (
            "HTTP/1.1 20 OK\r\n\r\n",
            "the status line of the reply is malformed: \"HTTP/1.1 20 OK\\r\\n\\r\\n\"",
        ),
        (
            "HTTP/1.1 099 X\r\n\r\n",
            "the status line of the reply is malformed: \"HTTP/1.1 099 X\\r\\n\\r\\n\"",
        ),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nno colon\r\n\r\n",
            "a header of the reply is malformed: \"no colon\\r\\n\"",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
            "a header of the reply is malformed: \"Content-Length : 5\\r\\n\"",
        ),
        (
            "HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
            "a header of the reply is malformed: \"A: b\\x00\\r\\n\"",
        ),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nB: d\r\n\r\n",
            "a header of the reply goes on in the next line, which is obsolete (RFC 9112, section 5.2): \" c\\r\\n\"",
        ),
    ] {
        let (_, rest) = read("GET", [text.as_bytes()]);
        let Rest::Refused(error) = rest else {
            panic!("{text}: {rest:?}")
        };
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_end_within_a_reply_leaves_it_cut() {
    for text in [
        "HTT",
        "HTTP/1.1 200 OK\r\nContent",
        "HTTP/1.1 100 Continue\r\n\r\n",
        &ok(&["Content-Length: 3"], "ab"),
        &ok(&["Transfer-Encoding: chunked"], ""),
        &ok(&["Transfer-Encoding: chunked"], "2"),
        &ok(&["Transfer-Encoding: chunked"], "2\r\nab"),
        &ok(&["Transfer-Encoding: chunked"], "2\r\nab\r"),
        &ok(&["Transfer-Encoding: chunked"], "2\r\nab\r\n0\r\n"),
        &ok(&["Transfer-Encoding: chunked"], "2\r\nab\r\n0\r\nX: y\r\n"),
    ] {
        assert_eq!(asked("GET", text), (Vec::new(), Rest::Cut), "{text:?}");
    }
}
