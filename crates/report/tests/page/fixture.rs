//! Runs such as every command writes, made up.

use std::collections::BTreeMap;

use netping_measure::{
    accounting::Accounting,
    anatomy::Anatomy,
    buckets::Buckets,
    bulk::Direction,
    connect::ConnectPhase,
    cost::{Balance, Cost, Program, ServerDemand, SideUse},
    counts::Counts,
    error_kind::ErrorKind,
    fairness::{Fairness, PerConnection},
    histogram::{histogram, record},
    interval::IntervalSummary,
    path::{PathAccount, PathFact, PathReading},
    statistics::precision::Precision,
    status::Status,
    summary::Summary,
    times::{Histograms, Time},
};
use netping_results::{
    anatomy::AnatomySummary,
    fixtures,
    messages::MessageSummary,
    run::{Environment, Kind, Pairing, Part, PartStep, Run, Step, StepSettings, Tool},
    times::Times,
    warning::{BehindSchedule, ClientBound, Errors, NotSteady, SharedHost, Stalled, TooFewSamples},
};

/// Text that would end an attribute or an element, or begin one.
pub const HOSTILE: &str = "<script>alert(1)</script>\"' onload=\"x\u{7}&amp;</title></svg>";

/// Every kind of report there is, by name, each with the runs that share a page.
pub fn all() -> Vec<(&'static str, Vec<Run>)> {
    vec![
        ("sweep", vec![sweep(80_000.0)]),
        ("open", vec![open()]),
        ("ladder", vec![ladder()]),
        ("connect", vec![connect()]),
        ("bulk", vec![bulk()]),
        ("bulk-targets", vec![bulk_targets()]),
        ("proxies", vec![proxies()]),
        ("trials", vec![trials()]),
        ("shared", vec![shared()]),
        ("balances", vec![balances()]),
        ("two", vec![sweep(80_000.0), sweep(95_000.0)]),
        ("warnings", vec![warnings()]),
        ("empty", vec![empty()]),
        ("hostile", vec![hostile()]),
        ("long", vec![long()]),
        ("quick", vec![quick()]),
        ("one", vec![one()]),
        ("ab", vec![ab()]),
        ("anatomy", vec![anatomy()]),
        ("two-loads", vec![sweep_of(2, 1)]),
        ("thirteen-loads", vec![sweep_of(13, 2)]),
        ("fifty-loads", vec![sweep_of(50, 1)]),
        ("many-targets", vec![sweep_of(13, 6)]),
        ("long-names", vec![long_names()]),
        ("merged", vec![merged()]),
    ]
}

/// A run of a command, in which steps of like targets and settings are trials of one measurement.
pub fn run(kind: Kind, command: &[&str], steps: Vec<Step>) -> Run {
    Run {
        kind,
        tool: Tool {
            name: "netping".to_owned(),
            version: "0.1.0".to_owned(),
            commit: Some("0b60d618b830".to_owned()),
        },
        command_line: ["netping", kind.name()]
            .iter()
            .chain(command)
            .map(|word| (*word).to_owned())
            .collect(),
        started_at: "2026-11-21T14:39:19Z".to_owned(),
        environment: Environment {
            host: "client-1".to_owned(),
            kernel: "6.18.44".to_owned(),
            cpu_model: "AMD EPYC 9B14".to_owned(),
            cpus: 60,
            open_files: 1_048_576,
            system: BTreeMap::from(
                [
                    ("clock_source", "tsc"),
                    ("congestion_control", "bbr"),
                    ("ephemeral_ports", "1024 65535"),
                ]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
            ),
        },
        ..fixtures::run(steps)
    }
}

/// A closed loop of more and more callers against two servers.
pub fn sweep(peak: f64) -> Run {
    let mut steps = Vec::new();
    for (target, factor) in [("tcp://server-1:8004", 1.0), ("grpc://server-1:8005", 0.4)] {
        for callers in [1, 4, 16, 64, 256, 1024] {
            let rate = peak * factor * callers as f64 / (callers as f64 + 12.0);
            steps.push(step(target, callers, None, rate, 6));
        }
    }
    run(
        Kind::Throughput,
        &[
            "tcp://server-1:8004",
            "grpc://server-1:8005",
            "-c",
            "1..1024x4",
            "-d",
            "6s",
        ],
        steps,
    )
}

