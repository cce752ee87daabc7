//! The times of opening connections: a row for each part of it.

use netping_measure::{connect::ConnectPhase, distribution::Distribution};
use netping_results::{
    format::thousands,
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
    let rows: Vec<_> = ConnectPhase::ALL
        .into_iter()
        .filter_map(|phase| Some(row(phase, &step.connect.get(&phase)?.time)))
        .collect();
    let opened = step
        .connect
        .get(&ConnectPhase::Total)
        .map_or(0, |total| total.time.count);
    let cpu = |metric: &Metric| metric.cell_of_step(step);
    let numbers = SHOWN.map(|(metric, spare)| Column::number(metric.name).spare(spare));
    let columns: Vec<Column> = [Column::text("us")].into_iter().chain(numbers).collect();
    format!(
        "{}  {} connections, {} at a time, {}/s, CPU us per connection: client {}, server {}\n{}",
        step.target,
        thousands(opened as f64),
        step.settings.callers,
        thousands(step.summary.rate),
        cpu(&metric::CLIENT_CPU),
        cpu(&metric::SERVER_CPU),
        Table::whole(&columns, &rows)
    )
}

fn row(phase: ConnectPhase, time: &Distribution) -> Vec<String> {
    let values = SHOWN.map(|(metric, _)| metric.cell_of_times(time));
    [phase.name().to_owned()]
        .into_iter()
        .chain(values)
        .collect()
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
        assert_eq!(words(1).take(3).collect::<Vec<_>>(), ["us", "min", "p50"]);
        let row: Vec<_> = words(2).take(4).collect();
        assert_eq!(row, ["TCP", "connect", "1.50", "2.00"]);
    }
}
