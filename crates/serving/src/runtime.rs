//! Distribution of connections over tokio runtimes: one runtime per core, or one with work
//! stealing.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use netping_protocol::secure::{self, Acceptor};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
    time,
};
use tokio_stream::Stream;

use crate::{
    args::{RuntimeArgs, RuntimeKind},
    chassis::{Chassis, set_no_delay},
    connection::Guard,
    echo::goodbye,
    error::StartError,
    guarded::Guarded,
    shutdown::Shutdown,
};

/// A connection that is admitted and has its handshake done.
pub type Accepted = Guarded<secure::Stream>;

/// A connection on its way to a runtime.
#[derive(Debug)]
enum Handed {
    /// To the runtime that has accepted it.
    Here(TcpStream),
    /// To another runtime, which must register it first.
    Elsewhere(std::net::TcpStream),
}

type Queue = mpsc::UnboundedSender<(Handed, Guard)>;

/// The connections of one runtime. The stream ends when the server stops accepting.
#[derive(Debug)]
pub struct Accepts {
    queue: mpsc::UnboundedReceiver<(Handed, Guard)>,
    chassis: Chassis,
    handshakes: Option<Handshakes>,
}

/// The handshakes of one runtime's connections, each in a task of its own: a slow one delays no
/// other.
#[derive(Debug)]
struct Handshakes {
    acceptor: Acceptor,
    shutdown: Shutdown,
    /// Sender for the next task; `None` once there will be no more tasks.
    done: Option<mpsc::UnboundedSender<Accepted>>,
    ready: mpsc::UnboundedReceiver<Accepted>,
}

impl Handshakes {
    fn new(acceptor: &Acceptor, shutdown: &Shutdown) -> Self {
        let (done, ready) = mpsc::unbounded_channel();
        Self {
            acceptor: acceptor.clone(),
            shutdown: shutdown.clone(),
            done: Some(done),
            ready,
        }
    }

    fn start(&self, stream: TcpStream, guard: Guard, chassis: &Chassis) {
        let Some(done) = self.done.clone() else {
            return;
        };
        let (acceptor, shutdown) = (self.acceptor.clone(), self.shutdown.clone());
        let chassis = chassis.clone();
        tokio::spawn(async move {
            let accepted = tokio::select! {
                accepted = acceptor.accept(stream) => accepted,
                // The reaper has counted it.
                () = guard.closed() => return,
                () = shutdown.triggered() => return,
            };
            match accepted {
                // It fails only if the server has just ended.
                Ok(stream) => drop(done.send(Guarded::new(stream, guard))),
                Err((error, stream)) => {
                    tracing::debug!("handshake: {error}");
                    // Also if the peer merely closed: its intention is unknown.
                    chassis.count_error("tls");
                    if let Some(mut stream) = stream {
                        goodbye(&mut stream, &[]).await;
                    }
                }
            }
        });
    }
}

impl Stream for Accepts {
    type Item = Accepted;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while let Poll::Ready(handed) = this.queue.poll_recv(cx) {
            let Some((stream, guard)) = handed else {
                let Some(handshakes) = &mut this.handshakes else {
                    return Poll::Ready(None);
                };
                handshakes.done = None;
                break;
            };
            let stream = match stream {
                Handed::Here(stream) => Ok(stream),
                Handed::Elsewhere(stream) => TcpStream::from_std(stream),
            };
            match (stream, &this.handshakes) {
                (Ok(stream), Some(handshakes)) => handshakes.start(stream, guard, &this.chassis),
                (Ok(stream), None) => {
                    let stream = secure::Stream::Plain(stream);
                    return Poll::Ready(Some(Guarded::new(stream, guard)));
                }
                (Err(error), _) => drop(this.chassis.accept_failed(&error)),
            }
        }
        match &mut this.handshakes {
            Some(handshakes) => handshakes.ready.poll_recv(cx),
            None => Poll::Pending,
        }
    }
}

/// A server on accepted TCP connections, ready to run.
#[derive(Debug)]
pub struct TcpServer<'a> {
    /// Bound listener.
    pub listener: std::net::TcpListener,
    /// Chassis that admits the connections.
    pub chassis: &'a Chassis,
    /// Runtimes to use.
    pub runtime: &'a RuntimeArgs,
    /// Handshake of each connection.
    pub acceptor: &'a Acceptor,
    /// Switch that ends the server.
    pub shutdown: &'a Shutdown,
}

