//! A log of HdrHistogram, as `HistogramLogProcessor`, HistogramLogAnalyzer and Python's hdrh read
//! it: for each step a line for each kind of time, over the whole step. Histograms are of
//! nanoseconds, longest times are shown in milliseconds.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};
use netping_measure::{counts::Counts, times::Time};
use netping_results::run::{Run, Step};

use super::{Rendered, failed};

/// Longest times are divided by this, as the format does by default: nanoseconds
/// become milliseconds.
const DIVISOR: f64 = 1e6;

/// One file: each step lies where its window was. Where a file does not say when that began, it
/// lies after the step before it and its own warm-up.
pub(super) fn render(runs: &[Run]) -> Rendered {
    let starts: Vec<SystemTime> = runs.iter().map(started).collect();
    let first = starts.iter().min().copied();
    let base = first.unwrap_or(SystemTime::UNIX_EPOCH);
    let mut content = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("[netping: a line for each step and kind of time, in ns; longest times in ms]")
        .with_start_time(base)
        .with_base_time(base)
        .with_max_value_divisor(DIVISOR)
        .begin_log_with(&mut content, &mut serializer)
        .map_err(failed)?;
    let mut order: Vec<(&Run, &SystemTime)> = runs.iter().zip(&starts).collect();
    // Readers want the lines in the order of time.
    order.sort_by_key(|(_, start)| *start);
    for (run, start) in order {
        let mut at = start.duration_since(base).unwrap_or_default();
        for step in &run.steps {
            at += seconds(step.settings.warmup_seconds);
            let began = step
                .window_started_at
                .map(|began| SystemTime::UNIX_EPOCH + Duration::from_nanos(began));
            // Where the clock was set back meanwhile, the order counts.
            if let Some(began) = began.and_then(|began| began.duration_since(base).ok()) {
                at = at.max(began);
            }
            let length = seconds(step.summary.seconds);
            for (name, times) in times_of(step) {
                let tag = tag(step, name);
                log.write_histogram(&times.to_histogram(), at, length, Tag::new(&tag))
                    .map_err(failed)?;
            }
            at += length;
        }
    }
    Ok(content)
}

/// Returns a step's times by their names: of a bulk stream, that of its transfer. A closed loop's
/// response time is its service time, and its lag is 0 and left out.
fn times_of(step: &Step) -> Vec<(&'static str, Counts)> {
    if let Some(stream) = &step.bulk {
        let nanoseconds = (stream.seconds * 1e9) as u64;
        return vec![("transfer_time", vec![(nanoseconds, 1)].into())];
    }
    let is_open = step.settings.planned_rate.is_some();
    let kinds = [Time::Service, Time::Response, Time::Lag, Time::Failed].into_iter();
    kinds
        .filter(|kind| is_open || *kind != Time::Lag)
        .map(|kind| (kind.name(), step.histograms.times[kind].clone()))
        .filter(|(_, times)| !times.is_empty())
        .collect()
}

/// Returns a line's tag: the target or its label, callers and connections, and the kind of time.
/// Commas and white space have a meaning in the format.
fn tag(step: &Step, time: &str) -> String {
    let settings = &step.settings;
    let rate = settings.planned_rate.map(|rate| format!(";rate={rate}"));
    let tag = format!(
        "{};callers={};connections={}{};{}",
        step.name(),
        settings.callers,
        settings.connections,
        rate.unwrap_or_default(),
        time
    );
    tag.replace(
        |own: char| own == ',' || own.is_whitespace() || own.is_control(),
        "_",
    )
}

