//! Values, differences, and what these show, as text.

use netping_results::{
    comparison::{Compared, Comparison, Finding, Standing},
    estimate::{Estimate, estimate},
    format::{plural, width},
    metric::{Metric, Reading, Scale, Unit},
    run::{Measurement, StepSettings},
    time_unit::TimeUnit,
};

use crate::{distinct, table::Column};

/// The largest change, as a share, that is shown as a number: what is beyond it says only that
/// there are too few trials.
pub const MOST_CHANGE: f64 = 99.0;

/// Stands instead of what a comparison shows where connections may be all that differs.
const UNEQUAL: &str = "connections differ";

/// Stands instead of what a comparison shows where one of its measurements is not valid.
const NO_CLAIM: &str = "no claim: not valid";

/// Stands with every claim about a run that is not valid.
pub const NOT_RELIED_ON: &str = "not to be relied on";

/// Returns a text, `-` where there is none.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// A metric in a column of a table: all of its times have one unit, which is in the title.
#[derive(Debug, Clone, Copy)]
pub struct MetricColumn {
    metric: &'static Metric,
    reading: Reading,
}

impl MetricColumn {
    /// Returns the column of a metric over these measurements.
    pub fn of<'m, 'a: 'm>(
        metric: &'static Metric,
        all: impl IntoIterator<Item = &'m Measurement<'a>>,
    ) -> Self {
        let values = all.into_iter().filter_map(|own| estimate(metric, own));
        let reading = metric.reading(values.map(|own| own.value));
        Self { metric, reading }
    }

    /// Returns its title.
    pub fn title(&self) -> String {
        self.metric.title_in(self.reading)
    }

    /// Returns the column without cells.
    pub fn column(&self) -> Column {
        Column::number("").titled(self.title())
    }

    /// Returns the value of a measurement.
    pub fn cell(&self, measurement: &Measurement<'_>) -> String {
        value(self.reading, estimate(self.metric, measurement))
    }

    /// Returns the value of a measurement, with its interval in brackets where it has one.
    pub fn cell_with_interval(&self, measurement: &Measurement<'_>) -> String {
        with_interval(self.reading, estimate(self.metric, measurement))
    }

    /// Returns the unit of times; `None` for a metric that is no time.
    pub fn times(&self) -> Option<TimeUnit> {
        self.reading.times()
    }
}

/// Returns the form in which these values of a metric and their intervals read together.
pub fn reading_of(
    metric: &Metric,
    estimates: impl IntoIterator<Item = Option<Estimate>>,
) -> Reading {
    let values = estimates.into_iter().flatten().map(|own| own.value);
    metric.reading(values)
}

/// Returns an estimate without its unit: `>1,234` for a lower bound, `-` where there is none.
pub fn value(reading: Reading, estimate: Option<Estimate>) -> String {
    let is_bound = estimate.is_some_and(|own| own.is_bound);
    let sign = if is_bound { ">" } else { "" };
    sign.to_owned() + &reading.cell(estimate.map(|own| own.value))
}

/// Returns the [`value`] of a metric that is no time, for a measurement.
pub fn value_of(metric: &'static Metric, measurement: &Measurement<'_>) -> String {
    MetricColumn::of(metric, [measurement]).cell(measurement)
}

/// Returns the value of a metric for a measurement with the unit of a time, as a sentence has it.
pub fn value_in_words(metric: &'static Metric, measurement: &Measurement<'_>) -> String {
    let column = MetricColumn::of(metric, [measurement]);
    let unit = column.times().map(|unit| format!(" {}", unit.name()));
    column.cell(measurement) + &unit.unwrap_or_default()
}

/// The part of failed requests in response times.
pub const FAILED_TIMES: &str = "those without a reply in time count in the times as lower bounds, those that failed otherwise do not";

/// Returns the 95 % interval of a value, `-` where there is none.
pub fn interval(reading: Reading, estimate: Option<Estimate>) -> String {
    let ends = estimate.and_then(|own| own.interval);
    or_dash(ends.map(|ends| range(ends, |end| reading.show(end))))
}

/// Returns the value of a metric, times in microseconds, with its interval in brackets where it has one.
pub fn value_with_interval(metric: &Metric, estimate: Option<Estimate>) -> String {
    with_interval(metric.unit.reading_in(TimeUnit::Micros), estimate)
}

