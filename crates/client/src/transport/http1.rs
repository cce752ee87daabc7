//! HTTP/1.1: one request after the other, on a connection of the caller's own.

use std::{
    error::Error,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, header::HOST};
use http_body_util::Full;
use hyper::{
    body::Body,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::secure::{Stream, is_security_error};

use super::{Failure, Result, connect, http_reply::HttpReply, http2::closed};
use crate::plan::Destination;

/// Returns the head of the requests to the resource that the destination names.
pub(super) fn head(destination: &Destination) -> Request<()> {
    let (target, prepared) = (&destination.url, &destination.prepared);
    let head = Request::builder()
        .method(prepared.method.clone())
        .uri(&*target.path)
        .header(HOST, target.authority());
    // A target's parts are always valid in a request.
    let mut head = head.body(()).unwrap_or_default();
    // The user's `Host` replaces the target's.
    head.headers_mut().extend(prepared.headers.clone());
    head
}

/// A connection with its only caller.
#[derive(Debug)]
pub(super) struct Http1 {
    send: SendRequest<Full<Bytes>>,
    driver: Driver,
    head: Request<()>,
}

impl Http1 {
    /// Opens HTTP/1.1 on a stream, for requests that all have this head.
    pub(super) async fn new(stream: Stream, head: Request<()>) -> Result<Self> {
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (send, connection) = opened.map_err(|error| failure(&error))?;
        let end = None;
        let driver = Driver { connection, end };
        Ok(Self { send, driver, head })
    }

    /// Returns true if the server has closed the connection after a whole reply, or wants it
    /// closed.
    pub(super) fn is_spent(&mut self) -> bool {
        // No task has to be woken: the next request looks for itself.
        self.driver.turn(&mut Context::from_waker(Waker::noop()));
        matches!(self.driver.end, Some(Ok(())))
    }

    /// Sends a request with this body, and reads the whole reply.
    pub(super) async fn call(&mut self, body: &Bytes, reply: &mut HttpReply) -> Result<()> {
        let Self { send, driver, head } = self;
        poll_fn(|cx| driver.drive(cx, |cx| send.poll_ready(cx))).await?;
        let request = head.clone().map(|()| Full::new(body.clone()));
        let mut response = pin!(send.send_request(request));
        let response = poll_fn(|cx| driver.drive(cx, |cx| response.as_mut().poll(cx))).await?;
        reply.status = response.status();
        let mut body = response.into_body();
        loop {
            let next = poll_fn(|cx| {
                driver.drive(cx, |cx| {
                    Pin::new(&mut body).poll_frame(cx).map(Option::transpose)
                })
            });
            match next.await? {
                Some(frame) => {
                    if let Some(data) = frame.data_ref() {
                        reply.add(data);
                    }
                }
                None => return Ok(()),
            }
        }
    }
}

/// Drives a connection. The task that waits for a reply does so, which saves a task and two hops
/// per request.
#[derive(Debug)]
struct Driver {
    connection: http1::Connection<TokioIo<Stream>, Full<Bytes>>,
    /// The connection's end, once it has come.
    end: Option<hyper::Result<()>>,
}

impl Driver {
    /// Polls an operation that needs the connection to be driven.
    fn drive<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<hyper::Result<T>>,
    ) -> Poll<Result<T>> {
        let mut state = poll(cx);
        if state.is_pending() {
            self.turn(cx);
            state = poll(cx);
        }
        match (state, &self.end) {
            (Poll::Ready(Ok(value)), _) => Poll::Ready(Ok(value)),
            (Poll::Pending, None) => Poll::Pending,
            // The connection's end explains more than the request's.
            (_, Some(Err(error))) => Poll::Ready(Err(failure(error))),
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(failure(&error))),
            (Poll::Pending, Some(Ok(()))) => Poll::Ready(Err(closed())),
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) {
        // No shutdown, which would count for the last reply's time: the connection is closed when
        // it is dropped.
        if self.end.is_none()
            && let Poll::Ready(end) = self.connection.poll_without_shutdown(cx)
        {
            self.end = Some(end);
        }
    }
}

/// Classifies an error of hyper; the connection is lost.
fn failure(error: &hyper::Error) -> Failure {
    let mut innermost = error;
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return io_failure(error);
        }
        innermost = error.downcast_ref().unwrap_or(innermost);
        cause = error.source();
    }
    if innermost.is_incomplete_message() || innermost.is_canceled() || innermost.is_closed() {
        return closed();
    }
    Failure::lost(ErrorKind::Protocol, innermost)
}

/// Classifies an I/O error of the connection or of the body's encoding.
fn io_failure(error: &io::Error) -> Failure {
    use io::ErrorKind::{InvalidData, InvalidInput};
    let malformed = matches!(error.kind(), InvalidData | InvalidInput);
    if malformed && !is_security_error(error) {
        return Failure::lost(ErrorKind::Protocol, error);
    }
    connect::io_failure(error)
}
