//! The kernel's own account of TCP connections (`struct tcp_info` in `include/uapi/linux/tcp.h` of Linux), as
//! sock_diag(7) tells it to any user.

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use netlink_packet_core::{
    DecodeError, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, nlas::Nla},
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use crate::listener::open_sockets;

/// Size of the buffer for answers, in bytes: the kernel's are of at most 32 KiB.
const BUFFER: usize = 64 << 10;

/// A TCP connection and the kernel's account of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpConnection {
    /// A number that no other socket of this boot has.
    pub cookie: u64,
    /// The address of the own end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// The number of the network interface that its socket is bound to; 0 for any.
    pub interface: u32,
    /// The account.
    pub info: TcpInfo,
}

impl TcpConnection {
    fn id(&self) -> SocketId {
        SocketId {
            source_port: self.local.port(),
            destination_port: self.remote.port(),
            source_address: self.local.ip(),
            destination_address: self.remote.ip(),
            interface_id: self.interface,
            cookie: self.cookie.to_ne_bytes(),
        }
    }
}

/// Declares the fields of `struct tcp_info` that are read, each with its type and its place, in bytes.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $kind:ident at $offset:literal;)*) => {
        /// The kernel's account of a TCP connection since it was opened. Fields that the running kernel does
        /// not have are `None`. Counts of 32 bits begin again at 0 after the greatest.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct TcpInfo {
            $($(#[$doc])* pub $name: Option<u64>,)*
        }

        impl TcpInfo {
            /// Reads a `struct tcp_info`, which is shorter in older kernels and longer in later ones.
            fn parse(bytes: &[u8]) -> Self {
                Self {
                    $($name: bytes
                        .get($offset..)
                        .and_then(|rest| rest.first_chunk())
                        .map(|own| $kind::from_ne_bytes(*own).into()),)*
                }
            }
        }
    };
}

fields! {
    /// The timeout after which a segment is sent again, in microseconds.
    timeout_us: u32 at 8;
    /// The greatest segment that is sent, in bytes.
    segment_bytes: u32 at 16;
    /// The greatest packet of the path, in bytes.
    mtu_bytes: u32 at 60;
    /// The smoothed round-trip time, in microseconds; 0 before the first.
    rtt_us: u32 at 68;
    /// The congestion window, in segments.
    congestion_window: u32 at 80;
    /// Segments that were sent again.
    retransmitted: u32 at 100;
    /// Segments sent.
    segments_out: u32 at 136;
    /// Segments received.
    segments_in: u32 at 140;
    /// The least round-trip time of the last minutes, in microseconds; `u32::MAX` before the first.
    least_rtt_us: u32 at 148;
    /// The time for which data was out, in microseconds.
    busy_us: u64 at 168;
    /// The part of it in which the receiver's window held data back.
    receive_window_us: u64 at 176;
    /// The part of it in which the send buffer was full.
    send_buffer_us: u64 at 184;
    /// Segments with data that have arrived.
    delivered: u32 at 192;
    /// Those of them that the path had marked as congested (ECN).
    ecn_marked: u32 at 196;
    /// Bytes that were sent again.
    retransmitted_bytes: u64 at 208;
    /// Timeouts after which segments were sent again.
    timeouts: u16 at 240;
}

/// Returns this process's TCP connections to a port of any host. The kernel looks through its table of all
/// connections, for half a millisecond and more even where there are few.
///
/// # Errors
/// If the kernel does not tell, as without its module `tcp_diag`.
pub fn to_port(port: u16) -> io::Result<Vec<TcpConnection>> {
    let socket = ask_kernel()?;
    let mut all = Vec::new();
    for mut of_port in [SocketId::new_v4(), SocketId::new_v6()] {
        of_port.destination_port = port;
        request(&socket, of_port, NLM_F_REQUEST | NLM_F_DUMP)?;
        receive(&socket, &mut all)?;
    }
    let own: BTreeSet<u64> = open_sockets(Path::new("/proc/self")).collect();
    all.retain(|(inode, _)| own.contains(inode));
    Ok(all.into_iter().map(|(_, connection)| connection).collect())
}

/// Reads the accounts of these connections again, in some microseconds each. Those that are gone are left out.
///
/// # Errors
/// If the kernel cannot be asked.
pub fn again(connections: &[TcpConnection]) -> io::Result<Vec<TcpConnection>> {
    if connections.is_empty() {
        return Ok(Vec::new());
    }
    let socket = ask_kernel()?;
    let mut buffer = vec![0; BUFFER];
    let mut all = Vec::with_capacity(connections.len());
    for own in connections {
        request(&socket, own.id(), NLM_F_REQUEST)?;
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        // An error is the answer about one that is gone.
        let _ = parse(&buffer[..length], &mut all);
    }
    Ok(all.into_iter().map(|(_, connection)| connection).collect())
}

