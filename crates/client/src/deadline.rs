//! A time limit for each of many requests, at the price of one timer.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// Limits one caller's requests, one after the other. The timer is moved only when it fires, which is at most once in
/// each request's time limit: a request that is answered in time costs no timer.
#[derive(Debug)]
pub struct Deadline {
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    /// A deadline whose first request will have `first` as its limit, or a later one.
    pub fn new(first: Instant) -> Self {
        Self { timer: Box::pin(sleep_until(first)) }
    }

    /// What `future` gives; `None` when that takes longer than until `limit`. No limit may lie before an earlier one.
    pub async fn within<F: Future>(&mut self, limit: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            while self.timer.as_mut().poll(cx).is_ready() {
                if self.timer.deadline() >= limit {
                    return Poll::Ready(None);
                }
                self.timer.as_mut().reset(limit);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use super::*;
    use crate::clock::{Clock, Monotonic};

    fn paused<F: Future>(future: F) -> F::Output {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap().block_on(future)
    }

    #[test]
    fn a_later_request_has_its_own_full_time() {
        paused(async {
            let start = Monotonic::start().instant(0);
            let at = |milliseconds| start + Duration::from_millis(milliseconds);
            let mut deadline = Deadline::new(at(100));
            assert_eq!(deadline.within(at(100), tokio::time::sleep(Duration::from_millis(90))).await, Some(()));
            // Begun at 90 ms, it may last until 190 ms, though the timer was set to 100 ms.
            assert_eq!(deadline.within(at(190), tokio::time::sleep(Duration::from_millis(80))).await, Some(()));
            assert_eq!(deadline.within(at(270), pending::<()>()).await, None);
        });
    }
}
