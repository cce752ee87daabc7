//! Distribution of connections over tokio runtimes: one runtime per core, or one with work
//! stealing.

use std::{future::Future, io, net::TcpListener as StdListener, pin::Pin, sync::Arc, thread};

use netping_protocol::{
    codec::LINGER,
    secure::{self, Acceptor},
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
    time,
};
use tokio_stream::{StreamExt, wrappers::UnboundedReceiverStream};

use crate::{
    Chassis, Guard, Listening, Result, ServeError,
    args::{RuntimeArgs, RuntimeKind},
    chassis::set_no_delay,
    echo::goodbye,
    guarded::Guarded,
};

/// A connection that is admitted and has its handshake done.
pub type Accepted = Guarded<secure::Stream>;

/// The connections of one runtime. The stream ends when the server stops accepting.
pub type Accepts = UnboundedReceiverStream<Accepted>;

/// Takes in the connections that a runtime is to serve.
struct Registrar {
    /// True if the runtime has accepted the connections itself.
    is_own: bool,
    acceptor: Acceptor,
    chassis: Arc<Chassis>,
    accepted: mpsc::UnboundedSender<Accepted>,
}

impl Registrar {
    /// Registers the connections with this runtime. Each handshake is a task of its own: a slow one
    /// delays no other.
    async fn run(self, mut queue: mpsc::UnboundedReceiver<(TcpStream, Guard)>) {
        let registrar = Arc::new(self);
        while let Some((stream, guard)) = queue.recv().await {
            let registered = if registrar.is_own {
                Ok(stream)
            } else {
                stream.into_std().and_then(TcpStream::from_std)
            };
            match registered {
                Ok(stream) if registrar.acceptor.is_plain() => {
                    registrar.hand_over(secure::Stream::Plain(stream), guard);
                }
                Ok(stream) => drop(tokio::spawn(
                    Arc::clone(&registrar).shake_hands(stream, guard),
                )),
                Err(error) => drop(registrar.chassis.accept_failed(&error)),
            }
        }
    }

    fn hand_over(&self, stream: secure::Stream, guard: Guard) {
        guard.connection().set_ready();
        // It fails only if the server has just ended.
        let _ = self.accepted.send(Guarded::new(stream, guard));
    }

    async fn shake_hands(self: Arc<Self>, stream: TcpStream, guard: Guard) {
        let accepted = tokio::select! {
            accepted = self.acceptor.accept(stream) => accepted,
            // The reaper has counted it.
            () = guard.closed() => return,
            // A handshake that is under way may end, so that the peer is told goodbye and sees no reset.
            () = self.chassis.goodbye_is_over() => return,
        };
        match accepted {
            Ok(stream) => self.hand_over(stream, guard),
            Err((error, stream)) => {
                tracing::debug!("handshake: {error}");
                // Also if the peer merely closed: its intention is unknown.
                self.chassis.shared().count("tls");
                if let Some(mut stream) = stream {
                    goodbye(&mut stream, &[], LINGER).await;
                }
            }
        }
    }
}

/// The beginning of the names of the threads that serve, where there are several.
pub(crate) const WORKER: &str = "worker-";

/// Serves the connections of one runtime to their end.
type Worker = Box<dyn Fn(Accepts) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The connections that a runtime is given, each with its guard.
type Queue = mpsc::UnboundedSender<(TcpStream, Guard)>;

/// A server on accepted TCP connections, ready to run.
pub struct TcpServer {
    listener: StdListener,
    chassis: Arc<Chassis>,
    acceptor: Acceptor,
    worker: Worker,
}