impl TcpServer<'_> {
    /// Serves until the shutdown, then drains. Calls `worker` once per runtime with the connections
    /// to serve there.
    ///
    /// # Errors
    /// Fails if the system refuses a runtime or a thread.
    pub fn serve<W, F>(self, worker: W) -> Result<(), StartError>
    where
        W: Fn(Accepts) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let (chassis, shutdown) = (self.chassis, self.shutdown);
        self.listener.set_nonblocking(true)?;
        let mut queues = Vec::new();
        let mut workers = Vec::new();
        for _ in 0..self.runtime.runtime_count() {
            let (queue, receiver) = mpsc::unbounded_channel();
            let encrypted = !self.acceptor.is_plain();
            let handshakes = encrypted.then(|| Handshakes::new(self.acceptor, shutdown));
            queues.push(queue);
            workers.push(worker(Accepts {
                queue: receiver,
                chassis: chassis.clone(),
                handshakes,
            }));
        }
        run_on_runtimes(self.runtime, workers, async {
            accept(self.listener, chassis, &queues, shutdown).await?;
            // Ends the workers' streams of connections.
            queues.clear();
            chassis.drain().await;
            Ok(())
        })
    }
}

/// Runs `main` to its end, and meanwhile each of `workers` on a runtime of its own. The first
/// worker shares its runtime with `main`.
///
/// # Errors
/// Fails if the system refuses a runtime or a thread, or `main` fails.
pub fn run_on_runtimes<F>(
    args: &RuntimeArgs,
    workers: impl IntoIterator<Item = F>,
    main: impl Future<Output = io::Result<()>>,
) -> Result<(), StartError>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Runtimes stay until the last connection is done, even if their workers end.
    let finished = watch::Sender::new(false);
    let runtime = match args.runtime {
        RuntimeKind::MultiThread if args.busy_poll => {
            return Err(StartError::Flags("--busy-poll needs --runtime per-core"));
        }
        RuntimeKind::MultiThread => Builder::new_multi_thread()
            .worker_threads(args.worker_count())
            .enable_all()
            .build()?,
        RuntimeKind::PerCore => per_core()?,
    };
    let mut workers = workers.into_iter();
    let first = workers.next();
    for (number, worker) in workers.enumerate() {
        let runtime = per_core()?;
        let mut finished = finished.subscribe();
        let busy = args.busy_poll;
        thread::Builder::new()
            .name(format!("worker-{}", number + 1))
            .spawn(move || {
                runtime.block_on(async move {
                    start(worker, busy);
                    let _ = finished.wait_for(|finished| *finished).await;
                });
            })?;
    }
    let result = runtime.block_on(async {
        if let Some(worker) = first {
            start(worker, args.busy_poll);
        }
        main.await
    });
    finished.send_replace(true);
    // A task that is stuck in its own work must not keep the process.
    runtime.shutdown_background();
    Ok(result?)
}

fn per_core() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts a worker on the current runtime, and with `busy` a task that never lets the runtime
/// sleep.
fn start(worker: impl Future<Output = ()> + Send + 'static, busy: bool) {
    tokio::spawn(worker);
    if busy {
        tokio::spawn(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
    }
}

/// Accepts until `shutdown` and hands the connections to the queues in turn. The first queue
/// belongs to this runtime.
async fn accept(
    listener: std::net::TcpListener,
    chassis: &Chassis,
    queues: &[Queue],
    shutdown: &Shutdown,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let accepting = async {
        let mut turn = queues.iter().enumerate().cycle();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    time::sleep(chassis.accept_failed(&error)).await;
                    continue;
                }
            };
            let Some(guard) = chassis.admit_task() else {
                continue;
            };
            set_no_delay(&stream);
            let Some((number, queue)) = turn.next() else {
                continue;
            };
            let handed = if number == 0 {
                Ok(Handed::Here(stream))
            } else {
                stream.into_std().map(Handed::Elsewhere)
            };
            match handed {
                // A queue closes only after this loop has ended.
                Ok(handed) => drop(queue.send((handed, guard))),
                Err(error) => drop(chassis.accept_failed(&error)),
            }
        }
    };
    tokio::select! {
        () = shutdown.triggered() => Ok(()),
        () = accepting => Ok(()),
    }
}
