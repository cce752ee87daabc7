//! A watch on the machine itself, which may be late, or change its speed, while the load is steady.
//!
//! A virtual machine does both: its CPUs wait for those of the host, and the host moves them to cores
//! that are nearer to each other or further apart. netping is right to warn of the consequences, but
//! they are not those of the trouble under test.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_benches::processes::{CLIENT, SERVER, Said, wait};
use netping_serving::clock::now;
use netping_system::{cores, priority};

/// Runs at most.
const MOST: usize = 5;

/// The time that a sleeper sleeps.
const SLEEP: Duration = Duration::from_millis(1);

/// A sleeper that wakes more than this after its time is late.
const LATE: Duration = Duration::from_micros(200);

/// The share of the time for which the machine may be late before the run is repeated: half of what
/// would show in a 99th percentile.
const MOST_LATE: f64 = 0.005;

/// The time between two looks at the cores' distance.
const PAUSE: Duration = Duration::from_millis(4);

/// Bytes that go from core to core in a look.
const BYTES: usize = 65_536;

/// Turns of a look, of which the fastest counts: the first finds the caches cold.
const TURNS: usize = 3;

/// Looks in a stretch, which is about a tenth of a second long. Its time is their 20th percentile:
/// slower looks may have been interrupted.
const STRETCH: usize = 25;

/// Stretches that do not count, because client and server warm up.
const WARM_UP: usize = 5;

/// By how much the longest stretch's time may exceed the shortest one's before the run is repeated.
const MOST_CHANGE: f64 = 0.2;

/// Returns the first run in which the machine was not late, or the last one tried.
pub fn punctual(run: fn() -> Said) -> Said {
    repeat(run, Watch::for_lateness, MOST_LATE, "was late")
}

/// Returns the first run in which the machine's speed did not change, or the last one tried. Both
/// cores must be busy all the time.
pub fn steady(run: fn() -> Said) -> Said {
    repeat(run, Watch::for_change, MOST_CHANGE, "changed its speed")
}

fn repeat(run: fn() -> Said, start: fn() -> Watch, most: f64, what: &str) -> Said {
    for _ in 1..MOST {
        let watch = start();
        let said = run();
        let seen = watch.end();
        if seen < most {
            return said;
        }
        eprintln!("run again: the machine {what}: {:.1} %", seen * 1e2);
    }
    run()
}

/// Threads that go before all others on the cores of client and server. Where the system refuses
/// them that, they see nothing.
struct Watch {
    is_over: Arc<AtomicBool>,
    threads: [JoinHandle<f64>; 2],
}

impl Watch {
    /// Looks for the share of the time in which the machine was late on either core.
    fn for_lateness() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = [CLIENT, SERVER].map(|core| {
            let is_over = Arc::clone(&is_over);
            first_on(core, move || lateness(&is_over))
        });
        Self { is_over, threads }
    }

    /// Looks for the change of the time that bytes take from core to core.
    fn for_change() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let (to, from) = UnixStream::pair().expect("a pair of sockets");
        let threads = [
            first_on(CLIENT, move || send(to, &ended)),
            first_on(SERVER, move || change(&take(from))),
        ];
        Self { is_over, threads }
    }

    /// Ends it; returns what it saw.
    fn end(self) -> f64 {
        self.is_over.store(true, Ordering::Relaxed);
        let seen = self
            .threads
            .map(|thread| thread.join().expect("a thread that does not panic"));
        seen.into_iter().fold(0.0, f64::max)
    }
}

/// Starts a thread that goes before all others on its core; it does nothing where it may not.
fn first_on(core: usize, run: impl FnOnce() -> f64 + Send + 'static) -> JoinHandle<f64> {
    thread::spawn(move || {
        cores::confine(&cores::own()[core..=core]);
        if priority::run_first() { run() } else { 0.0 }
    })
}

/// Returns the share of the time in which a program that had to run would have been late.
fn lateness(is_over: &AtomicBool) -> f64 {
    let started = now();
    let mut late = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let begun = now();
        wait(SLEEP);
        late += begun.elapsed().saturating_sub(SLEEP + LATE);
    }
    late.as_secs_f64() / started.elapsed().as_secs_f64()
}

/// Sends bytes, and waits for an answer each time. It sees nothing itself.
fn send(mut to: UnixStream, is_over: &AtomicBool) -> f64 {
    let mut bytes = vec![0; BYTES];
    while !is_over.load(Ordering::Relaxed) {
        wait(PAUSE);
        for turn in 0..TURNS {
            // They are in this core's cache now.
            bytes.fill(turn as u8);
            let sent = to.write_all(&bytes);
            // Without a thread that takes them, there is nothing to do.
            if sent.and_then(|()| to.read_exact(&mut [0])).is_err() {
                return 0.0;
            }
        }
    }
    0.0
}

/// Returns the time that each look took to get its bytes into this core's cache, in seconds.
fn take(mut from: UnixStream) -> Vec<f64> {
    let mut looks = Vec::new();
    let mut bytes = vec![0; BYTES];
    let mut time = || -> io::Result<f64> {
        // The first byte wakes this thread.
        let (first, rest) = bytes.split_at_mut(1);
        from.read_exact(first)?;
        let begun = now();
        from.read_exact(rest)?;
        let time = begun.elapsed();
        from.write_all(first)?;
        Ok(time.as_secs_f64())
    };
    loop {
        let mut fastest = f64::INFINITY;
        for _ in 0..TURNS {
            match time() {
                Ok(time) => fastest = fastest.min(time),
                Err(_) => return looks,
            }
        }
        looks.push(fastest);
    }
}

/// Returns by how much the longest stretch's time exceeds the shortest one's.
fn change(looks: &[f64]) -> f64 {
    let stretch = |looks: &[f64]| {
        let mut looks = looks.to_vec();
        looks.sort_unstable_by(f64::total_cmp);
        looks[STRETCH / 5]
    };
    let times: Vec<f64> = looks
        .chunks_exact(STRETCH)
        .skip(WARM_UP)
        .map(stretch)
        .collect();
    let shortest = times.iter().copied().reduce(f64::min);
    let longest = times.iter().copied().reduce(f64::max);
    shortest
        .zip(longest)
        .map_or(0.0, |(shortest, longest)| longest / shortest - 1.0)
}
