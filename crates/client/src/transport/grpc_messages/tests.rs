//! Messages on streams of a server that misbehaves in one way at a time.

use std::future::Future;

use bytes::BytesMut;
use h2::{RecvStream, SendStream, server};
use http::{HeaderMap, Request, Response};
use netping_http2::Config;
use netping_protocol::frame::Reply;
use tokio::{net::UnixStream, sync::mpsc, task::LocalSet, time::timeout};

use super::*;
use crate::transport::{http2::prepare, socket::Stream};

/// Sends the number of the caller's request, and wants it back.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    pub(crate) head: Head,
    /// The number tells which reply is whose.
    pub(crate) tells: bool,
}

impl Conversation for Numbers {
    fn head(&self) -> &Head {
        &self.head
    }

    fn matching(&self) -> Option<Arc<Matching>> {
        self.tells.then(|| Matching::at(&[1], &[1]).into())
    }

    fn put(&self, exchange: &Exchange, message: &mut Vec<u8>) {
        message.extend_from_slice(&number(exchange.caller() * 1000 + exchange.sequence()));
    }

    fn examine(&self, _: &Exchange, message: &[u8], reply: &[u8]) -> Result<()> {
        let wrong = || Failure::mismatch("is another number");
        (message == reply).then_some(()).ok_or_else(wrong)
    }
}

/// Length of a message with its prefix.
pub(crate) const LENGTH: usize = PREFIX + 5;

/// Returns a message whose field 1 is a number (`fixed32`).
pub(crate) fn number(number: u32) -> Vec<u8> {
    [&[0, 0, 0, 0, 5, (1 << 3) | 5], &number.to_le_bytes()[..]].concat()
}

/// A stream at the server.
struct Served {
    request: RecvStream,
    reply: SendStream<Bytes>,
}

impl Served {
    /// Returns the next message; `None` at the stream's end.
    async fn message(&mut self) -> Option<Bytes> {
        let mut message = BytesMut::new();
        while message.len() < LENGTH {
            let part = self.request.data().await?.ok()?;
            message.extend_from_slice(&part);
        }
        Some(message.freeze())
    }

    fn send(&mut self, bytes: impl Into<Bytes>) {
        self.reply.send_data(bytes.into(), false).unwrap();
    }

    fn end(&mut self, status: &str) {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", status.parse().unwrap());
        self.reply.send_trailers(trailers).unwrap();
    }
}

/// Lets a client use a connection whose streams are served by `serve`; returns the client's result, and the number of
/// streams.
async fn connected<F: Future<Output = ()> + 'static, O>(
    limits: StreamLimits,
    tells: bool,
    serve: fn(Served) -> F,
    client: impl AsyncFnOnce(MessageHandle<Numbers>) -> O,
) -> (O, usize) {
    let run = async {
        let (near, far) = UnixStream::pair().unwrap();
        let (told, mut streams) = mpsc::unbounded_channel();
        task::spawn_local(async move {
            let mut connection = server::handshake(far).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let head = Response::builder().header("content-type", "application/grpc");
                let head = head.body(()).unwrap();
                let reply = respond.send_response(head, false).unwrap();
                let request = request.into_body();
                let _ = told.send(());
                task::spawn_local(serve(Served { request, reply }));
            }
        });
        let connection = Handle::open(Stream::Unix(near), Config::default()).await;
        let request = Request::post("http://localhost/").body(()).unwrap();
        let head = prepare(&request);
        let conversation = Numbers { head, tells };
        let handle = MessageHandle::new(connection.unwrap(), conversation, limits);
        let result = client(handle).await;
        let mut opened = 0;
        while streams.recv().await.is_some() {
            opened += 1;
        }
        (result, opened)
    };
    let run = timeout(Duration::from_mins(1), run);
    LocalSet::new().run_until(run).await.unwrap()
}

async fn call(handle: &mut MessageHandle<Numbers>, exchange: &Exchange) -> Option<ErrorKind> {
    let now = || 0;
    let called = handle.call(exchange, &mut Carried::start(&now)).await;
    called.err().map(|failure| failure.kind)
}

