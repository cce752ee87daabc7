//! Brings accepted connections to tokio runtimes: one runtime per core, or one with work stealing.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
    time,
};
use tokio_stream::Stream;

use crate::{
    chassis::{self, Chassis},
    connection::{Guard, Guarded},
    listen::StartError,
    options::{RuntimeArgs, RuntimeKind},
    shutdown::Shutdown,
};

/// A connection as a server's worker gets it.
pub type Accepted = Guarded<TcpStream>;

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
}

impl Stream for Accepts {
    type Item = io::Result<Accepted>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while let Some((stream, guard)) = std::task::ready!(this.queue.poll_recv(cx)) {
            let stream = match stream {
                Handed::Here(stream) => Ok(stream),
                Handed::Elsewhere(stream) => TcpStream::from_std(stream),
            };
            match stream {
                Ok(stream) => return Poll::Ready(Some(Ok(Guarded::new(stream, guard)))),
                Err(error) => drop(this.chassis.accept_failed(&error)),
            }
        }
        Poll::Ready(None)
    }
}

/// Serves until `shutdown`, then drains. `worker` is run once on each runtime, with the connections it is to serve.
///
/// # Errors
/// When a runtime or a thread cannot be had.
pub fn serve<W, F>(
    listener: std::net::TcpListener,
    chassis: &Chassis,
    args: &RuntimeArgs,
    shutdown: &Shutdown,
    worker: W,
) -> Result<(), StartError>
where
    W: Fn(Accepts) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    listener.set_nonblocking(true)?;
    // Workers stay until the last connection is done, whatever their futures do.
    let finished = watch::Sender::new(false);
    let mut queues = Vec::new();
    let mut accepts = || {
        let (queue, receiver) = mpsc::unbounded_channel();
        queues.push(queue);
        Accepts { queue: receiver, chassis: chassis.clone() }
    };

    let (main, first) = match args.runtime {
        RuntimeKind::MultiThread if args.busy_poll => {
            return Err(StartError::Flags("--busy-poll needs --runtime per-core".to_owned()));
        }
        RuntimeKind::MultiThread => {
            let runtime = Builder::new_multi_thread().worker_threads(args.worker_count()).enable_all().build()?;
            (runtime, worker(accepts()))
        }
        RuntimeKind::PerCore => {
            let first = worker(accepts());
            for number in 1..args.worker_count() {
                let runtime = per_core()?;
                let future = worker(accepts());
                let mut finished = finished.subscribe();
                let busy = args.busy_poll;
                thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
                    runtime.block_on(async move {
                        start(future, busy);
                        let _ = finished.wait_for(|finished| *finished).await;
                    });
                })?;
            }
            (per_core()?, first)
        }
    };
    main.block_on(async {
        start(first, args.busy_poll);
        accept(listener, chassis, &queues, shutdown).await?;
        // Workers see the end of their connections, and stop waiting for more.
        queues.clear();
        chassis.drain().await;
        io::Result::Ok(())
    })?;
    finished.send_replace(true);
    // What is stuck in its own work does not keep the process.
    main.shutdown_background();
    Ok(())
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
            let Some(guard) = chassis.admit_task() else { continue };
            chassis::set_no_delay(&stream);
            let Some((number, queue)) = turn.next() else { continue };
            let handed = if number == 0 { Ok(Handed::Here(stream)) } else { stream.into_std().map(Handed::Elsewhere) };
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
