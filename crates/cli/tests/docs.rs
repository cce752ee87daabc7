//! The documentation names no file, section, command or flag that does not exist.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory, Parser, error::ErrorKind};
use netping::{
    commands::{
        Cli, Command as Subcommand,
        run::{Given, Scenario},
        serve::ServerCommand,
    },
    error::is_usage,
};
use netping_serving::args::ServerArgs;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser as Markdown, Tag, TagEnd};

#[test]
fn every_link_of_the_docs_leads_somewhere() {
    assert_eq!(problems(dead_links), Vec::<String>::new());
}

#[test]
fn every_command_line_of_the_docs_parses() {
    assert_eq!(problems(wrong_command_lines), Vec::<String>::new());
}

#[test]
fn every_flag_that_the_text_mentions_exists() {
    assert_eq!(problems(unknown_flags), Vec::<String>::new());
}

#[test]
fn every_code_block_names_its_language() {
    assert_eq!(problems(blocks_without_language), Vec::<String>::new());
}

#[test]
fn every_scenario_of_the_docs_and_of_the_playbooks_parses() {
    let mut problems = problems(wrong_scenarios);
    for folder in ["benches/hosts/scenarios", "benches/hosts/lab"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let paths: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "toml")
            })
            .collect();
        assert!(!paths.is_empty(), "{folder}");
        problems.extend(paths.iter().filter_map(|path| check_scenario(path).err()));
    }
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn every_command_of_the_kubernetes_manifests_parses() {
    for name in ["server", "clients"] {
        let file = root().join(format!("benches/hosts/kubernetes/{name}.yml"));
        let text = fs::read_to_string(file).unwrap();
        // A list of YAML in brackets is one of JSON.
        let (_, list) = text.split_once("args: ").unwrap();
        let list = &list[..=list.find(']').unwrap()];
        let mut arguments: Vec<String> = serde_json::from_str(list).unwrap();
        for argument in &mut arguments {
            *argument = argument.replace("$(JOB_COMPLETION_INDEX)", "3");
        }
        assert_eq!(check_program("netping", &arguments), Ok(()), "{name}");
    }
}

#[test]
fn a_scenario_that_does_not_parse_is_a_problem() {
    let wrong = |run: &str| {
        let text = format!("```toml\n[[step]]\nrun = '{run}'\n```\n");
        wrong_scenarios(&Page::of(&text)).len()
    };
    assert_eq!(wrong("latency tcp://h"), 0);
    assert_eq!(wrong("latency tcp://h --gone"), 1);
    // Parsed by clap, refused by the plan.
    assert_eq!(wrong("throughput tcp://h -d 1s --warmup 2s"), 1);
}

#[test]
fn a_dead_link_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        dead_links(&Page::read(folder.path().join(name)))
    };
    let other = "# A `heading`, with: signs\n\n## Twice\n\n## Twice\n";
    assert!(file("other.md", other).is_empty());
    let good = "# Own\n[a](other.md) [b](other.md#a-heading-with-signs) [c](#own) [d][ref]\n\n\
                [e](other.md#twice-1) [f](https://example.com/gone) ![g](./other.md)\n\n[ref]: other.md";
    assert!(file("good.md", good).is_empty());
    for dead in [
        "[a](gone.md)",
        "![a](gone.svg)",
        "[a][ref]\n\n[ref]: gone.md",
        "[a](#gone)",
        "[a](other.md#gone)",
        "[a](other.md#twice-2)",
        "[a](../../../../../../etc/passwd)",
    ] {
        assert_eq!(file("dead.md", dead).len(), 1, "{dead}");
    }
}

#[test]
fn an_unknown_flag_is_a_problem() {
    let check = |block: &str| wrong_command_lines(&Page::of(&format!("```sh\n{block}\n```\n")));
    for wrong in [
        "netping throughput tcp://h:1 -c 1 --no-such-flag",
        "$ netping latency tcp://h:1 --no-such-flag",
        "cargo run --release -- ladder --no-such-flag",
        "cargo run --release -p netping-server-tokio -- --no-such-flag",
        "netping-server-grpc --no-such-flag",
        "netping-proxy --to h:1 --no-such-flag",
        "netping serve quic --no-such-flag",
        "netping no-such-command",
        "netping throughput tcp://h:1 -d 1s --warmup 2s",
        "netping-server-none",
        "RUST_LOG=debug ./netping latency \\\n  tcp://h:1 \\\n  --no-such-flag",
        "echo | netping latency tcp://h:1 --no-such-flag",
        "ssh host ./netping latency tcp://h:1 --no-such-flag",
        "ssh host './netping latency tcp://h:1 --no-such-flag'",
        "netping latency 'tcp://h:1",
    ] {
        assert_eq!(check(wrong).len(), 1, "{wrong}");
    }
    let console = "```text\n$ netping latency tcp://h:1 --no-such-flag\nits output\n```\n";
    assert_eq!(wrong_command_lines(&Page::of(console)).len(), 1);
    for wrong in [
        "`--no-such-flag 3`",
        "`-Q`",
        "`netping bulk --no-such-flag`",
    ] {
        assert_eq!(unknown_flags(&Page::of(wrong)).len(), 1, "{wrong}");
    }
}

