//! The two helps of a command: `-h` is a screen with the flags that most people need, and examples; `--help` has
//! every flag.

use std::env;

use clap::{
    Arg, Command, CommandFactory, Error, FromArgMatches,
    builder::Resettable,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Cli;

/// The screen of a command.
struct Screen {
    /// Its name; of a command of another one, after that.
    command: &'static str,
    /// Its arguments and flags, by their ids or long names, each with a text of one line.
    lines: &'static [[&'static str; 2]],
    examples: &'static str,
}

/// The columns and rows of a screen.
const WIDTH: usize = 80;

/// The screen without a command.
const TOP: &str = "\
Measures what a small request costs: to your own HTTP and gRPC services, or to
bare echo servers over TCP, gRPC and QUIC

Usage: netping URL...             look at servers for ten seconds each
       netping COMMAND [OPTIONS]  'netping COMMAND -h' has the flags

Measure
  ladder      every server on this machine, from plain TCP to gRPC over TLS
  latency     round trips, one after another
  throughput  rate and times of many callers, or at a given rate
  connect     opening a connection, and the first call on it
  bulk        bulk data in one direction
  proxy       what proxies add to the direct path
Compare
  ab          two builds of a server: is the new one worse?
  compare     result files
Prepare
  check       look for problems on this host and servers before a long run
  clock       how far this host's clock is from those of servers
  grpc        methods of a gRPC server
  serve       netping's own servers; 'certs' makes certificates for them
  run         commands from a file
Show
  report      files as tables and pages; 'merge' and 'next': of several clients";

const TARGETS: [&str; 2] = [
    "targets",
    "tcp://HOST:8004, grpc://HOST:8005, http://HOST:80/PATH",
];
const CA: [&str; 2] = ["tls-ca", "authorities of servers' certificates (PEM)"];
const JSON: [&str; 2] = ["json", "write the results as JSON; '-': to standard output"];
const HTML: [&str; 2] = ["html", "write the results as a page with charts"];
const FAIL_IF: [&str; 2] = ["fail-if", "exit with 4 if this holds, such as 'p99>2ms'"];
const TRIALS: [&str; 2] = ["trials", "repeat all N times, and compare the targets"];
const DATA: [&str; 2] = ["data", "JSON of a gRPC message, or an HTTP body; @FILE"];
const HEADER: [&str; 2] = ["header", "header of HTTP requests, metadata of gRPC calls"];
const METHOD: [&str; 2] = ["method", "method of HTTP requests [GET; with --data POST]"];

