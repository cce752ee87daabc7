//! `netping URL...`: a quick look at servers, first with one caller, then with many.

pub mod args;

use netping_report::text::Rows;
use netping_results::run::Kind;

use self::args::QuickArgs;
use crate::{
    error::{Failed, Verdict},
    run,
};

pub fn run(args: &QuickArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    run::run(Kind::Quick, args.output.options()?, |runner| {
        for steps in &plans {
            runner.call_all(&steps[..1])?;
        }
        runner.console.progress.outline(plans.iter().flatten(), 1);
        let mut rows = Rows::new(Kind::Quick);
        for steps in &plans {
            for plan in steps {
                if runner.is_interrupted() {
                    return Ok(());
                }
                let place = runner.next_place();
                runner.measure(plan, place, |step| Some(rows.show(step)))?;
            }
            if let Some(text) = runner.steps().last().and_then(|step| rows.end(step)) {
                runner.say(&text);
            }
        }
        Ok(())
    })
}