#[test]
fn shell_syntax_around_a_command_line_is_understood() {
    let check = |block: &str| wrong_command_lines(&Page::of(&format!("```sh\n{block}\n```\n")));
    for right in [
        "netping latency tcp://h:1   # what it does: --no-such-flag",
        "netping latency tcp://h:1 -d 1s >out 2>&1 &",
        "netping latency tcp://h:1 2>/dev/null | tee --no-such-flag",
        "A=1 B='x y' netping latency tcp://h:1 && wait; true",
        "netping throughput tcp://h:1 --find 'p99<1ms' --fail-if \"errors>0.1%\"",
        "netping throughput http://h:1/ -c 1 --server-pid $(pgrep -f 'nginx: worker')",
        "netping compare base.json new.json \\\n    --fail-if 'rate<-3%'",
        "cargo run -- serve tokio --listen 127.0.0.1:0",
        "cargo run -p other --example netping -- --no-such-flag",
        "cp netping --no-such-flag",
        "netping serve grpc --help",
        "netping --version",
    ] {
        assert_eq!(check(right), Vec::<String>::new(), "{right}");
    }
    let output = "```text\nnetping-proxy  64  18,226\n```\n";
    assert_eq!(wrong_command_lines(&Page::of(output)), Vec::<String>::new());
}

// ---- pages --------------------------------------------------------------------------------------

/// The parts of a Markdown page that can be wrong, each with its line.
#[derive(Debug, Default)]
struct Page {
    path: PathBuf,
    links: Vec<(usize, String)>,
    anchors: HashSet<String>,
    blocks: Vec<(usize, Block)>,
    /// Inline code.
    code: Vec<(usize, String)>,
}

#[derive(Debug)]
struct Block {
    language: String,
    text: String,
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap();
        Self {
            path,
            ..Self::of(&text)
        }
    }

    fn of(text: &str) -> Self {
        let mut page = Self::default();
        let mut block: Option<Block> = None;
        let mut heading: Option<String> = None;
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (event, range) in Markdown::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = text[..range.start].matches('\n').count() + 1;
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let before = seen.entry(slug.clone()).or_default();
                    page.anchors.insert(match *before {
                        0 => slug,
                        count => format!("{slug}-{count}"),
                    });
                    *before += 1;
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    let text = String::new();
                    block = Some(Block { language, text });
                }
                Event::End(TagEnd::CodeBlock) => {
                    page.blocks.extend(block.take().map(|block| (line, block)));
                }
                Event::Text(text) => {
                    if let Some(block) = &mut block {
                        block.text.push_str(&text);
                    } else if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    page.code.push((line, code.into_string()));
                }
                _ => {}
            }
        }
        page
    }

    fn problem(&self, line: usize, text: impl std::fmt::Display) -> String {
        format!("{}:{line}: {text}", self.path.display())
    }
}

/// The anchor that GitHub gives a heading.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase().replace(' ', "-");
    lower
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect()
}

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Runs a check over every page of the documentation.
fn problems(check: fn(&Page) -> Vec<String>) -> Vec<String> {
    let mut files = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    let pages = files.into_iter().map(Page::read);
    pages.flat_map(|page| check(&page)).collect()
}

fn blocks_without_language(page: &Page) -> Vec<String> {
    let unnamed = page
        .blocks
        .iter()
        .filter(|(_, block)| block.language.is_empty());
    unnamed
        .map(|(line, _)| page.problem(*line, "a code block without a language"))
        .collect()
}

// ---- links --------------------------------------------------------------------------------------

fn dead_links(page: &Page) -> Vec<String> {
    let relative = page.links.iter().filter(|(_, to)| !is_absolute(to));
    let dead = relative.filter(|(_, to)| !leads_somewhere(page, to));
    dead.map(|(line, to)| page.problem(*line, format_args!("a dead link: {to}")))
        .collect()
}

fn is_absolute(link: &str) -> bool {
    ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| link.starts_with(scheme))
}

fn leads_somewhere(page: &Page, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        return page.anchors.contains(anchor);
    }
    let folder = page.path.parent().unwrap();
    let Ok(file) = fs::canonicalize(folder.join(path)) else {
        return false;
    };
    // A link out of the repository works on one machine only.
    let inside = file.starts_with(root()) || file.starts_with(fs::canonicalize(folder).unwrap());
    inside && (anchor.is_empty() || Page::read(file).anchors.contains(anchor))
}