fn with_interval(reading: Reading, estimate: Option<Estimate>) -> String {
    let shown = value(reading, estimate);
    match estimate.and_then(|own| own.interval) {
        None => shown,
        Some(_) => format!("{shown} ({})", interval(reading, estimate)),
    }
}

/// Returns the ends of an interval, each as `show` has it.
pub fn range([low, high]: [f64; 2], show: impl Fn(f64) -> String) -> String {
    format!("{}..{}", show(low), show(high))
}

/// Returns a change of a metric: in per cent, of a share in percentage points, and of anything else that may be 0 in its
/// unit.
pub fn percent(metric: &Metric, change: f64) -> String {
    match metric.scale {
        Scale::Linear if metric.unit == Unit::Share => format!("{:+.3} pp", change * 100.0),
        Scale::Linear => {
            let sign = if change < 0.0 { '-' } else { '+' };
            format!("{sign}{}", metric.unit.tell(change.abs()))
        }
        Scale::Logarithmic => at_most(change, MOST_CHANGE, |share| {
            let digits = usize::from(share < MOST_CHANGE);
            format!("{:+.digits$}%", share * 100.0)
        }),
    }
}

/// Returns a number as `show` has it; of one beyond `most`, that bound after `>`.
pub fn at_most(number: f64, most: f64, show: impl Fn(f64) -> String) -> String {
    if number > most {
        format!(">{}", show(most))
    } else {
        show(number)
    }
}

/// Returns the largest time, in nanoseconds, that is shown as a number where a comparison adds it.
pub fn most_added(comparison: &Comparison) -> f64 {
    let base = comparison.base.map(|own| own.value);
    base.map_or(f64::INFINITY, |base| base * MOST_CHANGE)
}

/// Returns false where one of a comparison's measurements is not valid: its difference is not told.
pub fn claims(comparison: &Comparison) -> bool {
    comparison.standing != Standing::NotValid
}

/// Returns the time that a comparison adds and its interval, both as `show` has them; `None` where a
/// value is missing, and where nothing is claimed.
pub fn added(
    comparison: &Comparison,
    show: impl Fn(f64) -> String,
) -> Option<(String, Option<String>)> {
    let (added, ends) = comparison.added().filter(|_| claims(comparison))?;
    let most = most_added(comparison);
    let shown = |time: f64| at_most(time, most, &show);
    Some((shown(added), ends.map(|ends| range(ends, shown))))
}

/// Returns the unit in which the times read together that these comparisons add.
pub fn unit_of_added<'a>(all: impl IntoIterator<Item = &'a Comparison>) -> TimeUnit {
    let added = all.into_iter().filter(|own| claims(own));
    TimeUnit::of(added.filter_map(|own| Some(own.added()?.0)))
}

/// Says which time one side adds to another's `whole`, with its interval; `None` where a value is
/// missing.
pub fn added_in_words(comparison: &Comparison, whole: &str) -> Option<String> {
    let in_brackets =
        |ends: Option<String>| ends.map_or_else(String::new, |own| format!(" ({own})"));
    if comparison.is_shown() == Some(false) {
        let (_, ends) = comparison.added().filter(|_| claims(comparison))?;
        let unit = TimeUnit::of(ends.into_iter().flatten());
        let (_, ends) = added(comparison, |time| unit.signed(time))?;
        let ends = in_brackets(ends.map(|ends| format!("{ends} {}", unit.name())));
        return Some(format!("shows no difference in {whole}{ends}"));
    }
    let most = most_added(comparison);
    let (added, ends) = comparison.added().filter(|_| claims(comparison))?;
    let unit = TimeUnit::of([added]);
    let shown = |time: f64| at_most(time, most, |time| unit.show(time.abs()));
    let (does, to, ends) = if added < 0.0 {
        ("saves", "of", ends.map(|[low, high]| [high, low]))
    } else {
        ("adds", "to", ends)
    };
    let ends = in_brackets(ends.map(|ends| range(ends, shown)));
    let (added, unit) = (shown(added), unit.name());
    Some(format!("{does} {added} {unit}{ends} {to} {whole}"))
}

/// Returns the change that a comparison found; `-` where a value is missing, and where nothing is claimed.
pub fn change(comparison: &Comparison) -> String {
    let shown = |change| percent(comparison.metric, change);
    let change = comparison.change.filter(|_| claims(comparison));
    or_dash(change.map(shown))
}

