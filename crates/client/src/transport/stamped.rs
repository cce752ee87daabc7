//! TCP connections whose packets the kernel stamps: with the time at which the last byte of a request was handed to
//! the network device, and at which the last byte that was read had come from it.
//!
//! Software time stamps of `SO_TIMESTAMPING`, which need no privilege (the kernel's
//! Documentation/networking/timestamping). Those of what is sent come back on the socket's error queue, each with the
//! number of the byte that it is of.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::Shutdown,
    os::fd::AsRawFd,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use netping_protocol::secure;
use nix::{
    cmsg_space,
    sys::socket::{
        ControlMessageOwned, MsgFlags, RecvMsg, TimestampingFlag, Timestamps, recvmsg, setsockopt,
        sockopt,
    },
};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

/// The stamps that are asked for: software stamps of either direction, those of what is sent with the number of the
/// byte, and without its packet.
const WANTED: TimestampingFlag = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
    .union(TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE)
    .union(TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE)
    .union(TimestampingFlag::SOF_TIMESTAMPING_OPT_ID)
    .union(TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY);

/// The time stamps of a request and its reply, in nanoseconds since 1970 (`CLOCK_REALTIME`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// When the kernel handed the last byte of the request to the network device.
    pub sent: u64,
    /// When the last byte that was read had come from the device.
    pub arrived: u64,
    /// Both ends have one address: unless it is a relay's, both are on this host, and read one clock.
    pub is_local: bool,
}

/// A TCP connection whose packets the kernel stamps.
#[derive(Debug)]
pub struct Stamped(Arc<StampedSocket>);

/// The socket of such a connection. The connection reads and writes, and who waits for replies takes the stamps.
#[derive(Debug)]
pub struct StampedSocket {
    stream: TcpStream,
    is_local: bool,
    log: Mutex<Log>,
}

/// The bytes and stamps of the request that is out.
#[derive(Debug)]
struct Log {
    /// Bytes written so far, modulo 2^32, as the kernel counts them.
    written: u32,
    /// The number of the request's last byte: of what was written before any of the reply was read.
    last_byte: Option<u32>,
    /// Some of the reply has been read.
    is_answered: bool,
    /// When the last byte that was read had come; `None` where the kernel did not say.
    arrived: Option<u64>,
    /// Room for what the kernel says about a message.
    control: Vec<u8>,
}