// ---- command lines ------------------------------------------------------------------------------

fn wrong_command_lines(page: &Page) -> Vec<String> {
    let mut problems = Vec::new();
    for (line, block) in &page.blocks {
        let is_shell = ["sh", "bash"].contains(&block.language.as_str());
        for command in block.text.replace("\\\n", " ").lines() {
            // Elsewhere than in a script, a prompt tells commands from their output.
            let command = match command.trim_start().strip_prefix("$ ") {
                Some(command) => command,
                None if is_shell => command,
                None => continue,
            };
            for simple in simple_commands(command) {
                if let Err(reason) = check(&simple) {
                    problems.push(page.problem(*line, format_args!("{command}\n{reason}")));
                }
            }
        }
    }
    problems
}

/// The commands of a shell line, without comments and redirections. What a command substitution
/// gives is a 1.
fn simple_commands(line: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let command = commands.last_mut().expect("there is always a last command");
        match c {
            _ if quote == Some(c) => {
                quote = None;
                command.push(c);
            }
            _ if quote.is_some() => command.push(c),
            '\'' | '"' => {
                quote = Some(c);
                command.push(c);
            }
            '\\' => command.extend([Some(c), chars.next()].into_iter().flatten()),
            '#' if command.is_empty() || command.ends_with(' ') => break,
            '$' if chars.peek() == Some(&'(') => {
                chars.by_ref().find(|c| *c == ')');
                command.push('1');
            }
            '|' | '&' | ';' => commands.push(String::new()),
            '<' | '>' => {
                let descriptor = command.trim_end_matches(|c: char| c.is_ascii_digit());
                if descriptor.ends_with(' ') {
                    command.truncate(descriptor.len());
                }
                while chars.next_if(|c| ">& ".contains(*c)).is_some() {}
                while chars.next_if(|c| !" |&;<>".contains(*c)).is_some() {}
            }
            _ => command.push(c),
        }
    }
    commands
}

/// Checks a command if it runs one of the workspace's programs.
fn check(command: &str) -> Result<(), String> {
    let Some(words) = shlex::split(command) else {
        return Err("a quote is not closed".to_owned());
    };
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    let words: Vec<String> = words.into_iter().skip_while(is_variable).collect();
    let Some((program, arguments)) = words.split_first() else {
        return Ok(());
    };
    match program.rsplit('/').next().unwrap_or(program) {
        "cargo" => check_cargo(arguments),
        "ssh" => match arguments {
            [_host, script] => simple_commands(script)
                .iter()
                .try_for_each(|command| check(command)),
            [_host, remote @ ..] => {
                check(&shlex::try_join(remote.iter().map(String::as_str)).unwrap())
            }
            [] => Ok(()),
        },
        name if name.starts_with("netping") => check_program(name, arguments),
        _ => Ok(()),
    }
}

/// `cargo run` runs the client, unless a package is named.
fn check_cargo(arguments: &[String]) -> Result<(), String> {
    let end = arguments.iter().position(|word| word == "--");
    let (own, given) = arguments.split_at(end.unwrap_or(arguments.len()));
    let is = |flag: &str| own.iter().position(|word| word == flag);
    if own.first().is_none_or(|command| command != "run") || is("--example").is_some() {
        return Ok(());
    }
    let package = is("-p").and_then(|at| own.get(at + 1));
    check_program(
        package.map_or("netping", String::as_str),
        given.get(1..).unwrap_or_default(),
    )
}

fn check_program(name: &str, arguments: &[String]) -> Result<(), String> {
    match name {
        "netping" => parse::<Cli>("netping", arguments)?
            .as_ref()
            .map_or(Ok(()), check_further),
        "netping-server-threads" => {
            parse::<ServerArgs<netping_server_threads::ThreadsArgs>>(name, arguments).map(drop)
        }
        "netping-server-tokio" => {
            parse::<ServerArgs<netping_server_tokio::TokioArgs>>(name, arguments).map(drop)
        }
        "netping-server-grpc" => {
            parse::<ServerArgs<netping_server_grpc::GrpcArgs>>(name, arguments).map(drop)
        }
        "netping-server-quic" => {
            parse::<ServerArgs<netping_server_quic::QuicArgs>>(name, arguments).map(drop)
        }
        "netping-proxy" => parse::<ServerArgs<netping_proxy::ProxyArgs>>(name, arguments).map(drop),
        _ => Err(format!("there is no program {name}")),
    }
}

