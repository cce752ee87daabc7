//! Scenario files: command lines in TOML, with variables and flags that steps share.
//!
//! A step's `run` is split as a shell would, and then its variables are put in. clap alone decides
//! what the words mean and which of the shared flags go with them.

use std::path::Path;

use clap::error::ErrorKind;
use netping_report::text::Published;
use toml::Spanned;

use super::{
    file::{self, File, Mistake, Variables, line_of, wrong},
    published::published,
    words::{Given, add_given, parse, result_of, title, unfit, with},
};
use crate::{args::export::JsonTo, commands::Cli};

/// The steps of a scenario.
#[derive(Debug)]
pub struct Scenario {
    /// In their order; never empty.
    pub steps: Vec<ScenarioStep>,
    /// The published numbers that its results are shown beside.
    pub published: Vec<Published>,
}

/// A step of a scenario.
#[derive(Debug)]
pub struct ScenarioStep {
    /// Its place in the file, and its command.
    pub name: String,
    /// The words of its command line, with the program's name.
    pub words: Vec<String>,
    /// That command line.
    pub cli: Cli,
    /// The destination of its result; absent where it has none.
    pub result: Option<JsonTo>,
}

impl Scenario {
    /// Reads a file.
    pub fn read(path: &Path, given: &Given) -> anyhow::Result<Self> {
        file::read(path, |text| Self::parse(text, given))
    }

    pub(super) fn parse(text: &str, given: &Given) -> Result<Self, Mistake> {
        let file = File::parse(text)?;
        let variables = file.variables(&given.variables)?;
        let published = published(&file, &variables)?;
        let steps = steps(&file, text, &variables, given)?;
        let mut results = steps.iter().filter_map(|step| step.result.as_ref());
        match file.published.first() {
            Some(table) if results.all(|to| to.file().is_none()) => Err(wrong(
                table,
                "published numbers stand beside those of result files: give a step --json FILE",
            )),
            _ => Ok(Self { steps, published }),
        }
    }
}

/// Reads the steps of a file.
fn steps(
    file: &File,
    text: &str,
    variables: &Variables,
    given: &Given,
) -> Result<Vec<ScenarioStep>, Mistake> {
    let nowhere = Spanned::new(0..0, String::new());
    let defaults = file.defaults.as_ref();
    let flags = defaults.map_or(&nowhere, |defaults| &defaults.flags);
    let wrong_flags = |reason| wrong(flags, reason);
    let shared = words_of(flags.get_ref(), variables).map_err(wrong_flags)?;
    // Each flag with its value.
    let shared: Vec<&[String]> = shared.chunk_by(|_, next| !next.starts_with('-')).collect();
    let mut unknown = shared.clone();
    let mut steps = Vec::new();
    for table in &file.steps {
        let run = table.get_ref().get("run");
        let run = run.filter(|_| table.get_ref().len() == 1);
        let Some((run, line)) = run.and_then(|run| Some((run, run.get_ref().as_str()?))) else {
            let reason = "a step is its command line and nothing else: write \
                          run = \"throughput tcp://HOST:8004 -c 64\"";
            return Err(wrong(table, reason));
        };
        let wrong_run = |reason| wrong(run, reason);
        let mut words = words_of(line, variables).map_err(wrong_run)?;
        words.insert(0, "netping".to_owned());
        add_given(&mut words, given);
        let own = words.clone();
        for flag in &shared {
            let obstacle = unfit(&own, flag);
            if obstacle != Some(ErrorKind::UnknownArgument) {
                unknown.retain(|other| other != flag);
            }
            if obstacle.is_none() {
                words = with(&words, flag);
            }
        }
        let (number, line) = (steps.len() + 1, line_of(text, run.span().start));
        steps.push(ScenarioStep {
            name: format!("step {number} (line {line}), {}", title(&words)),
            cli: parse(&words, given).map_err(wrong_run)?,
            result: result_of(&words),
            words,
        });
    }
    match unknown.first() {
        _ if steps.is_empty() => Err(wrong(flags, "there is no [[step]]")),
        Some(flag) => Err(wrong(flags, format!("no step has the flag '{}'", flag[0]))),
        None => Ok(steps),
    }
}

