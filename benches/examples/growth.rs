//! Growth with the size of a run: CPU time, memory and size of the output against callers, steps,
//! seconds, targets and merged parts. Prints Markdown.
//!
//! `cargo run --release -p netping-benches --example growth` runs every row; with names of rows as
//! arguments, those alone. The order of growth is the exponent of the size, from the size
//! whose units are cheapest to the largest; it ends with 1 where that is over 1.25.
//!
//! Every size runs in processes of its own, of which the fastest counts: their memory is known, and
//! other work on the machine matters less.

use std::{
    convert::Infallible,
    env,
    process::{Command, ExitCode},
    time::Duration,
};

use netping_client::engine::simulated;
use netping_report::page;
use netping_results::{
    compare::compare_runs,
    fixtures,
    merge::{MergeRules, merge},
    run::{Run, Step},
};
use netping_system::{cpu, memory};

/// As in netping's own binaries.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Order of growth that is no longer about linear: caches cost something, and so does sorting.
const TOO_MUCH: f64 = 1.25;

/// Processes that measure each size.
const TRIES: usize = 5;

/// Memory that a size must take for its growth to be known, in KiB.
const LITTLE: f64 = 4096.0;

/// The measured part of a row, with its input.
struct Work {
    /// The number of requests or of units of the size, over which the CPU time is spread.
    units: usize,
    /// Does it, and returns the bytes of the output.
    run: Box<dyn FnOnce() -> usize>,
}

struct Row {
    name: &'static str,
    /// The unit of the sizes.
    unit: &'static str,
    sizes: &'static [usize],
    /// Makes the input of a size.
    prepare: fn(usize) -> Work,
}

const CALLERS: &[usize] = &[1, 16, 256, 4096, 16_384];
const STEPS: &[usize] = &[1, 10, 100, 1000];
const SECONDS: &[usize] = &[1, 60, 600, 3600];
const TARGETS: &[usize] = &[1, 5, 50];
const PARTS: &[usize] = &[2, 4, 16, 64];

const ROWS: [Row; 13] = [
    row("closed-loop", "callers", CALLERS, |n| engine(n, false)),
    row("open-loop", "callers", CALLERS, |n| engine(n, true)),
    row("write-steps", "steps", STEPS, |n| write(n, sweep(n))),
    row("write-seconds", "seconds", SECONDS, |n| {
        write(n, lasting(n))
    }),
    row("write-targets", "targets", TARGETS, |n| write(n, beside(n))),
    row("read-steps", "steps", STEPS, |n| read(n, &sweep(n))),
    row("read-seconds", "seconds", SECONDS, |n| read(n, &lasting(n))),
    row("read-targets", "targets", TARGETS, |n| read(n, &beside(n))),
    row("page-steps", "steps", STEPS, |n| draw(n, sweep(n))),
    row("page-seconds", "seconds", SECONDS, |n| draw(n, lasting(n))),
    row("page-targets", "targets", TARGETS, |n| draw(n, beside(n))),
    row("compare-targets", "targets", TARGETS, |n| {
        compare(n, beside(n))
    }),
    row("merge-parts", "parts", PARTS, merged),
];

const fn row(
    name: &'static str,
    unit: &'static str,
    sizes: &'static [usize],
    prepare: fn(usize) -> Work,
) -> Row {
    Row {
        name,
        unit,
        sizes,
        prepare,
    }
}

fn work(units: usize, run: impl FnOnce() -> usize + 'static) -> Work {
    let run = Box::new(run);
    Work { units, run }
}

/// Up to 300,000 requests through the engine, without a network.
fn engine(callers: usize, open: bool) -> Work {
    // No longer than a second: each second has histograms of its own.
    let rounds = (300_000 / callers).clamp(20, 10_000);
    let length = Duration::from_micros(100 * rounds as u64);
    let requests = callers * rounds * if open { 5 } else { 8 } / 8;
    work(requests, move || {
        assert!(simulated::requests(callers, length, open) > 0);
        0
    })
}

/// Returns a step of so many seconds, with 200 replies in each.
fn step(seconds: u64, shortest: u64) -> Step {
    fixtures::step(seconds, |second| {
        let times = 0..200;
        times
            .map(|at| shortest + at * 497 + second % 7 * 1013)
            .collect()
    })
}

/// Returns a sweep of so many loads.
fn sweep(steps: usize) -> Run {
    let load = |at: usize| {
        let mut step = step(3, 10_000 + at as u64 * 31);
        (step.settings.callers, step.settings.connections) = (at + 1, at + 1);
        step
    };
    fixtures::run((0..steps).map(load).collect())
}

/// Returns one step of so many seconds.
fn lasting(seconds: usize) -> Run {
    fixtures::run(vec![step(seconds as u64, 10_000)])
}

/// Returns five trials of so many targets.
fn beside(targets: usize) -> Run {
    let trial = |at: usize| {
        let mut step = step(3, 10_000 + at as u64 * 31);
        step.target = format!("tcp://host-{}:8004", at / 5);
        step.trial = at as u32 % 5 + 1;
        step
    };
    fixtures::run((0..targets * 5).map(trial).collect())
}

fn write(size: usize, run: Run) -> Work {
    work(size, move || run.to_json().expect("JSON").len())
}

fn read(size: usize, run: &Run) -> Work {
    let file = run.to_json().expect("JSON");
    work(size, move || {
        Run::from_json(file.as_bytes()).expect("a run");
        0
    })
}

