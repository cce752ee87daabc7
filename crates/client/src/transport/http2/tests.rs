use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use netping_http2::{Config, client::Body, fields::Fields};
use netping_measure::error_kind::ErrorKind;
use tokio::{
    io::{
        AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter, DuplexStream, ReadBuf,
        duplex,
    },
    task::LocalSet,
    time,
};

use super::{Handle, Reader, connection::Io, prepare};
use crate::transport::{Failure, Result};

/// A reply's body.
#[derive(Debug, Default)]
struct Seen(Vec<u8>);

impl Reader for Seen {
    fn head(&mut self, _: &Fields) -> Result<()> {
        Ok(())
    }

    fn data(&mut self, data: &[u8]) -> Result<()> {
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn end(&mut self, _: &Fields) -> Result<()> {
        Ok(())
    }
}

const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
/// The reply to the first request: its head, and the body `ab` with the end.
const REPLY: &[u8] = b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x02\0\x01\0\0\0\x01ab";

async fn opened() -> (Handle<DuplexStream>, DuplexStream) {
    let (near, mut far) = duplex(1 << 20);
    let handle = Handle::open(near, Config::default()).await.unwrap();
    far.write_all(SETTINGS).await.unwrap();
    (handle, far)
}

async fn call(handle: &mut Handle<impl Io>) -> Result<Vec<u8>> {
    let request = http::Request::get("http://localhost/").body(()).unwrap();
    let mut seen = Seen::default();
    handle
        .call(&prepare(&request), Body::Short(b"body"), &mut seen)
        .await?;
    Ok(seen.0)
}

/// Reads until the bytes are there.
async fn read_until(far: &mut DuplexStream, wanted: &[u8]) {
    let mut read = Vec::new();
    while !read.windows(wanted.len()).any(|part| part == wanted) {
        assert_ne!(far.read_buf(&mut read).await.unwrap(), 0, "{wanted:?}");
    }
}

/// DATA with the request's body, on a stream.
fn body(stream: u8) -> Vec<u8> {
    [b"\0\0\x04\0\x01\0\0\0", &[stream][..], b"body"].concat()
}

#[tokio::test(flavor = "current_thread")]
async fn one_caller_needs_no_driver_and_several_share_one() {
    LocalSet::new()
        .run_until(async {
            let (mut one, mut far) = opened().await;
            far.write_all(REPLY).await.unwrap();
            assert_eq!(call(&mut one).await.unwrap(), b"ab");
            let mut other = one.share();
            let answer = |stream: u8| {
                let mut reply = REPLY.to_vec();
                reply[8] = stream;
                reply[18] = stream;
                reply
            };
            let server = async {
                read_until(&mut far, &body(5)).await;
                far.write_all(&[answer(5), answer(3)].concat())
                    .await
                    .unwrap();
            };
            let (first, second, ()) = tokio::join!(call(&mut one), call(&mut other), server);
            assert_eq!(
                (first.unwrap(), second.unwrap()),
                (b"ab".to_vec(), b"ab".to_vec())
            );
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn the_first_caller_goes_on_when_a_second_one_comes_within_its_call() {
    LocalSet::new()
        .run_until(async {
            let (mut one, mut far) = opened().await;
            let mut other = one.share();
            let server = async {
                read_until(&mut far, &body(3)).await;
                far.write_all(REPLY).await.unwrap();
                let mut second = REPLY.to_vec();
                (second[8], second[18]) = (3, 3);
                far.write_all(&second).await.unwrap();
            };
            let later = async {
                task_turns().await;
                call(&mut other).await
            };
            let (first, second, ()) = tokio::join!(call(&mut one), later, server);
            assert_eq!(
                (first.unwrap(), second.unwrap()),
                (b"ab".to_vec(), b"ab".to_vec())
            );
        })
        .await;
}

/// Lets the other tasks have some turns.
async fn task_turns() {
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_call_that_is_dropped_is_cancelled() {
    LocalSet::new()
        .run_until(async {
            // RST_STREAM with CANCEL.
            let cancel = |stream| [0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, 8];
            let (mut one, mut far) = opened().await;
            assert!(time::timeout(Duration::ZERO, call(&mut one)).await.is_err());
            read_until(&mut far, &cancel(1)).await;
            let mut other = one.share();
            let both = async { tokio::join!(call(&mut one), call(&mut other)) };
            assert!(time::timeout(Duration::ZERO, both).await.is_err());
            read_until(&mut far, &cancel(5)).await;
        })
        .await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn an_idle_connection_answers_pings_and_sees_its_end() {
    LocalSet::new()
        .run_until(async {
            let (mut handle, mut far) = opened().await;
            far.write_all(REPLY).await.unwrap();
            call(&mut handle).await.unwrap();
            far.write_all(b"\0\0\x08\x06\0\0\0\0\0abcdefgh")
                .await
                .unwrap();
            read_until(&mut far, b"\0\0\x08\x06\x01\0\0\0\0abcdefgh").await;
            drop(handle);
            // GOAWAY without an error.
            read_until(&mut far, b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0").await;
            assert_eq!(far.read(&mut [0; 9]).await.unwrap(), 0);
        })
        .await;
}

/// Returns the failures of so many callers' calls, to which the server sends these bytes and closes, and true if the
/// connection is spent for all of them.
async fn ended(bytes: &[u8], callers: usize) -> (Vec<Failure>, bool) {
    LocalSet::new()
        .run_until(async {
            let (near, mut far) = duplex(1 << 20);
            let handle = Handle::open(near, Config::default()).await.unwrap();
            let failures = RefCell::new(Vec::new());
            let calls = (0..callers).map(|_| async {
                let mut own = handle.share();
                let failure = call(&mut own).await.unwrap_err();
                failures.borrow_mut().push(failure);
                own.is_spent()
            });
            let server = async {
                read_until(&mut far, &body(callers as u8 * 2 - 1)).await;
                far.write_all(bytes).await.unwrap();
                far.shutdown().await.unwrap();
            };
            let (spent, ()) = tokio::join!(futures_util::future::join_all(calls), server);
            let spent = spent.into_iter().all(|spent| spent);
            (failures.into_inner(), spent)
        })
        .await
}

#[tokio::test(flavor = "current_thread")]
async fn the_end_of_a_connection_is_told_by_its_kind() {
    let goaway = |last, reason| {
        [
            SETTINGS,
            &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, reason],
        ]
        .concat()
    };
    for callers in [1, 2] {
        let last = callers as u8 * 2 - 1;
        for (bytes, kind, is_unprocessed, is_spent) in [
            (b"".to_vec(), ErrorKind::Eof, false, true),
            (SETTINGS.to_vec(), ErrorKind::Eof, false, true),
            // An end within a frame.
            (
                [SETTINGS, b"\0\0\x09\x01\x04\0\0\0\x01abc"].concat(),
                ErrorKind::Eof,
                false,
                true,
            ),
            (goaway(0, 0), ErrorKind::Goaway, true, true),
            (goaway(0, 11), ErrorKind::Goaway, true, true),
            (goaway(last, 11), ErrorKind::Goaway, false, true),
            (
                b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
                ErrorKind::Protocol,
                false,
                false,
            ),
            (
                [SETTINGS, b"\0\0\x01\x06\0\0\0\0\0x"].concat(),
                ErrorKind::Protocol,
                false,
                false,
            ),
        ] {
            let (failures, spent) = ended(&bytes, callers).await;
            assert_eq!(failures.len(), callers);
            for failure in failures {
                let found = (failure.kind, failure.lost, failure.unprocessed);
                assert_eq!(found, (kind, true, is_unprocessed), "{bytes:?}: {failure}");
            }
            assert_eq!(spent, is_spent, "{bytes:?}");
        }
    }
}

/// The client's end of a connection, whose end is an error.
struct Torn(DuplexStream);

impl AsyncRead for Torn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(cx, buffer))?;
        if buffer.filled().len() == before {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Torn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// GOAWAY of a server that has processed the first stream, and wants calm.
const CALM: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\x0b";

#[tokio::test(flavor = "current_thread")]
async fn a_goodbye_says_more_than_the_reset_after_it() {
    LocalSet::new()
        .run_until(async {
            for is_answered in [true, false] {
                let (near, mut far) = duplex(1 << 20);
                let mut handle = Handle::open(Torn(near), Config::default()).await.unwrap();
                let reply = if is_answered { REPLY } else { b"" };
                far.write_all(&[SETTINGS, reply].concat()).await.unwrap();
                let server = async {
                    read_until(&mut far, &body(1)).await;
                    far.write_all(CALM).await.unwrap();
                    drop(far);
                };
                let (called, ()) = tokio::join!(call(&mut handle), server);
                if is_answered {
                    assert_eq!(called.unwrap(), b"ab");
                } else {
                    let failure = called.unwrap_err();
                    let found = (failure.kind, failure.unprocessed);
                    assert_eq!(found, (ErrorKind::Goaway, false));
                }
                // The next request has a connection of its own.
                assert!(handle.is_spent(), "{is_answered}");
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn what_waits_for_a_stream_when_the_connection_ends_can_be_sent_again() {
    LocalSet::new()
        .run_until(async {
            let (near, mut far) = duplex(1 << 20);
            let mut one = Handle::open(near, Config::default()).await.unwrap();
            let mut other = one.share();
            // SETTINGS: one stream at a time.
            far.write_all(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x01")
                .await
                .unwrap();
            assert!(!one.is_spent());
            let server = async {
                read_until(&mut far, &body(1)).await;
                far.shutdown().await.unwrap();
            };
            let (begun, waits, ()) = tokio::join!(call(&mut one), call(&mut other), server);
            for (failure, is_unprocessed) in [(begun, false), (waits, true)] {
                let failure = failure.unwrap_err();
                let found = (failure.kind, failure.lost, failure.unprocessed);
                assert_eq!(found, (ErrorKind::Eof, true, is_unprocessed));
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_request_that_comes_after_the_end_can_be_sent_again() {
    LocalSet::new()
        .run_until(async {
            let (mut one, mut far) = opened().await;
            let mut late = one.share();
            let server = async {
                read_until(&mut far, &body(1)).await;
                far.shutdown().await.unwrap();
            };
            let (begun, ()) = tokio::join!(call(&mut one), server);
            for (failure, is_unprocessed) in [(begun, false), (call(&mut late).await, true)] {
                let failure = failure.unwrap_err();
                let found = (failure.kind, failure.lost, failure.unprocessed);
                assert_eq!(found, (ErrorKind::Eof, true, is_unprocessed));
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn to_look_at_a_connection_leaves_its_caller_waiting_for_the_reply() {
    LocalSet::new()
        .run_until(async {
            let (mut one, mut far) = opened().await;
            let mut other = one.share();
            // A task of its own, which nothing but the reply wakes.
            let called = tokio::task::spawn_local(async move { call(&mut one).await });
            read_until(&mut far, &body(1)).await;
            assert!(!other.is_spent());
            far.write_all(REPLY).await.unwrap();
            let reply = time::timeout(Duration::from_mins(1), called).await.unwrap();
            assert_eq!(reply.unwrap().unwrap(), b"ab");
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_reset_concerns_its_request_alone() {
    LocalSet::new()
        .run_until(async {
            let (mut handle, mut far) = opened().await;
            for (stream, reason, is_unprocessed) in [(1, 8, false), (3, 7, true)] {
                let reset = [0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, reason];
                let server = async {
                    read_until(&mut far, &body(stream)).await;
                    far.write_all(&reset).await.unwrap();
                };
                let (called, ()) = tokio::join!(call(&mut handle), server);
                let failure = called.unwrap_err();
                let found = (failure.kind, failure.lost, failure.unprocessed);
                assert_eq!(found, (ErrorKind::Reset, false, is_unprocessed));
                assert!(!handle.is_spent());
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn what_a_stream_holds_back_is_flushed_as_soon_as_it_can_be() {
    LocalSet::new()
        .run_until(async {
            // Like TLS on a socket that is full: it takes all that is written, and passes little on.
            let (near, mut far) = duplex(16);
            let client = async {
                let mut handle = Handle::open(BufWriter::new(near), Config::default()).await?;
                call(&mut handle).await
            };
            let server = async {
                read_until(&mut far, &body(1)).await;
                far.write_all(&[SETTINGS, REPLY].concat()).await.unwrap();
            };
            let both = async { tokio::join!(client, server) };
            let (reply, ()) = time::timeout(Duration::from_mins(1), both).await.unwrap();
            assert_eq!(reply.unwrap(), b"ab");
        })
        .await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn parts_of_many_replies_do_not_fill_the_connections_window() {
    LocalSet::new()
        .run_until(async {
            let (mut one, mut far) = opened().await;
            let mut other = one.share();
            let data = |stream, flags| {
                let header = [0, 0x3A, 0x98, 0, flags, 0, 0, 0, stream];
                [&header[..], &[b'x'; 15_000]].concat()
            };
            let server = async {
                read_until(&mut far, &body(3)).await;
                for stream in [1, 3] {
                    let head = [0, 0, 1, 1, 4, 0, 0, 0, stream, 0x88];
                    far.write_all(&head).await.unwrap();
                }
                // The connection's window has room for four.
                for stream in [1, 3, 1, 3] {
                    far.write_all(&data(stream, 0)).await.unwrap();
                }
                read_until(&mut far, b"\0\0\x04\x08\0\0\0\0\0").await;
                for stream in [1, 3] {
                    far.write_all(&data(stream, 1)).await.unwrap();
                }
            };
            let both = async { tokio::join!(call(&mut one), call(&mut other), server) };
            let (first, second, ()) = time::timeout(Duration::from_mins(1), both).await.unwrap();
            assert_eq!(first.unwrap().len(), 45_000);
            assert_eq!(second.unwrap().len(), 45_000);
        })
        .await;
}
