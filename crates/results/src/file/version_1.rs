//! The result file of version 1, rewritten in the form of today.

use serde_json::{Map, Value};

use super::time_of_day;

type Object = Map<String, Value>;

/// Rewrites a file of version 1. What is not of its form stays as it is, and is rejected when it is
/// read.
pub fn upgrade(file: &mut Value) {
    each(file, "steps", step);
    each(file, "bulk", bulk);
    each(file, "overheads", |overhead| {
        rename(overhead, "planned_rate", "planned_rate_per_s");
    });
    each(file, "parts", |part| {
        each_of(part, "steps", |step| rename(step, "rate", "rate_per_s"));
    });
}

fn step(step: &mut Object) {
    let began = step.get("window_started_at").and_then(Value::as_u64);
    if let Some(began) = began {
        step.insert(
            "window_started_at".to_owned(),
            time_of_day::text(began).into(),
        );
    }
    if let Some(settings) = object(step, "settings") {
        rename(settings, "planned_rate", "planned_rate_per_s");
    }
    warnings(step);
    each_of(step, "intervals", |second| {
        for name in [
            "service_p50",
            "service_p99",
            "service_max",
            "response_p50",
            "response_p99",
            "response_max",
        ] {
            rename(second, name, &format!("{name}_ns"));
        }
    });
    if let Some(fairness) = object(step, "fairness") {
        each_of(fairness, "connections", |own| {
            rename(own, "mean", "mean_ns");
        });
    }
    if let Some(connect) = object(step, "connect") {
        for phase in connect.values_mut().filter_map(Value::as_object_mut) {
            if let Some(time) = object(phase, "time") {
                distribution(time);
            }
        }
    }
    summary(step);
}

/// The numbers of the summary stand beside those of the step.
fn summary(step: &mut Object) {
    let Some(Value::Object(mut summary)) = step.remove("summary") else {
        return;
    };
    rename(&mut summary, "seconds", "window_seconds");
    rename(&mut summary, "rate", "rate_per_s");
    for name in [
        "service_time",
        "response_time",
        "lag",
        "no_caller_free",
        "client_late",
        "failed_time",
    ] {
        if let Some(times) = object(&mut summary, name) {
            distribution(times);
        }
    }
    if let Some(Value::Object(mut precision)) = summary.remove("precision") {
        if let Some(times) = object(&mut summary, "response_time") {
            for name in ["p50", "p99"] {
                times.extend(
                    precision
                        .remove(name)
                        .map(|ends| (format!("{name}_interval_ns"), ends)),
                );
            }
        }
        rename(&mut precision, "rate_half_width", "rate_half_width_per_s");
        rename(&mut precision, "blocks", "interval_blocks");
        summary.append(&mut precision);
    }
    step.append(&mut summary);
}

fn distribution(times: &mut Object) {
    for name in ["min", "max", "mean", "sd", "trimmed_mean"] {
        rename(times, name, &format!("{name}_ns"));
    }
    if let Some(Value::Object(quantiles)) = times.remove("quantiles") {
        let named = |(name, value): (String, Value)| (name.replace('.', "_") + "_ns", value);
        times.extend(quantiles.into_iter().map(named));
    }
}

fn bulk(bulk: &mut Object) {
    warnings(bulk);
    if let Some(summary) = object(bulk, "summary") {
        rename(summary, "sd", "sd_gib_per_second");
    }
}

/// Renames the warnings and their fields.
fn warnings(result: &mut Object) {
    rename(result, "doubts", "warnings");
    each_of(result, "warnings", |warning| {
        rename(warning, "kind", "name");
        for (old, new) in [
            ("late_p99", "late_p99_ns"),
            ("response_p99", "response_p99_ns"),
            ("wait_p99", "wait_p99_ns"),
            ("lag_p50", "lag_p50_ns"),
            ("from", "from_seconds"),
            ("to", "to_seconds"),
            ("at", "at_seconds"),
            ("since", "since_seconds"),
            ("low_p50", "low_p50_ns"),
            ("high_p50", "high_p50_ns"),
        ] {
            rename(warning, old, new);
        }
    });
}

fn each(file: &mut Value, name: &str, change: impl FnMut(&mut Object)) {
    if let Some(file) = file.as_object_mut() {
        each_of(file, name, change);
    }
}

fn each_of(parent: &mut Object, name: &str, change: impl FnMut(&mut Object)) {
    let children = parent.get_mut(name).and_then(Value::as_array_mut);
    let objects = children
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut);
    objects.for_each(change);
}

fn object<'a>(parent: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    parent.get_mut(name)?.as_object_mut()
}

fn rename(parent: &mut Object, old: &str, new: &str) {
    if let Some(value) = parent.remove(old) {
        parent.insert(new.to_owned(), value);
    }
}