/// Splits a line as a shell would, and puts the variables into its words.
fn words_of(line: &str, variables: &Variables) -> Result<Vec<String>, String> {
    let words = shlex::split(line).ok_or("a quote is not closed")?;
    words.iter().map(|word| variables.expand(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str, given: &Given) -> Vec<ScenarioStep> {
        let scenario = Scenario::parse(text, given);
        scenario.unwrap().steps
    }

    /// The words of each step, behind the program's name.
    fn words(text: &str) -> Vec<Vec<String>> {
        let steps = steps(text, &Given::default()).into_iter();
        steps.map(|step| step.words[1..].to_vec()).collect()
    }

    fn split(line: &str) -> Vec<String> {
        shlex::split(line).unwrap()
    }

    fn error(text: &str) -> (usize, String) {
        error_with(text, &Given::default())
    }

    fn error_with(text: &str, given: &Given) -> (usize, String) {
        let (at, reason) = Scenario::parse(text, given).unwrap_err();
        (line_of(text, at), reason)
    }

    fn with_flags(flags: &[(&'static str, &str)]) -> Given {
        let flags = flags
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Given {
            variables: Vec::new(),
            flags: flags.collect(),
        }
    }

    #[test]
    fn a_step_is_its_command_line() {
        let text = "[[step]]\nrun = '''\nthroughput tcp://h\n  --data '{\"a b\": 1}' # why\n  -c 8\n'''\n\n\
                    [[step]]\nrun = \"tcp://h -d 1s\"\n";
        let steps = steps(text, &Given::default());
        let expected = [
            "netping",
            "throughput",
            "tcp://h",
            "--data",
            "{\"a b\": 1}",
            "-c",
            "8",
        ];
        assert_eq!(steps[0].words, expected);
        assert_eq!(steps[0].name, "step 1 (line 2), throughput");
        assert!(matches!(
            steps[0].cli.command,
            Some(crate::commands::Command::Throughput(_))
        ));
        assert_eq!(steps[1].words, ["netping", "tcp://h", "-d", "1s"]);
        assert_eq!(steps[1].name, "step 2 (line 9), quick look");
        assert!(steps[1].cli.command.is_none());
    }

    #[test]
    fn a_step_goes_without_shared_flags_that_it_sets_or_excludes_or_does_not_have() {
        let text = "[defaults]\nflags = \"-d 3s --trials 4 -H 'a: b c'\"\n\
                    [[step]]\nrun = 'throughput http://h --until \"p99 +-5%\" --duration 1s'\n\
                    [[step]]\nrun = 'latency http://h --samples 9 -H c:d'\n\
                    [[step]]\nrun = 'compare -- a b'\n";
        let words = words(text);
        let expected = "throughput http://h --until 'p99 +-5%' --duration 1s -H 'a: b c'";
        assert_eq!(words[0], split(expected));
        // A number of samples excludes a time; headers add up.
        let expected = "latency http://h --samples 9 -H c:d --trials 4 -H 'a: b c'";
        assert_eq!(words[1], split(expected));
        assert_eq!(words[2], split("compare -- a b"));
    }

    #[test]
    fn shared_flags_come_before_the_end_of_flags_and_do_not_contradict_each_other() {
        let step = "[[step]]\nrun = 'latency -- tcp://h'\n";
        let words = words(&format!("[defaults]\nflags = '-d 1s --busy-poll'\n{step}"));
        assert_eq!(words[0], split("latency -d 1s --busy-poll -- tcp://h"));
        let (line, reason) = error(&format!("[defaults]\nflags = '-d 1s -n 5'\n{step}"));
        assert!(
            line == 4 && reason.contains("cannot be used with"),
            "{line}: {reason}"
        );
        let (line, reason) = error(&format!(
            "[defaults]\nflags = '--busy-poll --duraton 1s'\n{step}"
        ));
        assert_eq!((line, &*reason), (2, "no step has the flag '--duraton'"));
    }

    #[test]
    fn variables_stand_for_their_values_within_a_word() {
        let text = "[variables]\nserver = 'h'\nn = 5\nname = \"it's ${n}\"\n[defaults]\nflags = '-n ${n}'\n\
                    [[step]]\nrun = 'latency http://${server}:${n}/ -H \"x: ${name}\" --data=${name}'\n";
        let own = words(text);
        let expected = [
            "latency",
            "http://h:5/",
            "-H",
            "x: it's ${n}",
            "--data=it's ${n}",
            "-n",
            "5",
        ];
        assert_eq!(own[0], expected);
        let mut given = Given::default();
        given.variables.push("server=[::1]".parse().unwrap());
        assert_eq!(steps(text, &given)[0].words[2], "http://[::1]:5/");
        given.variables.push("sever=h".parse().unwrap());
        let (_, reason) = error_with(text, &given);
        assert_eq!(
            reason,
            r#"[variables] has no 'sever', only ["n", "name", "server"]"#
        );
        let wrong = error("[variables]\nx = 1\n[[step]]\nrun = 'tcp://${y}'\n");
        assert_eq!(
            wrong,
            (4, r#"[variables] has no 'y', only ["x"]"#.to_owned())
        );
        let wrong = error("[variables]\nx = 1\n[[step]]\nrun = 'tcp://${x'\n");
        assert_eq!(wrong, (4, "'${' without '}' in 'tcp://${x'".to_owned()));
        // In a file without variables it means nothing.
        assert_eq!(words("[[step]]\nrun = 'tcp://${x}'\n")[0], ["tcp://${x}"]);
    }

    #[test]
    fn given_flags_reach_the_steps_that_have_them() {
        let given = with_flags(&[("--start-at", "7"), ("--max-clock-error", "1ms")]);
        let text = "[defaults]\nflags = '--max-clock-error 3ms'\n\
                    [[step]]\nrun = 'throughput tcp://h --max-clock-error=2ms'\n\
                    [[step]]\nrun = 'latency -d 1s -- tcp://h'\n\
                    [[step]]\nrun = 'merge --json c -- a b'\n";
        let steps = steps(text, &given);
        let expected = "netping throughput tcp://h --max-clock-error=2ms --start-at 7";
        assert_eq!(steps[0].words, split(expected));
        let expected = "netping latency -d 1s --start-at 7 --max-clock-error 1ms -- tcp://h";
        assert_eq!(steps[1].words, split(expected));
        assert_eq!(steps[2].words, split("netping merge --json c -- a b"));
    }

    #[test]
    fn a_step_that_cannot_begin_at_a_moment_is_an_error() {
        let given = with_flags(&[("--start-at", "7")]);
        let (line, reason) = error_with("\n[[step]]\nrun = 'bulk tcp://h'\n", &given);
        assert!(
            line == 3 && reason.contains("length is not known"),
            "{line}: {reason}"
        );
        let typo = "[[step]]\nrun = 'latency tcp://h --smples 5'\n";
        let (line, reason) = error_with(typo, &given);
        assert!(line == 2 && reason.contains("--smples"), "{line}: {reason}");
        let find = "[[step]]\nrun = 'throughput tcp://h --find p99<1ms'\n";
        let (line, reason) = error_with(find, &given);
        assert!(
            line == 2 && reason.contains("cannot be used with"),
            "{line}: {reason}"
        );
    }

    #[test]
    fn a_mistake_has_its_line_and_its_reason() {
        let step = |run: &str| error(&format!("\n[[step]]\nrun = \"{run}\"\n"));
        for (run, expected) in [
            ("", "a step measures or works on result files"),
            ("latency --help", "a step measures or works on result files"),
            ("latency 'tcp://h", "a quote is not closed"),
            (
                "latency",
                "the following required arguments were not provided: <URL>...",
            ),
        ] {
            assert_eq!(step(run), (3, expected.to_owned()));
        }
        for (run, expected) in [
            (
                "latency tcp://h --sample 5",
                "unexpected argument '--sample' found tip: ",
            ),
            (
                "latency tcp://h -d long",
                "invalid value 'long' for '--duration <TIME>': ",
            ),
            ("serve tokio", "'serve' is no step: give ladder, latency, "),
        ] {
            let (line, reason) = step(run);
            assert!(
                line == 3 && reason.starts_with(expected),
                "{line}: {reason}"
            );
        }
        let latency = "[[step]]\nrun = 'latency tcp://h'\n";
        assert_eq!(error(&format!("{latency}run = ''\n")).0, 3);
        assert_eq!(error(&format!("{latency}[other]\n")).0, 3);
        assert_eq!(
            error(&format!("{latency}[defaults]\nduration = '5s'\n")).0,
            4
        );
        assert_eq!(error("").1, "there is no [[step]]");
    }

    #[test]
    fn published_numbers_take_a_step_with_a_result_file() {
        let with = |flags: &str| {
            let step = format!("[[step]]\nrun = 'latency tcp://h {flags}'\n");
            format!("{step}[[published]]\nsource = 's'\nrows = [{{ name = 'a', rate = 1 }}]\n")
        };
        for flags in ["", "--json -"] {
            let (line, reason) = error(&with(flags));
            assert!(
                line == 3 && reason.contains("give a step --json FILE"),
                "{line}: {reason}"
            );
        }
        let scenario = Scenario::parse(&with("--json=a.json"), &Given::default()).unwrap();
        assert_eq!(scenario.steps[0].result, Some(JsonTo::from("a.json")));
        assert_eq!(scenario.published[0].source, "s");
    }

    #[test]
    fn a_step_of_keys_is_told_how_to_become_a_command_line() {
        for step in [
            "command = 'latency'\ntargets = ['tcp://h']\n",
            "run = 'latency tcp://h'\nduration = '5s'\n",
            "run = ['latency', 'tcp://h']\n",
        ] {
            let (line, reason) = error(&format!("\n[[step]]\n{step}"));
            assert!(
                line == 2 && reason.contains("write run = \""),
                "{line}: {reason}"
            );
        }
    }
}