/// Returns the interval of a change; nothing where there is no error bar, and where nothing is claimed.
pub fn change_interval(comparison: &Comparison) -> String {
    let shown = |ends| range(ends, |end| percent(comparison.metric, end));
    let interval = comparison.interval.filter(|_| claims(comparison));
    interval.map(shown).unwrap_or_default()
}

/// Returns a change with its interval, and what it shows; empty cells where nothing was compared.
pub fn change_cells(comparison: Option<&Comparison>) -> [String; 3] {
    comparison.map_or_else(Default::default, |own| {
        [change(own), change_interval(own), shown(own)]
    })
}

/// Returns the comparison of a measurement with its base.
pub fn pair_of<'a, 'run>(
    compared: &'a [Compared<'run>],
    measurement: &Measurement<'_>,
) -> Option<&'a Compared<'run>> {
    let mut pairs = compared.iter();
    pairs.find(|pair| pair.new.number == measurement.number)
}

/// Returns the names and loads of both sides, the new one's first; with their connections where these
/// are all that may differ.
pub fn sides(pair: &Compared<'_>) -> [String; 2] {
    let is_alike = pair.new.has_connections_like(&pair.base);
    [&pair.new, &pair.base].map(|side| {
        let name = side.short_name();
        if is_alike {
            return name;
        }
        format!("{name} on {}", connections(side.settings()))
    })
}

/// Returns the number of connections in words.
pub fn connections(settings: &StepSettings) -> String {
    plural(settings.connections as u64, "connection")
}

/// Returns true where a comparison's times do not describe all requests.
pub fn has_failures(pair: &Compared<'_>) -> bool {
    pair.base.unserved() + pair.new.unserved() > 0
}

/// Returns what a comparison shows; where that is no difference, the smallest one that could have
/// been. Nothing for metrics on which no claim is made.
pub fn shown(comparison: &Comparison) -> String {
    let claim = match comparison.finding() {
        Some(Finding::Better) => directed("better", comparison),
        Some(Finding::Worse) => directed("worse", comparison),
        Some(Finding::Equivalent) => "equivalent".to_owned(),
        Some(Finding::NoDifference) => not_shown(comparison),
        Some(Finding::Unequal) => return UNEQUAL.to_owned(),
        Some(Finding::NotValid) => return NO_CLAIM.to_owned(),
        None if comparison.metric.is_claimed() && comparison.change.is_some() => {
            return "no error bar".to_owned();
        }
        None => return String::new(),
    };
    if comparison.standing == Standing::Sound {
        claim
    } else {
        format!("{claim}, {NOT_RELIED_ON}")
    }
}

/// Returns the direction of a difference that is shown.
fn directed(word: &str, comparison: &Comparison) -> String {
    if comparison.is_equivalent {
        format!("{word}, but equivalent")
    } else {
        word.to_owned()
    }
}

/// Returns a sentence that claims something, with a mark where it is not to be relied on.
pub fn marked(sentence: String, is_valid: bool) -> String {
    if is_valid {
        sentence
    } else {
        format!("Not to be relied on: {sentence}")
    }
}

