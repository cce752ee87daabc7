//! The accept loop of a server that blocks.

use std::{
    io,
    net::{Shutdown as Direction, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use socket2::SockRef;
use tokio::runtime::Builder;

use crate::{Chassis, Connection, Result, chassis::set_no_delay};

/// Accepts until the shutdown, hands each admitted connection to `serve`, and drains.
///
/// # Errors
/// Fails if the system refuses a thread or a runtime.
pub fn accept(
    listener: &TcpListener,
    chassis: &Chassis,
    mut serve: impl FnMut(Arc<TcpStream>, Connection),
) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let (switch, socket) = (chassis.shutdown.clone(), listener.try_clone()?);
    let stopper = thread::Builder::new()
        .name("stopper".to_owned())
        .spawn(move || {
            runtime.block_on(switch.triggered());
            // Wakes the blocked accept below, which then fails.
            let _ = SockRef::from(&socket).shutdown(Direction::Both);
            runtime
        })?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let stream = Arc::new(stream);
                if let Some(connection) = chassis.admit_socket(&stream) {
                    set_no_delay(&stream);
                    serve(stream, connection);
                }
            }
            Err(_) if stopper.is_finished() => break,
            // The stopper has shut the listener down and is about to end.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
            Err(error) => thread::sleep(chassis.accept_failed(&error)),
        }
    }
    if let Ok(runtime) = stopper.join() {
        runtime.block_on(chassis.drain());
    }
    Ok(())
}