/// A merged run of 24 clients, one of which was slow.
pub fn merged() -> Run {
    const CLIENTS: u64 = 24;
    let mut whole = sweep(80_000.0);
    let part = |number: u64| {
        let slower = if number == 7 { 2 } else { 1 };
        let of_step = |step: &Step| PartStep {
            requests: step.summary.accounting.ok / CLIENTS / slower,
            rate: step.summary.rate / (CLIENTS * slower) as f64,
            window_started_at: step.window_started_at,
            window_seconds: step.summary.seconds,
            overlap: 1.0,
            response_time: Some(times(2000, 300_000 * slower, number).time),
        };
        Part {
            host: format!("client-{number}.zone-b.example"),
            cpus: Some(2),
            started_at: whole.started_at.clone(),
            command_line: whole.command_line.clone(),
            clock: None,
            steps: whole.steps.iter().map(of_step).collect(),
        }
    };
    whole.parts = (1..=CLIENTS).map(part).collect();
    whole
}

/// An open loop of rising rates, the last one too high.
pub fn open() -> Run {
    let steps = [10_000.0, 20_000.0, 40_000.0, 80_000.0].map(|planned: f64| {
        let mut step = step(
            "tcp://server-1:8004",
            64,
            Some(planned),
            planned.min(70_000.0),
            8,
        );
        if planned > 70_000.0 {
            let behind = BehindSchedule {
                lag_p50: Some(2_500_000),
                not_sent: 1200,
                achieved: 0.875,
                outlasts_warmup: false,
            };
            step.warnings = vec![behind.into()];
        }
        step
    });
    run(
        Kind::Throughput,
        &["tcp://server-1:8004", "--rate", "10k..80kx2", "-d", "8s"],
        steps.into(),
    )
}

/// Rungs in three rounds: one caller, and 64.
pub fn ladder() -> Run {
    let rungs = ["TCP tokio", "TCP again", "TCP+TLS", "QUIC"];
    let rung = |at: usize, callers: usize, rate: f64| {
        let target = format!("tcp://127.0.0.1:{}", 40_001 + at);
        let mut step = step(&target, callers, None, rate, 1);
        step.label = Some(rungs[at].to_owned());
        step.warnings = vec![SharedHost.into()];
        step.intervals.truncate(1);
        step
    };
    let mut steps = Vec::new();
    for round in 0..3 {
        for (callers, rate) in [(1, 60_000), (64, 400_000)] {
            let of = |at: usize| rung(at, callers, (rate / (at + 2) + round * 300) as f64);
            steps.extend((0..rungs.len()).map(of));
        }
    }
    let mut run = run(Kind::Ladder, &[], steps);
    // Rungs with one caller are measurements 0 to 3, those with 64 are 4 to 7.
    run.pairings = [0, 4]
        .into_iter()
        .flat_map(|first| [(0, 1), (0, 2), (2, 3)].map(|(a, b)| Pairing::new(first + a, first + b)))
        .collect();
    for control in [0, 3] {
        run.pairings[control].is_control = true;
    }
    run
}

/// The same, with round trips taken apart in the first round, but for those over QUIC.
pub fn ladder_apart() -> Run {
    let mut run = ladder();
    for (at, step) in run.steps.iter_mut().take(3).enumerate() {
        let mut anatomy = Anatomy::default();
        let away = 20_000 * (at as u64 + 1);
        for _ in 0..1_000 {
            anatomy.record(fixtures::parts([1_400, away, 29_000], None));
        }
        step.anatomy = Some(AnatomySummary::of(&anatomy));
    }
    run
}

/// Connections over TLS and in the clear.
pub fn connect() -> Run {
    let parts = [
        (ConnectPhase::Resolve, 40_000),
        (ConnectPhase::Tcp, 90_000),
        (ConnectPhase::Handshake, 820_000),
        (ConnectPhase::Http2, 110_000),
        (ConnectPhase::FirstCall, 160_000),
    ];
    let steps = [
        ("tcp://server-1:8004", &parts[..2]),
        ("grpc+tls://server-1:8005", &parts[..]),
    ]
    .map(|(target, parts)| {
        let mut step = step(target, 1, None, 800.0, 5);
        let total: u64 = parts.iter().map(|(_, time)| time).sum();
        let whole = (ConnectPhase::Total, total);
        step.connect = parts
            .iter()
            .copied()
            .chain([whole])
            .map(|(phase, time)| (phase, times(2000, time, 7)))
            .collect();
        step
    });
    run(
        Kind::Connect,
        &[
            "tcp://server-1:8004",
            "grpc+tls://server-1:8005",
            "-n",
            "4000",
        ],
        steps.into(),
    )
}