/// The screens; of a command that is not here, both helps are the same.
const SCREENS: [Screen; 16] = [
    Screen {
        command: "ladder",
        lines: &[
            ["quick", "three rounds in about 20 s: too few for claims"],
            ["full", "also mutual TLS, and messages of 581 bytes"],
            ["budget", "time to spend on rounds [50s]"],
            ["callers", "callers under load [64]"],
            ["no-pin", "do not choose the CPUs of client and servers"],
            JSON,
            HTML,
        ],
        examples: "netping ladder\n\
                   netping ladder --budget 5m --html ladder.html",
    },
    Screen {
        command: "latency",
        lines: &[
            TARGETS,
            ["samples", "round trips to each target [10000]"],
            ["duration", "measure for this long instead"],
            ["payload", "bytes of each request [4]"],
            TRIALS,
            DATA,
            HEADER,
            METHOD,
            JSON,
            HTML,
            FAIL_IF,
        ],
        examples: "netping latency tcp://HOST:8004 grpc://HOST:8005",
    },
    Screen {
        command: "throughput",
        lines: &[
            TARGETS,
            ["callers", "callers at once: 64, 1,8,64 or 1..4096 [64]"],
            ["rate", "open loop: requests per second, on schedule"],
            ["find", "search the highest rate with 'p99<1ms' or the like"],
            ["duration", "measured time of each step [10s]"],
            TRIALS,
            DATA,
            HEADER,
            METHOD,
            JSON,
            HTML,
            FAIL_IF,
        ],
        examples: "netping throughput http://HOST:80/PATH --rate 2000 --fail-if 'p99>20ms'",
    },
    Screen {
        command: "connect",
        lines: &[
            [
                "targets",
                "tcp+tls://HOST:8004, quic://HOST:8006, https://HOST/PATH",
            ],
            ["samples", "connections to open [10000]"],
            ["callers", "callers, each with one connection at a time [1]"],
            ["tls-resume", "resume TLS sessions: on or off [off]"],
            ["tls-insecure", "accept any certificate"],
            CA,
            JSON,
            HTML,
            FAIL_IF,
        ],
        examples: "netping connect https://HOST/\n\
                   netping connect tcp+tls://HOST:8004 --tls-insecure -c 16",
    },
    Screen {
        command: "bulk",
        lines: &[
            [
                "targets",
                "servers, such as tcp://HOST:8004 or grpc://HOST:8005",
            ],
            ["size", "bytes of each run, over all streams [1GiB]"],
            ["chunk", "bytes of each message [256KiB]"],
            ["streams", "parallel streams [1]"],
            ["runs", "rounds, each of all combinations [10]"],
            ["direction", "down from the server, or up [down]"],
            JSON,
            HTML,
        ],
        examples: "netping bulk tcp://HOST:8004\n\
                   netping bulk grpc://HOST:8005 --size 1GiB --chunk 64KiB,1MiB",
    },
    Screen {
        command: "proxy",
        lines: &[
            ["direct", "the backend, such as tcp://HOST:8004"],
            ["via", "a proxy before it: haproxy=tcp://HOST:8011"],
            ["rate", "open loop: 10k or 10k..25k+1k"],
            ["max", "also the highest rate, of 16, 64 and 256 callers"],
            ["duration", "measured time of each step [10s]"],
            ["trials", "repeat all N times [6]"],
            ["proxy-pid", "process of a proxy, for its CPU time"],
            JSON,
            HTML,
        ],
        examples: "netping proxy --direct tcp://HOST:8004 --via haproxy=tcp://HOST:8011 --max",
    },
    Screen {
        command: "ab",
        lines: &[
            [
                "targets",
                "the base and the new server, if they run already",
            ],
            ["base", "command that starts the base; {listen}: address"],
            ["new", "command that starts the new server"],
            ["url", "URL of servers that commands start"],
            ["margin", "the new one may be worse by this [5%]"],
            ["budget", "time in which to decide [60s]"],
            ["rate", "open loop: requests per second to each server"],
            DATA,
            HEADER,
            ["markdown", "write the answer as Markdown"],
            JSON,
        ],
        examples: "netping ab http://127.0.0.1:8080/ http://127.0.0.1:8081/\n\
                   netping ab --base './a {listen}' --new './b {listen}' --url 'tcp://{listen}'",
    },
    Screen {
        command: "compare",
        lines: &[
            ["base", "result file to compare with"],
            ["new", "result files, each compared with the base"],
            ["fail-if", "exit with 4 on a change such as 'p99>+5%'"],
            ["html", "write the comparison as a page, too"],
        ],
        examples: "netping compare base.json new.json\n\
                   netping compare base.json new.json --fail-if 'p99>+5%'",
    },
    Screen {
        command: "check",
        lines: &[
            ["targets", "servers; without one, this host alone"],
            ["connections", "connections that the run is to open [1024]"],
            [
                "max-clock-error",
                "largest offset of this host's clock from a server's",
            ],
            ["json", "write the findings as JSON"],
        ],
        examples: "netping check\n\
                   netping check tcp://HOST:8004 --connections 10000",
    },
    Screen {
        command: "clock",
        lines: &[
            [
                "targets",
                "netping's servers: tcp://HOST:8004, quic://HOST:8006",
            ],
            [
                "max-clock-error",
                "exit with 4 if the clock may be further off",
            ],
            ["tls-insecure", "accept any certificate"],
            CA,
        ],
        examples: "netping clock tcp://HOST:8004",
    },
    Screen {
        command: "next",
        lines: &[
            ["files", "the results of the windows so far, in their order"],
            ["find", "search for the highest rate that keeps 'p99<1ms'"],
            ["duration", "measured time of each window of a search"],
            ["until", "repeat until an interval is narrow: 'p99 +-5%'"],
            ["margin", "decide if the new server is worse by this: 5%"],
            ["max-trials", "most trials with --until and --margin"],
            ["allow", "windows with these warnings are not disturbed"],
        ],
        examples: "netping next --find 'p99<1ms' window-1.json window-2.json",
    },
    Screen {
        command: "merge",
        lines: &[
            ["files", "result files, one of each client"],
            ["json", "write the sum as JSON"],
            ["clients", "number of clients: any other is refused"],
            [
                "min-overlap",
                "share of the windows that all must share [99%]",
            ],
            ["allow", "accept clients with this warning, or 'all'"],
        ],
        examples: "netping merge client-1.json client-2.json --json sum.json",
    },
    Screen {
        command: "grpc list",
        lines: &[
            ["target", "grpc://HOST:PORT"],
            ["proto", "schema; otherwise the server's own"],
            ["tls-insecure", "accept any certificate"],
            CA,
        ],
        examples: "netping grpc list grpc://HOST:50051",
    },
    Screen {
        command: "grpc describe",
        lines: &[
            ["target", "grpc://HOST:PORT/package.Service/Method"],
            ["proto", "schema; otherwise the server's own"],
            ["tls-insecure", "accept any certificate"],
            CA,
        ],
        examples: "netping grpc describe grpc://HOST:50051/helloworld.Greeter",
    },
    Screen {
        command: "run",
        lines: &[
            ["file", "scenario: command lines in TOML"],
            ["set", "value of a variable of the file"],
            ["from", "print the scenario of this result file instead"],
        ],
        examples: "netping run measure.toml\n\
                   netping run --from run.json > measure.toml",
    },
    Screen {
        command: "report",
        lines: &[
            ["files", "result files; several share the charts"],
            HTML,
            ["csv", "write the results as comma-separated values"],
            ["markdown", "write the results as a table in Markdown"],
        ],
        examples: "netping report run.json\n\
                   netping report run.json --html run.html",
    },
];

