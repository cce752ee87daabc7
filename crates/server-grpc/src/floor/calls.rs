//! The calls of a connection, from their heads to their replies.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use netping_http2::server::{Event, Server, Slot};
use netping_protocol::payload;
use netping_serving::{
    Connection, Full, Held, REPLY_TIMEOUT, Reserved, TAKEN, clock, request_limit::REQUEST_TIMEOUT,
};
use tokio::task::{AbortHandle, JoinSet};

use super::{
    Floor,
    echo::{Echo, PREFIX, echo_reply, length, say_reply, unary},
    routes::{Called, Refusal, Route},
};
use crate::deadline;

/// Capacity up to which the buffer of replies is kept for the next one, in bytes.
const KEPT: usize = 16 << 10;

/// Length of a reply from which on its memory is reserved, in bytes.
const RESERVED: usize = 4 << 10;

/// The calls of a connection.
pub(super) struct Calls {
    floor: Arc<Floor>,
    connection: Arc<Connection>,
    /// By slot.
    list: Vec<Call>,
    /// Calls whose requests are incomplete, or whose replies wait for the client: their time is limited.
    limited: usize,
    /// Bytes of requests in the calls' buffers and of short replies that wait for the client, and what the connection knows
    /// of them.
    held: usize,
    memory: Held,
    /// Requests that have been answered and are not counted yet.
    served: u64,
    /// Calls that wait for the synthetic load or for memory.
    waits: JoinSet<Wait>,
    /// The last number of a call that has waited.
    waited: u64,
    /// The reply that is being made.
    reply: Vec<u8>,
}

/// The end of a wait.
struct Wait {
    slot: Slot,
    number: u64,
    /// `None`: the call's deadline came first.
    reserved: Option<Result<Option<Reserved>, Full>>,
}

struct Call {
    slot: Slot,
    route: Route,
    state: State,
    /// The request's body, as far as it has come.
    body: Vec<u8>,
    /// When the request was first seen to be incomplete, or the client took the last part of the reply.
    begun: Option<Instant>,
    /// The end of the call's time, if its caller has set one.
    deadline: Option<Instant>,
}

enum State {
    /// There is no call, or none that is of interest.
    Idle,
    /// The request is incomplete.
    Partial,
    /// The reply has to wait, which has this number.
    Waiting(u64, AbortHandle),
    /// The reply waits for the client, which had so many bytes of it to `take`. So many of them are `held`, and were not
    /// reserved.
    Sending { take: usize, held: usize },
}

impl Calls {
    pub(super) fn new(floor: Arc<Floor>, connection: Arc<Connection>) -> Self {
        let memory = Held::nothing(&connection);
        Self {
            floor,
            connection,
            list: Vec::new(),
            limited: 0,
            held: 0,
            memory,
            served: 0,
            waits: JoinSet::new(),
            waited: 0,
            reply: Vec::new(),
        }
    }

    /// Returns true if there are calls whose time is limited.
    pub(super) fn have_deadlines(&self) -> bool {
        self.limited > 0
    }

    /// Counts what has been answered on the connection, and what its requests hold. A client that has a reply finds it
    /// counted, if this comes before the reply leaves.
    pub(super) fn count(&mut self) {
        if self.served > 0 {
            self.connection.count_requests(mem::take(&mut self.served));
        }
        // The connection ends if that is too much.
        let _ = self.memory.set(self.held as u64);
    }

    /// Takes what a client sent.
    pub(super) fn take(&mut self, event: Event<'_, Called>, http2: &mut Server<Called>) {
        match event {
            Event::Request {
                slot,
                route,
                is_end,
            } => self.request(slot, route, is_end, http2),
            Event::Data { slot, data, is_end } => self.data(slot, data, is_end, http2),
            Event::Reset(slot) => {
                if let State::Waiting(_, wait) = self.end(slot) {
                    wait.abort();
                }
            }
        }
    }

    fn request(&mut self, slot: Slot, called: Called, is_end: bool, http2: &mut Server<Called>) {
        let Called { route, timeout } = called;
        let index = slot.index();
        while self.list.len() <= index {
            self.list.push(Call {
                slot,
                route,
                state: State::Idle,
                body: Vec::new(),
                begun: None,
                deadline: None,
            });
        }
        // The last reply in the slot may have been sent since the last look.
        self.end(slot);
        let call = &mut self.list[index];
        call.slot = slot;
        call.route = route;
        call.state = State::Partial;
        call.begun = None;
        call.deadline = deadline::deadline(timeout);
        self.limited += 1;
        match route {
            // A caller with a stream of messages may wait for an answer to the first one.
            Route::Refused(refusal) if is_end || refusal.is_of_grpc() => {
                self.refuse(slot, refusal, http2);
            }
            Route::Refused(_) => {}
            _ if is_end => self.refuse(slot, Refusal::NoMessage, http2),
            _ => {}
        }
    }

