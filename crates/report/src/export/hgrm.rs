//! The response times of each step as the text that HdrHistogram's `outputPercentileDistribution` writes and its
//! plotters read, in milliseconds. A file takes one distribution.

use super::{ExportError, Rendered, text};
use netping_measure::histogram::Histogram;
use netping_results::run::{Run, Step};

/// Lines for each halving of the distance to 100 %, as HdrHistogram has them unless told otherwise.
const TICKS: u32 = 5;

/// How the last line of a file begins, and of no other tool's.
const MARK: &str = "#[netping: ";

/// Nanoseconds in a millisecond.
const UNIT: f64 = 1e6;

/// A file for each step; one without samples where there is no step yet.
pub(super) fn render(runs: &[Run]) -> Rendered {
    let steps = runs.iter().flat_map(|run| &run.steps);
    let mut files = steps.map(file).collect::<Result<Vec<_>, _>>()?;
    if files.is_empty() {
        files.push(Vec::new());
    }
    Ok(files)
}

/// Whether a file's content is that of a step.
pub(super) fn is_own(content: &[u8]) -> bool {
    let lines = content.strip_suffix(b"\n").unwrap_or(content);
    lines
        .rsplit(|byte| *byte == b'\n')
        .next()
        .is_some_and(|last| last.starts_with(MARK.as_bytes()))
}

fn file(step: &Step) -> Result<Vec<u8>, ExportError> {
    let histogram = step.histograms.response_time.to_histogram();
    let mut lines = distribution(&histogram);
    // At the end: readers take the first line for the titles.
    let rate = step
        .settings
        .planned_rate
        .map_or_else(String::new, |rate| format!(", {rate} requests/s planned"));
    let name = step
        .label
        .as_ref()
        .unwrap_or(&step.target)
        .replace(char::is_whitespace, " ");
    let (callers, connections, trial) =
        (step.settings.callers, step.settings.connections, step.trial);
    lines.push(format!(
        "{MARK}response time in ms, {name}, {callers} callers, {connections} connections{rate}, trial {trial}]"
    ));
    Ok(text(&lines))
}

/// The format is that of Java's `AbstractHistogram.outputPercentileDistribution`; values have six digits after the
/// point, the last of which are nanoseconds.
fn distribution(histogram: &Histogram) -> Vec<String> {
    let title = format!(
        "{:>12} {:>14} {:>10} {:>14}",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut lines = vec![title, String::new()];
    let mut total = 0;
    for step in histogram.iter_quantiles(TICKS) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (
            step.value_iterated_to() as f64 / UNIT,
            step.quantile_iterated_to(),
        );
        lines.push(if quantile < 1.0 {
            format!(
                "{value:12.6} {quantile:14.12} {total:10} {:14.2}",
                1.0 / (1.0 - quantile)
            )
        } else {
            format!("{value:12.6} {quantile:14.12} {total:10}")
        });
    }
    let sub_buckets = (2 * 10_u64.pow(u32::from(histogram.sigfig()))).next_power_of_two();
    let (mean, sd) = (histogram.mean() / UNIT, histogram.stdev() / UNIT);
    lines.push(format!(
        "#[Mean    = {mean:12.6}, StdDeviation   = {sd:12.6}]"
    ));
    lines.push(format!(
        "#[Max     = {:12.6}, Total count    = {:12}]",
        histogram.max() as f64 / UNIT,
        histogram.len()
    ));
    lines.push(format!(
        "#[Buckets = {:12}, SubBuckets     = {sub_buckets:12}]",
        histogram.buckets()
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::{super::fixture, *};

    fn of(times: &[u64]) -> Vec<String> {
        let files = render(&[fixture::run(vec![fixture::step("tcp://h:1", 1, times)])]).unwrap();
        String::from_utf8(files[0].clone())
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_last_line_of_values_is_the_longest_time_and_has_all_samples() {
        let times: Vec<u64> = (1..=1000).map(|number| number * 1000).collect();
        let lines = of(&times);
        let titles: Vec<_> = lines[0].split_whitespace().collect();
        assert_eq!(
            titles,
            ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
        );
        assert_eq!(lines[1], "");
        let values: Vec<Vec<f64>> = lines[2..]
            .iter()
            .take_while(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|number| number.parse().unwrap())
                    .collect()
            })
            .collect();
        assert!(
            values
                .windows(2)
                .all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1])
        );
        // Every line but the last has the fourth number, which plotters draw by.
        let (last, others) = values.split_last().unwrap();
        assert!(others.iter().all(|line| line.len() == 4) && last.len() == 3);
        assert!((last[0] - 1.0).abs() <= 0.001, "{last:?}");
        assert!(
            (last[1] - 1.0).abs() < 1e-12 && (last[2] - 1000.0).abs() < 0.1,
            "{last:?}"
        );
        let median = values.iter().find(|line| line[1] >= 0.5).unwrap();
        assert!(
            (median[0] - 0.5).abs() <= 0.001 && (median[3] - 2.0).abs() < 0.01,
            "{median:?}"
        );
    }

    #[test]
    fn what_describes_it_stands_at_the_end() {
        let lines = of(&[2_000_000, 4_000_000]);
        let end = &lines[lines.len() - 4..];
        assert!(end[0].starts_with("#[Mean    =     3.00"), "{}", end[0]);
        assert!(
            end[1].ends_with("Total count    =            2]"),
            "{}",
            end[1]
        );
        assert!(
            end[2].starts_with("#[Buckets = ")
                && end[2].ends_with("SubBuckets     =         2048]"),
            "{}",
            end[2]
        );
        assert!(
            end[3].contains("tcp://h:1, 1 callers, 1 connections, trial 1"),
            "{}",
            end[3]
        );
    }

    #[test]
    fn a_label_stays_on_its_line() {
        let mut step = fixture::step("tcp://h:1", 1, &[1000]);
        step.label = Some(fixture::HOSTILE.to_owned());
        let files = render(&[fixture::run(vec![step])]).unwrap();
        let text = String::from_utf8(files[0].clone()).unwrap();
        assert!(text.lines().last().unwrap().starts_with(MARK), "{text}");
    }
}