/// Bulk streams of two directions and chunk sizes; one whose every trial failed.
pub fn bulk() -> Run {
    let target = "grpc://server-1:8005";
    let trials = |direction, chunk_bytes, speeds: &[f64]| {
        let mut steps = if speeds.is_empty() {
            vec![fixtures::failed_transfer(); 3]
        } else {
            let seconds: Vec<f64> = speeds.iter().map(|speed| 1.0 / speed).collect();
            fixtures::bulk(target, &seconds)
        };
        for step in &mut steps {
            target.clone_into(&mut step.target);
            if let Some(settings) = &mut step.settings.bulk {
                settings.direction = direction;
                settings.chunk_bytes = chunk_bytes;
                settings.window_bytes = Some(16 << 20);
            }
            if let Some(run) = &mut step.bulk {
                run.client_cpu_seconds_per_gib = Some(0.28);
                run.server_cpu_seconds_per_gib = Some(0.31);
            }
            step.warn_of_transfer(false);
        }
        steps
    };
    let steps = [
        trials(Direction::Down, 64 << 10, &[3.01, 2.94, 3.12, 3.05]),
        trials(Direction::Down, 256 << 10, &[3.41, 3.44, 3.38, 3.36]),
        trials(Direction::Up, 64 << 10, &[2.51]),
        trials(Direction::Up, 256 << 10, &[]),
    ];
    let flags = ["--size", "1GiB", "--chunk", "64KiB,256KiB", "--trials", "4"];
    run(
        Kind::Bulk,
        &[&[target], &flags[..]].concat(),
        steps.concat(),
    )
}

/// One bulk stream of two servers, in trials.
pub fn bulk_targets() -> Run {
    let mut steps = fixtures::bulk("grpc://server-1:8005", &[0.33, 0.34, 0.32]);
    steps.extend(fixtures::bulk("tcp://server-1:8004", &[0.22, 0.23, 0.22]));
    Run {
        pairings: vec![Pairing::new(0, 1)],
        ..run(
            Kind::Bulk,
            &["grpc://server-1:8005", "tcp://server-1:8004"],
            steps,
        )
    }
}

/// A ramp of two rates with two proxies against the direct path, in three trials.
pub fn proxies() -> Run {
    let mut steps = Vec::new();
    for planned in [5_000.0, 10_000.0] {
        for trial in 0..3 {
            for (label, added) in [("direct", 0.0), ("netping-proxy", 20.0), ("nginx", 85.0)] {
                let rate = planned - added - f64::from(trial);
                let mut step = step("tcp://server-1:8004", 50, Some(planned), rate, 5);
                step.label = Some(label.to_owned());
                steps.push(step);
            }
        }
    }
    let flags = ["--via", "nginx=tcp://server-1:8011", "--rate", "5k..10k"];
    let command = [&["tcp://server-1:8004"], &flags[..]].concat();
    Run {
        pairings: vec![Pairing::new(3, 4), Pairing::new(3, 5)],
        ..run(Kind::Proxy, &command, steps)
    }
}

/// One load, five times, for three targets.
pub fn trials() -> Run {
    let mut steps = Vec::new();
    for trial in 1..=5 {
        for (at, target) in [
            "tcp://server-1:8004",
            "tcp+tls://server-1:8014",
            "tcp+psk://server-1:8024",
        ]
        .iter()
        .enumerate()
        {
            let rate = 80_000.0 - at as f64 * 9000.0 + f64::from(trial * 7919 % 5) * 700.0;
            steps.push(step(target, 64, None, rate, 3));
        }
    }
    Run {
        order_seed: Some(1),
        pairings: vec![Pairing::new(0, 1), Pairing::new(0, 2)],
        ..run(
            Kind::Throughput,
            &["tcp://server-1:8004", "-c", "64", "--trials", "5"],
            steps,
        )
    }
}

