//! A request as it comes: in time, and within what its connection's calls may hold.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use netping_serving::{
    Connection, Held, clock, reply_memory::SMALL, request_limit::REQUEST_TIMEOUT,
};
use tokio::time::{Sleep, sleep_until};
use tonic::{
    Status,
    codegen::{
        Body as HttpBody, StdError,
        http::{HeaderMap, Request, Uri},
    },
};

use crate::{deadline, exhausted::exhausted, pieces::Pieces, reply_body::Of};

type BodyFrame = http_body::Frame<Bytes>;

/// The beginning of the paths of methods of gRPC's own benchmark whose requests have many messages.
const STREAMING: &str = "/grpc.testing.BenchmarkService/Streaming";

/// The path of an echo of messages.
const CHAT: &str = "/echopb.Echo/Chat";

/// The paths of methods whose replies have one message.
const SINGLE: [&str; 6] = [
    "/echopb.Echo/Echo",
    "/pb.Hello/Say",
    "/grpc_bench.DataService/TakeMyData",
    "/grpc.testing.BenchmarkService/UnaryCall",
    "/grpc.testing.BenchmarkService/StreamingFromClient",
    "/grpc.health.v1.Health/Check",
];

/// A request, which must come in time.
pub(crate) struct RequestBody<B> {
    body: B,
    /// Its messages have replies of their own: the time begins anew after each one.
    is_conversation: bool,
    /// Bytes that have come in this time.
    came: u64,
    /// When it was first seen to be incomplete.
    begun: Option<Instant>,
    overdue: Option<Pin<Box<Sleep>>>,
    messages: Messages,
    /// Bytes that its head takes, if they are more than usual.
    head: u64,
    memory: Option<Held>,
}

/// The messages of a request, as they come: a flag and a length of four bytes before each.
#[derive(Debug, Default)]
struct Messages {
    pieces: Pieces<5>,
    /// Bytes of the last message that have come.
    came: u64,
    /// Messages that have come whole.
    whole: u64,
    /// Length of the longest of them, if it is long: tonic's buffer stays so long.
    longest: u64,
}

impl Messages {
    /// Takes the next part of a request; returns the bytes that it holds.
    fn take(&mut self, mut data: &[u8]) -> u64 {
        loop {
            let (payload, head) = self.pieces.next(&mut data);
            self.came += payload.len() as u64;
            if !payload.is_empty() && !self.pieces.awaits_payload() {
                self.whole += 1;
                let came = mem::take(&mut self.came);
                if came > SMALL as u64 {
                    self.longest = self.longest.max(came);
                }
            }
            let Some([_, length @ ..]) = head else { break };
            let length = u32::from_be_bytes(length) as usize;
            self.pieces.expect(length);
            self.whole += u64::from(length == 0);
        }
        self.came.max(self.longest)
    }
}

/// Memory of a header besides its name and value, in bytes, and of each byte of these, which HPACK decodes into a buffer
/// that grows by doubling: measured.
const HEADER: usize = 128;
const HEADER_BYTE: usize = 2;

/// Memory of a head that counts as a part of its stream, in bytes.
const USUAL_HEAD: usize = 2 << 10;

/// The properties of a request that its head tells.
pub(crate) struct Head {
    /// Bytes that it takes, if they are more than usual.
    memory: u64,
    /// The time that the caller gives the call, if it does.
    pub timeout: Option<Duration>,
    /// Messages of its reply.
    pub of: Of,
    /// The messages have replies of their own.
    is_conversation: bool,
}

impl Head {
    /// Reads a head.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let authority = uri.authority().map_or(0, |own| own.as_str().len());
        let path = uri.path();
        let mut bytes = authority + path.len();
        let mut timeout = None;
        // Once for both: a look for one header takes as long as all of this.
        for (name, value) in headers {
            let name = name.as_str();
            bytes += name.len() + value.len();
            if name == deadline::TIMEOUT {
                timeout = deadline::timeout(value.as_bytes());
            }
        }
        let memory = headers.len() * HEADER + bytes * HEADER_BYTE;
        Self {
            memory: if memory > USUAL_HEAD {
                memory as u64
            } else {
                0
            },
            timeout,
            of: if SINGLE.contains(&path) {
                Of::One
            } else {
                Of::Many
            },
            is_conversation: path == CHAT || path.starts_with(STREAMING),
        }
    }
}

impl<B> RequestBody<B> {
    /// Returns the request, of whose body nothing has come; `connection` is the one that counts what it holds.
    pub(crate) fn of(
        request: Request<B>,
        head: &Head,
        connection: Option<&Connection>,
    ) -> Request<Self> {
        let Head {
            memory: head,
            is_conversation,
            ..
        } = *head;
        let mut memory = connection.map(Held::nothing);
        if head > 0
            && let Some(memory) = &mut memory
        {
            // The call ends with its connection.
            let _ = memory.set(head);
        }
        request.map(|body| Self {
            body,
            is_conversation,
            came: 0,
            begun: None,
            overdue: None,
            messages: Messages::default(),
            head,
            memory,
        })
    }

