//! The two helps of a command: `-h` fits a screen, with the flags that most people need and
//! examples; `--help` has every flag.

use clap::{
    Arg, Command, CommandFactory, Error, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Cli;

/// The short help of a command.
struct Short {
    command: &'static str,
    /// Its flags by their long names, separated by spaces, beside [`ALWAYS`] and the arguments without
    /// a flag.
    flags: &'static str,
    examples: &'static str,
}

/// Flags that every command shows that has them.
const ALWAYS: [&str; 4] = ["tls-ca", "tls-insecure", "json", "html"];

/// The short helps; of a command that is not here, both helps are the same.
const SHORT: [Short; 9] = [
    Short {
        command: "netping",
        flags: "duration",
        examples: "netping ladder                 measure every server on this machine\n\
                   netping tcp://HOST:8004        look at a server for 10 s\n\
                   netping http://HOST:80/PATH    look at a service of your own",
    },
    Short {
        command: "ladder",
        flags: "quick full budget callers no-pin",
        examples: "netping ladder\n\
                   netping ladder --budget 5m --html ladder.html",
    },
    Short {
        command: "latency",
        flags: "samples duration payload trials fail-if",
        examples: "netping latency tcp://HOST:8004\n\
                   netping latency tcp://HOST:8004 grpc://HOST:8005",
    },
    Short {
        command: "throughput",
        flags: "callers rate find duration requests connections trials fail-if data",
        examples: "netping throughput tcp://HOST:8004 -c 1..1024x4\n\
                   netping throughput tcp://HOST:8004 --rate 10k --fail-if 'p99>2ms'\n\
                   netping throughput grpc://HOST:50051/package.Service/Method --data '{\"id\": 1}'",
    },
    Short {
        command: "connect",
        flags: "samples callers tls-resume fail-if",
        examples: "netping connect https://HOST/\n\
                   netping connect tcp+tls://HOST:8004 --tls-insecure -c 16",
    },
    Short {
        command: "bulk",
        flags: "size chunk streams runs direction",
        examples: "netping bulk tcp://HOST:8004\n\
                   netping bulk grpc://HOST:8005 --size 1GiB --chunk 64KiB,1MiB",
    },
    Short {
        command: "proxy",
        flags: "direct via rate max duration callers trials proxy-pid",
        examples: "netping proxy --direct tcp://HOST:8004 --via haproxy=tcp://HOST:8011 --rate 10k\n\
                   netping proxy --direct tcp://HOST:8004 --via haproxy=tcp://HOST:8011 --max",
    },
    Short {
        command: "compare",
        flags: "fail-if",
        examples: "netping compare base.json new.json\n\
                   netping compare base.json new.json --fail-if 'p99>+5%'",
    },
    Short {
        command: "report",
        flags: "markdown csv",
        examples: "netping report run.json\n\
                   netping report run.json --html run.html",
    },
];

/// Reads the command line; a wrong one, or one that asks for help, ends the process.
pub fn parse() -> Cli {
    let matches = command().try_get_matches();
    let matches = matches.unwrap_or_else(|error| with_hints(error).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Returns the error with the hints that help here.
pub(super) fn with_hints(mut error: Error) -> Error {
    // It would explain how to pass a misspelled flag as a target.
    error.remove(ContextKind::Suggested);
    // A command line may begin with a target, so a misspelled command is read as one.
    if error.kind() == ErrorKind::ValueValidation
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidValue)
        && let Some(tip) = similar_command(word)
    {
        error.insert(ContextKind::SuggestedSubcommand, tip);
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = commands_with(flag)
    {
        error.remove(ContextKind::SuggestedArg);
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Says which commands have a flag, if any does.
fn commands_with(flag: &str) -> Option<String> {
    let flag = flag.split('=').next()?;
    let all = command();
    let commands = all
        .get_subcommands()
        .filter(|command| has_flag(command, flag));
    let names: Vec<_> = commands.map(Command::get_name).collect();
    let tip = || format!("'{flag}' is a flag of netping {}", names.join(", "));
    (!names.is_empty()).then(tip)
}

/// Returns true if a command has a flag, such as `-d` or `--warmup`.
pub fn has_flag(command: &Command, flag: &str) -> bool {
    let is_it = |arg: &Arg| match flag.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| flag.ends_with(short)),
    };
    command.get_arguments().any(is_it)
}

/// Returns the commands that a word may be a misspelling of: what clap suggests where no target may stand.
fn similar_command(word: &str) -> Option<ContextValue> {
    let commands = Command::new("netping").subcommands(command().get_subcommands());
    let error = commands.try_get_matches_from(["netping", word]).err()?;
    error.get(ContextKind::SuggestedSubcommand).cloned()
}

/// Returns the command line's definition.
pub fn command() -> Command {
    let [top, commands @ ..] = &SHORT;
    let with = |cli: Command, short: &Short| {
        cli.mut_subcommand(short.command, |command| shortened(command, short))
    };
    commands.iter().fold(shortened(Cli::command(), top), with)
}

fn shortened(command: Command, short: &Short) -> Command {
    let is_short =
        |flag: &str| ALWAYS.contains(&flag) || short.flags.split(' ').any(|own| own == flag);
    let command = command.mut_args(|arg| {
        let is_short = arg.is_positional() || arg.get_long().is_some_and(is_short);
        arg.hide_short_help(!is_short)
    });
    let examples = format!("Examples:\n  {}", short.examples.replace('\n', "\n  "));
    let further = command.get_after_long_help();
    let long = further.map_or_else(|| examples.clone(), |text| format!("{examples}\n\n{text}"));
    command.after_help(examples).after_long_help(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_help_fits_a_screen_and_names_flags_that_exist() {
        for short in &SHORT {
            let mut cli = command().term_width(100);
            cli.build();
            let command = match short.command {
                "netping" => &mut cli,
                name => cli.find_subcommand_mut(name).unwrap(),
            };
            for flag in short.flags.split(' ') {
                let exists = command
                    .get_arguments()
                    .any(|arg| arg.get_long() == Some(flag));
                assert!(exists, "{}: --{flag}", short.command);
            }
            let help = command.render_help().to_string();
            assert!(help.lines().count() <= 50, "{}:\n{help}", short.command);
        }
    }

    #[test]
    fn a_misspelled_command_or_flag_gets_a_hint_that_helps() {
        let said = |words: &[&str]| {
            let error = command().try_get_matches_from(words).unwrap_err();
            with_hints(error).to_string()
        };
        let command = said(&["netping", "troughput", "tcp://localhost"]);
        assert!(command.contains("exists: 'throughput'"), "{command}");
        let host = said(&["netping", "localhost"]);
        assert!(!host.contains("tip"), "{host}");
        let flag = said(&["netping", "latency", "tcp://localhost", "--pn"]);
        assert!(!flag.contains("as a value"), "{flag}");
        assert!(flag.contains("'--pin'") || !flag.contains("tip"), "{flag}");
        let elsewhere = said(&["netping", "tcp://localhost", "--rate=1k"]);
        let tip = "'--rate' is a flag of netping ab, throughput, proxy";
        assert!(elsewhere.contains(tip), "{elsewhere}");
    }

    #[test]
    fn the_examples_are_command_lines() {
        for line in SHORT.iter().flat_map(|short| short.examples.lines()) {
            let (line, _) = line.split_once("   ").unwrap_or((line, ""));
            let words = shlex::split(line).unwrap();
            assert!(command().try_get_matches_from(words).is_ok(), "{line}");
        }
    }
}
