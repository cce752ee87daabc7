//! The offset between this machine's time of day and a server's, by the exchange of times.

use std::{io, time::Duration};

use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    frame::{self, Reply, RequestHeader},
    scheme::Protocol,
};
use netping_results::run::ClockOffset;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, join},
    runtime::Builder,
    time,
};

use crate::{
    clock::Moment,
    error::{CANNOT_CONNECT, FIRST_CALL_FAILED, StartError},
    plan::Destination,
    transport::{
        Failure, Milestones, ServerEndpoint, Transport, connect,
        quic::{Quic, explained},
    },
};

/// Exchanges of which the one with the shortest round trip counts.
const EXCHANGES: usize = 200;

/// Time limit for all of them.
const PATIENCE: Duration = Duration::from_secs(5);

/// The times of one exchange, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct TimeExchange {
    /// The client sends the request.
    sent: u64,
    /// The server has received it.
    received: u64,
    /// The server replies.
    replied: u64,
    /// The client has received the reply.
    returned: u64,
}

impl TimeExchange {
    /// Returns the server's time less the client's, in nanoseconds.
    fn offset(self) -> i64 {
        let there = i128::from(self.received) - i128::from(self.sent);
        let back = i128::from(self.replied) - i128::from(self.returned);
        i128::midpoint(there, back) as i64
    }

    /// Returns the time on the way there and back, in nanoseconds. A clock that was set meanwhile
    /// gives none.
    fn round_trip(self) -> Option<u64> {
        let whole = self.returned.checked_sub(self.sent)?;
        whole.checked_sub(self.replied.checked_sub(self.received)?)
    }
}

/// Returns true if a server of this kind tells its time.
pub fn tells_time(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Tcp | Protocol::Quic)
}

/// Measures the offset to the clock of a server that [tells its time](tells_time).
///
/// # Errors
/// [`StartError`] if the server does not answer, or does not tell its time.
pub fn measure(server: &Destination) -> Result<ClockOffset, StartError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let endpoint = server.endpoint()?;
    let asked = runtime.block_on(async { time::timeout(PATIENCE, ask(endpoint)).await });
    let asked = asked.unwrap_or_else(|_| {
        let failure = Failure::request(ErrorKind::Timeout, "no answer in time");
        Err(failure.at(FIRST_CALL_FAILED))
    });
    let best = asked.map_err(|failure| StartError::Server(server.url.clone(), failure))?;
    Ok(ClockOffset {
        server: server.url.to_string(),
        offset_ns: best.offset(),
        round_trip_ns: best.round_trip().unwrap_or(u64::MAX),
    })
}

/// Returns the exchange with the shortest round trip.
async fn ask(endpoint: ServerEndpoint) -> Result<TimeExchange, Failure> {
    let unreachable = |failure: Failure| failure.at(CANNOT_CONNECT);
    let mut milestones = Milestones::untimed();
    let exchanged = if endpoint.destination.url.scheme.protocol() == Protocol::Quic {
        let connected = Quic::new(endpoint).connect(&mut milestones).await;
        let handle = connected.map_err(unreachable)?;
        let stream = handle.connection.open_bi().await.map_err(Failure::from);
        let (send, recv) = stream.map_err(unreachable)?;
        explained(exchange(join(recv, send), &[]).await, &handle.connection)
    } else {
        let stream = connect::open(&endpoint, None, &mut milestones).await;
        exchange(stream.map_err(unreachable)?, &frame::MAGIC).await
    };
    exchanged.map_err(|failure| failure.at(FIRST_CALL_FAILED))
}

/// Exchanges times on a stream that begins with `magic`; returns the exchange with the shortest round
/// trip.
async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    magic: &[u8],
) -> Result<TimeExchange, Failure> {
    stream.write_all(magic).await?;
    let header = RequestHeader {
        payload: 0,
        reply: Reply::Times,
    };
    let mut exchanges = Vec::with_capacity(EXCHANGES);
    for _ in 0..EXCHANGES {
        let sent = Moment::now().nanos();
        stream.write_all(&header.encode()).await?;
        stream.flush().await?;
        let mut reply = [0; frame::REPLY_HEADER];
        stream.read_exact(&mut reply).await?;
        if frame::reply_length(&reply) != Some(frame::TIMES as u32) {
            let detail =
                "the server does not tell its time: it is an older netping server, or another";
            return Err(Failure::lost(ErrorKind::Protocol, detail));
        }
        let mut times = [0; frame::TIMES];
        stream.read_exact(&mut times).await?;
        let returned = Moment::now().nanos();
        let (received, replied) = frame::decode_times(&times);
        exchanges.push(TimeExchange {
            sent,
            received,
            replied,
            returned,
        });
    }
    let unsteady = || io::Error::other("a clock was set while the offset was measured");
    Ok(nearest(exchanges).ok_or_else(unsteady)?)
}

/// Returns the exchange with the shortest round trip, of those in which no clock was set.
fn nearest(mut exchanges: Vec<TimeExchange>) -> Option<TimeExchange> {
    exchanges.retain(|exchange| exchange.round_trip().is_some());
    exchanges.into_iter().min_by_key(|own| own.round_trip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_that_of_equal_ways() {
        // 10 ns there, 5 ns in the server, 10 ns back; the server's clock is 100 ns behind.
        let exchange = TimeExchange {
            sent: 1000,
            received: 910,
            replied: 915,
            returned: 1025,
        };
        assert_eq!(exchange.offset(), -100);
        assert_eq!(exchange.round_trip(), Some(20));
        let set = TimeExchange {
            returned: 999,
            ..exchange
        };
        assert_eq!(set.round_trip(), None);
    }

    #[test]
    fn the_exchange_with_the_shortest_round_trip_counts() {
        // The server's clock is 100 ns ahead; a longer way back seems to take from it.
        let exchange = |back| TimeExchange {
            sent: 1000,
            received: 1110,
            replied: 1110,
            returned: 1010 + back,
        };
        let nearest = |ways: [u64; 3]| nearest(ways.map(exchange).to_vec()).unwrap();
        assert_eq!(nearest([30, 10, 20]).offset(), 100);
        assert_eq!(nearest([20, 30, 40]).round_trip(), Some(30));
        let set = TimeExchange {
            returned: 999,
            ..exchange(0)
        };
        assert!(super::nearest(vec![set]).is_none());
    }
}