fn ask_kernel() -> io::Result<OwnedFd> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    Ok(socket)
}

/// Asks for the connection of this name; with `NLM_F_DUMP` among the flags, for all open ones of its family with its
/// ports.
fn request(socket: &OwnedFd, like: SocketId, flags: u16) -> io::Result<()> {
    let open = StateFlags::ESTABLISHED | StateFlags::CLOSE_WAIT;
    let request = InetRequest {
        family: if like.source_address.is_ipv4() {
            AF_INET
        } else {
            AF_INET6
        },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: open,
        socket_id: like,
    };
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &bytes, &kernel, MsgFlags::empty())?;
    Ok(())
}

/// Adds the connections of an answer, each with the inode of its socket.
fn receive(socket: &OwnedFd, all: &mut Vec<(u64, TcpConnection)>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        if parse(&buffer[..length], all)? {
            return Ok(());
        }
    }
}

/// Adds the connections of a part of an answer; returns true if it was the last part.
fn parse(mut bytes: &[u8], all: &mut Vec<(u64, TcpConnection)>) -> io::Result<bool> {
    let invalid = |error: DecodeError| io::Error::new(io::ErrorKind::InvalidData, error);
    while !bytes.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(bytes).map_err(invalid)?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(told)) => {
                all.extend(connection(&told));
            }
            _ => {}
        }
        // Messages begin at multiples of four bytes.
        let length = (message.header.length as usize).next_multiple_of(4);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(false)
}