/// Callers of a method that streams, which share few connections and many, twice.
pub fn shared() -> Run {
    let mut steps = Vec::new();
    for trial in [1, 2] {
        for callers in [64, 512] {
            for connections in [1, 16] {
                let rate = 40_000.0
                    + 5000.0 * connections as f64
                    + callers as f64
                    + f64::from(trial) * 100.0;
                let mut step = step("grpc://server-1:8005", callers, None, rate, 3);
                step.settings.connections = connections;
                step.messages = Some(MessageSummary {
                    sent_per_s: rate,
                    received_per_s: 100.0 * rate,
                    first_message: times(2000, 200_000, 5),
                    message_gap: Some(times(1000, 20_000, 6)),
                });
                steps.push(step);
            }
        }
    }
    let flags = ["-c", "64,512", "--connections", "1,16", "--trials", "2"];
    run(
        Kind::Throughput,
        &[&["grpc://server-1:8005"], &flags[..]].concat(),
        steps,
    )
}

/// Three targets in two trials, with others on the CPUs of the servers, of which the first is known, the
/// second is not, and the third is on another host.
pub fn balances() -> Run {
    let side = |cpu_seconds| SideUse {
        cpu_seconds,
        waited_seconds: Some(cpu_seconds / 8.0),
    };
    let mut steps = Vec::new();
    for trial in 1..=2 {
        for (at, port) in [8004, 8005, 8006].into_iter().enumerate() {
            let mut step = step(&format!("tcp://server-1:{port}"), 64, None, 80_000.0, 5);
            let others_seconds = 2.5 + f64::from(trial) / 5.0;
            let clients = Balance {
                cpus: vec![0, 1],
                window_seconds: 5.0,
                total_seconds: 10.0,
                client: Some(side(6.0)),
                others_seconds: 0.25,
                idle_seconds: 3.75,
                windows: 1,
                ..Balance::default()
            };
            let mut servers = Balance {
                cpus: vec![2, 3],
                client: None,
                server: Some(side(6.0)),
                others_seconds,
                idle_seconds: 3.5 - others_seconds,
                interrupt_seconds: 0.5,
                busiest_other: Some(Program {
                    name: "rustc".to_owned(),
                    cpu_seconds: 2.0,
                }),
                ..clients.clone()
            };
            step.cost.balances = match at {
                0 => vec![clients, servers],
                1 => vec![Balance {
                    has_server_among_others: true,
                    others_seconds: 3.0,
                    idle_seconds: 1.0,
                    ..clients
                }],
                _ => {
                    servers.cpus.clear();
                    (servers.others_seconds, servers.busiest_other) = (0.0, None);
                    vec![clients, servers]
                }
            };
            steps.push(step);
        }
    }
    let mut run = run(
        Kind::Throughput,
        &[
            "tcp://server-1:8004",
            "tcp://server-1:8005",
            "-c",
            "64",
            "--trials",
            "2",
        ],
        steps,
    );
    run.order_seed = Some(1);
    run
}

/// Returns a run with failures that was interrupted.
pub fn warnings() -> Run {
    let mut failing = step("tcp://server-1:8004", 64, None, 31_000.0, 4);
    failing.summary.accounting.errors =
        BTreeMap::from([(ErrorKind::Reset, 120), (ErrorKind::Grpc(14), 7)]);
    failing.summary.accounting.in_flight = 3;
    let failed = times(127, 2_000_000, 64);
    failing.summary.times[Time::Failed] = failed.time;
    failing.histograms.times[Time::Failed] = failed.histogram;
    failing.summary.scheduled = failing.summary.accounting.scheduled();
    failing.status = Status::Partial;
    failing.warnings = vec![
        ClientBound {
            busiest_worker: 0.991,
        }
        .into(),
        NotSteady {
            drift: -0.21,
            ..NotSteady::default()
        }
        .into(),
        Errors {
            share: failing.summary.accounting.error_rate(),
            time_share: 0.0,
        }
        .into(),
        SharedHost.into(),
    ];
    let mut silent = step("tcp://server-1:8004", 128, None, 0.0, 0);
    silent.warnings = vec![TooFewSamples { samples: 0 }.into()];
    let mut run = run(
        Kind::Throughput,
        &["tcp://server-1:8004", "-c", "64,128,256"],
        vec![failing, silent],
    );
    run.status = Status::Partial;
    run
}

/// Returns a run before its first step is done.
pub fn empty() -> Run {
    let mut run = run(Kind::Throughput, &["tcp://server-1:8004"], Vec::new());
    run.status = Status::Partial;
    run
}

