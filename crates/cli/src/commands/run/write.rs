//! Scenario files from command lines.

use std::fmt::Write as _;

use anyhow::anyhow;
use netping_report::export::FORMATS;
use toml::Value;

use super::words::{Given, parse};
use crate::run::command_line::{HEADER_FLAGS, HIDDEN};

/// Writes a command line, which begins with the program's name, as a scenario of one step.
///
/// Comments have its output files, which the repetition would replace, and the headers whose values
/// results do not have.
///
/// # Errors
/// If this version cannot read it.
pub fn of_command_line(words: &[String]) -> anyhow::Result<String> {
    parse(words, &Given::default()).map_err(|reason| {
        anyhow!("the result's command line cannot be read by this version: {reason}")
    })?;
    let mut kept = Vec::new();
    let mut comments = String::new();
    let mut rest = words.iter().skip(1).map(String::as_str);
    while let Some(word) = rest.next() {
        let (flag, is_whole) = flag_of(word);
        let (is_output, is_header) = (is_output(flag), HEADER_FLAGS.contains(&flag));
        let mut both = vec![word];
        if (is_output || is_header) && !is_whole {
            both.extend(rest.next());
        }
        let is_hidden = is_header && both.iter().any(|word| word.ends_with(HIDDEN));
        let reason = match (is_output, is_hidden) {
            (true, _) => "it would be replaced",
            (_, true) => "its value is not in the result",
            _ => {
                kept.extend(both);
                continue;
            }
        };
        let left_out = shlex::try_join(both)?;
        // Writing to a string does not fail.
        let _ = writeln!(comments, "# Left out, since {reason}: {left_out}");
    }
    let run = Value::String(shlex::try_join(kept)?);
    Ok(format!("[[step]]\nrun = {run}\n{comments}"))
}

/// Returns the flag of a word, and true if its value is in the same word.
fn flag_of(word: &str) -> (&str, bool) {
    match (word.strip_prefix("-H"), word.split_once('=')) {
        (Some(value), _) => ("-H", !value.is_empty()),
        (None, Some((flag, _))) => (flag, true),
        (None, None) => (word, false),
    }
}

/// Returns true for a flag that names a file to write.
fn is_output(flag: &str) -> bool {
    let name = flag.strip_prefix("--");
    name.is_some_and(|name| name == "json" || FORMATS.iter().any(|format| format.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::run::scenario::Scenario;

    fn split(line: &str) -> Vec<String> {
        shlex::split(line).unwrap()
    }

    #[test]
    fn a_command_line_becomes_a_scenario_that_means_the_same() {
        for line in [
            "netping throughput tcp://h -c 1..8 --data 'a \"b\" ${n}' --data \"it's\" --fail-if 'p99>1ms' --pin",
            "netping tcp://h http://h -d 2s",
            "netping bulk grpc://h --size server",
            "netping proxy --direct tcp://h --via a=tcp://p --via b=tcp://q --max=8 --rate 1k",
            "netping latency http://h -Haccept:a --header=from:b -H 'te: c d'",
            "netping compare -- base.json new.json",
        ] {
            let text = of_command_line(&split(line)).unwrap();
            let steps = Scenario::parse(&text, &Given::default()).unwrap().steps;
            assert_eq!(steps[0].words, split(line), "{text}");
            assert!(!text.contains('#'), "{text}");
        }
    }

    #[test]
    fn neither_files_nor_hidden_headers_are_repeated() {
        let line = "netping latency --json 'a b' tcp://h --csv=c -H 'authorization: hidden' -H 'accept: a' \
                    '--header=x-key: hidden' '-Hcookie: hidden' --html h -d 1s";
        let text = of_command_line(&split(line)).unwrap();
        let expected = "\
            [[step]]\n\
            run = \"latency tcp://h -H 'accept: a' -d 1s\"\n\
            # Left out, since it would be replaced: --json 'a b'\n\
            # Left out, since it would be replaced: '--csv=c'\n\
            # Left out, since its value is not in the result: -H 'authorization: hidden'\n\
            # Left out, since its value is not in the result: '--header=x-key: hidden'\n\
            # Left out, since its value is not in the result: '-Hcookie: hidden'\n\
            # Left out, since it would be replaced: --html h\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_command_line_that_is_no_step_is_refused() {
        for line in ["netping serve tokio", "netping latency tcp://h --gone"] {
            assert!(of_command_line(&split(line)).is_err(), "{line}");
        }
    }
}