/// Makes so many calls of one caller, one after the other; returns their failures' kinds, and the number of streams.
async fn calls<F: Future<Output = ()> + 'static>(
    count: u32,
    per_stream: u64,
    serve: fn(Served) -> F,
) -> (Vec<Option<ErrorKind>>, usize) {
    let limits = StreamLimits {
        messages: NonZeroU64::new(per_stream),
        ..StreamLimits::default()
    };
    connected(limits, false, serve, async |mut handle| {
        let mut exchange = Exchange::new(0, 0, Reply::Echo);
        let mut kinds = Vec::new();
        for _ in 0..count {
            kinds.push(call(&mut handle, &exchange).await);
            exchange.advance();
            // What comes after a reply is there before the next message.
            time::sleep(Duration::from_millis(1)).await;
        }
        kinds
    })
    .await
}

const ONE: StreamLimits = StreamLimits {
    per_connection: NonZeroU32::new(1),
    messages: None,
};

/// Answers three messages at a time, in their order or from the last to the first.
async fn three_at_a_time(mut stream: Served, is_turned: bool) {
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await {
        messages.push(message);
        if messages.len() == 3 {
            if is_turned {
                messages.reverse();
            }
            stream.send(mem::take(&mut messages).concat());
        }
    }
    stream.end("0");
}

#[tokio::test(flavor = "current_thread")]
async fn callers_that_share_a_stream_have_their_own_answers() {
    let client = async |first: MessageHandle<Numbers>| {
        let handles = [first.share().unwrap(), first.share().unwrap(), first];
        let callers = (1..).zip(handles).map(async |(caller, mut handle)| {
            let mut exchange = Exchange::new(caller, 0, Reply::Echo);
            for _ in 0..20 {
                assert_eq!(call(&mut handle, &exchange).await, None);
                exchange.advance();
            }
        });
        futures_util::future::join_all(callers).await;
    };
    let in_order = |stream| three_at_a_time(stream, false);
    assert_eq!(connected(ONE, false, in_order, client).await, ((), 1));
    let turned = |stream| three_at_a_time(stream, true);
    assert_eq!(connected(ONE, true, turned, client).await, ((), 1));
}

#[tokio::test(flavor = "current_thread")]
async fn the_answer_to_a_message_that_was_given_up_is_nobodys() {
    let late = |mut stream: Served| async move {
        while let Some(message) = stream.message().await {
            time::sleep(Duration::from_millis(20)).await;
            stream.send(message);
        }
    };
    let client = async |mut handle: MessageHandle<Numbers>| {
        let mut exchange = Exchange::new(0, 0, Reply::Echo);
        let given_up = timeout(Duration::from_millis(1), call(&mut handle, &exchange));
        assert!(given_up.await.is_err());
        exchange.advance();
        call(&mut handle, &exchange).await
    };
    assert_eq!(connected(ONE, false, late, client).await, (None, 2));
    // A field tells that it is late.
    assert_eq!(connected(ONE, true, late, client).await, (None, 1));
}

#[tokio::test(flavor = "current_thread")]
async fn a_message_with_the_value_of_one_that_was_given_up_has_another_stream() {
    let silent_once = |mut stream: Served| async move {
        stream.message().await;
        while let Some(message) = stream.message().await {
            stream.send(message);
        }
    };
    let client = async |mut handle: MessageHandle<Numbers>| {
        let mut exchange = Exchange::new(0, 0, Reply::Echo);
        let given_up = timeout(Duration::from_millis(1), call(&mut handle, &exchange));
        assert!(given_up.await.is_err());
        exchange.advance();
        let other = call(&mut handle, &exchange).await;
        // It is the first on another stream, and given up there.
        let same = Exchange::new(0, 0, Reply::Echo);
        let given_up = timeout(Duration::from_millis(1), call(&mut handle, &same));
        (other, given_up.await.is_err())
    };
    let came = connected(ONE, true, silent_once, client).await;
    assert_eq!(came, ((None, true), 2));
}