impl TcpServer {
    /// Returns a server that admits connections to `chassis` and has them accepted by `acceptor`.
    /// `worker` is called once per runtime with the connections to serve there.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        listening: Listening,
        chassis: Arc<Chassis>,
        acceptor: Acceptor,
        worker: impl Fn(Accepts) -> F + Send + 'static,
    ) -> Self {
        Self {
            listener: listening.service.into(),
            chassis,
            acceptor,
            worker: Box::new(move |accepts| Box::pin(worker(accepts))),
        }
    }

    /// Serves on runtimes of its own until the shutdown, then drains.
    ///
    /// # Errors
    /// Fails if the system refuses a runtime or a thread.
    pub fn serve(self, runtime: &RuntimeArgs) -> Result<()> {
        let count = runtime.runtime_count();
        let workers = (0..count).map(|_| self.worker(count == 1));
        let (queues, workers): (Vec<_>, Vec<_>) = workers.unzip();
        run_on_runtimes(runtime, workers, self.accept_and_drain(queues))
    }

    /// Serves on the current runtime until the shutdown, then drains.
    ///
    /// # Errors
    /// Fails if the system refuses the listener.
    pub async fn serve_here(self) -> io::Result<()> {
        let (queue, worker) = self.worker(true);
        start(worker, false);
        self.accept_and_drain(vec![queue]).await
    }

    /// Returns the queue of a runtime's connections, and the task that serves them; `accepts_itself` if it is the only
    /// runtime.
    fn worker(&self, accepts_itself: bool) -> (Queue, impl Future<Output = ()> + Send + use<>) {
        let (queue, incoming) = mpsc::unbounded_channel();
        let (accepted, accepts) = mpsc::unbounded_channel();
        let registrar = Registrar {
            is_own: accepts_itself,
            acceptor: self.acceptor.clone(),
            chassis: Arc::clone(&self.chassis),
            accepted,
        };
        let worker = (self.worker)(Accepts::new(accepts));
        let both = async move {
            tokio::join!(registrar.run(incoming), worker);
        };
        (queue, both)
    }

    async fn accept_and_drain(self, queues: Vec<Queue>) -> io::Result<()> {
        accept(self.listener, &self.chassis, &queues).await?;
        // Ends the workers' streams of connections.
        drop(queues);
        self.chassis.drain().await;
        Ok(())
    }
}

/// Serves each of the connections in a task of its own.
pub async fn each<F>(mut accepts: Accepts, serve: impl Fn(Accepted) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Some(accepted) = accepts.next().await {
        tokio::spawn(serve(accepted));
    }
}

/// Runs `main` to its end, and meanwhile each of `workers` on a runtime of its own. A single worker shares its runtime with
/// `main`; among several, none does, so that all have the same to do.
///
/// # Errors
/// Fails if the system refuses a runtime or a thread, or `main` fails.
pub fn run_on_runtimes<F>(
    args: &RuntimeArgs,
    workers: impl IntoIterator<Item = F>,
    main: impl Future<Output = io::Result<()>>,
) -> Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Runtimes stay until the last connection is done, even if their workers end.
    let finished = watch::Sender::new(false);
    let runtime = match args.runtime {
        RuntimeKind::MultiThread if args.busy_poll => {
            return Err(ServeError::Flags("--busy-poll needs --runtime per-core"));
        }
        RuntimeKind::MultiThread => Builder::new_multi_thread()
            .worker_threads(args.worker_count())
            .enable_all()
            .build()?,
        RuntimeKind::PerCore => per_core()?,
    };
    let mut workers: Vec<_> = workers.into_iter().collect();
    let single = if workers.len() == 1 {
        workers.pop()
    } else {
        None
    };
    for (number, worker) in workers.into_iter().enumerate() {
        let runtime = per_core()?;
        let mut finished = finished.subscribe();
        let busy = args.busy_poll;
        thread::Builder::new()
            .name(format!("{WORKER}{number}"))
            .spawn(move || {
                runtime.block_on(async move {
                    start(worker, busy);
                    let _ = finished.wait_for(|finished| *finished).await;
                });
            })?;
    }
    let result = runtime.block_on(async {
        if let Some(worker) = single {
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

/// Accepts until the shutdown and hands the connections to the queues in turn.
async fn accept(listener: StdListener, chassis: &Chassis, queues: &[Queue]) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let accepting = async {
        let mut turn = queues.iter().cycle();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(guard) = chassis.admit_task()
                        && let Some(queue) = turn.next()
                    {
                        set_no_delay(&stream);
                        // A queue closes only after this loop has ended.
                        let _ = queue.send((stream, guard));
                    }
                }
                Err(error) => time::sleep(chassis.accept_failed(&error)).await,
            }
        }
    };
    tokio::select! {
        () = chassis.shutdown.triggered() => Ok(()),
        () = accepting => Ok(()),
    }
}
