//! The place of one connection: opened once, renewed when it is lost or has served its requests.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    num::NonZeroU64,
    rc::Rc,
    sync::{Arc, Weak},
};

use netping_measure::accounting::Accounting;
use netping_protocol::tls::Negotiated;
use tokio::sync::Mutex;

use crate::transport::{Connection, Failure, Milestones, StampedSocket, Transport};

/// Transports that the connections of a worker share by turns. QUIC has a socket for each: the fewer there are, the more
/// datagrams a system call carries, and the more there are, the more evenly the kernel spreads connections over a
/// server's sockets.
const TRANSPORTS: usize = 8;

/// The place of one connection. Its callers hold handles on the connection that is there now.
#[derive(Debug)]
pub struct ConnectionSlot<T: Transport> {
    transport: Rc<T>,
    /// A handle for the next caller; `None` if it has been given away or there is no connection.
    spare: RefCell<Option<T::Connection>>,
    /// The kernel's time stamps are wanted.
    wants_stamps: bool,
    /// The socket of the connection that is there now, if it has them.
    stamps: RefCell<Weak<StampedSocket>>,
    /// Number of connections so far.
    generation: Cell<u64>,
    /// The connection of this generation is lost.
    lost: Cell<bool>,
    /// Requests begun on this connection; `limit` once the server wants no more.
    used: Cell<u64>,
    /// Requests per connection; `u64::MAX`: the connection is kept.
    limit: u64,
    /// The server has ended the connection of this generation, or wants it ended.
    spent: Cell<bool>,
    /// Counts of its connections.
    pub counts: RefCell<Accounting>,
    /// The server's address and the port of the client's end, as far as they are known, of a connection
    /// that is kept.
    pub ends: Cell<(Option<SocketAddr>, Option<u16>)>,
    /// Security of the last connection that was opened when its turn came; `None` in the clear, or if
    /// there is none.
    pub negotiated: RefCell<Option<Negotiated>>,
    /// Held by the caller that opens a connection, while the others wait to share it.
    opening: Mutex<()>,
}

/// A caller's handle on a slot's connection.
#[derive(Debug)]
pub struct Held<C> {
    pub connection: C,
    /// The socket that has the kernel's time stamps, if they are wanted.
    pub stamps: Option<Arc<StampedSocket>>,
    generation: u64,
}

impl<T: Transport> ConnectionSlot<T> {
    /// Returns several slots as [`new`](Self::new) does, which share clones of a transport; with `wants_stamps`, their
    /// connections have the kernel's time stamps.
    pub fn several(
        count: usize,
        transport: &T,
        limit: Option<NonZeroU64>,
        wants_stamps: bool,
    ) -> Vec<Rc<Self>> {
        let transports: Vec<_> = (0..count.min(TRANSPORTS))
            .map(|_| Rc::new(transport.clone()))
            .collect();
        let transports = transports.iter().cycle().take(count);
        let slot = |transport: &Rc<T>| {
            Rc::new(Self {
                wants_stamps,
                ..Self::new(Rc::clone(transport), limit)
            })
        };
        transports.map(slot).collect()
    }

    /// Returns a slot without a connection; with `limit`, each connection is closed after so many
    /// requests.
    pub fn new(transport: Rc<T>, limit: Option<NonZeroU64>) -> Self {
        Self {
            transport,
            spare: RefCell::new(None),
            wants_stamps: false,
            stamps: RefCell::default(),
            generation: Cell::new(0),
            lost: Cell::new(true),
            used: Cell::new(0),
            limit: limit.map_or(u64::MAX, NonZeroU64::get),
            spent: Cell::new(false),
            counts: RefCell::default(),
            ends: Cell::default(),
            negotiated: RefCell::default(),
            opening: Mutex::new(()),
        }
    }

    /// Returns a wait until the server has been told of the end of the connection, which may be dropped meanwhile.
    pub fn last_words(&self) -> impl Future<Output = ()> + use<T> {
        self.transport.last_words()
    }

    /// Opens the connection before there are requests, and returns its security.
    pub async fn open(&self) -> Result<Option<Negotiated>, Failure> {
        let mut milestones = Milestones::untimed();
        let connection = self.connect(&mut milestones).await?;
        self.install(Some(connection));
        Ok(milestones.negotiated)
    }

    /// Returns true if the connection behind `held` still serves. Otherwise it has to be
    /// [renewed](Self::renew).
    pub fn is_held(&self, held: &mut Option<Held<T::Connection>>) -> bool {
        self.retire(held);
        let own = held.as_ref().map(|held| held.generation);
        own.is_some_and(|own| self.serves(own))
    }