/// When a run began; the epoch where that cannot be read.
fn started(run: &Run) -> SystemTime {
    humantime::parse_rfc3339(&run.started_at).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::{super::fixture, *};

    /// Each line's tag, start and length in milliseconds, longest time, and histogram.
    type Line = (String, u128, u128, f64, Counts);

    fn read(log: &[u8]) -> (Vec<Duration>, Vec<Line>) {
        let (mut headers, mut lines) = (Vec::new(), Vec::new());
        for entry in IntervalLogIterator::new(log) {
            match entry.unwrap() {
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => headers.push(time),
                LogEntry::Interval(line) => lines.push((
                    line.tag().unwrap().as_str().to_owned(),
                    line.start_timestamp().as_millis(),
                    line.duration().as_millis(),
                    line.max(),
                    Counts::try_from(line.encoded_histogram().to_owned()).unwrap(),
                )),
            }
        }
        (headers, lines)
    }

    #[test]
    fn a_log_is_read_back_as_it_was_measured() {
        let times: Vec<u64> = (1..=5000).map(|number| number * 997).collect();
        let mut run = fixture::run(vec![
            fixture::step("tcp://h:1", 1, &times),
            fixture::step("tcp://h:1", 4, &[5]),
        ]);
        run.steps[1].label = Some(fixture::HOSTILE.to_owned());
        let (headers, lines) = read(&render(std::slice::from_ref(&run)).unwrap());
        assert_eq!(headers, [Duration::from_secs(1_767_323_045); 2]);
        let [first, response, second, _] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(first.0, "tcp://h:1;callers=1;connections=1;service_time");
        assert_eq!((first.1, first.2), (500, 1000));
        assert!((first.3 - 4.985).abs() < 0.01, "{}", first.3);
        assert_eq!(first.4, run.steps[0].histograms.times[Time::Response]);
        assert_eq!(
            (response.0.as_str(), &response.4),
            ("tcp://h:1;callers=1;connections=1;response_time", &first.4)
        );
        // Half a second of warm-up, one of measuring, and the next warm-up.
        assert_eq!((second.1, second.4.len()), (2000, 1));
        assert!(
            !second.0.contains([',', ' ', '\n'])
                && second.0.ends_with(";callers=4;connections=4;service_time"),
            "{}",
            second.0
        );
    }

    #[test]
    fn a_step_lies_where_it_was_measured() {
        let mut step = fixture::step("tcp://h:1", 1, &[5]);
        step.window_started_at = Some(1_767_323_052_000_000_000);
        let (headers, lines) = read(&render(&[fixture::run(vec![step])]).unwrap());
        // Seven seconds after the run's beginning, not after half a second of warm-up.
        assert_eq!((headers[0].as_secs(), lines[0].1), (1_767_323_045, 7000));
    }

    #[test]
    fn runs_lie_in_the_order_of_time() {
        let early = fixture::run(vec![fixture::step("tcp://h:1", 1, &[5])]);
        let mut late = fixture::run(vec![fixture::step("tcp://h:2", 1, &[5])]);
        late.started_at = "2026-01-02T03:05:05Z".to_owned();
        let (_, lines) = read(&render(&[late, early]).unwrap());
        let order: Vec<_> = lines.iter().map(|line| (&line.0[..9], line.1)).collect();
        assert_eq!(
            order,
            [
                ("tcp://h:1", 500),
                ("tcp://h:1", 500),
                ("tcp://h:2", 60_500),
                ("tcp://h:2", 60_500)
            ]
        );
    }

    #[test]
    fn a_bulk_stream_has_the_time_of_its_transfer() {
        let steps = netping_results::fixtures::bulk("tcp://h:1", &[2.0]);
        let (_, lines) = read(&render(&[fixture::run(steps)]).unwrap());
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(line.0.ends_with(";transfer_time"), "{}", line.0);
        assert!((line.3 - 2000.0).abs() < 2.0, "{}", line.3);
    }

    #[test]
    fn an_open_loop_has_all_its_times() {
        let mut step = fixture::step("tcp://h:1", 1, &[5]);
        step.settings.planned_rate = Some(1000.0);
        let (_, lines) = read(&render(&[fixture::run(vec![step])]).unwrap());
        let kinds: Vec<_> = lines
            .iter()
            .map(|line| line.0.rsplit(';').next().unwrap())
            .collect();
        assert_eq!(kinds, ["service_time", "response_time", "lag"]);
        assert!(lines[0].0.contains(";rate=1000;"));
    }
}
