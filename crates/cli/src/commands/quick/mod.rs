//! `netping URL...`: a quick look at servers, first with one caller, then with many.

pub mod args;

use netping_report::{
    bars::bars,
    steps::StepTable,
    table::{is_unicode, terminal_width},
};

use self::args::QuickArgs;
use crate::{
    error::{Failed, Verdict},
    run,
};

pub fn run(args: &QuickArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    run::run(args.output.options()?, |runner| {
        for steps in &plans {
            runner.call_all(&steps[..1])?;
        }
        runner.console.progress.outline(plans.iter().flatten(), 1);
        let table = StepTable::closed();
        for steps in &plans {
            let mut heading = Some(format!("{}\n{}", steps[0].target.url, table.header()));
            for plan in steps {
                if runner.is_interrupted() {
                    return Ok(());
                }
                runner.measure(plan, |step| {
                    let heading = heading.take().map_or_else(String::new, |line| line + "\n");
                    Some(heading + &table.row(step))
                })?;
            }
            if let Some(step) = runner.steps().last() {
                let callers = step.settings.callers;
                let width = terminal_width().unwrap_or(usize::MAX);
                let drawn = bars(&step.histograms.response_time, is_unicode(), width);
                if !drawn.is_empty() {
                    runner.say(&format!(
                        "\nresponse times with {callers} callers\n{drawn}\n"
                    ));
                }
            }
        }
        Ok(())
    })
}
