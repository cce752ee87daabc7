//! The moments at which steps begin, so that clients with the same steps stay in step without talking.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use netping_client::{clock::Moment, plan::Plan};

/// The time before the moment of a step in which its connections are opened. Servers close connections
/// on which nothing comes.
const CONNECTING: Duration = Duration::from_secs(5);

/// The moment before which no further step of this process begins: those of a scenario follow each
/// other through several commands.
static NEXT: Mutex<Option<Moment>> = Mutex::new(None);

/// Returns the moment at which a step begins, and the earlier one from which on its connections are
/// opened; `None` if it begins when it is ready. The moment of the first step was given, and that of
/// each further one follows from the lengths of those before.
pub(super) fn turn(plan: &Plan) -> Option<(Moment, Moment)> {
    let given = plan.execution.start_at?;
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let moment = next.map_or(given, |next| next.max(given));
    let length = plan.execution.longest(plan.load.timeout);
    *next = Some(moment.after(length + CONNECTING));
    Some((moment, moment.before(CONNECTING)))
}
