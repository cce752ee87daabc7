//! The memory that a peer makes a server hold: its peak, while others are served.

use std::{fs, panic, sync::mpsc, thread, time::Duration};

use netping_benches::processes::{Server, wait};
use netping_system::process::Usage;
use tokio::{sync::oneshot, time};

use crate::{Kind, Outcome, peer, serves, word};

/// The peak of a server's resident memory since a moment.
pub struct Peak {
    pid: u32,
    before: Option<f64>,
}

impl Peak {
    /// Begins anew, at what the server holds now.
    pub fn begin(server: &Server) -> Self {
        let pid = server.process.id();
        // proc(5): 5 resets the peak. Some systems do not have it.
        let reset = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        Self {
            pid,
            before: reset.ok().and_then(|()| highest(pid)),
        }
    }

    /// Returns the additional memory at the peak, in MiB; `None` if the system does not tell.
    pub fn mib(&self) -> Option<f64> {
        // That of a server that has ended is no number, and below no limit.
        Some(highest(self.pid).unwrap_or(f64::NAN) - self.before?)
    }
}

/// Returns the peak of a process's resident memory, in MiB.
fn highest(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let kib = lines.find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"))?;
    Some(kib.trim().parse::<f64>().ok()? / 1024.0)
}

/// The moment at which an honest client is tried during an attack.
pub enum Moment {
    /// At once: the attack goes on.
    Now,
    /// When the server has done what it can about the attack.
    Rest,
    /// As `Rest`, or a little later: the server refuses connections until it has closed what holds most.
    Full,
}

/// Longest time in which a server that was full serves again, in tries that are half a second apart.
const FULL: usize = 3;

impl Moment {
    /// Returns true if an honest client is served at this moment.
    fn serves(&self, server: &Server, kind: &Kind) -> bool {
        if matches!(self, Self::Now) {
            return serves(server, kind);
        }
        rest(server);
        let tries = if matches!(self, Self::Full) { FULL } else { 1 };
        (0..tries).any(|tried| {
            if tried > 0 {
                wait(Duration::from_millis(500));
            }
            serves(server, kind)
        })
    }
}

/// Time between looks at something that is to come to rest, and the most CPU time that a server at rest uses
/// meanwhile, in seconds.
pub const LOOK: Duration = Duration::from_millis(100);
const AT_REST: f64 = 0.005;

/// Waits until a server does nothing, for at most ten seconds.
pub fn rest(server: &Server) {
    let used = || Usage::of(server.process.id()).map_or(0.0, |usage| usage.cpu_seconds);
    let mut before = used();
    for _ in 0..100 {
        wait(LOOK);
        let now = used();
        if now - before < AT_REST {
            return;
        }
        before = now;
    }
}

/// The attacker's means to let an honest client be tried.
pub struct Hold {
    moment: mpsc::Sender<Moment>,
    released: oneshot::Receiver<()>,
}

impl Hold {
    /// Has an honest client tried at this moment, and waits for its end.
    pub async fn others(self, moment: Moment) {
        // Nobody waits for it only if this program is ending.
        let _ = self.moment.send(moment);
        let _ = self.released.await;
    }
}

/// Longest time of an attack.
const LONGEST: Duration = Duration::from_mins(1);

/// The end of an attack on a server's memory.
pub struct Held<T> {
    /// Judges the peak of the memory, and whether others were served during the attack and after it.
    pub outcome: Outcome,
    pub server: Server,
    /// The attacker's own result.
    pub result: T,
}

/// Attacks a server with these flags, which may hold so many MiB more for it. The attack calls [`Hold::others`]
/// once.
pub fn held<T: Send>(
    kind: &Kind,
    flags: &[&str],
    most: f64,
    attack: impl AsyncFnOnce(&Server, Hold) -> T + Send,
) -> Held<T> {
    let server = kind.start(flags);
    // It takes memory for its first requests too.
    serves(&server, kind);
    let peak = Peak::begin(&server);
    let (moment, moments) = mpsc::channel();
    let (release, released) = oneshot::channel();
    let hold = Hold { moment, released };
    let (during, attacked) = thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let attack = async { time::timeout(LONGEST, attack(&server, hold)).await };
            peer::runtime().block_on(attack).expect("an end")
        });
        let during = moments
            .recv()
            .is_ok_and(|moment| moment.serves(&server, kind));
        // The attack may have ended before.
        let _ = release.send(());
        (during, attacker.join())
    });
    let result = attacked.unwrap_or_else(|panic| panic::resume_unwind(panic));
    rest(&server);
    let outcome = match peak.mib() {
        Some(more) => Outcome::new(more <= most, format!("{more:.0} MiB more")),
        None => Outcome::not_tried("the system does not reset the peak of memory"),
    };
    // The allocator takes a moment to give the memory back.
    let after = if flags.contains(&"--max-memory") {
        Moment::Full.serves(&server, kind)
    } else {
        serves(&server, kind)
    };
    let others = match (during, after) {
        (false, true) => "others NOT served during it",
        (true, false) => "others NOT served after it",
        (honest, _) => word(honest),
    };
    Held {
        outcome: outcome.and(during && after, others),
        server,
        result,
    }
}
