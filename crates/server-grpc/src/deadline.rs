//! The deadline that a caller gives its call, in the header `grpc-timeout` (gRPC over HTTP/2, "Requests").

use std::{
    future::poll_fn,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use netping_serving::clock;
use tokio::time::sleep_until;

/// The header.
pub(crate) const TIMEOUT: &str = "grpc-timeout";

/// The words of the status of a call that has missed it.
pub(crate) const MISSED: &str = "the call's grpc-timeout is over";

/// Returns the time that the header's value gives; `None` for a value that is not gRPC's.
pub(crate) fn timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let amount: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(amount * 3600)),
        b'M' => Some(Duration::from_secs(amount * 60)),
        b'S' => Some(Duration::from_secs(amount)),
        b'm' => Some(Duration::from_millis(amount)),
        b'u' => Some(Duration::from_micros(amount)),
        b'n' => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// Returns the end of a call that begins now, by the value of its header.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| clock::now().checked_add(timeout))
}

/// Waits for `future` until the deadline; `None` if that comes first.
pub(crate) async fn within<F: Future>(future: F, deadline: Instant) -> Option<F::Output> {
    let (mut future, mut timer) = (pin!(future), pin!(sleep_until(deadline.into())));
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        // tonic's own timer, which is set a little later, may wake the call first, and would have another status.
        if timer.as_mut().poll(cx).is_ready() || clock::now() >= deadline {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_grpc_writes_them() {
        for (text, nanos) in [
            ("1H", 3_600_000_000_000),
            ("2M", 120_000_000_000),
            ("3S", 3_000_000_000),
            ("20m", 20_000_000),
            ("99999999u", 99_999_999_000),
            ("0n", 0),
        ] {
            let expected = Duration::from_nanos(nanos);
            assert_eq!(timeout(text.as_bytes()), Some(expected), "{text}");
        }
        for text in [
            "",
            "S",
            "1",
            "1s",
            "-1S",
            "1.5S",
            "+1S",
            "123456789n",
            "1 S",
        ] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
    }
}