/// Flags of other load generators, and netping's for the same.
const HABITS: [(&[&str], &str); 11] = [
    (
        &["-r", "-R", "--rps", "-q", "-Q", "--qps"],
        "--rate N (throughput, ab, proxy): requests per second of an open loop",
    ),
    (&["-z"], "-d TIME: measured time of each step"),
    (
        &["-t"],
        "--workers N for threads of the client, or --timeout TIME",
    ),
    (
        &["--threads", "--cpus"],
        "--workers N: threads of the client",
    ),
    (&["-w"], "--warmup TIME"),
    (
        &["-P", "--parallel"],
        "--streams N (bulk): parallel streams",
    ),
    (&["-T"], "-H 'content-type: TYPE'"),
    (
        &["--call"],
        "the path of the URL: grpc://HOST:PORT/package.Service/Method",
    ),
    (
        &["-k", "--insecure"],
        "--tls-insecure: accept any certificate",
    ),
    (&["-m"], "-X METHOD: method of HTTP requests"),
    (
        &["-D", "-p", "--body", "--data-file"],
        "--data TEXT or --data @FILE",
    ),
];

/// Reads the command line; a wrong one, or one that asks for help, ends the process.
pub fn parse() -> Cli {
    let command = if env::args_os().any(|word| word == "-h") {
        screens()
    } else {
        command()
    };
    let matches = command.try_get_matches();
    let words = || env::args_os().map(|word| word.to_string_lossy().into_owned());
    let matches = matches.unwrap_or_else(|error| with_hints(error, words()).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Returns the error of a command line with the hints that help here.
pub(super) fn with_hints(
    mut error: Error,
    mut words: impl Iterator<Item = impl AsRef<str>>,
) -> Error {
    // It would explain how to pass a misspelled flag as a target.
    error.remove(ContextKind::Suggested);
    // A command line may begin with a target, so a misspelled command is read as one.
    let is_flag = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(name)) if name.starts_with('-'));
    if error.kind() == ErrorKind::ValueValidation
        && !is_flag
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidValue)
        && let Some(tip) = similar_command(word)
    {
        error.insert(ContextKind::SuggestedSubcommand, tip);
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && !words.any(|word| is_long_with_one_dash(word.as_ref(), flag))
        && let Some(tip) = habit(flag).or_else(|| commands_with(flag))
    {
        error.remove(ContextKind::SuggestedArg);
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Returns true for `-plaintext`, of which clap takes only `-p` for the flag.
fn is_long_with_one_dash(word: &str, flag: &str) -> bool {
    let rest = word.strip_prefix(flag).filter(|_| flag.len() == 2);
    rest.is_some_and(|rest| rest.len() > 1 && rest.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// Says which flag does what a flag of other tools does.
fn habit(flag: &str) -> Option<String> {
    let flag = flag.split('=').next()?;
    let own = HABITS.iter().find(|(flags, _)| flags.contains(&flag));
    own.map(|(_, own)| format!("netping's flag for '{flag}' of other tools is {own}"))
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
    with_screens(Cli::command(), |command, screen| {
        let examples = examples(screen);
        let further = command.get_after_long_help();
        let all = further.map_or_else(|| examples.clone(), |text| format!("{examples}\n\n{text}"));
        command.after_long_help(all)
    })
}

/// Returns the command line's definition, of which a help is a screen.
fn screens() -> Command {
    with_screens(Cli::command().override_help(TOP), |command, screen| {
        let shown = |arg: Arg| {
            let names = [Some(arg.get_id().as_str()), arg.get_long()];
            let line = screen
                .lines
                .iter()
                .find(|[name, _]| names.contains(&Some(*name)));
            match line {
                Some([_, text]) => {
                    let has_value = arg.get_action().takes_values();
                    arg.help(*text)
                        .long_help(*text)
                        .help_heading(Resettable::Reset)
                        .hide_default_value(has_value)
                        .hide_possible_values(has_value)
                }
                None => arg.hide(true),
            }
        };
        command
            .mut_args(shown)
            .term_width(WIDTH)
            .after_help(examples(screen))
    })
}

fn examples(screen: &Screen) -> String {
    format!("Examples:\n  {}", screen.examples.replace('\n', "\n  "))
}

/// Returns the command line with a change of every command that has a screen, in the same order.
fn with_screens(cli: Command, change: impl Fn(Command, &Screen) -> Command) -> Command {
    let of = |command: Command, path: &str| match SCREENS.iter().find(|own| own.command == path) {
        Some(screen) => change(command, screen),
        None => command,
    };
    mut_subcommands(cli, |command| {
        let path = command.get_name().to_owned();
        let command = mut_subcommands(command, |own| {
            let path = format!("{path} {}", own.get_name());
            of(own, &path)
        });
        of(command, &path)
    })
}

fn mut_subcommands(mut command: Command, change: impl Fn(Command) -> Command) -> Command {
    let all = command.get_subcommands();
    let names: Vec<String> = all.map(|own| own.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, &change);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` with the name of every command, and it.
    fn each(command: &mut Command, path: &str, look: &mut dyn FnMut(&str, &mut Command)) {
        look(path, command);
        for own in command.get_subcommands_mut() {
            let path = format!("{path} {}", own.get_name());
            each(own, &path, look);
        }
    }

    #[test]
    fn the_short_help_of_each_command_fits_a_small_screen() {
        let mut cli = screens().term_width(WIDTH);
        cli.build();
        each(&mut cli, "", &mut |path, command| {
            let help = command.render_help().to_string();
            let widest = help.lines().map(|line| line.chars().count()).max();
            let fits = help.lines().count() <= 24 && widest <= Some(WIDTH);
            assert!(fits || path.starts_with(" help"), "{path}:\n{help}");
        });
    }

    #[test]
    fn what_a_screen_names_exists() {
        let mut cli = command();
        cli.build();
        let mut known = Vec::new();
        each(&mut cli, "", &mut |path, command| {
            let Some(screen) = SCREENS.iter().find(|own| path.trim() == own.command) else {
                return;
            };
            known.push(screen.command);
            for [name, _] in screen.lines {
                let mut all = command.get_arguments();
                let exists = all.any(|arg| arg.get_long() == Some(*name) || arg.get_id() == *name);
                assert!(exists, "{path}: {name}");
            }
            for arg in command.get_positionals() {
                let is_told = screen.lines.iter().any(|[name, _]| arg.get_id() == *name);
                assert!(is_told, "{path}: {}", arg.get_id());
            }
        });
        assert_eq!(known.len(), SCREENS.len());
        // Every command is on the first screen, or beside another.
        for own in cli.get_subcommands().map(Command::get_name) {
            let is_told = ["completions", "man", "help"].contains(&own) || TOP.contains(own);
            assert!(is_told, "{own}");
        }
    }

    #[test]
    fn a_misspelled_command_or_flag_gets_a_hint_that_helps() {
        let said = |words: &[&str]| {
            let error = command().try_get_matches_from(words).unwrap_err();
            with_hints(error, words.iter()).to_string()
        };
        let command = said(&["netping", "troughput", "tcp://localhost"]);
        assert!(command.contains("exists: 'throughput'"), "{command}");
        let host = said(&["netping", "localhost"]);
        assert!(!host.contains("tip"), "{host}");
        let flag = said(&["netping", "latency", "tcp://localhost", "--pn"]);
        assert!(!flag.contains("as a value"), "{flag}");
        assert!(flag.contains("'--pin'") || !flag.contains("tip"), "{flag}");
        let elsewhere = said(&["netping", "tcp://localhost", "--rate=1k"]);
        let tip = "'--rate' is a flag of netping throughput, proxy, ab";
        assert!(elsewhere.contains(tip), "{elsewhere}");
        let value = said(&[
            "netping",
            "throughput",
            "tcp://localhost",
            "--find",
            "latency<5ms",
        ]);
        assert!(!value.contains("tip"), "{value}");
        for flag in ["-q", "--qps=1k"] {
            let habit = said(&["netping", "throughput", "tcp://localhost", flag]);
            let tip = "of other tools is --rate N (throughput, ab, proxy): ";
            assert!(habit.contains(tip), "{habit}");
        }
        let with_one_dash = said(&["netping", "tcp://localhost", "-plaintext"]);
        assert!(!with_one_dash.contains("tip"), "{with_one_dash}");
    }

    #[test]
    fn the_examples_are_command_lines() {
        for line in SCREENS.iter().flat_map(|screen| screen.examples.lines()) {
            let (line, _) = line.split_once(" > ").unwrap_or((line, ""));
            let words = shlex::split(line).unwrap();
            assert!(command().try_get_matches_from(words).is_ok(), "{line}");
        }
    }
}
