//! The quantiles that make the curve of a whole distribution.

use netping_measure::times::Time;

use super::{Better, Metric, Scale, Source, Unit};

/// Declares the quantiles of the response time, and the same ones of the service time.
macro_rules! curves {
    ($($name:literal $percent:literal),*) => {
        /// Quantiles of the response time. Those that the registry has too are the same metrics.
        pub static CURVE: &[&Metric] = &[$(&quantile(concat!("p", $name), Time::Response, $percent)),*];
        /// Quantiles of the service time.
        pub static SERVICE_CURVE: &[&Metric] =
            &[$(&quantile(concat!("service-p", $name), Time::Service, $percent)),*];
    };
}

const fn quantile(name: &'static str, time: Time, percent: f64) -> Metric {
    Metric {
        name,
        title: name,
        label: name,
        about: "Quantile of a time",
        key: name,
        unit: Unit::Nanos,
        better: Better::Lower,
        scale: Scale::Logarithmic,
        source: Source::Histogram(time, percent),
    }
}

curves! {
    "1" 1.0, "2.5" 2.5, "5" 5.0, "10" 10.0, "15" 15.0, "20" 20.0, "25" 25.0,
    "30" 30.0, "35" 35.0, "40" 40.0, "45" 45.0, "50" 50.0, "55" 55.0, "60" 60.0,
    "65" 65.0, "70" 70.0, "75" 75.0, "80" 80.0, "85" 85.0, "90" 90.0, "92.5" 92.5,
    "95" 95.0, "97.5" 97.5, "98" 98.0, "99" 99.0, "99.5" 99.5, "99.8" 99.8, "99.9" 99.9,
    "99.95" 99.95, "99.98" 99.98, "99.99" 99.99, "99.995" 99.995, "99.999" 99.999
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures, metric};

    #[test]
    fn a_quantile_of_the_curve_is_that_of_the_registry() {
        let step = fixtures::step(4, |second| {
            (0..5000).map(|at| 10_000 + at * at + second * 77).collect()
        });
        for known in [&metric::P50, &metric::P99, &metric::P999] {
            let own = CURVE.iter().find(|own| **own == known).unwrap();
            assert_eq!(own.of_step(&step), known.of_step(&step), "{}", known.name);
            assert!(own.of_step(&step).is_some());
        }
        // Too few samples lie beyond it.
        let last = CURVE.last().unwrap();
        assert_eq!(last.of_step(&step), None);
        assert_eq!(CURVE.len(), SERVICE_CURVE.len());
    }
}