#[tokio::test(flavor = "current_thread")]
async fn a_reply_with_the_value_of_no_message_is_taken_for_the_oldests() {
    // All but the first have wrong numbers, and the right ones after them.
    let wrong = |mut stream: Served| async move {
        let first = stream.message().await.unwrap();
        stream.send(first);
        while let Some(message) = stream.message().await {
            stream.send([number(9999), message.to_vec()].concat());
        }
    };
    let client = async |mut handle: MessageHandle<Numbers>| {
        let mut exchange = Exchange::new(0, 0, Reply::Echo);
        let mut kinds = Vec::new();
        for _ in 0..4 {
            kinds.push(call(&mut handle, &exchange).await);
            exchange.advance();
        }
        kinds
    };
    let mismatch = Some(ErrorKind::Mismatch);
    let kinds = vec![None, mismatch, mismatch, mismatch];
    assert_eq!(connected(ONE, true, wrong, client).await, (kinds, 1));
    // Of two who wait, the second has its answer.
    let one_of_two = |mut stream: Served| async move {
        stream.message().await.unwrap();
        let second = stream.message().await.unwrap();
        stream.send([number(9999), second.to_vec()].concat());
        stream.message().await;
    };
    let client = async |mut handle: MessageHandle<Numbers>| {
        let mut other = handle.share().unwrap();
        let exchanges = [0, 1].map(|caller| Exchange::new(caller, 0, Reply::Echo));
        let [first, second] = &exchanges;
        tokio::join!(call(&mut handle, first), call(&mut other, second))
    };
    let came = connected(ONE, true, one_of_two, client).await;
    assert_eq!(came, ((mismatch, None), 1));
}

async fn echo(mut stream: Served) {
    while let Some(message) = stream.message().await {
        // In two parts, within the prefix.
        let (one, other) = message.split_at(3);
        stream.send(one.to_vec());
        stream.send(other.to_vec());
    }
    stream.end("0");
}

#[tokio::test(flavor = "current_thread")]
async fn messages_have_one_stream_or_as_many_as_were_asked_for() {
    assert_eq!(calls(7, 0, echo).await, (vec![None; 7], 1));
    assert_eq!(calls(7, 3, echo).await, (vec![None; 7], 3));
    assert_eq!(calls(3, 1, echo).await, (vec![None; 3], 3));
}

#[tokio::test(flavor = "current_thread")]
async fn a_stream_that_ends_between_messages_costs_none() {
    let once = |mut stream: Served| async move {
        let message = stream.message().await.unwrap();
        stream.send(message);
        stream.end("0");
    };
    assert_eq!(calls(3, 0, once).await, (vec![None; 3], 3));
}

#[tokio::test(flavor = "current_thread")]
async fn a_stream_that_ends_instead_of_a_reply_fails_its_message() {
    let failed = |kind| (vec![Some(kind); 2], 2);
    let fine = |mut stream: Served| async move {
        stream.message().await;
        stream.end("0");
    };
    assert_eq!(calls(2, 0, fine).await, failed(ErrorKind::Eof));
    let busy = |mut stream: Served| async move {
        stream.message().await;
        stream.end("14");
    };
    assert_eq!(calls(2, 0, busy).await, failed(ErrorKind::Grpc(14)));
    let reset = |mut stream: Served| async move {
        stream.message().await;
        stream.reply.send_reset(h2::Reason::INTERNAL_ERROR);
    };
    assert_eq!(calls(2, 0, reset).await, failed(ErrorKind::Reset));
}

#[tokio::test(flavor = "current_thread")]
async fn each_message_has_one_reply_and_its_own() {
    let failed = |kinds: [Option<ErrorKind>; 3]| kinds.to_vec();
    let mismatch = Some(ErrorKind::Mismatch);
    let wrong = |mut stream: Served| async move {
        while stream.message().await.is_some() {
            stream.send(number(7));
        }
    };
    let (kinds, _) = calls(3, 0, wrong).await;
    assert_eq!(kinds, failed([mismatch; 3]));
    let twice = |mut stream: Served| async move {
        while let Some(message) = stream.message().await {
            stream.send([&message[..], &message].concat());
        }
    };
    let (kinds, streams) = calls(3, 0, twice).await;
    assert_eq!((kinds, streams), (failed([None, mismatch, None]), 2));
}