/// Texts that would break out of a page that does not escape them.
pub fn hostile() -> Run {
    let mut steps = Vec::new();
    for callers in [1, 8] {
        let mut labelled = step(HOSTILE, callers, None, 5000.0, 3);
        labelled.label = Some(format!("{HOSTILE}{callers}"));
        labelled.settings.client = HOSTILE.into();
        labelled.settings.arrivals = HOSTILE.into();
        labelled.cost.balances = vec![Balance {
            cpus: vec![0],
            window_seconds: 1.0,
            total_seconds: 1.0,
            others_seconds: 1.0,
            busiest_other: Some(Program {
                name: HOSTILE.into(),
                cpu_seconds: 1.0,
            }),
            windows: 1,
            ..Balance::default()
        }];
        steps.push(labelled);
    }
    steps.extend(fixtures::bulk(HOSTILE, &[0.5, 0.25]));
    let mut run = run(Kind::Throughput, &[HOSTILE], steps);
    run.pairings = vec![Pairing::new(0, 1)];
    run.environment.host = HOSTILE.into();
    run.environment.cpu_model = HOSTILE.into();
    run.environment.kernel = HOSTILE.into();
    run.environment
        .system
        .insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    run.started_at = HOSTILE.into();
    run.tool.commit = Some(HOSTILE.to_owned());
    run.tool.version = HOSTILE.into();
    run
}

/// An hour against four targets with a thousand connections.
pub fn long() -> Run {
    let steps = (0..4).map(|at| {
        let mut step = step(
            &format!("tcp://server-{at}:8004"),
            1024,
            None,
            200_000.0 - 9000.0 * f64::from(at),
            3600,
        );
        let connections = (0..1024_u64).map(|at| PerConnection {
            requests: 190_000 + at * 7919 % 8000,
            mean: 5e6,
            ..PerConnection::default()
        });
        step.fairness = Fairness::of(connections.collect());
        step
    });
    run(
        Kind::Throughput,
        &["tcp://server-0:8004", "-c", "1024", "-d", "1h"],
        steps.collect(),
    )
}

/// A short look at two servers.
pub fn quick() -> Run {
    let steps = [
        ("tcp://server-1:8004", 42_000.0),
        ("grpc://server-1:8005", 17_000.0),
    ];
    let steps = steps.map(|(target, rate)| step(target, 1, None, rate, 2));
    run(
        Kind::Quick,
        &["tcp://server-1:8004", "grpc://server-1:8005"],
        steps.into(),
    )
}

/// Round trips to two targets, taken apart; the slowest waited for the client.
pub fn anatomy() -> Run {
    let taken_apart = |(number, target): (u64, &str)| {
        let mut step = step(target, 1, None, 15_000.0, 3);
        let mut anatomy = Anatomy::default();
        let ok = step.summary.accounting.ok;
        for at in 0..ok - 3 {
            // The server's time grows with the target's number; each hundredth request waits for the client.
            let wait = u64::from(at % 100 == 0) * 400_000;
            let parts = [
                1_400,
                20_000 + 15_000 * number + at % 97 * 50,
                29_000 + wait,
            ];
            anatomy.record(fixtures::parts(parts, None));
        }
        anatomy.without_stamps = 3;
        step.settings.anatomy = true;
        step.anatomy = Some(AnatomySummary::of(&anatomy));
        step
    };
    let targets = [(0, "tcp://server-1:8004"), (1, "grpc://server-1:8005")];
    run(
        Kind::Latency,
        &["tcp://server-1:8004", "grpc://server-1:8005", "--anatomy"],
        targets.into_iter().map(taken_apart).collect(),
    )
}

/// One rate for half a minute, with a stall and a second in which requests failed.
pub fn one() -> Run {
    let mut step = step("tcp://server-1:8004", 64, Some(20_000.0), 20_000.0, 30);
    step.warnings = vec![
        Stalled {
            at: 12.4,
            seconds: 0.8,
            count: 1,
            period: None,
            hidden: false,
        }
        .into(),
    ];
    step.intervals[20].errors = 17;
    run(
        Kind::Throughput,
        &["tcp://server-1:8004", "--rate", "20k", "-d", "30s"],
        vec![step],
    )
}

