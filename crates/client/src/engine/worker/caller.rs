//! One caller: a request, its reply, the next request.

use std::{rc::Rc, time::Duration};

use netping_measure::{recorder::Sink, sample::Sample};
use netping_protocol::payload::Exchange;

use super::state::Shared;
use crate::{
    clock::Clock,
    engine::connection_slot::ConnectionSlot,
    transport::{Carried, Connection, Transport},
};

/// Pauses of a caller whose connection failed twice or more in a row: without them, it would spin
/// while a server is gone.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Times that a request is sent, if the server says that it has not processed it: as often as Go's client sends
/// one. Where many callers share a connection that the server ends after some requests, one may be late several times.
const ATTEMPTS: u32 = 7;

/// Sends one request after the other until there are no more.
pub(super) async fn call<T: Transport, C: Clock, S: Sink>(
    shared: Rc<Shared<C, S>>,
    slot: Rc<ConnectionSlot<T>>,
    number: usize,
) {
    let load = &shared.assignment.plan.load;
    let state = &shared.callers[number];
    let caller = shared.assignment.share.first_caller + number as u32;
    let mut exchange = Exchange::new(caller, load.payload, load.reply);
    let mut held = None;
    let mut pause = Duration::ZERO;
    loop {
        let Some(request) = shared.next(number).await else {
            shared.active.set(shared.active.get() - 1);
            slot.give_back(held);
            return;
        };
        state.request.set(Some(request));
        let now = || shared.clock.now();
        let mut opened = None;
        let mut carried = Carried::start(&now);
        let mut attempts = 0;
        let answer = loop {
            let ready = if slot.is_held(&mut held) {
                Ok(())
            } else {
                slot.renew(&mut held, &state.connected, &mut opened, &now)
                    .await
            };
            let answer = match ready {
                Ok(()) => slot.begin(&mut held).call(&exchange, &mut carried).await,
                Err(failure) => Err(failure),
            };
            attempts += 1;
            match answer {
                // Any client sends such a request again, and its user waits meanwhile.
                Err(failure) if failure.unprocessed && attempts < ATTEMPTS => {}
                answer => break answer,
            }
        };
        let sample = Sample {
            end: shared.clock.now(),
            ..request
        };
        match answer {
            Ok(()) => {
                let counts = shared.record(number, sample, Ok(()));
                if let Some(opened) = &opened
                    && counts
                {
                    shared.record_opening(opened, sample);
                }
                shared.record_messages(&carried, sample, counts);
                let stamps = held.as_ref().and_then(|held| held.stamps.as_ref()?.take());
                // Of one that was sent again, or opened its connection, more is between the stamps.
                let is_plain = attempts == 1 && opened.is_none();
                let stamps = stamps.filter(|_| is_plain);
                shared.record_parts(sample, stamps, carried.server_times, counts);
                slot.release(&mut held);
                pause = Duration::ZERO;
            }
            Err(failure) => {
                let lost = failure.lost;
                shared.record(number, sample, Err(failure.kind));
                shared.note(failure.kind, failure.into_detail());
                if lost {
                    slot.discard(&mut held);
                    shared.pause(number, pause).await;
                    pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                } else {
                    slot.release(&mut held);
                }
            }
        }
        exchange.advance();
    }
}