impl Stamped {
    /// Asks the kernel for stamps from now on. Nothing may have been written before: the kernel counts bytes from here.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        setsockopt(&stream, sockopt::Timestamping, &WANTED)?;
        Ok(Self(Arc::new(StampedSocket {
            is_local: is_local(&stream),
            stream,
            log: Mutex::new(Log::new()),
        })))
    }

    /// Returns the socket, to take the stamps from.
    pub(crate) fn socket(&self) -> Arc<StampedSocket> {
        Arc::clone(&self.0)
    }

    /// Writes as far as that is possible at once.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let stream = &self.0.stream;
        match send(stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The runtime takes a stamp in the error queue for the end of writing, and never waits again: then
                // this is tried once more at its next turn.
                if stream.poll_write_ready(cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Ok(written) => {
                self.0.log().wrote(written);
                Poll::Ready(Ok(written))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl StampedSocket {
    /// Begins a request: stamps of what was written and read before are none of its own.
    pub fn begin(&self) {
        self.log().begin();
    }

    /// Returns the stamps of the request that has just been answered; `None` where one is missing.
    pub fn take(&self) -> Option<Stamps> {
        let log = &mut *self.log();
        let (wanted, arrived) = (log.last_byte?, log.arrived?);
        // The stamps of other writes are before it, and those of later ones can wait for the next request.
        while let Some((byte, sent)) = self.next_sent(&mut log.control) {
            if byte == wanted {
                return Some(Stamps {
                    sent: sent?,
                    arrived,
                    is_local: self.is_local,
                });
            }
        }
        None
    }

    /// Takes the next stamp from the error queue: the byte that it is of, and the time.
    fn next_sent(&self, control: &mut [u8]) -> Option<(u32, Option<u64>)> {
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut nothing: [IoSliceMut<'_>; 0] = [];
        let fd = self.stream.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut nothing, Some(control), flags).ok()?;
        let byte = message.cmsgs().ok()?.find_map(|own| match own {
            ControlMessageOwned::Ipv4RecvErr(about, _)
            | ControlMessageOwned::Ipv6RecvErr(about, _) => Some(about.ee_data),
            _ => None,
        });
        Some((byte?, time_of(&message)))
    }

    /// Reads what has come, and notes when. Returns [`WouldBlock`](io::ErrorKind::WouldBlock) where nothing has.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let log = &mut *self.log();
        let room = buffer.len();
        let mut taken = None;
        let result = self.stream.try_io(Interest::READABLE, || {
            let mut parts = [IoSliceMut::new(buffer)];
            let fd = self.stream.as_raw_fd();
            let message = recvmsg::<()>(fd, &mut parts, Some(&mut log.control), MsgFlags::empty());
            let message = message.map_err(io::Error::from)?;
            let (read, arrived) = (message.bytes, time_of(&message));
            taken = Some((read, arrived));
            if read > 0 && read < room {
                // Nothing is left: the runtime need not try in vain before it waits, as with its own streams.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match taken {
            Some((read, arrived)) => {
                if read > 0 {
                    log.read(arrived);
                }
                Ok(read)
            }
            None => Err(result.err().unwrap_or(io::ErrorKind::WouldBlock.into())),
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn new() -> Self {
        Self {
            written: 0,
            last_byte: None,
            is_answered: false,
            arrived: None,
            // An error that comes with a stamp has at most the address of IPv6 behind it.
            control: cmsg_space!(Timestamps, [u64; 8]),
        }
    }

    fn begin(&mut self) {
        (self.last_byte, self.is_answered, self.arrived) = (None, false, None);
    }

    /// Notes bytes that were written. What follows the first part of a reply, such as an answer to PING, is no part
    /// of the request.
    fn wrote(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.written = self.written.wrapping_add(bytes as u32);
        if !self.is_answered {
            self.last_byte = Some(self.written.wrapping_sub(1));
        }
    }

    fn read(&mut self, arrived: Option<u64>) {
        (self.is_answered, self.arrived) = (true, arrived);
    }
}

/// Returns true if both ends have the same address.
fn is_local(stream: &TcpStream) -> bool {
    let ends = (stream.local_addr(), stream.peer_addr());
    matches!(ends, (Ok(own), Ok(peer)) if own.ip() == peer.ip())
}

/// Returns true if the kernel stamps the packets of TCP connections.
pub fn has_stamps() -> bool {
    // Bytes have numbers only once there is a connection.
    let wanted = WANTED.difference(TimestampingFlag::SOF_TIMESTAMPING_OPT_ID);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
    socket.is_ok_and(|socket| setsockopt(&socket, sockopt::Timestamping, &wanted).is_ok())
}

/// Returns the software time stamp of a message, in nanoseconds since 1970; `None` without one.
fn time_of(message: &RecvMsg<'_, '_, ()>) -> Option<u64> {
    let stamps = message.cmsgs().ok()?.find_map(|own| match own {
        ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps),
        _ => None,
    })?;
    let seconds = u64::try_from(stamps.system.tv_sec()).ok()?;
    let nanos = u64::try_from(stamps.system.tv_nsec()).ok()?;
    (seconds > 0).then_some(seconds * 1_000_000_000 + nanos)
}

impl secure::Socket for Stamped {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.receive(buffer)
    }
}

impl AsyncRead for Stamped {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.stream.poll_read_ready(cx))?;
            match self.0.receive(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |stream| stream.try_write(data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |stream| stream.try_write_vectored(data))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.0.stream).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        time,
    };

    use super::*;
    use crate::clock::time_of_day;

    /// Returns both ends of a connection on loopback, the near one with stamps.
    async fn connected() -> (Stamped, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (far, _) = listener.accept().await.unwrap();
        (Stamped::new(near.unwrap()).unwrap(), far)
    }

    /// Sends bytes that come whole.
    async fn pass(
        from: &mut (impl AsyncWrite + Unpin),
        to: &mut (impl AsyncRead + Unpin),
        bytes: &[u8],
    ) {
        from.write_all(bytes).await.unwrap();
        let mut came = vec![0; bytes.len()];
        to.read_exact(&mut came).await.unwrap();
        assert_eq!(came, bytes);
    }

    /// Returns the stamps of a request and its reply, and the time before them; asks again where the kernel has not
    /// begun to stamp what comes, which it does a moment after it is asked to.
    async fn exchange(near: &mut Stamped, far: &mut TcpStream) -> (u64, Stamps) {
        let socket = near.socket();
        loop {
            let before = time_of_day();
            socket.begin();
            pass(near, far, b"request").await;
            pass(far, near, b"reply").await;
            if let Some(stamps) = socket.take() {
                return (before, stamps);
            }
            time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[test]
    fn linux_has_stamps() {
        assert!(has_stamps());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_is_local_if_its_ends_have_one_address() {
        for (address, expected) in [("127.0.0.1:0", true), ("127.0.0.2:0", false)] {
            let listener = TcpListener::bind(address).await.unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).await;
            assert_eq!(is_local(&near.unwrap()), expected, "{address}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn every_request_has_stamps_of_its_own() {
        let (mut near, mut far) = connected().await;
        for _ in 0..3 {
            let (before, stamps) = exchange(&mut near, &mut far).await;
            let order = [before, stamps.sent, stamps.arrived, time_of_day()];
            assert!(order.is_sorted(), "{order:?}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_written_after_the_reply_has_begun_is_no_part_of_the_request() {
        let (mut near, mut far) = connected().await;
        exchange(&mut near, &mut far).await;
        let socket = near.socket();
        socket.begin();
        pass(&mut near, &mut far, b"request").await;
        pass(&mut far, &mut near, b"rep").await;
        let between = time_of_day();
        pass(&mut near, &mut far, b"pong").await;
        pass(&mut far, &mut near, b"ly").await;
        let stamps = socket.take().unwrap();
        assert!(
            stamps.sent <= between && between <= stamps.arrived,
            "{between}: {stamps:?}"
        );
        // The stamp of what came after is still there, and is not the next request's.
        let (before, next) = exchange(&mut near, &mut far).await;
        assert!(before <= next.sent, "{before}: {next:?}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn nothing_is_known_of_a_request_without_bytes_or_without_a_reply() {
        let (mut near, mut far) = connected().await;
        exchange(&mut near, &mut far).await;
        let socket = near.socket();
        socket.begin();
        pass(&mut far, &mut near, b"unasked").await;
        assert_eq!(socket.take(), None);
        socket.begin();
        pass(&mut near, &mut far, b"request").await;
        assert_eq!(socket.take(), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn more_than_the_socket_holds_is_sent_in_spite_of_stamps_in_its_queue() {
        let (mut near, mut far) = connected().await;
        exchange(&mut near, &mut far).await;
        let sent: Vec<u8> = (0..16_u32 << 20).map(|at| (at % 251) as u8).collect();
        let mut came = vec![0; sent.len()];
        let receiving = async {
            time::sleep(Duration::from_millis(20)).await;
            far.read_exact(&mut came).await
        };
        let (written, read) = tokio::join!(near.write_all(&sent), receiving);
        written.unwrap();
        read.unwrap();
        assert!(came == sent);
    }
}
