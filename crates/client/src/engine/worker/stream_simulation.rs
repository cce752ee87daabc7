//! Callers whose requests are messages on streams that stay open, over HTTP/2, against a server that fails at random.
//!
//! Each seed is a plan and a course of failures: messages without a reply, with another's or with two, streams that are
//! reset or end with one status or another, connections that the server says goodbye on or cuts. After a while the
//! server is well again. No reply counts that the server did not give, and every caller goes on.

use std::{
    future::pending,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream, server};
use http::{HeaderMap, Request, Response};
use netping_http2::Config;
use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::payload::Exchange;
use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc,
    task,
};

use super::simulation::{SCHEDULES, Server, simulate};
use crate::{
    plan::StreamLimits,
    transport::{
        Carried, Connection, Failure, Milestones, Transport,
        grpc_messages::{
            MessageHandle,
            tests::{LENGTH, Numbers, number},
        },
        http2::{Handle, prepare},
    },
};

/// Number of schedules that are tried with every change.
const FIRST: u64 = 500;

/// Time that a request has more than those of the other simulation: a message goes through many tasks.
const PATIENCE: Duration = Duration::from_millis(15);

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Goodbye,
    Cut,
}

/// An HTTP/2 server that fails at random.
#[derive(Clone)]
struct Streams {
    server: Server,
    limits: StreamLimits,
    /// A field tells which reply belongs to which message.
    tells: bool,
}

impl Streams {
    fn new(server: Server) -> Self {
        let limits = StreamLimits {
            per_connection: NonZeroU32::new(server.draw(3) as u32),
            messages: NonZeroU64::new(server.draw(2) * (1 + server.draw(20))),
        };
        let tells = server.draw(2) == 0;
        Self {
            server,
            limits,
            tells,
        }
    }

    /// Serves a connection to its end.
    async fn serve(self, stream: DuplexStream) {
        let Ok(mut connection) = server::handshake(stream).await else {
            return;
        };
        let (ends, mut ended) = mpsc::unbounded_channel();
        loop {
            let accepted = tokio::select! {
                accepted = connection.accept() => accepted,
                Some(end) = ended.recv() => {
                    if end == End::Cut {
                        return;
                    }
                    connection.graceful_shutdown();
                    continue;
                }
            };
            let Some(Ok((request, mut respond))) = accepted else {
                return;
            };
            let head = Response::builder().header("content-type", "application/grpc");
            let Ok(reply) = respond.send_response(head.body(()).unwrap(), false) else {
                continue;
            };
            task::spawn_local(self.clone().talk(request.into_body(), reply, ends.clone()));
        }
    }

    /// Answers the messages of a stream.
    async fn talk(
        self,
        mut request: RecvStream,
        mut reply: SendStream<Bytes>,
        ends: mpsc::UnboundedSender<End>,
    ) {
        let mut come = BytesMut::new();
        while let Some(Ok(part)) = request.data().await {
            let _ = request.flow_control().release_capacity(part.len());
            come.extend_from_slice(&part);
            while come.len() >= LENGTH {
                let message = come.split_to(LENGTH).freeze();
                self.server.work().await;
                let fate = if self.server.is_well() {
                    u64::MAX
                } else {
                    self.server.draw(16)
                };
                match fate {
                    0 => continue,
                    1 => return reply.send_reset(Reason::INTERNAL_ERROR),
                    2 => return end(&mut reply, "14"),
                    3 => return end(&mut reply, "0"),
                    4 => {
                        let _ = ends.send(End::Cut);
                        return pending().await;
                    }
                    5 => drop(ends.send(End::Goodbye)),
                    6 => {
                        let _ = reply.send_data(number(u32::MAX).into(), false);
                        continue;
                    }
                    7 => drop(reply.send_data(message.clone(), false)),
                    _ => {}
                }
                self.server.seen.borrow_mut().answered += 1;
                if reply.send_data(message, false).is_err() {
                    return;
                }
            }
        }
        end(&mut reply, "0");
    }
}

/// Ends a stream with a status, unless it is at its end.
fn end(reply: &mut SendStream<Bytes>, status: &'static str) {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    let _ = reply.send_trailers(trailers);
}

/// A caller's handle on a connection, which notes the answers that it gets.
struct Link {
    handle: MessageHandle<Numbers, DuplexStream>,
    server: Server,
}

impl Connection for Link {
    fn share(&self) -> Option<Self> {
        Some(Self {
            handle: self.handle.share()?,
            server: self.server.clone(),
        })
    }

    fn is_spent(&mut self) -> bool {
        self.handle.is_spent()
    }

    async fn call(
        &mut self,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> Result<(), Failure> {
        self.handle.call(exchange, carried).await?;
        self.server.has_answer(exchange.caller());
        Ok(())
    }
}

impl Transport for Streams {
    type Connection = Link;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<Self::Connection, Failure> {
        if !self.server.is_well() && self.server.draw(4) == 0 {
            return Err(self.server.failure(ErrorKind::Refused, true));
        }
        let (near, far) = duplex(1 << 16);
        task::spawn_local(self.clone().serve(far));
        let connection = Handle::open(near, Config::default()).await?;
        milestones.reached(ConnectPhase::Tcp);
        let request = Request::post("http://localhost/").body(()).unwrap();
        let conversation = Numbers {
            head: prepare(&request),
            tells: self.tells,
        };
        Ok(Link {
            handle: MessageHandle::new(connection, conversation, self.limits),
            server: self.server.clone(),
        })
    }
}

/// Runs the schedule of a seed, and checks its accounts.
fn check(seed: u64) {
    let run = simulate(seed, PATIENCE, Streams::new);
    let ok = run.summary.accounting.ok + run.summary.accounting.outside_ok;
    let answered = run.server.seen.borrow().answered;
    assert!(ok <= answered, "seed {seed}: {ok} of {answered} answers");
    run.check_callers(seed);
}

#[test]
fn messages_add_up_and_no_caller_is_lost_whatever_becomes_of_their_streams() {
    (0..FIRST).for_each(check);
}

#[test]
#[ignore = "takes minutes without optimizations"]
fn messages_add_up_in_the_other_schedules_too() {
    (FIRST..SCHEDULES).for_each(check);
}
