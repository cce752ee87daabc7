//! Scenario files: command lines as TOML, with the flags' names and units.
//!
//! Each `[[step]]` is a command with its flags. What a flag is called, takes and means is known from
//! the command line's definition alone, so that a new flag is a key at once. [`of_command_line`]
//! writes such a file, and [`schema`](schema()) describes it.

mod schema;
mod variables;
mod write;

use std::{borrow::Cow, fs, ops::Range, path::Path};

use clap::{
    Arg, ArgAction, Command, FromArgMatches,
    error::{ContextKind, ContextValue},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use self::variables::Variables;
pub use self::{schema::schema, write::of_command_line};
use super::{Cli, help};
use crate::error::ScenarioError;

/// The commands of scenarios: those that measure, and those that work on result files.
const COMMANDS: [&str; 9] = [
    "ladder",
    "latency",
    "throughput",
    "connect",
    "bulk",
    "proxy",
    "compare",
    "merge",
    "report",
];

/// The key of a step's command.
const COMMAND: &str = "command";

/// The key of the steps.
const STEPS: &str = "step";

/// The key of what all steps have in common.
const DEFAULTS: &str = "defaults";

/// The key of the variables, which only a file with this table has.
const VARIABLES: &str = "variables";

/// The flag that puts clients in step.
const START_AT: &str = "start-at";

/// The commands that measure nothing themselves.
const WITHOUT_LOAD: [&str; 3] = ["compare", "merge", "report"];

/// Additions of the command line to a file.
#[derive(Debug, Default)]
pub struct Given {
    /// Values of variables, by their names.
    pub variables: Vec<(String, String)>,
    /// Flags and their values, for each step that has such a flag and does not set it.
    pub flags: Vec<(&'static str, String)>,
}

/// The steps of a scenario.
#[derive(Debug)]
pub struct Scenario {
    /// In their order; never empty.
    pub steps: Vec<Step>,
}

/// A step of a scenario.
#[derive(Debug)]
pub struct Step {
    /// Its place in the file, and its command.
    pub name: String,
    /// The words of the command line that it stands for.
    pub words: Vec<String>,
    /// That command line.
    pub cli: Cli,
}

/// A mistake, and its place in the text.
#[derive(Debug)]
struct Wrong {
    at: Range<usize>,
    reason: String,
}

type Key<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScenarioError::File`] and [`ScenarioError::Line`].
    pub fn read(path: &Path, given: &Given) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|reason| ScenarioError::File {
            path: name.clone(),
            reason,
        })?;
        Self::parse(&text, given).map_err(|wrong| ScenarioError::Line {
            path: name,
            line: line_of(&text, wrong.at.start),
            reason: wrong.reason,
        })
    }

    fn parse(text: &str, given: &Given) -> Result<Self, Wrong> {
        let table = DeTable::parse(text).map_err(|error| Wrong {
            at: error.span().unwrap_or_default(),
            reason: error.message().to_owned(),
        })?;
        let table = with_variables(table.into_inner(), &given.variables)?;
        let mut defaults = None;
        let mut steps = None;
        for (key, value) in &table {
            match (&**key.get_ref(), value.get_ref()) {
                (STEPS, DeValue::Array(own)) => steps = Some(own),
                (DEFAULTS, DeValue::Table(own)) => {
                    check_defaults(own)?;
                    defaults = Some(own);
                }
                (STEPS, _) => return Err(wrong(key, "steps are written as [[step]]")),
                (VARIABLES, DeValue::Table(_)) => {}
                (other, _) => {
                    let reason = format!(
                        "{other}: a scenario has [[step]], [defaults] and [variables] only"
                    );
                    return Err(wrong(key, &reason));
                }
            }
        }
        let steps = steps.filter(|steps| !steps.is_empty()).ok_or(Wrong {
            at: 0..0,
            reason: "there is no [[step]]".to_owned(),
        })?;
        let parsed = steps.iter().enumerate().map(|(at, step)| {
            let number = at + 1;
            let DeValue::Table(own) = step.get_ref() else {
                return Err(wrong(step, "steps are written as [[step]]"));
            };
            let line = line_of(text, step.span().start);
            Step::parse((number, line), step.span(), own, defaults, &given.flags)
        });
        Ok(Self {
            steps: parsed.collect::<Result<_, _>>()?,
        })
    }
}

/// Puts the values of variables into a scenario that has some.
fn with_variables<'a>(
    mut table: DeTable<'a>,
    given: &[(String, String)],
) -> Result<DeTable<'a>, Wrong> {
    let own = table.get(VARIABLES).map(|own| (own.span(), own.get_ref()));
    let variables = match own {
        Some((_, DeValue::Table(own))) => Variables::read(own, given)?,
        Some((at, _)) => {
            let reason = format!("variables are written as [{VARIABLES}]");
            return Err(Wrong { at, reason });
        }
        None if given.is_empty() => return Ok(table),
        None => Variables::read(&DeTable::new(), given)?,
    };
    for (key, value) in &mut table {
        if key.get_ref() != VARIABLES {
            variables.put_into(value)?;
        }
    }
    Ok(table)
}

/// Rejects keys that no step can have.
fn check_defaults(keys: &DeTable<'_>) -> Result<(), Wrong> {
    let definition = help::command();
    let commands = COMMANDS
        .iter()
        .filter_map(|name| definition.find_subcommand(name));
    let all: Vec<&Command> = commands.chain([&definition]).collect();
    let has = |key: &str| all.iter().any(|command| argument(command, key).is_some());
    match keys.keys().find(|key| !has(key.get_ref())) {
        None => Ok(()),
        Some(key) => {
            let reason = format!("{}: no step has such a flag", key.get_ref());
            Err(wrong(key, &reason))
        }
    }
}

impl Step {
    fn parse(
        (number, line): (usize, usize),
        place: Range<usize>,
        own: &DeTable<'_>,
        defaults: Option<&DeTable<'_>>,
        given_flags: &[(&'static str, String)],
    ) -> Result<Self, Wrong> {
        let definition = help::command();
        let named = own.iter().find(|(key, _)| key.get_ref() == COMMAND);
        let (name, command) = match named {
            None => (None, &definition),
            Some((_, value)) => {
                let name = value
                    .get_ref()
                    .as_str()
                    .filter(|name| COMMANDS.contains(name));
                let command = name.and_then(|name| definition.find_subcommand(name));
                let known = || {
                    let known = COMMANDS.join(", ");
                    wrong(
                        value,
                        &format!("{COMMAND}: one of {known}; without it, a quick look"),
                    )
                };
                (name, command.ok_or_else(known)?)
            }
        };
        let is_own = |key: &str| own.iter().any(|(other, _)| other.get_ref() == key);
        let inherited = defaults.into_iter().flat_map(DeTable::iter);
        let own_args = own.iter();
        let own_args = own_args.filter_map(|(key, _)| argument(command, key.get_ref()));
        let own_args: Vec<&Arg> = own_args.collect();
        let conflicts = |one: &Arg, other: &Arg| {
            let others = command.get_arg_conflicts_with(one);
            others.iter().any(|arg| arg.get_id() == other.get_id())
        };
        let goes_with_own = |arg: &Arg| {
            let mut own = own_args.iter();
            own.all(|own| !conflicts(own, arg) && !conflicts(arg, own))
        };
        // A command without such a flag does not inherit it, nor a step with another one instead.
        let inherited = inherited.filter(|(key, _)| {
            let arg = argument(command, key.get_ref());
            !is_own(key.get_ref()) && arg.is_some_and(goes_with_own)
        });
        let keys: Vec<Key<'_>> = own
            .iter()
            .filter(|(key, _)| key.get_ref() != COMMAND)
            .chain(inherited)
            .collect();
        let mut flags = Vec::new();
        let mut given = Vec::new();
        for (key, value) in &keys {
            let Some(arg) = argument(command, key.get_ref()) else {
                return Err(wrong(key, &unknown(command, key.get_ref())));
            };
            let words = words(arg, value.get_ref()).map_err(|reason| {
                let reason = format!("{}: {reason}", key.get_ref());
                wrong(value, &reason)
            })?;
            if arg.is_positional() {
                given.push((arg.get_id(), words));
            } else {
                flags.extend(words);
            }
        }
        for (flag, value) in given_flags.iter().filter(|(flag, _)| !is_own(flag)) {
            if argument(command, flag).is_some() {
                flags.push(format!("--{flag}={value}"));
            } else if *flag == START_AT && !name.is_some_and(|name| WITHOUT_LOAD.contains(&name)) {
                return Err(Wrong {
                    at: place,
                    reason: format!(
                        "--{START_AT} is for throughput and latency: this step's length is not known"
                    ),
                });
            }
        }
        // The command knows them by their order.
        let positional = command.get_positionals().flat_map(|arg| {
            let own = given.iter().find(|(id, _)| *id == arg.get_id());
            own.map(|(_, values)| values.clone()).unwrap_or_default()
        });
        let mut words = vec!["netping".to_owned()];
        words.extend(name.map(str::to_owned));
        words.extend(flags);
        words.push("--".to_owned());
        words.extend(positional);
        let matches = definition.clone().try_get_matches_from(&words);
        let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
        let title = name.unwrap_or("quick look");
        Ok(Self {
            name: format!("step {number} (line {line}), {title}"),
            cli: cli.map_err(|error| explained(&error, &keys, place))?,
            words,
        })
    }
}

/// Returns the argument of a command that a key names: a flag by one of its long names, or what has
/// no flag.
fn argument<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    let is_alias = |arg: &Arg| {
        let aliases = arg.get_visible_aliases().unwrap_or_default();
        aliases.contains(&key)
    };
    let mut all = command.get_arguments();
    all.find(|arg| key_of(arg) == Some(key) || is_alias(arg))
}

/// Returns the key of an argument; `None` if scenarios do without it.
fn key_of(arg: &Arg) -> Option<&str> {
    match arg.get_long() {
        Some("help" | "version") => None,
        Some(long) => Some(long),
        None => arg.is_positional().then(|| arg.get_id().as_str()),
    }
}

fn takes_values(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn is_repeatable(arg: &Arg) -> bool {
    let several = arg
        .get_num_args()
        .is_some_and(|count| count.max_values() > 1);
    matches!(arg.get_action(), ArgAction::Append) || several
}

/// Returns an argument as the command line has it: a flag with each of its values, or the values alone.
fn words(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let Some(flag) = arg.get_long().map(|long| format!("--{long}")) else {
        return values(arg, value);
    };
    let may_lack_value = |arg: &Arg| {
        let count = arg.get_num_args();
        count.is_some_and(|count| count.min_values() == 0)
    };
    match value.as_bool() {
        Some(on) if !takes_values(arg) => Ok(Vec::from_iter(on.then_some(flag))),
        None if !takes_values(arg) => Err("true or false is expected".to_owned()),
        Some(true) if may_lack_value(arg) => Ok(vec![flag]),
        _ => {
            let values = values(arg, value)?.into_iter();
            Ok(values.map(|value| format!("{flag}={value}")).collect())
        }
    }
}

fn values(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let DeValue::Array(all) = value else {
        return Ok(vec![scalar(value)?]);
    };
    let all: Vec<String> = all
        .iter()
        .map(|value| scalar(value.get_ref()))
        .collect::<Result<_, _>>()?;
    // A flag that is given once takes a list with commas.
    Ok(if is_repeatable(arg) {
        all
    } else {
        vec![all.join(",")]
    })
}

fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        other => Err(format!(
            "a text or a number is expected, not {}",
            other.type_str()
        )),
    }
}

fn unknown(command: &Command, key: &str) -> String {
    let flag = format!("--{key}");
    let error = command.clone().try_get_matches_from(["", &flag]).err();
    let similar = error.and_then(|error| error.get(ContextKind::SuggestedArg).cloned());
    let hint = similar.map_or_else(String::new, |similar| {
        let similar = similar.to_string();
        format!("; did you mean '{}'?", similar.trim_start_matches('-'))
    });
    let name = command.get_name();
    let what = if name == "netping" {
        "a quick look"
    } else {
        name
    };
    format!("{key}: {what} has no such flag{hint}")
}

/// Returns the place of the key that an error of the command line is about, and the error in a line.
fn explained(error: &clap::Error, keys: &[Key<'_>], place: Range<usize>) -> Wrong {
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => Some(arg.as_str()),
        Some(ContextValue::Strings(args)) => args.first().map(String::as_str),
        _ => None,
    };
    let is_named = |key: &str| {
        named.is_some_and(|arg| {
            let flag = arg.trim_start_matches('-');
            flag.split([' ', '=']).next() == Some(key)
        })
    };
    let key = keys.iter().find(|(key, _)| is_named(key.get_ref()));
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    // What follows is about command lines.
    let text = text.split("\n\nUsage:").next().unwrap_or(text);
    let text = text
        .split("\n\nFor more information")
        .next()
        .unwrap_or(text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let reason = lines.join(" ");
    match key {
        Some((key, _)) => Wrong {
            at: key.span(),
            reason: format!("{}: {reason}", key.get_ref()),
        },
        None => Wrong { at: place, reason },
    }
}

fn wrong<T>(at: &Spanned<T>, reason: &str) -> Wrong {
    Wrong {
        at: at.span(),
        reason: reason.to_owned(),
    }
}

/// Returns the line of a place in a text, from 1 on.
fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    before.split(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        shlex::split(line).unwrap()
    }

    fn error(text: &str) -> (usize, String) {
        let wrong = Scenario::parse(text, &Given::default()).unwrap_err();
        (line_of(text, wrong.at.start), wrong.reason)
    }

    #[test]
    fn a_step_is_the_command_line_with_these_flags() {
        let text = "[defaults]\nduration = '3s'\nruns = 4\n\n\
                    [[step]]\ncommand = 'throughput'\ntargets = ['tcp://h', 'grpc://h']\ncallers = [1, 8]\npin = true\n\
                    fail-if = ['p99>1ms', 'rate<5']\n\n\
                    [[step]]\ntargets = 'tcp://h'\nduration = '1s'\n\n\
                    [[step]]\ncommand = 'latency'\ntargets = 'tcp://h'\nsamples = 9\n";
        let steps = Scenario::parse(text, &Given::default()).unwrap().steps;
        let shown = |line: &str| {
            let matches = help::command().try_get_matches_from(split(line)).unwrap();
            format!("{:?}", Cli::from_arg_matches(&matches).unwrap())
        };
        let expected = "netping throughput tcp://h grpc://h -c 1,8 --pin -d 3s --fail-if 'p99>1ms' --fail-if 'rate<5'";
        assert_eq!(format!("{:?}", steps[0].cli), shown(expected));
        assert_eq!(
            format!("{:?}", steps[1].cli),
            shown("netping tcp://h -d 1s")
        );
        assert_eq!(steps[1].name, "step 2 (line 12), quick look");
        // A number of samples takes the place of a time.
        assert_eq!(
            format!("{:?}", steps[2].cli),
            shown("netping latency tcp://h --samples 9")
        );
    }

    #[test]
    fn variables_stand_for_their_values() {
        let text = "[variables]\nserver = 'h'\nn = 5\n[defaults]\nsamples = '${n}'\n\
                    [[step]]\ncommand = 'latency'\ntargets = ['tcp://${server}:1', 'grpc://${server}:${n}']\n";
        let words = |variables: &[(&str, &str)]| {
            let own = |text: &str| text.to_owned();
            let variables = variables
                .iter()
                .map(|(name, value)| (own(name), own(value)));
            let given = Given {
                variables: variables.collect(),
                flags: Vec::new(),
            };
            let steps = Scenario::parse(text, &given).map_err(|wrong| wrong.reason)?;
            Ok(steps.steps[0].words[2..].join(" "))
        };
        let expected = "--samples=5 -- tcp://h:1 grpc://h:5";
        assert_eq!(words(&[]), Ok(expected.to_owned()));
        let expected = "--samples=5 -- tcp://[::1]:1 grpc://[::1]:5";
        assert_eq!(words(&[("server", "[::1]")]), Ok(expected.to_owned()));
        let error: Result<String, String> = words(&[("sever", "h")]);
        assert_eq!(
            error,
            Err("[variables] has no 'sever'; it has n, server".to_owned())
        );
        let step = "[[step]]\ncommand = 'latency'\ntargets = 'tcp://${x}'\n";
        let (line, reason) = self::error(&format!("[variables]\n{step}"));
        assert_eq!(reason, "[variables] has no 'x'; it has none");
        assert_eq!(line, 4);
        // Without the table, nothing is a variable.
        let steps = Scenario::parse(step, &Given::default()).unwrap().steps;
        assert!(steps[0].words.contains(&"tcp://${x}".to_owned()));
    }

    #[test]
    fn given_flags_reach_the_steps_that_have_them() {
        let given = Given {
            variables: Vec::new(),
            flags: vec![
                ("start-at", "7".to_owned()),
                ("max-clock-error", "1ms".to_owned()),
            ],
        };
        let text = "[[step]]\ncommand = 'throughput'\ntargets = 'tcp://h'\nmax-clock-error = '2ms'\n\
                    [[step]]\ncommand = 'merge'\nfiles = ['a', 'b']\njson = 'c'\n";
        let steps = Scenario::parse(text, &given).unwrap().steps;
        assert!(
            steps[0]
                .words
                .ends_with(&split("--max-clock-error=2ms --start-at=7 -- tcp://h")),
            "{:?}",
            steps[0].words
        );
        assert!(steps[1].words.ends_with(&split("--json=c -- a b")));
        let bulk = "\n[[step]]\ncommand = 'bulk'\ntargets = 'tcp://h'\n";
        let wrong = Scenario::parse(bulk, &given).unwrap_err();
        assert_eq!(line_of(bulk, wrong.at.start), 2);
        assert!(
            wrong.reason.contains("length is not known"),
            "{}",
            wrong.reason
        );
    }

    #[test]
    fn other_names_of_flags_are_keys_and_a_value_may_be_left_out() {
        let text = "[[step]]\ncommand = 'proxy'\ndirect = 'tcp://h'\nvia = 'a=tcp://p'\nmax = true\n\
                    [[step]]\ntargets = 'http://h'\nmetadata = 'a: b'\n";
        let steps = Scenario::parse(text, &Given::default()).unwrap().steps;
        assert!(
            steps[0].words.contains(&"--max".to_owned()),
            "{:?}",
            steps[0].words
        );
        let header = "--header=a: b".to_owned();
        assert!(steps[1].words.contains(&header), "{:?}", steps[1].words);
    }

    #[test]
    fn arguments_without_a_flag_stand_in_the_commands_order() {
        let text = "[defaults]\nbase = 'b.json'\n[[step]]\ncommand = 'compare'\nnew = 'a.json'\n";
        let steps = Scenario::parse(text, &Given::default()).unwrap().steps;
        assert!(
            steps[0].words.ends_with(&split("-- b.json a.json")),
            "{:?}",
            steps[0].words
        );
    }

    #[test]
    fn a_mistake_has_its_line_and_its_key() {
        let step = "[[step]]\ncommand = 'latency'\ntargets = 'tcp://h'\n";
        let (line, reason) = error(&format!("{step}sample = 5\n"));
        assert_eq!(line, 4, "{reason}");
        assert_eq!(
            reason,
            "sample: latency has no such flag; did you mean 'samples'?"
        );
        let (line, reason) = error(&format!("{step}duration = 'long'\n"));
        assert!(
            line == 4 && reason.starts_with("duration: invalid value 'long'"),
            "{line}: {reason}"
        );
        let (line, reason) = error(&format!("{step}busy-poll = 'yes'\n"));
        assert_eq!(
            (line, &*reason),
            (4, "busy-poll: true or false is expected")
        );
        let (line, reason) = error(&format!("{step}samples = [true]\n"));
        assert!(
            line == 4 && reason.starts_with("samples: a text or a number"),
            "{line}: {reason}"
        );
        let (line, reason) = error("\n[[step]]\ncommand = 'serve'\n");
        assert!(
            line == 3 && reason.contains("one of ladder, latency"),
            "{line}: {reason}"
        );
        let (line, reason) = error(&format!("[defaults]\nduraton = 1\n{step}"));
        assert_eq!((line, &*reason), (2, "duraton: no step has such a flag"));
        let (line, reason) = error("\n[[step]]\ncommand = 'latency'\n");
        assert!(line == 2 && reason.contains("required"), "{line}: {reason}");
        assert_eq!(error("steps = 1").0, 1);
        assert_eq!(error("[[step]]\na = 1\na = 2\n").0, 3);
        assert!(error("").1.contains("no [[step]]"));
    }
}
