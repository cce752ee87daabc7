//! Name resolution of targets.

use std::{
    cell::RefCell,
    io,
    net::{SocketAddr, ToSocketAddrs},
    sync::mpsc::{self, Sender},
    thread,
};

use netping_protocol::target::Target;
use tokio::sync::oneshot;

/// A name to look up, and where the answer goes.
type Question = (String, oneshot::Sender<io::Result<Vec<SocketAddr>>>);

thread_local! {
    /// Threads of this worker that wait for a name.
    static IDLE: RefCell<Vec<Sender<Question>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the addresses of a target's host, without keeping the calling thread from other work. As
/// many threads are kept as names have been looked up at the same time.
///
/// # Errors
/// Those of the system, also where it refuses a thread: tokio's own look-up panics then.
pub async fn resolve_aside(target: &Target) -> io::Result<Vec<SocketAddr>> {
    let idle = IDLE.with_borrow_mut(Vec::pop);
    let resolver = idle.map_or_else(start_resolver, Ok)?;
    let (answer, answered) = oneshot::channel();
    let gone = || io::Error::other("the resolver's thread has ended");
    let question = (target.authority(), answer);
    resolver.send(question).map_err(|_| gone())?;
    let found = answered.await.map_err(|_| gone())?;
    IDLE.with_borrow_mut(|idle| idle.push(resolver));
    found
}

/// Starts a thread that ends when nobody can ask it any more.
fn start_resolver() -> io::Result<Sender<Question>> {
    let (resolver, questions) = mpsc::channel::<Question>();
    let answer_all = move || {
        for (authority, answer) in questions {
            let found = authority.to_socket_addrs().map(Iterator::collect);
            // Whoever asked may have given up.
            let _ = answer.send(found);
        }
    };
    let builder = thread::Builder::new().name("resolver".to_owned());
    builder.spawn(answer_all).map_err(|error| {
        let text = format!("no thread to resolve the name: {error}");
        io::Error::new(error.kind(), text)
    })?;
    Ok(resolver)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn names_are_looked_up_at_the_same_time_and_threads_are_kept() {
        let target: Target = "tcp://127.0.0.1:7".parse().unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // A thread whose answers the test gives.
            let (busy, questions) = mpsc::channel();
            IDLE.with_borrow_mut(|idle| idle.push(busy));
            let mut first = pin!(resolve_aside(&target));
            assert!(first.as_mut().now_or_never().is_none());
            let expected = [SocketAddr::from(([127, 0, 0, 1], 7))];
            assert_eq!(resolve_aside(&target).await.unwrap(), expected);
            let (authority, answer) = questions.try_recv().unwrap();
            assert_eq!(authority, "127.0.0.1:7");
            answer.send(Ok(expected.to_vec())).unwrap();
            assert_eq!(first.await.unwrap(), expected);
            let idle = || IDLE.with_borrow(Vec::len);
            assert_eq!(idle(), 2);
            // The next one asks a thread that is there.
            assert!(resolve_aside(&target).now_or_never().is_none());
            assert!(questions.try_recv().is_ok());
            assert_eq!(idle(), 1);
        });
    }
}