/// Returns a connection and its inode; `None` without an account.
fn connection(told: &InetResponse) -> Option<(u64, TcpConnection)> {
    let info = told.nlas.iter().find_map(|own| match own {
        Nla::TcpInfo(bytes) => Some(TcpInfo::parse(bytes)),
        _ => None,
    })?;
    let id = &told.header.socket_id;
    let connection = TcpConnection {
        cookie: u64::from_ne_bytes(id.cookie),
        local: SocketAddr::new(id.source_address, id.source_port),
        remote: SocketAddr::new(id.destination_address, id.destination_port),
        interface: id.interface_id,
        info,
    };
    Some((told.header.inode.into(), connection))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        process::{Command, Stdio},
    };

    use super::*;

    /// An answer of Linux 6.18 about a connection with seven requests of 100 bytes, and replies of 1 byte.
    const ANSWER: &str = "\
        9801000014000200010000004406000002010000c7c0de4b7f0000010000000000000000000000007f0000010000000000000000\
        00000000000000000d040000000000000000000000000000000000000000000013c13800050008000000000008000f0000000000\
        0c001500010000000000000006001600520000001c010200010000000007aa01e01c0300409c0000008000001802000000000000\
        0000000000000000000000000000000000000000000000000000000000000000ffff0000d7ff00000600000006000000ffffff7f\
        11000000cbff00002000000000000000d7ff00000000000000c8bdcd15000000ffffffffffffffffbd0200000000000007000000\
        000000000a0000000900000000000000010000000700000007000000000020a10700000000000000000000000000000000000000\
        00000000000000000800000000000000bc0200000000000000000000000000000000000000000000000000000000010000000100\
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

    fn answer() -> Vec<u8> {
        let digits: Vec<u8> = ANSWER.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap());
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    }

    #[test]
    fn a_recorded_answer_is_read() {
        let mut all = Vec::new();
        assert!(!parse(&answer(), &mut all).unwrap());
        let (inode, own) = &all[0];
        assert_eq!((*inode, own.cookie), (3_719_443, 1037));
        let ends = [own.local, own.remote].map(|end| end.to_string());
        assert_eq!(ends, ["127.0.0.1:51136", "127.0.0.1:56907"]);
        let expected = TcpInfo {
            timeout_us: Some(204_000),
            segment_bytes: Some(32_768),
            mtu_bytes: Some(65_535),
            rtt_us: Some(6),
            congestion_window: Some(17),
            retransmitted: Some(0),
            segments_out: Some(10),
            segments_in: Some(9),
            least_rtt_us: Some(1),
            busy_us: Some(0),
            receive_window_us: Some(0),
            send_buffer_us: Some(0),
            delivered: Some(8),
            ecn_marked: Some(0),
            retransmitted_bytes: Some(0),
            timeouts: Some(0),
        };
        assert_eq!(own.info, expected);
    }

    #[test]
    fn fields_that_a_kernel_lacks_are_unknown() {
        let full = [1; 280];
        // Of Linux 4.9 and of 2.6; the last field that there is counts only if it is whole.
        let old = TcpInfo::parse(&full[..192]);
        assert!(old.send_buffer_us.is_some() && old.delivered.is_none() && old.timeouts.is_none());
        let old = TcpInfo::parse(&full[..104]);
        assert!(old.retransmitted.is_some() && old.segments_out.is_none());
        assert_eq!(TcpInfo::parse(&full[..103]).retransmitted, None);
        assert_eq!(TcpInfo::parse(&[]), TcpInfo::default());
        assert_eq!(TcpInfo::parse(&full).timeouts, Some(0x0101));
    }

    #[test]
    fn answers_end_and_errors_are_told() {
        let all = |bytes: &[u8]| {
            let mut all = Vec::new();
            parse(bytes, &mut all).map(|is_last| (is_last, all.len()))
        };
        // Its end: a message of type 3, NLMSG_DONE.
        let done = [20, 0, 0, 0, 3, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            all(&[answer(), answer(), done.to_vec()].concat()).unwrap(),
            (true, 2)
        );
        assert_eq!(all(&answer()).unwrap(), (false, 1));
        // One of type 2, with the negative number of the error: ENOENT, where there is no tcp_diag.
        let mut refused = done.to_vec();
        (refused[0], refused[4]) = (36, 2);
        refused[16..].copy_from_slice(&(-2_i32).to_ne_bytes());
        refused.extend([0; 16]);
        assert_eq!(all(&refused).unwrap_err().kind(), io::ErrorKind::NotFound);
        for end in 1..answer().len() {
            assert!(all(&answer()[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn connections_of_other_processes_are_not_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let (own, others) = (TcpStream::connect(server), TcpStream::connect(server));
        let peers = [(); 2].map(|()| listener.accept().unwrap());
        let others = OwnedFd::from(others.unwrap());
        let mut reader = Command::new("cat")
            .stdin(others)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let told = to_port(server.port()).unwrap();
        let ports: Vec<u16> = told.iter().map(|own| own.local.port()).collect();
        assert_eq!(ports, [own.unwrap().local_addr().unwrap().port()]);
        drop(peers);
        reader.wait().unwrap();
    }

    #[test]
    fn connections_of_this_process_are_told_with_their_segments() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let server = listener.local_addr().unwrap();
            let mut clients = [(); 3].map(|()| TcpStream::connect(server).unwrap());
            let mut peers = Vec::new();
            for client in &mut clients {
                let (mut peer, _) = listener.accept().unwrap();
                for _ in 0..10 {
                    client.write_all(b"x").unwrap();
                    peer.read_exact(&mut [0]).unwrap();
                    peer.write_all(b"y").unwrap();
                    client.read_exact(&mut [0]).unwrap();
                }
                peers.push(peer);
            }
            let mut told = to_port(server.port()).unwrap();
            let ports = clients
                .iter()
                .map(|client| client.local_addr().unwrap().port());
            let mut expected: Vec<u16> = ports.collect();
            expected.sort_unstable();
            told.sort_by_key(|own| own.local.port());
            let ports: Vec<u16> = told.iter().map(|own| own.local.port()).collect();
            assert_eq!(ports, expected);
            let cookies: BTreeSet<u64> = told.iter().map(|own| own.cookie).collect();
            assert_eq!(cookies.len(), 3);
            for own in &told {
                assert!(own.info.segments_out >= Some(10), "{own:?}");
                assert!(own.info.segments_in >= Some(10), "{own:?}");
                assert!(own.info.delivered >= Some(10), "{own:?}");
                assert_eq!(own.info.retransmitted, Some(0));
                assert!(own.info.rtt_us < Some(10_000_000), "{own:?}");
            }
            clients[1].write_all(b"x").unwrap();
            let read_again = again(&told).unwrap();
            let names = |all: &[TcpConnection]| -> Vec<(u64, SocketAddr)> {
                all.iter().map(|own| (own.cookie, own.local)).collect()
            };
            assert_eq!(names(&read_again), names(&told));
            let written = clients[1].local_addr().unwrap();
            let pairs = told.iter().zip(&read_again);
            let mut sent = pairs.filter(|(own, _)| own.local == written);
            assert!(sent.all(|(before, after)| after.info.segments_out > before.info.segments_out));
            // One that has its name, but is another, is not told.
            told[0].cookie += 1;
            assert_eq!(names(&again(&told).unwrap()), names(&told[1..]));
            drop((peers, clients));
            assert_eq!(to_port(server.port()).unwrap(), []);
        }
    }
}
