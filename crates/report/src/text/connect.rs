//! The times of opening connections: a row for each part of it.

use netping_measure::{connect::ConnectPhase, distribution::Distribution};
use netping_results::{
    format::{self, thousands},
    metric::{self, Metric},
    run::Step,
};

use crate::table::{Column, Table};

/// The metrics of each phase, with how easily a narrow terminal does without them.
const SHOWN: [(&Metric, u8); 8] = [
    (&metric::MIN, 1),
    (&metric::P50, 0),
    (&metric::P90, 2),
    (&metric::P99, 0),
    (&metric::P999, 0),
    (&metric::MAX, 0),
    (&metric::MEAN, 3),
    (&metric::SD, 4),
];

/// Returns a table with a row for each part of opening a connection.
pub(super) fn text(step: &Step) -> String {
    let phases = ConnectPhase::ALL.into_iter();
    let phases: Vec<(ConnectPhase, &Distribution)> = phases
        .filter_map(|phase| Some((phase, &step.connect.get(&phase)?.time)))
        .collect();
    let readings = SHOWN.map(|(metric, _)| {
        metric.reading(phases.iter().filter_map(|(_, time)| metric.of_times(time)))
    });
    let numbers = SHOWN.into_iter().zip(readings);
    let numbers = numbers.map(|((metric, spare), reading)| {
        Column::number("")
            .titled(metric.title_in(reading))
            .spare(spare)
    });
    let columns: Vec<Column> = [Column::text("part")].into_iter().chain(numbers).collect();
    let row = |(phase, time): &(ConnectPhase, &Distribution)| {
        let cells = SHOWN.iter().zip(readings);
        let cells = cells.map(|((metric, _), reading)| metric.cell_of_times(time, reading));
        [phase.name().to_owned()].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = phases.iter().map(row).collect();
    let total = step.connect.get(&ConnectPhase::Total);
    format!(
        "{}  {} connections, {} at a time, {}/s, CPU time per connection: client {}, server {}\n{}",
        step.full_name(),
        thousands(total.map_or(0, |total| total.time.count) as f64),
        step.settings.callers,
        format::rate(step.summary.rate),
        metric::CLIENT_CPU.tell_step(step),
        metric::SERVER_CPU.tell_step(step),
        Table::whole(&columns, &rows)
    )
}

#[cfg(test)]
mod tests {
    use netping_measure::connect::PhaseTimes;
    use netping_results::{connect, fixtures};

    use super::*;

    #[test]
    fn the_times_of_a_part_begin_with_its_shortest() {
        let mut times = PhaseTimes::default();
        times.record(ConnectPhase::Tcp, 1_500);
        for _ in 0..100 {
            times.record(ConnectPhase::Tcp, 2_000);
        }
        let step = Step {
            connect: connect::phases(&times),
            ..fixtures::step(1, |_| vec![1000])
        };
        let text = text(&step);
        let words = |line: usize| text.lines().nth(line).unwrap().split_ascii_whitespace();
        assert_eq!(
            words(1).take(5).collect::<Vec<_>>(),
            ["part", "min", "us", "p50", "us"]
        );
        let row: Vec<_> = words(2).take(4).collect();
        assert_eq!(row, ["TCP", "connect", "1.50", "2.00"]);
    }
}