    /// Counts a part of the request, and what it holds.
    fn take(&mut self, data: &[u8]) -> Result<(), Status> {
        self.came += data.len() as u64;
        let whole = self.messages.whole;
        let held = self.messages.take(data);
        if self.is_conversation && self.messages.whole > whole {
            (self.came, self.begun) = (0, None);
        }
        match &mut self.memory {
            Some(memory) => memory.set(self.head + held).map_err(exhausted),
            None => Ok(()),
        }
    }

    /// Waits until the request has taken too long, and counts that.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.memory.as_ref().map(Held::shared);
        let limit = shared.and_then(|own| Some((own, own.request.after(self.came)?)));
        let Some((shared, limit)) = limit else {
            return Poll::Pending;
        };
        let begun = *self.begun.get_or_insert_with(clock::now);
        let deadline = (begun + limit).into();
        let overdue = self
            .overdue
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if overdue.deadline() != deadline {
            overdue.as_mut().reset(deadline);
        }
        ready!(overdue.as_mut().poll(cx));
        shared.count_deadline(REQUEST_TIMEOUT);
        Poll::Ready(())
    }
}

impl<B> HttpBody for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<StdError>,
{
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame, StdError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            let data = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref());
            if let Some(data) = data {
                self.take(data)?;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.poll_overdue(cx));
        let late = "the request did not come within the server's --request-timeout";
        Poll::Ready(Some(Err(Status::deadline_exceeded(late).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt, Empty, StreamBody};
    use netping_serving::testing::accepted;
    use tokio::time::timeout;
    use tokio_stream::{StreamExt, iter, pending};
    use tonic::{Code, codegen::http};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_come_whole_ends_after_its_time() {
        let (accepted, ..) = accepted();
        let part = BodyFrame::data(Bytes::from_static(&[0, 0, 0, 0, 2, 7]));
        let parts = iter([Ok::<_, Infallible>(part)]).chain(pending());
        let request = http::Request::post("http://localhost:8003/echopb.Echo/Echo");
        let request = request.body(StreamBody::new(parts)).unwrap();
        let head = Head::of(request.uri(), request.headers());
        let request = RequestBody::of(request, &head, Some(accepted.connection()));
        let mut body = request.into_body();
        assert!(body.frame().await.unwrap().is_ok());
        // By default, it has 30 s.
        let early = timeout(Duration::from_secs(29), body.frame()).await;
        assert!(early.is_err());
        let late = timeout(Duration::from_mins(1), body.frame()).await;
        let status = Status::from_error(late.unwrap().unwrap().unwrap_err());
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }

    #[tokio::test]
    async fn an_unusual_head_holds_memory_until_its_request_ends() {
        let (accepted, ..) = accepted();
        let connection = accepted.connection();
        let taken = |count: usize, length: usize| {
            let mut request = http::Request::post("http://localhost:8003/echopb.Echo/Echo");
            for number in 0..count {
                request = request.header(format!("x-{number}"), "v".repeat(length));
            }
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let head = Head::of(request.uri(), request.headers());
            let request = RequestBody::of(request, &head, Some(connection));
            let bytes = connection.held();
            drop(request);
            assert_eq!(connection.held(), 0);
            bytes
        };
        assert_eq!(taken(6, 30), 0);
        for (count, length, least) in [(1, 15_000, 30_000), (400, 0, 51_200)] {
            let bytes = taken(count, length);
            assert!((least..least + 5_000).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn a_message_holds_memory_until_it_is_whole_and_a_long_one_longer() {
        let message = |length: u32| {
            let prefix = length.to_be_bytes();
            [&[0], &prefix[..], &vec![7; length as usize]].concat()
        };
        let bytes = [message(300), message(0), message(20)].concat();
        for step in [1, 2, 4, 5, 6, 64, 1000] {
            let mut messages = Messages::default();
            let held: Vec<u64> = bytes.chunks(step).map(|part| messages.take(part)).collect();
            assert_eq!(held.last(), Some(&0), "{step}");
            let most = if step == 1 { 299 } else { 300 };
            assert!(held.iter().all(|held| *held <= most), "{step}");
            assert_eq!(messages.whole, 3, "{step}");
        }
        let mut messages = Messages::default();
        assert_eq!(messages.take(&bytes[..105]), 100);
        assert_eq!(messages.take(&bytes[105..304]), 299);
        assert_eq!(messages.take(&bytes[304..316]), 1);
        assert_eq!(messages.take(&bytes[316..]), 0);
        // A long one leaves its length to the buffer.
        assert_eq!(messages.take(&message(SMALL as u32)), 0);
        let long = SMALL as u32 + 1;
        assert_eq!(messages.take(&message(long)), u64::from(long));
        assert_eq!(messages.take(&message(20)), u64::from(long));
    }
}