/// Parses flags; `None` if they ask for help or the version.
fn parse<A: Parser>(name: &str, arguments: &[String]) -> Result<Option<A>, String> {
    match A::try_parse_from(std::iter::once(name).chain(arguments.iter().map(String::as_str))) {
        Ok(args) => Ok(Some(args)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(None),
            _ => Err(error.to_string()),
        },
    }
}

/// Checks what clap leaves to later: combinations of flags, by making their plan, and the flags of
/// a server. Files that the flags name, such as certificates, need not exist here.
fn check_further(cli: &Cli) -> Result<(), String> {
    let Some(command) = &cli.command else {
        return usage_of(cli.quick.plans().map(drop));
    };
    usage_of(match command {
        Subcommand::Latency(args) => args.plans(&args.targets).map(drop),
        Subcommand::Throughput(args) => args.groups().map(drop),
        Subcommand::Connect(args) => args.plans().map(drop),
        Subcommand::Bulk(args) => args.plans().map(drop),
        Subcommand::Proxy(args) => args.groups().map(drop),
        Subcommand::Ladder(args) => args.check(),
        Subcommand::Report(args) => args.check(),
        Subcommand::Serve(args) => return check_server(&args.server),
        _ => Ok(()),
    })
}

fn wrong_scenarios(page: &Page) -> Vec<String> {
    let scenarios = page
        .blocks
        .iter()
        .filter(|(_, block)| block.language == "toml" && block.text.contains("[[step]]"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let checked = scenarios.map(|(line, block)| {
        fs::write(&file, &block.text).unwrap();
        let problem = |reason| page.problem(*line, reason);
        check_scenario(&file).map_err(problem)
    });
    checked.filter_map(Result::err).collect()
}

fn check_scenario(path: &Path) -> Result<(), String> {
    let scenario = Scenario::read(path, &Given::default()).map_err(|error| error.to_string())?;
    let problem = |name: &str, reason| format!("{}: {name}: {reason}", path.display());
    scenario
        .steps
        .iter()
        .try_for_each(|step| check_further(&step.cli).map_err(|reason| problem(&step.name, reason)))
}

fn usage_of(result: anyhow::Result<()>) -> Result<(), String> {
    match result {
        Err(error) if is_usage(&error) => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn check_server(server: &ServerCommand) -> Result<(), String> {
    let (program, flags) = match server {
        ServerCommand::Threads(flags) => ("netping-server-threads", flags),
        ServerCommand::Tokio(flags) => ("netping-server-tokio", flags),
        ServerCommand::Grpc(flags) => ("netping-server-grpc", flags),
        ServerCommand::Quic(flags) => ("netping-server-quic", flags),
        ServerCommand::Program(_) => return Err("an internal command".to_owned()),
    };
    let flags = flags
        .flags
        .iter()
        .map(|flag| flag.to_string_lossy().into_owned());
    check_program(program, &flags.collect::<Vec<_>>())
}

// ---- flags in the text --------------------------------------------------------------------------

/// Inline code that begins with a flag, or with a program's name, names flags of netping.
fn unknown_flags(page: &Page) -> Vec<String> {
    // The changelog also names flags that are gone.
    if page.path.ends_with("CHANGELOG.md") {
        return Vec::new();
    }
    let known = known_flags();
    let mut problems = Vec::new();
    let is_ours = |code: &str| code.starts_with('-') || code.starts_with("netping");
    for (line, code) in page.code.iter().filter(|(_, code)| is_ours(code)) {
        let words = code.split_whitespace();
        let flags = words
            .filter(|word| word.starts_with('-') && word.len() > 1)
            .map(|word| word.split('=').next().unwrap_or(word));
        let unknown = flags.filter(|flag| !known.contains(*flag));
        problems.extend(unknown.map(|flag| page.problem(*line, format!("no such flag: {flag}"))));
    }
    problems
}

fn known_flags() -> HashSet<String> {
    let mut flags = HashSet::from(["-h", "--help", "--version"].map(str::to_owned));
    let mut commands: Vec<Command> = vec![
        Cli::command(),
        ServerArgs::<netping_server_threads::ThreadsArgs>::command(),
        ServerArgs::<netping_server_tokio::TokioArgs>::command(),
        ServerArgs::<netping_server_grpc::GrpcArgs>::command(),
        ServerArgs::<netping_server_quic::QuicArgs>::command(),
        ServerArgs::<netping_proxy::ProxyArgs>::command(),
    ];
    while let Some(command) = commands.pop() {
        for argument in command.get_arguments() {
            let aliases = argument.get_visible_aliases().unwrap_or_default();
            let long = argument.get_long().into_iter().chain(aliases);
            flags.extend(long.map(|long| format!("--{long}")));
            flags.extend(argument.get_short().map(|short| format!("-{short}")));
        }
        commands.extend(command.get_subcommands().cloned());
    }
    flags
}
