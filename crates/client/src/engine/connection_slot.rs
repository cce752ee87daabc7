//! A connection and the callers on it: opened once, renewed when it is lost or has served its requests.

use std::cell::{Cell, RefCell};

use tokio::sync::Mutex;

use netping_protocol::tls::Negotiated;

use crate::transport::{Connection, Failure, Milestones, Opened, Transport};

/// The place of one connection. Its callers hold handles on whatever connection is there now.
#[derive(Debug)]
pub struct ConnectionSlot<T: Transport> {
    transport: T,
    /// A handle for the next caller who asks; `None` where it has been given away, or there is no connection.
    spare: RefCell<Option<T::Connection>>,
    /// Counts the connections that have been here.
    generation: Cell<u64>,
    /// Whether the connection of this generation has been lost.
    lost: Cell<bool>,
    /// Requests that were begun on this connection; `limit` once the server wants no more on it.
    used: Cell<u64>,
    /// Requests for each connection; `u64::MAX`: keep it.
    limit: u64,
    /// Whether the server has ended the connection of this generation, or wants it ended.
    spent: Cell<bool>,
    /// Connections opened in place of lost ones.
    reconnects: Cell<u64>,
    /// Connections opened because the server had ended the one before.
    ended_by_server: Cell<u64>,
    /// How the last connection that has served its requests was secured.
    negotiated: RefCell<Option<Negotiated>>,
    /// One caller opens, the others wait and share what it opened.
    opening: Mutex<()>,
}

/// A handle on a lane's connection.
#[derive(Debug)]
pub struct Held<C> {
    /// The handle.
    pub connection: C,
    generation: u64,
}

impl<T: Transport> ConnectionSlot<T> {
    /// A lane without a connection; with `limit`, a connection is closed after so many requests.
    pub fn new(transport: T, limit: Option<u64>) -> Self {
        Self {
            transport,
            spare: RefCell::new(None),
            generation: Cell::new(0),
            lost: Cell::new(true),
            used: Cell::new(0),
            limit: limit.unwrap_or(u64::MAX),
            spent: Cell::new(false),
            reconnects: Cell::new(0),
            ended_by_server: Cell::new(0),
            negotiated: RefCell::default(),
            opening: Mutex::new(()),
        }
    }

    /// Opens the connection, before there are requests, and says how it is secured.
    pub async fn open(&self) -> Result<Option<Negotiated>, Failure> {
        let connection = self
            .transport
            .connect(&mut Milestones::start(&|| 0))
            .await?;
        let negotiated = connection.negotiated();
        self.install(Some(connection));
        Ok(negotiated)
    }

    /// A handle for one request: the one in `held` if its connection still serves, a new one otherwise. While that is
    /// being opened, `held` is empty and `connected` false; `opened` then tells what it took by the clock `now`.
    pub async fn handle<'a>(
        &self,
        held: &'a mut Option<Held<T::Connection>>,
        connected: &Cell<bool>,
        opened: &mut Option<Opened>,
        now: &dyn Fn() -> u64,
    ) -> Result<&'a mut T::Connection, Failure> {
        self.retire(held);
        if !held
            .as_ref()
            .is_some_and(|held| self.serves(held.generation))
        {
            // Dropped first: where connections are limited, the old one must be gone before the new one comes.
            *held = None;
            connected.set(false);
            *held = Some(self.acquire(opened, now).await?);
            connected.set(true);
        }
        self.used.set(self.used.get() + 1);
        match held {
            Some(held) => Ok(&mut held.connection),
            None => unreachable!("it was just filled"),
        }
    }

    /// Closes the connection behind `held` once it has served its requests: that belongs to none of them.
    pub fn release(&self, held: &mut Option<Held<T::Connection>>) {
        self.retire(held);
        if self.used.get() >= self.limit {
            if let Some(held) = held.take() {
                self.negotiated.replace(held.connection.negotiated());
            }
            self.spare.take();
        }
    }

    /// Notes that the connection behind `held` is of no more use.
    pub fn discard(&self, held: &mut Option<Held<T::Connection>>) {
        if let Some(held) = held.take()
            && held.generation == self.generation.get()
        {
            self.lost.set(true);
            self.spare.take();
        }
    }

    /// Connections opened in place of lost ones.
    pub fn reconnects(&self) -> u64 {
        self.reconnects.get()
    }

    /// Connections opened because the server had ended the one before, without a request on it being lost.
    pub fn ended_by_server(&self) -> u64 {
        self.ended_by_server.get()
    }

    /// How the last connection that has served its requests was secured; `None` in the clear, or where there is none.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.negotiated.borrow().clone()
    }

    /// Where the server wants no more requests on the connection behind `held`, it has served its requests.
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

    async fn acquire(
        &self,
        opened: &mut Option<Opened>,
        now: &dyn Fn() -> u64,
    ) -> Result<Held<T::Connection>, Failure> {
        let _turn = self.opening.lock().await;
        let spare = if self.serves(self.generation.get()) {
            self.take_spare()
        } else {
            None
        };
        let connection = if let Some(connection) = spare {
            connection
        } else {
            self.spare.take();
            // Not the first, and not in its turn: the last one was lost, or dropped with a request that took too long.
            let replaces = self.generation.get() > 0 && self.used.get() < self.limit;
            let mut milestones = Milestones::start(now);
            let connection = self.transport.connect(&mut milestones).await?;
            *opened = Some(milestones.finish());
            self.reconnects
                .set(self.reconnects.get() + u64::from(replaces));
            self.ended_by_server
                .set(self.ended_by_server.get() + u64::from(self.spent.get()));
            self.install(connection.share());
            connection
        };
        Ok(Held {
            connection,
            generation: self.generation.get(),
        })
    }

    fn install(&self, spare: Option<T::Connection>) {
        self.spare.replace(spare);
        self.generation.set(self.generation.get() + 1);
        self.lost.set(false);
        self.spent.set(false);
        self.used.set(0);
    }

    /// A handle on the connection: a shared one stays for the next caller too.
    fn take_spare(&self) -> Option<T::Connection> {
        let mut spare = self.spare.borrow_mut();
        let shared = spare.as_ref()?.share();
        shared.or_else(|| spare.take())
    }
}