    /// Begins a request on the connection behind `held`, which is there.
    pub fn begin<'a>(&self, held: &'a mut Option<Held<T::Connection>>) -> &'a mut T::Connection {
        self.used.set(self.used.get() + 1);
        match held {
            Some(held) => {
                if let Some(stamps) = &held.stamps {
                    stamps.begin();
                }
                &mut held.connection
            }
            None => unreachable!("it was renewed unless it was held"),
        }
    }

    /// Puts a new handle into `held`. While a connection is being opened, that is empty and `connected` false;
    /// `opened` then gets the times that it took by the clock `now`.
    ///
    /// # Errors
    /// Any failure to open a connection.
    pub async fn renew<'b>(
        &self,
        held: &mut Option<Held<T::Connection>>,
        connected: &Cell<bool>,
        opened: &mut Option<Box<Milestones<'b>>>,
        now: &'b dyn Fn() -> u64,
    ) -> Result<(), Failure> {
        // Dropped first: if connections are limited, the old one must be gone before the new
        // one comes.
        *held = None;
        connected.set(false);
        // Apart from the caller's own state, which goes through the cache with every request.
        *held = Some(Box::pin(self.acquire(opened, now)).await?);
        connected.set(true);
        Ok(())
    }

    /// Closes the connection behind `held` if it has served as many requests as it was opened for. Called after a
    /// request's end, so that this is in no request's time. Where the server has ended the connection, the
    /// next request closes it: to any client of such a server, that is a part of what the next request takes.
    pub fn release(&self, held: &mut Option<Held<T::Connection>>) {
        self.retire(held);
        if self.used.get() >= self.limit && !self.spent.get() {
            *held = None;
            self.spare.take();
        }
    }

    /// Takes the connection of a caller that has no further requests, and keeps it open.
    pub fn give_back(&self, held: Option<Held<T::Connection>>) {
        if let Some(held) = held
            && self.serves(held.generation)
        {
            self.spare.replace(Some(held.connection));
        }
    }

    /// Marks the connection behind `held` as lost.
    pub fn discard(&self, held: &mut Option<Held<T::Connection>>) {
        if let Some(held) = held.take()
            && held.generation == self.generation.get()
        {
            self.lost.set(true);
            self.spare.take();
        }
    }

    /// Treats the connection behind `held` as having served its requests if the server wants no
    /// more on it.
    fn retire(&self, held: &mut Option<Held<T::Connection>>) {
        if let Some(held) = held
            && held.connection.is_spent()
            && self.serves(held.generation)
        {
            self.used.set(self.limit);
            self.spent.set(true);
        }
    }

    fn serves(&self, generation: u64) -> bool {
        generation == self.generation.get() && !self.lost.get() && self.used.get() < self.limit
    }

    async fn acquire<'b>(
        &self,
        opened: &mut Option<Box<Milestones<'b>>>,
        now: &'b dyn Fn() -> u64,
    ) -> Result<Held<T::Connection>, Failure> {
        let _turn = self.opening.lock().await;
        let serves = self.serves(self.generation.get());
        let connection = if let Some(connection) = serves.then(|| self.take_spare()).flatten() {
            connection
        } else {
            self.spare.take();
            // Neither the first nor due for renewal: the last one was lost, or dropped with a
            // request that took too long.
            let replaces = self.generation.get() > 0 && self.used.get() < self.limit;
            let mut milestones = Milestones::start(now);
            let connection = self.connect(&mut milestones).await?;
            let negotiated = milestones.negotiated.take();
            *opened = Some(Box::new(milestones));
            if !replaces {
                self.negotiated.replace(negotiated);
            }
            let mut counts = self.counts.borrow_mut();
            counts.reconnects += u64::from(replaces);
            counts.ended_by_server += u64::from(self.spent.get());
            self.install(connection.share());
            connection
        };
        Ok(Held {
            connection,
            stamps: self.stamps.borrow().upgrade(),
            generation: self.generation.get(),
        })
    }

    /// Opens a connection, and notes what is known of it.
    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<T::Connection, Failure> {
        milestones.wants_port = self.is_kept();
        milestones.wants_stamps = self.wants_stamps;
        let connection = self.transport.connect(milestones).await?;
        self.ends.set(milestones.ends);
        let stamps = milestones.stamps.take();
        self.stamps
            .replace(stamps.map_or_else(Weak::new, |own| Arc::downgrade(&own)));
        Ok(connection)
    }

    /// Returns true if a connection is kept. To ask for the port of one that is not would be a part of
    /// requests.
    fn is_kept(&self) -> bool {
        self.limit == u64::MAX
    }

    fn install(&self, spare: Option<T::Connection>) {
        self.spare.replace(spare);
        self.generation.set(self.generation.get() + 1);
        self.lost.set(false);
        self.spent.set(false);
        self.used.set(0);
    }

    /// Takes a handle on the connection; a shared one stays for the next caller too.
    fn take_spare(&self) -> Option<T::Connection> {
        let mut spare = self.spare.borrow_mut();
        let shared = spare.as_ref()?.share();
        shared.or_else(|| spare.take())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use netping_measure::error_kind::ErrorKind;
    use netping_protocol::payload::Exchange;

    use super::*;
    use crate::transport::Carried;

    /// Opens connections that callers share, until the server ends them all.
    #[derive(Clone, Default)]
    struct Shareable {
        opened: Rc<Cell<u64>>,
        ended: Rc<Cell<bool>>,
    }

    impl Transport for Shareable {
        type Connection = Self;

        async fn connect(&self, _: &mut Milestones<'_>) -> Result<Self, Failure> {
            self.opened.set(self.opened.get() + 1);
            self.ended.set(false);
            Ok(self.clone())
        }
    }

    impl Connection for Shareable {
        fn share(&self) -> Option<Self> {
            Some(self.clone())
        }

        fn is_spent(&mut self) -> bool {
            self.ended.get()
        }

        async fn call(&mut self, _: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
            Err(Failure::lost(ErrorKind::Other, "no test calls"))
        }
    }

    /// Takes a handle for a caller's next request.
    async fn begin(slot: &ConnectionSlot<Shareable>, held: &mut Option<Held<Shareable>>) {
        if !slot.is_held(held) {
            let (connected, mut opened) = (Cell::default(), None);
            let renewed = slot.renew(held, &connected, &mut opened, &|| 0).await;
            assert!(renewed.is_ok());
        }
        slot.begin(held);
    }

    /// Returns the connections opened so far, and of these the ones that replaced a lost one and one
    /// that the server had ended.
    fn opened(slot: &ConnectionSlot<Shareable>) -> (u64, u64, u64) {
        let counts = slot.counts.borrow();
        (
            slot.transport.opened.get(),
            counts.reconnects,
            counts.ended_by_server,
        )
    }

    #[test]
    fn connections_share_a_few_transports() {
        let count = 2 * TRANSPORTS;
        let slots = ConnectionSlot::several(count, &Shareable::default(), None, false);
        assert_eq!(slots.len(), count);
        for (number, slot) in slots.iter().enumerate() {
            let same =
                |other: &Rc<ConnectionSlot<_>>| Rc::ptr_eq(&other.transport, &slot.transport);
            let sharing = (0..count).filter(|other| same(&slots[*other]));
            let first = number % TRANSPORTS;
            assert!(sharing.eq([first, first + TRANSPORTS]), "{number}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn callers_of_one_connection_have_its_requests_together() {
        let slot = ConnectionSlot::new(Rc::new(Shareable::default()), NonZeroU64::new(3));
        let (mut one, mut other) = (None, None);
        begin(&slot, &mut one).await;
        begin(&slot, &mut other).await;
        begin(&slot, &mut one).await;
        assert_eq!(opened(&slot), (1, 0, 0));
        begin(&slot, &mut other).await;
        assert_eq!(opened(&slot), (2, 0, 0));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_a_lost_connection_is_a_reconnect() {
        let slot = ConnectionSlot::new(Rc::new(Shareable::default()), None);
        let mut held = None;
        begin(&slot, &mut held).await;
        slot.transport.ended.set(true);
        begin(&slot, &mut held).await;
        assert_eq!(opened(&slot), (2, 0, 1));
        slot.discard(&mut held);
        begin(&slot, &mut held).await;
        assert_eq!(opened(&slot), (3, 1, 1));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_that_the_server_has_ended_is_closed_by_the_next_request() {
        let once = ConnectionSlot::new(Rc::new(Shareable::default()), Some(NonZeroU64::MIN));
        let kept = ConnectionSlot::new(Rc::new(Shareable::default()), None);
        for (slot, is_ended, is_closed) in [
            (&once, false, true),
            (&kept, false, false),
            (&kept, true, false),
        ] {
            let mut held = None;
            begin(slot, &mut held).await;
            slot.transport.ended.set(is_ended);
            slot.release(&mut held);
            assert_eq!(held.is_none(), is_closed, "{is_ended}");
        }
    }
}