    fn data(&mut self, slot: Slot, data: &[u8], is_end: bool, http2: &mut Server<Called>) {
        let limit = self.floor.max_message;
        let call = &mut self.list[slot.index()];
        if let Route::Refused(refusal) = call.route {
            if is_end {
                self.refuse(slot, refusal, http2);
            }
            return;
        }
        if is_end && call.body.is_empty() {
            return self.whole(slot, data, http2);
        }
        call.body.extend_from_slice(data);
        self.held += data.len();
        if is_end {
            let body = mem::take(&mut call.body);
            self.held -= body.len();
            // A call that waits keeps a copy.
            return self.whole(slot, &body, http2);
        }
        let known = call.body.first_chunk::<PREFIX>();
        let refusal = match known.map(|prefix| length(*prefix, limit)) {
            Some(Err(refusal)) => refusal,
            Some(Ok(length)) if call.body.len() > PREFIX + length => Refusal::Several,
            _ => return,
        };
        self.refuse(slot, refusal, http2);
    }

    /// Takes the body of a whole request.
    fn whole(&mut self, slot: Slot, body: &[u8], http2: &mut Server<Called>) {
        let checked = unary(body, self.floor.max_message)
            .and_then(|message| Ok((message, self.check(slot, message)?)));
        let (message, reply) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return self.refuse(slot, refusal, http2),
        };
        let load = self.floor.chassis.load;
        if load.is_immediate() && reply <= RESERVED {
            load.apply_blocking();
            return self.reply(slot, message, None, http2);
        }
        let call = &mut self.list[slot.index()];
        call.body.clear();
        call.body.extend_from_slice(message);
        self.held += message.len();
        self.limited -= 1;
        self.waited += 1;
        let (number, deadline) = (self.waited, call.deadline);
        let connection = Arc::clone(&self.connection);
        let wait = self.waits.spawn(async move {
            let waiting = async {
                load.apply().await;
                let reserved = connection.reserve(reply).await?;
                connection.turn(reply).await;
                Ok(reserved)
            };
            let reserved = match deadline {
                None => Some(waiting.await),
                Some(deadline) => deadline::within(waiting, deadline).await,
            };
            Wait {
                slot,
                number,
                reserved,
            }
        });
        self.list[slot.index()].state = State::Waiting(number, wait);
    }

    /// Checks a message, and returns the length of the text that the reply makes of it, or an upper bound of it.
    fn check(&self, slot: Slot, message: &[u8]) -> Result<usize, Refusal> {
        if self.list[slot.index()].route != Route::Echo {
            return Ok(message.len());
        }
        let echo = Echo::decode(message)?;
        match echo.response_bytes {
            length if length > self.floor.max_message => Err(Refusal::ReplyTooLong),
            // It is cut anywhere, and must still be UTF-8.
            length if length > 0 && !echo.text.is_ascii() => Err(Refusal::NotAscii),
            0 => Ok(echo.text.len()),
            length => Ok(length),
        }
    }

    /// Goes on with the calls that need not wait any more.
    pub(super) fn go_on(&mut self, cx: &mut Context<'_>, http2: &mut Server<Called>) {
        while !self.waits.is_empty()
            && let Poll::Ready(Some(wait)) = self.waits.poll_join_next(cx)
        {
            // One that was reset has been aborted.
            let Ok(Wait {
                slot,
                number,
                reserved,
            }) = wait
            else {
                continue;
            };
            let call = &mut self.list[slot.index()];
            if !matches!(call.state, State::Waiting(own, _) if own == number) {
                continue;
            }
            // As if its end had just come.
            call.state = State::Partial;
            self.limited += 1;
            let Some(reserved) = reserved else {
                self.refuse(slot, Refusal::Deadline, http2);
                continue;
            };
            match reserved {
                Ok(reserved) => {
                    let message = mem::take(&mut call.body);
                    self.held -= message.len();
                    self.reply(slot, &message, reserved, http2);
                }
                Err(Full::Process) => self.refuse(slot, Refusal::Memory, http2),
                // It ends with its connection.
                Err(Full::Connection) => {}
            }
        }
    }

    /// Replies to a message that has been checked.
    fn reply(
        &mut self,
        slot: Slot,
        message: &[u8],
        reserved: Option<Reserved>,
        http2: &mut Server<Called>,
    ) {
        self.served += 1;
        let mut reply = mem::take(&mut self.reply);
        reply.clear();
        let made = if self.list[slot.index()].route == Route::Echo {
            make_echo(message, &mut reply)
        } else {
            say_reply(message, &mut reply)
        };
        if let Err(refusal) = made {
            self.reply = reply;
            return self.refuse(slot, refusal, http2);
        }
        self.end(slot);
        let heads = &self.floor.heads;
        let is_reserved = reserved.is_some();
        if is_reserved {
            let body = Bytes::from_owner(Reply(reply, reserved));
            http2.reply_shared(slot, &heads.begin, body, &heads.end);
        } else {
            http2.reply(slot, &heads.begin, &reply, &heads.end);
            if reply.capacity() <= KEPT {
                self.reply = reply;
            }
        }
        let left = http2.unsent(slot);
        if left > 0 {
            let call = &mut self.list[slot.index()];
            let held = if is_reserved { 0 } else { left };
            call.state = State::Sending { take: left, held };
            call.begun = None;
            self.limited += 1;
            self.held += held;
        }
    }

    fn refuse(&mut self, slot: Slot, refusal: Refusal, http2: &mut Server<Called>) {
        if let Some(kind) = refusal.kind() {
            self.floor.chassis.shared().count(kind);
        }
        self.end(slot);
        http2.reply_head(slot, self.floor.heads.refusal(refusal));
    }

    /// Ends a call, and returns the state that it was in.
    fn end(&mut self, slot: Slot) -> State {
        let call = &mut self.list[slot.index()];
        let state = mem::replace(&mut call.state, State::Idle);
        if matches!(state, State::Partial | State::Sending { .. }) {
            self.limited -= 1;
        }
        if let State::Sending { held, .. } = state {
            self.held -= held;
        }
        self.held -= mem::take(&mut call.body).len();
        state
    }

    /// Ends the calls whose requests have taken too long, by the server's limit or by their own deadline, and those
    /// whose replies the client does not take.
    pub(super) fn end_overdue(&mut self, http2: &mut Server<Called>) {
        let (now, chassis) = (clock::now(), Arc::clone(&self.floor.chassis));
        let mut refused = Vec::new();
        let (mut sent, mut untaken) = (Vec::new(), Vec::new());
        for call in &mut self.list {
            let begun = *call.begun.get_or_insert(now);
            let exceeds = |limit: Option<_>| limit.is_some_and(|limit| now - begun >= limit);
            match &mut call.state {
                State::Idle | State::Waiting(..) => call.begun = None,
                State::Partial => {
                    if exceeds(chassis.shared().request.after(call.body.len() as u64)) {
                        refused.push((call.slot, Refusal::Late));
                    } else if call.deadline.is_some_and(|deadline| now >= deadline) {
                        refused.push((call.slot, Refusal::Deadline));
                    }
                }
                State::Sending { take, .. } => match http2.unsent(call.slot) {
                    0 => sent.push(call.slot),
                    less if *take >= less + TAKEN => (*take, call.begun) = (less, None),
                    _ if exceeds(chassis.reply_timeout()) => untaken.push(call.slot),
                    _ => {}
                },
            }
        }
        for (slot, refusal) in refused {
            if refusal == Refusal::Late {
                chassis.shared().count_deadline(REQUEST_TIMEOUT);
            }
            self.refuse(slot, refusal, http2);
        }
        for slot in untaken {
            chassis.shared().count_deadline(REPLY_TIMEOUT);
            http2.give_up(slot);
            sent.push(slot);
        }
        for slot in sent {
            self.end(slot);
        }
    }
}

/// A reply, and the memory reserved for it.
struct Reply(
    Vec<u8>,
    #[expect(dead_code, reason = "held until it is dropped")] Option<Reserved>,
);

impl AsRef<[u8]> for Reply {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn make_echo(message: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Echo {
        text,
        response_bytes,
    } = Echo::decode(message)?;
    match response_bytes {
        0 => echo_reply(text.len(), out, |out| {
            out.extend_from_slice(text.as_bytes());
        }),
        length => {
            out.reserve(length + 2 * PREFIX);
            echo_reply(length, out, |out| {
                payload::repeat_into(text.as_bytes(), length, out);
            });
        }
    }
    Ok(())
}
