//! The thread beside the connections: metrics and deadlines.

use std::{
    io::{self, Write},
    sync::{Arc, Weak},
    thread,
};

use netping_system::signals::Vital;
use tokio::{
    runtime::Builder,
    time::{self, MissedTickBehavior},
};

use crate::{Chassis, Listening, Profile, args::CommonArgs, chassis::REAP_INTERVAL, metrics};

impl Chassis {
    /// Starts the housekeeping thread, which serves metrics and enforces deadlines until the chassis
    /// is dropped, and announces the server on standard output. Check flags before.
    ///
    /// # Errors
    /// Fails if the system refuses a thread or a socket.
    pub fn start(
        listening: &mut Listening,
        args: &CommonArgs,
        profile: Profile,
    ) -> io::Result<Arc<Self>> {
        let chassis = Arc::new(Self::new(args, profile, listening.shutdown.clone()));
        let (reaped, scraped) = (Arc::downgrade(&chassis), Arc::downgrade(&chassis));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        if let Some(listener) = listening.metrics.take() {
            listener.set_nonblocking(true)?;
            let _context = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            runtime.spawn(metrics::serve(listener, scraped));
        }
        thread::Builder::new()
            .name("housekeeping".to_owned())
            .spawn(move || {
                // Without it, no deadline would be kept.
                let _vital = Vital { exit_code: 1 };
                runtime.block_on(reap(reaped));
            })?;
        if let Some(announcement) = listening.announcement.take() {
            // A closed standard output is no reason not to serve.
            let _ = writeln!(io::stdout(), "{announcement}");
        }
        Ok(chassis)
    }
}

/// Closes overdue connections, and looks at the memory, until the server is gone.
async fn reap(chassis: Weak<Chassis>) {
    let mut interval = time::interval(REAP_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(chassis) = chassis.upgrade() else {
            return;
        };
        chassis.reap();
    }
}