/// Returns a sentence about the differences of these pairs, as their runs allow: where one of their
/// measurements is not valid, that nothing is claimed of `names`, and why.
pub fn claim(names: &str, pairs: &[&Compared<'_>], sentence: Option<String>) -> Option<String> {
    let warnings = pairs.iter().flat_map(|pair| &pair.invalidating);
    let warnings = distinct(warnings.copied());
    if !warnings.is_empty() {
        let warnings = warnings.join(", ");
        return Some(format!(
            "{names}: no claim, since windows were not valid ({warnings})."
        ));
    }
    let mut standings = pairs.iter().map(|pair| pair.standing());
    let is_valid = standings.all(|own| own == Standing::Sound);
    Some(marked(sentence?, is_valid))
}

fn not_shown(comparison: &Comparison) -> String {
    let ends = comparison.interval;
    let why = match comparison.detectable {
        _ if ends.is_some_and(|[low, high]| low > 0.0 || high < 0.0) => {
            " (no more than the control)".to_owned()
        }
        None => String::new(),
        Some(share) => format!(" (could have seen {})", width(share)),
    };
    format!("no difference shown{why}")
}

/// Says that the intervals of all claims hold together.
pub fn hold_together(claims: usize) -> String {
    match claims {
        1 => "its interval holds with a probability of 95 %".to_owned(),
        _ => format!("with a probability of 95 %, all {claims} intervals of this run hold"),
    }
}

/// Names a measurement and the metrics whose value is not from all of its trials; `None` where all
/// are.
pub fn missing(metrics: &[&'static Metric], measurement: &Measurement<'_>) -> Option<String> {
    let all = measurement.trials.len();
    let from = |metric: &&'static Metric| {
        let own = estimate(metric, measurement)?;
        (own.missing > 0 && all > 1).then(|| format!("{} from {}", metric.name, own.trials))
    };
    let found: Vec<String> = metrics.iter().filter_map(from).collect();
    (!found.is_empty()).then(|| {
        format!(
            "{}: not from all {all} trials, since some lack a value or were cut short: {}",
            measurement.name(),
            found.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures,
        metric::{ERROR_SHARE, P50, RATE},
    };

    use super::*;

    fn comparison(metric: &'static Metric, change: f64, interval: [f64; 2]) -> Comparison {
        Comparison {
            detectable: Some(0.123),
            ..fixtures::comparison(metric, change, Some(interval))
        }
    }

    #[test]
    fn what_may_be_0_changes_in_its_unit_and_a_share_in_percentage_points() {
        assert_eq!(
            percent(&netping_results::metric::ERROR_SHARE, -0.002),
            "-0.200 pp"
        );
        assert_eq!(percent(&netping_results::metric::RETRANSMITS, 7.0), "+7");
        assert_eq!(
            percent(&netping_results::metric::PROBE_ADDED_P50, -2e6),
            "-2.00 ms"
        );
    }

    #[test]
    fn a_change_beyond_all_measure_is_no_long_number() {
        let ends = |high| change_interval(&comparison(&RATE, 0.0, [-0.5, high]));
        assert_eq!(ends(0.25), "-50.0%..+25.0%");
        assert_eq!(ends(3.3e24), "-50.0%..>+9900%");
        assert_eq!(
            change(&comparison(&ERROR_SHARE, 0.0025, [0.0, 0.1])),
            "+0.250 pp"
        );
    }

    #[test]
    fn what_is_shown_has_its_direction() {
        let (rate, time) = (
            comparison(&RATE, 0.2, [0.1, 0.3]),
            comparison(&P50, 0.2, [0.1, 0.3]),
        );
        assert_eq!((&*shown(&rate), &*shown(&time)), ("better", "worse"));
        let equivalent = Comparison {
            is_equivalent: true,
            ..time
        };
        assert_eq!(shown(&equivalent), "worse, but equivalent");
        let unequal = Comparison {
            is_alike: false,
            interval: None,
            ..rate
        };
        assert_eq!(shown(&unequal), "connections differ");
    }

    #[test]
    fn what_is_not_valid_claims_nothing_and_what_stands_beside_it_is_marked() {
        let of = |standing| Comparison {
            standing,
            ..comparison(&P50, 0.2, [0.1, 0.3])
        };
        let doubtful = of(Standing::Doubtful);
        assert_eq!(shown(&doubtful), "worse, not to be relied on");
        assert_eq!(change(&doubtful), "+20.0%");
        let not_valid = of(Standing::NotValid);
        let cells = ["-", "", "no claim: not valid"].map(str::to_owned);
        assert_eq!(change_cells(Some(&not_valid)), cells);
        let show = |time: f64| TimeUnit::Micros.show(time);
        assert_eq!(added(&not_valid, show), None);
        assert_eq!(added_in_words(&not_valid, "the median"), None);
        assert!(added(&doubtful, show).is_some());
    }

    #[test]
    fn small_differences_are_equivalent_or_noise_where_that_is_asked() {
        let none = comparison(&P50, 0.01, [-0.1, 0.12]);
        assert_eq!(shown(&none), "no difference shown (could have seen 12.3%)");
        let equivalent = Comparison {
            is_equivalent: true,
            ..none
        };
        assert_eq!(shown(&equivalent), "equivalent");
        let noise = Comparison {
            noise: Some(-0.2),
            ..comparison(&P50, 0.2, [0.1, 0.3])
        };
        assert_eq!(
            shown(&noise),
            "no difference shown (no more than the control)"
        );
        let unknown = Comparison {
            interval: None,
            ..none
        };
        assert_eq!(shown(&unknown), "no error bar");
    }
}
