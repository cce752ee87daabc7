//! Scenario files from command lines.

use clap::{Arg, ArgMatches, parser::ValueSource};
use netping_report::export::FORMATS;

use super::{COMMAND, COMMANDS, STEPS, key_of, takes_values};
use crate::error::ScenarioError;
use crate::{args::help, run::command_line::HIDDEN};

/// Writes a command line, which begins with the program's name, as a scenario of one step.
///
/// # Errors
/// [`ScenarioError::CommandLine`].
pub fn of_command_line(words: &[String]) -> Result<String, ScenarioError> {
    let unreadable = |reason: String| ScenarioError::CommandLine(reason);
    let definition = help::command();
    let matches = definition.clone().try_get_matches_from(words);
    let matches = matches.map_err(|error| {
        let text = error.to_string();
        unreadable(text.lines().next().unwrap_or_default().to_owned())
    })?;
    let mut lines = vec![format!("[[{STEPS}]]")];
    let (command, own) = match matches.subcommand() {
        None => (&definition, &matches),
        Some((name, own)) => {
            let command = definition.find_subcommand(name);
            let command = command.filter(|_| COMMANDS.contains(&name));
            lines.push(format!("{COMMAND} = {}", quoted(name)));
            (
                command.ok_or_else(|| unreadable(format!("a scenario has no step '{name}'")))?,
                own,
            )
        }
    };
    for arg in command.get_arguments() {
        let (Some(key), true) = (key_of(arg), is_given(arg, own)) else {
            continue;
        };
        let raw = own.get_raw(arg.get_id().as_str()).into_iter().flatten();
        let raw = raw.map(|value| value.to_string_lossy());
        let (hidden, raw): (Vec<_>, Vec<_>) =
            raw.partition(|value| key == "header" && value.ends_with(HIDDEN));
        let all_hidden = raw.is_empty() && !hidden.is_empty();
        for header in hidden {
            let name = header.trim_end_matches(HIDDEN);
            lines.push(format!(
                "# The value of the header {name} is not in the result: add it here."
            ));
        }
        if all_hidden {
            continue;
        }
        let raw: Vec<String> = raw.iter().map(|value| quoted(value)).collect();
        let value = match &*raw {
            [] => "true".to_owned(),
            _ if !takes_values(arg) => "true".to_owned(),
            [value] => value.clone(),
            values => format!("[{}]", values.join(", ")),
        };
        // The repetition would replace the results that it is made from.
        let is_output =
            key == "json" || key == "html" || FORMATS.iter().any(|format| format.name == key);
        let comment = if is_output { "# " } else { "" };
        lines.push(format!("{comment}{key} = {value}"));
    }
    Ok(lines.join("\n") + "\n")
}

fn is_given(arg: &Arg, matches: &ArgMatches) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::args::{Cli, Given, Scenario};

    fn split(line: &str) -> Vec<String> {
        shlex::split(line).unwrap()
    }

    #[test]
    fn a_command_line_becomes_a_scenario_that_means_the_same() {
        for line in [
            "netping throughput tcp://h -c 1..8 --data 'a \"b\"' --data c --fail-if 'p99>1ms' --pin",
            "netping tcp://h http://h -d 2s",
            "netping bulk grpc://h --size server",
            "netping proxy --direct tcp://h --via a=tcp://p --via b=tcp://q --rate 1k",
            "netping proxy --direct tcp://h --via a=tcp://p --max",
            "netping compare base.json new.json",
        ] {
            let text = of_command_line(&split(line)).unwrap();
            let steps = Scenario::parse(&text, &Given::default())
                .map_err(|wrong| wrong.reason)
                .unwrap()
                .steps;
            let matches = help::command().try_get_matches_from(split(line)).unwrap();
            let expected = format!("{:?}", Cli::from_arg_matches(&matches).unwrap());
            assert_eq!(format!("{:?}", steps[0].cli), expected, "{text}");
        }
    }

    #[test]
    fn a_hidden_header_is_not_sent_as_one() {
        let line = "netping latency http://h -H 'authorization: hidden' -H 'accept: a'";
        let text = of_command_line(&split(line)).unwrap();
        assert!(
            text.contains("# The value of the header authorization is not in"),
            "{text}"
        );
        assert!(text.contains("header = \"accept: a\"\n"), "{text}");
    }
}