/// Twelve rounds of a base and a new server, each measured twice in a round by turns and then alone; the new one has a
/// longer tail.
pub fn ab() -> Run {
    let mut steps = Vec::new();
    for round in 0..12_u64 {
        for (at, label) in ["base", "base again", "new", "new again"]
            .into_iter()
            .enumerate()
        {
            let noise = ((round * 7919 + at as u64 * 104_729) % 13) as f64;
            let rate = 40_000.0 + 60.0 * noise;
            let mut step = step(&format!("tcp://server-{}:8004", at / 2), 8, None, rate, 1);
            step.label = Some(label.to_owned());
            step.settings.together = Some(4);
            if at >= 2 {
                let times = step.histograms.times[Time::Response].iter();
                let longer = |(time, count): (u64, u64)| {
                    let tail = (time as f64 / 200_000.0 - 1.0).clamp(0.0, 1.0);
                    ((time as f64 * (1.0 + 0.2 * tail)) as u64, count)
                };
                let times: Vec<u64> = times
                    .map(longer)
                    .flat_map(|(time, count)| vec![time; count as usize])
                    .collect();
                step.histograms.times[Time::Response] = times.into_iter().collect();
                step.summary.times = step.histograms.describe();
            }
            steps.push(step);
        }
        for (at, label) in ["base", "new"].into_iter().enumerate() {
            let mut alone = step(
                &format!("tcp://server-{at}:8004"),
                64,
                None,
                90_000.0 + round as f64 * 50.0,
                1,
            );
            alone.label = Some(label.to_owned());
            steps.push(alone);
        }
    }
    let control = |base: usize| Pairing {
        is_control: true,
        ..Pairing::new(base, base + 1)
    };
    Run {
        order_seed: Some(1),
        looks: 1000,
        margin: Some(0.05),
        pairings: vec![
            control(0),
            control(2),
            Pairing::new(0, 2),
            Pairing::new(4, 5),
        ],
        ..run(
            Kind::Ab,
            &["tcp://server-0:8004", "tcp://server-1:8004"],
            steps,
        )
    }
}

/// A sweep over so many numbers of callers, of so many targets, whose threads wait for CPUs more and more.
pub fn sweep_of(loads: usize, targets: usize) -> Run {
    let mut steps = Vec::new();
    for target in 0..targets {
        for load in 0..loads {
            let callers = if loads > 20 { 1 + load * 3 } else { 1 << load };
            let peak = 90_000.0 - 11_000.0 * target as f64;
            let rate =
                peak * callers as f64 / (callers as f64 + 12.0) * (1.0 - callers as f64 / 40_000.0);
            let mut step = step(
                &format!("tcp://server-{target}:8004"),
                callers,
                None,
                rate,
                1,
            );
            let side = |waited: f64| SideUse {
                cpu_seconds: 0.7,
                waited_seconds: Some(waited * rate / peak),
            };
            step.cost.balances = vec![Balance {
                cpus: vec![0, 1],
                window_seconds: 1.0,
                total_seconds: 2.0,
                client: Some(side(0.3)),
                server: Some(side(0.5)),
                idle_seconds: 0.6,
                windows: 1,
                ..Balance::default()
            }];
            steps.push(step);
        }
    }
    run(
        Kind::Throughput,
        &["tcp://server-0:8004", "-c", "1..4096x2"],
        steps,
    )
}

/// Trials of targets whose names are long.
pub fn long_names() -> Run {
    let mut run = trials();
    for step in &mut run.steps {
        let host = "echo-service-blue-7d9f8b6c5d-x2x9k.load-testing.svc.cluster.europe-west4-b.example.internal";
        step.target = step.target.replace("server-1", host);
    }
    run
}

