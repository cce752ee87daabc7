//! The views of a run: tables, pages and exports.

pub mod ab;
pub mod balance;
pub mod bars;
pub mod export;
mod fields;
pub mod finding;
pub mod ladder;
pub mod loads;
pub mod page;
mod proof;
pub mod table;
pub mod text;
pub mod verdict;
pub mod words;

/// Returns values in their order, each once.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Returns values by their keys, in the order of the keys' first.
pub(crate) fn grouped<K: PartialEq, V>(values: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in values {
        match groups.iter_mut().find(|(own, _)| *own == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
