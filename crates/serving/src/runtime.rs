//! Brings accepted connections to tokio runtimes: one runtime per core, or one with work stealing.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use netping_protocol::secure::{Acceptor, Stream as Secured};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
    time,
};
use tokio_stream::Stream;

use crate::{
    chassis::{self, Chassis},
    connection::Guard,
    echo::goodbye,
    guarded::Guarded,
    listen::StartError,
    options::{RuntimeArgs, RuntimeKind},
    shutdown::Shutdown,
};

/// A connection as a server's worker gets it: admitted, and with its handshake done.
pub type Accepted = Guarded<netping_protocol::secure::Stream>;

/// A connection on its way to a worker.
#[derive(Debug)]
enum Handed {
    /// To a worker of the acceptor's own runtime.
    Here(TcpStream),
    /// To another runtime, which must register it anew.
    Elsewhere(std::net::TcpStream),
}

type Queue = mpsc::UnboundedSender<(Handed, Guard)>;

/// The connections that one worker is to serve; it ends when the server stops accepting.
#[derive(Debug)]
pub struct Accepts {
    queue: mpsc::UnboundedReceiver<(Handed, Guard)>,
    chassis: Chassis,
    handshakes: Option<Handshakes>,
}

/// The handshakes of one worker's connections, each in a task of its own: a slow one holds no other up.
#[derive(Debug)]
struct Handshakes {
    acceptor: Acceptor,
    shutdown: Shutdown,
    /// For the next task; `None` when there will be no more of them.
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
        let (acceptor, shutdown, chassis) = (
            self.acceptor.clone(),
            self.shutdown.clone(),
            chassis.clone(),
        );
        tokio::spawn(async move {
            let outcome = tokio::select! {
                outcome = acceptor.accept(stream) => outcome,
                // The warden has counted why.
                () = guard.closed() => return,
                () = shutdown.triggered() => return,
            };
            match outcome {
                // Nobody waits for it any more where the server has just ended.
                Ok(stream) => drop(done.send(Guarded::new(stream, guard))),
                Err((error, stream)) => {
                    tracing::debug!("handshake: {error}");
                    // Also where the peer just went away: what it wanted is not known.
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
    type Item = io::Result<Accepted>;

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
                    return Poll::Ready(Some(Ok(Guarded::new(Secured::Plain(stream), guard))));
                }
                (Err(error), _) => drop(this.chassis.accept_failed(&error)),
            }
        }
        match &mut this.handshakes {
            Some(handshakes) => handshakes
                .ready
                .poll_recv(cx)
                .map(|accepted| accepted.map(Ok)),
            None => Poll::Pending,
        }
    }
}

/// Serves until `shutdown`, then drains. `worker` is run once on each runtime, with the connections it is to serve,
/// secured by `acceptor`.
///
/// # Errors
/// When a runtime or a thread cannot be had.
pub fn serve<W, F>(
    listener: std::net::TcpListener,
    chassis: &Chassis,
    args: &RuntimeArgs,
    acceptor: &Acceptor,
    shutdown: &Shutdown,
    worker: W,
) -> Result<(), StartError>
where
    W: Fn(Accepts) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    listener.set_nonblocking(true)?;
    let mut queues = Vec::new();
    let mut accepts = Vec::new();
    for _ in 0..args.runtime_count() {
        let (queue, receiver) = mpsc::unbounded_channel();
        let handshakes = (!acceptor.is_plain()).then(|| Handshakes::new(acceptor, shutdown));
        queues.push(queue);
        accepts.push(worker(Accepts {
            queue: receiver,
            chassis: chassis.clone(),
            handshakes,
        }));
    }
    let mut accepts = accepts.into_iter();
    let worker = || {
        let accepts = accepts.next();
        async move {
            // There is one for each worker.
            if let Some(accepts) = accepts {
                accepts.await;
            }
        }
    };
    run_on_runtimes(args, worker, async {
        accept(listener, chassis, &queues, shutdown).await?;
        // Workers see the end of their connections, and stop waiting for more.
        queues.clear();
        chassis.drain().await;
        Ok(())
    })
}

/// Runs `main` to its end, and meanwhile what `worker` gives on each runtime: it is called once for each of
/// [`RuntimeArgs::runtime_count`], and the first of them has `main` too.
///
/// # Errors
/// When a runtime or a thread cannot be had, or `main` fails.
pub fn run_on_runtimes<F>(
    args: &RuntimeArgs,
    mut worker: impl FnMut() -> F,
    main: impl Future<Output = io::Result<()>>,
) -> Result<(), StartError>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Workers stay until the last connection is done, whatever their futures do.
    let finished = watch::Sender::new(false);
    let runtime = match args.runtime {
        RuntimeKind::MultiThread if args.busy_poll => {
            return Err(StartError::Flags(
                "--busy-poll needs --runtime per-core".to_owned(),
            ));
        }
        RuntimeKind::MultiThread => Builder::new_multi_thread()
            .worker_threads(args.worker_count())
            .enable_all()
            .build()?,
        RuntimeKind::PerCore => per_core()?,
    };
    let first = worker();
    for number in 1..args.runtime_count() {
        let runtime = per_core()?;
        let future = worker();
        let mut finished = finished.subscribe();
        let busy = args.busy_poll;
        thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                runtime.block_on(async move {
                    start(future, busy);
                    let _ = finished.wait_for(|finished| *finished).await;
                });
            })?;
    }
    let result = runtime.block_on(async {
        start(first, args.busy_poll);
        main.await
    });
    finished.send_replace(true);
    // What is stuck in its own work does not keep the process.
    runtime.shutdown_background();
    Ok(result?)
}

fn per_core() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts a worker's future on the current runtime, and with `busy` a task that never lets the runtime sleep.
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

/// Accepts until `shutdown`, and hands the connections to the queues in turn; the first belongs to this runtime.
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
            chassis::set_no_delay(&stream);
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