/// A step that measured `rate` requests per second for so many seconds.
#[expect(
    clippy::too_many_lines,
    reason = "a literal with every field of a step"
)]
pub fn step(
    target: &str,
    callers: usize,
    planned_rate: Option<f64>,
    rate: f64,
    seconds: u32,
) -> Step {
    let count = (rate * f64::from(seconds)).round() as u64;
    let mean = if rate > 0.0 {
        (callers as f64 / rate * 1e9).min(2e7) as u64
    } else {
        0
    };
    // Enough samples for the form of the tail; a million of them would only take time.
    let samples = count.min(30_000);
    let service = times(samples, mean, callers as u64);
    let response = planned_rate.map_or_else(
        || service.clone(),
        |_| times(samples, mean + mean / 3 + 30_000, 1),
    );
    let buckets = Buckets::of(&response.histogram);
    let intervals = (0..u64::from(seconds)).map(|second| {
        let wave = 1.0 + ((second * 7919 % 13) as f64 - 6.0) / 200.0;
        let time = |factor: f64| Some((mean as f64 * factor / wave) as u64);
        IntervalSummary {
            start_ns: second * 1_000_000_000,
            length_ns: 1_000_000_000,
            ok: (rate * wave) as u64,
            errors: 0,
            service_p50: time(0.9),
            service_p99: time(2.4),
            service_max: time(9.0),
            response_p50: time(0.9),
            response_p99: time(2.4),
            response_max: time(9.0 + (second % 7) as f64),
            response_buckets: buckets.clone(),
            path: None,
        }
    });
    let enough = seconds >= 5;
    let near = |percent: f64| {
        let value = response.time.quantile(percent)?;
        enough.then_some([value - value / 50, value + value / 40])
    };
    let mut histograms = Histograms::default();
    histograms.times[Time::Service] = service.histogram;
    histograms.times[Time::Response] = response.histogram.clone();
    let mut described = histograms.describe();
    let of_response = &mut described[Time::Response];
    [of_response.p50_interval, of_response.p99_interval] = [near(50.0), near(99.0)];
    Step {
        window_started_at: None,
        target: target.to_owned(),
        label: None,
        measurement: 0,
        trial: 1,
        status: Status::Complete,
        set_aside: false,
        settings: StepSettings {
            message: None,
            arrivals: if planned_rate.is_some() {
                "poisson"
            } else {
                "closed"
            }
            .to_owned(),
            planned_rate,
            seed: planned_rate.map(|_| 1),
            callers,
            connections: callers,
            workers: 2,
            pinned: false,
            busy_poll: false,
            client: "line".to_owned(),
            payload_bytes: 16,
            response_bytes: None,
            assign: None,
            unix_socket: None,
            in_process: None,
            http_method: None,
            data_hash: None,
            bodies: None,
            body_order: None,
            headers: Vec::new(),
            deadline_seconds: None,
            events: false,
            messages_per_stream: None,
            matching: None,
            bursts: None,
            streams_per_connection: None,
            warmup_seconds: 1.0,
            duration_seconds: Some(f64::from(seconds)),
            requests: None,
            timeout_seconds: 5.0,
            requests_per_connection: None,
            together: None,
            part: None,
            anatomy: false,
            perf_events: false,
            bulk: None,
        },
        summary: Summary {
            scheduled: samples,
            accounting: Accounting {
                ok: samples,
                outside_ok: 900,
                ..Accounting::default()
            },
            seconds: f64::from(seconds),
            rate,
            precision: Precision {
                rate_half_width: enough.then_some(rate / 60.0),
                rate_batches: enough.then_some(30),
                blocks: enough.then_some(30),
            },
            times: described,
        },
        cost: Cost {
            client_worker_cpu_seconds: vec![0.8, 0.7],
            client_cpu_us_per_request: (rate > 0.0).then_some(9.0 + callers as f64 / 300.0),
            server: (rate > 0.0).then(|| ServerDemand {
                cpu_seconds: 1.1,
                cpu_us_per_request: Some(11.0 - callers as f64 / 500.0),
                context_switches_per_request: Some(0.01),
                resident_bytes: Some(13_070_336),
                ..ServerDemand::default()
            }),
            ..Cost::default()
        },
        security: None,
        connect: BTreeMap::new(),
        bulk: None,
        probe: None,
        messages: None,
        held_back: None,
        anatomy: None,
        fairness: Fairness::of(
            (0..callers as u64)
                .map(|at| PerConnection {
                    requests: 1000 + at * 31 % 17,
                    mean: mean as f64,
                    ..PerConnection::default()
                })
                .collect(),
        ),
        path: path(callers as u64, mean),
        warnings: Vec::new(),
        intervals: intervals.collect(),
        histograms,
    }
}

/// Times with a tail, the same each time.
fn times(count: u64, typical: u64, seed: u64) -> Times {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut all = histogram();
    for _ in 0..count {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
        record(
            &mut all,
            (typical as f64 * (0.7 + 0.4 * share) * (1.0 - share).powf(-0.22)) as u64,
        );
    }
    Times::of(Counts::from(&all))
}

/// Returns the account of so many connections with this round-trip time, in nanoseconds.
fn path(connections: u64, rtt: u64) -> Option<PathAccount> {
    let reading = |number: u64| {
        let facts = [
            (PathFact::SmoothedRttNs, rtt),
            (PathFact::RetransmittedPackets, number % 3),
        ];
        (
            number,
            PathReading::of(facts.map(|(fact, value)| (fact, Some(value)))),
        )
    };
    PathAccount::between(&BTreeMap::new(), &(0..connections).map(reading).collect())
}
