//! The differences between two runs' environments and settings.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// A setting, or a property of a machine, that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentDiff {
    /// Its name in the result file.
    pub what: String,
    /// Its value in the base.
    pub base: String,
    /// Its value in the new run.
    pub new: String,
    /// Number of steps concerned; 0: the whole run.
    pub steps: usize,
}

impl EnvironmentDiff {
    /// Adds it to `to`, counting its steps where the same difference is there.
    pub fn add(self, to: &mut Vec<Self>) {
        let same = |other: &&mut Self| {
            (&other.what, &other.base, &other.new) == (&self.what, &self.base, &self.new)
        };
        match to.iter_mut().find(same) {
            Some(other) => other.steps += self.steps,
            None => to.push(self),
        }
    }
}

/// Returns the values, by their names in a result file, that differ between two values of one type.
pub fn diff<T: Serialize>(base: &T, new: &T, steps: usize) -> Vec<EnvironmentDiff> {
    let (base, new) = (leaves(base), leaves(new));
    let names: BTreeSet<&String> = base.keys().chain(new.keys()).collect();
    let text = |of: &BTreeMap<String, String>, name: &String| {
        of.get(name).map_or("unknown", String::as_str).to_owned()
    };
    let all = names.into_iter().map(|name| EnvironmentDiff {
        what: name.clone(),
        base: text(&base, name),
        new: text(&new, name),
        steps,
    });
    all.filter(|own| own.base != own.new).collect()
}

/// Returns the values within `of`, by their own names without those around them.
fn leaves<T: Serialize>(of: &T) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    // Every part of a result file can be written as JSON.
    collect("", serde_json::to_value(of).unwrap_or_default(), &mut found);
    found
}

fn collect(name: &str, value: Value, found: &mut BTreeMap<String, String>) {
    let text = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(&name, value, found);
            }
            return;
        }
        Value::Null if name.is_empty() => return,
        Value::Null => "none".to_owned(),
        Value::String(text) => text,
        Value::Number(number) if number.is_f64() => decimal(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    };
    found.insert(name.to_owned(), text);
}

/// Returns a number with at most six decimals: the settings' seconds are not finer.
fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::run;

    #[test]
    fn differences_are_named_at_any_depth() {
        let (base, mut new) = (run(Vec::new()).environment, run(Vec::new()).environment);
        assert!(diff(&base, &new, 0).is_empty());
        new.cpus = 4;
        new.system.clear();
        let found = diff(&base, &new, 0);
        let shown: Vec<_> = found
            .iter()
            .map(|diff| (diff.what.as_str(), diff.base.as_str(), diff.new.as_str()))
            .collect();
        assert_eq!(
            shown,
            [("cpus", "2", "4"), ("governor", "performance", "unknown")]
        );
    }

    #[test]
    fn the_same_difference_of_several_steps_is_listed_once() {
        let mut found = Vec::new();
        for _ in 0..3 {
            EnvironmentDiff {
                what: "workers".to_owned(),
                base: "1".to_owned(),
                new: "2".to_owned(),
                steps: 1,
            }
            .add(&mut found);
        }
        assert_eq!((found.len(), found[0].steps), (1, 3));
    }
}
