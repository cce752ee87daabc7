//! `netping connect`: a new connection for each sample, timed part by part.

pub mod args;

use netping_report::text::Rows;
use netping_results::run::Kind;

use self::args::ConnectArgs;
use crate::{
    error::{Failed, Verdict},
    run,
};

pub fn run(args: &ConnectArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    run::run(Kind::Connect, args.output.options()?, |runner| {
        runner.call_all(&plans)?;
        let mut rows = Rows::new(Kind::Connect);
        for plan in &plans {
            if runner.is_interrupted() {
                break;
            }
            let place = runner.next_place();
            runner.measure(plan, place, |step| Some(rows.show(step)))?;
        }
        Ok(())
    })
}