fn draw(size: usize, run: Run) -> Work {
    work(size, move || page::html(&[run]).len())
}

fn compare(size: usize, run: Run) -> Work {
    work(size, move || {
        assert!(!compare_runs(&run, &run, &[]).pairs.is_empty());
        0
    })
}

fn merged(size: usize) -> Work {
    let name = |at: usize| format!("client-{at}");
    // Made when they are asked for, as files are read.
    let part = move |at: usize| {
        let mut part = fixtures::run(vec![step(60, 10_000 + at as u64 * 31)]);
        part.environment.host = name(at);
        Ok::<_, Infallible>(part)
    };
    let names: Vec<String> = (0..size).map(name).collect();
    work(size, move || {
        let rules = MergeRules::default();
        let Ok(merged) = merge(&names, part, &rules, fixtures::tool(), Vec::new());
        merged.expect("parts of one run");
        0
    })
}

/// The cost of one size.
struct Cost {
    size: f64,
    /// CPU time for each unit of work, in microseconds.
    cpu: f64,
    /// Memory of the process at its most, in bytes.
    memory: f64,
    /// Size of the output, in bytes.
    output: f64,
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [name, size] = &args[..]
        && let Ok(size) = size.parse()
        && let Some(row) = ROWS.iter().find(|row| row.name == name)
    {
        one(row, size);
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = args
        .iter()
        .find(|name| ROWS.iter().all(|row| row.name != *name))
    {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        eprintln!("there is no row {unknown}: there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    println!(
        "| row | sizes | CPU for each, us | memory for each, KiB | output for each, KiB | growth |"
    );
    println!("|---|---|---|---|---|---|");
    let mut failed = false;
    for row in &ROWS {
        if args.is_empty() || args.iter().any(|name| name == row.name) {
            failed |= !show(row);
        }
    }
    ExitCode::from(u8::from(failed))
}

/// Does the work of one size in this process, and prints what it cost.
fn one(row: &Row, size: usize) {
    let Work { units, run } = (row.prepare)(size);
    let before = cpu::process_time();
    let output = run();
    let spent = cpu::process_time().saturating_sub(before);
    let peak = memory::peak().expect("this process's memory");
    println!(
        "{} {peak} {output}",
        spent.as_nanos() as f64 / 1e3 / units as f64
    );
}

/// Measures a size in processes of their own. The fastest counts.
fn measure(row: &Row, size: usize) -> Cost {
    let program = env::current_exe().expect("the path of this program");
    let once = || {
        let output = Command::new(&program)
            .args([row.name, &size.to_string()])
            .output();
        let output = output.expect("this program, once more");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<f64> = said
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        let [cpu, memory, output] = numbers[..] else {
            panic!("no three numbers: {said}");
        };
        let size = size as f64;
        Cost {
            size,
            cpu,
            memory,
            output,
        }
    };
    let tries = (0..TRIES).map(|_| once());
    let fastest = tries.min_by(|a, b| a.cpu.total_cmp(&b.cpu));
    fastest.expect("a try")
}

/// Prints a row. Returns whether nothing grows faster than its work.
fn show(row: &Row) -> bool {
    let costs: Vec<_> = row.sizes.iter().map(|size| measure(row, *size)).collect();
    let least = costs
        .iter()
        .map(|cost| cost.memory)
        .fold(f64::INFINITY, f64::min);
    let per_unit = |of: &dyn Fn(&Cost) -> f64| -> Vec<[f64; 2]> {
        let point = |cost: &Cost| [cost.size, of(cost)];
        costs.iter().map(point).collect()
    };
    let cpu = per_unit(&|cost| cost.cpu);
    let memory = per_unit(&|cost| (cost.memory - least) / cost.size / 1024.0);
    let output = per_unit(&|cost| cost.output / cost.size / 1024.0);
    let mut known = memory.clone();
    known.retain(|[size, each]| size * each > LITTLE);
    let orders = [&cpu, &known, &output].map(|points| order(points));
    let worst = orders.into_iter().fold(0.0, f64::max);
    let sizes: Vec<_> = row.sizes.iter().map(ToString::to_string).collect();
    println!(
        "| `{}` | {} {} | {} | {} | {} | {worst:.2} |",
        row.name,
        sizes.join(", "),
        row.unit,
        in_row(&cpu),
        in_row(&memory),
        in_row(&output),
    );
    worst <= TOO_MUCH
}

/// Returns the order of growth of what each unit costs at these sizes: the exponent of the size, from
/// the size with the cheapest units to the largest. 1 is linear.
fn order(points: &[[f64; 2]]) -> f64 {
    let cheapest = points.iter().min_by(|a, b| a[1].total_cmp(&b[1]));
    match (cheapest, points.last()) {
        (Some([from, least]), Some([to, most])) if from < to && *least > 0.0 => {
            1.0 + (most / least).ln() / (to / from).ln()
        }
        _ => 1.0,
    }
}

/// Writes what each unit costs with three significant digits; nothing where all is 0.
fn in_row(points: &[[f64; 2]]) -> String {
    if points.iter().all(|[_, each]| *each == 0.0) {
        return String::new();
    }
    let digits = |[_, number]: &[f64; 2]| {
        let whole = number.abs().max(1.0).log10() as usize;
        format!("{number:.*}", 2_usize.saturating_sub(whole))
    };
    let written: Vec<_> = points.iter().map(digits).collect();
    written.join(", ")
}
