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
mod partial;
mod path;
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

/// Returns a command line as a shell would take it.
pub(crate) fn in_shell(words: &[String]) -> String {
    let line = shlex::try_join(words.iter().map(String::as_str));
    // Only a byte that no command line has cannot be quoted.
    line.unwrap_or_else(|_| words.join(" "))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["netping", "tcp://h:1", "p99>2ms", "it's", ""].map(str::to_owned);
        assert_eq!(in_shell(&words), r#"netping tcp://h:1 'p99>2ms' "it's" ''"#);
    }
}
