//! The verdict on a run, with the flags of the command that measured it.

use netping_report::verdict;
use netping_results::run::Run;

use super::help;

/// Returns the text of [`verdict::describe`] for the command that measured `run`.
pub fn describe(run: &Run) -> String {
    // What clients measured together is measured again by their command.
    let part = run.parts.first();
    let words = part.map_or(&run.command_line, |part| &part.command_line);
    let all = help::command();
    let mut named = words
        .iter()
        .skip(1)
        .filter_map(|word| all.find_subcommand(word));
    // A command line that names no command is a quick look.
    let command = named.next().unwrap_or(&all);
    verdict::describe(run, |flag| help::has_flag(command, flag))
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, warning::TooFewSamples};

    use super::*;

    #[test]
    fn a_remedy_has_the_flags_of_the_command_alone() {
        let mut run = fixtures::run(Vec::new());
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.warnings = vec![TooFewSamples { samples: 5 }.into()];
        run.steps.push(step);
        let mut said = |command: &[&str]| {
            run.command_line = command.iter().map(ToString::to_string).collect();
            describe(&run).lines().next().unwrap_or_default().to_owned()
        };
        assert!(said(&["netping", "tcp://h:1"]).ends_with("; measure longer (-d)"));
        assert!(
            said(&["netping", "latency", "tcp://h:1"])
                .ends_with("; measure longer (-d, --samples)")
        );
        assert!(said(&["another"]).ends_with("; measure longer (-d)"));
    }
}
