//! `netping compare`: result files against a base.

use std::path::{Path, PathBuf};

use clap::Args;
use netping_report::{
    page,
    table::{red, wrap},
    text,
};
use netping_results::{
    compare::{FileComparison, Gate, compare_runs},
    comparison::Compared,
    file::save::write_atomically,
    format::on_one_line,
    metric::Metric,
    run::Run,
    warning::Warnings,
};

use crate::{
    args::{
        export::print,
        output::{AllowArgs, not_accepted},
        paths::apart,
    },
    error::{Verdict, tell, usage},
};

/// Flags of `netping compare`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "Steps are compared if label, protocol, arrivals, rate, callers, connections and sizes are the same; \
                  the server's address may differ. Steps of the same target and settings (--trials) are trials of one \
                  measurement. A difference is shown where its interval leaves out 0; the intervals are simultaneous. They \
                  come from Welch's t-test over the logarithms of the trials' values; with one trial \
                  on each side, from the error bars within the runs, which the rate has from ten seconds on, p50 and p99 \
                  from a minute on, where the run was steady.\n\n\
                  Exit codes: 0 ok, 2 wrong usage, 3 a file could not be read, 4 a --fail-if condition holds or nothing \
                  could be compared, 5 a file is NOT VALID, so that --fail-if decides nothing."
)]
pub struct CompareArgs {
    /// Result file to compare with; '-': standard input. 'A.json,B.json': the trials of one measurement, each a run of its
    /// own
    #[arg(value_name = "BASE.json")]
    base: PathBuf,
    /// Result files, or trials, each compared with the base
    #[arg(required = true, value_name = "NEW.json")]
    new: Vec<PathBuf>,
    /// Exit with 4 if a metric changed like this: 'p99>+5%', 'rate<-3%' of the base's value,
    /// 'errors>+0.1%' in percentage points; may be repeated. It holds if the change is beyond the
    /// limit and a difference is shown; without an error bar, it cannot be decided, which fails too. A
    /// measurement that only the base has fails too. Exit with 5 if a file is NOT VALID
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Gate>,
    #[command(flatten)]
    accepted: AllowArgs,
    /// Also write the comparison as a page, with the charts of all files
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn run(args: &CompareArgs) -> anyhow::Result<Verdict> {
    let given = [std::slice::from_ref(&args.base), &args.new].concat();
    let files: Vec<Vec<PathBuf>> = given.iter().map(|given| trials(given)).collect();
    apart(
        &files.concat(),
        args.html.as_deref().map(|page| ("html", page)),
    )?;
    let mut runs = Vec::new();
    for files in &files {
        let (name, mut run) = load(files)?;
        run.allowed.extend(args.accepted.names());
        runs.push((name, run));
    }
    let (base_name, base) = &runs[0];
    let asked: Vec<&Metric> = args.fail_if.iter().map(Gate::metric).collect();
    let mut verdict = Verdict::Success;
    let mut texts = Vec::new();
    let mut printed = Ok(());
    for (name, new) in &runs[1..] {
        let comparison = compare_runs(base, new, &asked);
        let broken = broken(&args.fail_if, &comparison);
        let invalid = [(base_name, base), (name, new)];
        let invalid: Vec<String> = invalid.into_iter().filter_map(invalidated).collect();
        let title = format!("{name} against {base_name}");
        let mut shown = vec![title.clone()];
        shown.extend(invalid.iter().map(|line| red(line)));
        shown.push(text::comparison(&comparison));
        // The page, if one is asked for, is written even so.
        printed = printed.and(print(wrap(&shown.join("\n"), usize::MAX) + "\n"));
        for line in &broken {
            tell(&format!("{name}: {line}"));
        }
        if !broken.is_empty() || comparison.pairs.is_empty() {
            verdict = verdict.max(Verdict::Condition);
        }
        let mut in_full = vec![title];
        in_full.extend(invalid);
        in_full.push(text::comparison_in_full(&comparison));
        texts.push(in_full.join("\n"));
    }
    if !args.fail_if.is_empty() {
        for line in runs.iter().filter_map(undecided) {
            tell(&line);
            verdict = verdict.max(Verdict::Warnings);
        }
    }
    if let Some(path) = &args.html {
        let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
        let page = page::comparison(&runs[0], &runs[1..], &texts.join("\n"));
        write_atomically(path, page.as_bytes())?;
        printed = printed.and(print(format!("wrote {}\n", path.display())));
    }
    printed?;
    Ok(verdict)
}

/// Returns the files of the trials that an argument names; a file's own name may have commas.
fn trials(given: &Path) -> Vec<PathBuf> {
    match given.to_str() {
        Some(names) if names.contains(',') && !given.exists() => {
            names.split(',').map(PathBuf::from).collect()
        }
        _ => vec![given.to_owned()],
    }
}

/// Reads a run, or the trials of one, and returns it with its name.
fn load(files: &[PathBuf]) -> anyhow::Result<(String, Run)> {
    let name = |file: &PathBuf| on_one_line(&file.display().to_string());
    let runs = files.iter().map(|file| Run::load(file));
    let mut runs = runs.collect::<Result<Vec<Run>, _>>()?;
    let more = files.len() - 1;
    if more == 0 {
        return Ok((name(&files[0]), runs.remove(0)));
    }
    let whole = Run::of_trials(runs);
    let whole = whole.map_err(|fault| usage(format!("{}: {fault}", name(&files[fault.number]))))?;
    let whole = whole.ok_or_else(|| usage("give the result files of trials"))?;
    Ok((format!("{} and {more} more", name(&files[0])), whole))
}

/// Says that a run is not valid, if it is not, and why.
fn invalidated((name, run): (&String, &Run)) -> Option<String> {
    let wrong = Warnings::of_run(run).invalidating();
    (!wrong.is_empty()).then(|| format!("NOT VALID: {name}: {}", wrong.join(", ")))
}

/// Says that `--fail-if` decides nothing where a run is not valid for a reason that is not accepted.
fn undecided((name, run): &(String, Run)) -> Option<String> {
    let wrong = Warnings::of_run(run).invalidating();
    let wrong = (!wrong.is_empty()).then(|| not_accepted(&wrong))?;
    Some(format!(
        "--fail-if decides nothing: {name} is NOT VALID: {wrong}"
    ))
}

/// Returns a line for each condition that holds or cannot be decided, and for each measurement that
/// only the base has.
fn broken(gates: &[Gate], comparison: &FileComparison<'_>) -> Vec<String> {
    if gates.is_empty() {
        return Vec::new();
    }
    let missing = |name: &String| {
        let name = on_one_line(name);
        format!("failed by --fail-if: {name}: the new run has no such measurement")
    };
    let mut lines: Vec<String> = comparison.only_base.iter().map(missing).collect();
    let name = |pair: &Compared<'_>| on_one_line(&pair.base.long_name());
    for gate in gates {
        lines.extend(gate.broken_by(&comparison.pairs, name));
    }
    lines
}

#[cfg(test)]
mod tests {
    use netping_results::fixtures::{run, step};

    use super::*;

    #[test]
    fn what_only_the_base_measured_fails_a_gate() {
        let with = |all: &[usize]| {
            let one = |(measurement, callers): (usize, &usize)| {
                let mut step = step(1, |_| vec![1000; 10]);
                step.measurement = measurement;
                step.settings.callers = *callers;
                step
            };
            let mut run = run(Vec::new());
            run.steps = all.iter().enumerate().map(one).collect();
            run
        };
        let gates = ["rate>+5%".parse::<Gate>().unwrap()];
        let lines =
            |base: &Run, new: &Run, gates: &[Gate]| broken(gates, &compare_runs(base, new, &[]));
        let (base, new) = (with(&[16, 64]), with(&[16, 256]));
        let [line] = &lines(&base, &new, &gates)[..] else {
            panic!("{:?}", lines(&base, &new, &gates));
        };
        assert!(
            line.contains("64 callers") && line.ends_with(": the new run has no such measurement"),
            "{line}"
        );
        assert_eq!(lines(&base, &new, &[]), [""; 0]);
        assert_eq!(lines(&with(&[16]), &new, &gates), [""; 0]);
    }
}
