//! The floor of a machine: the round trip of a byte over loopback between two threads, without any
//! protocol, wherever the kernel places them.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use netping_client::clock::{Clock, Deadline, Monotonic};
use netping_measure::{
    counts::Counts,
    distribution::Distribution,
    histogram::{histogram, record},
};

/// Measured time of each floor.
const TIME: Duration = Duration::from_millis(300);

/// Round trips before those that count.
const WARM_UP: usize = 500;

/// Measures round trips between two threads that wait in the kernel, or with `busy` poll.
///
/// # Errors
/// Those of the sockets and of the thread.
pub fn round_trips(busy: bool) -> io::Result<Distribution> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(busy)?;
    }
    let echo = thread::Builder::new()
        .spawn(move || while receive(&far).and_then(|()| send(&far)).is_ok() {})?;
    let round_trip = || send(&near).and_then(|()| receive(&near));
    let clock = Monotonic::start();
    let mut times = histogram();
    for _ in 0..WARM_UP {
        round_trip()?;
    }
    let end = Deadline::after(TIME);
    while !end.left().is_zero() {
        let start = clock.now();
        round_trip()?;
        record(&mut times, clock.now() - start);
    }
    drop(near);
    // The other side has seen the end of the connection; its errors have been this side's.
    let _ = echo.join();
    Ok(Distribution::of(&Counts::from(&times)))
}

fn send(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(b"x")
}

/// Receives a byte, without sleeping where the socket does not block.
fn receive(mut stream: &TcpStream) -> io::Result<()> {
    loop {
        match stream.read_exact(&mut [0]) {
            // Both may have one core.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_floors_have_round_trips() {
        for busy in [false, true] {
            assert!(round_trips(busy).unwrap().count > 0);
        }
    }
}
