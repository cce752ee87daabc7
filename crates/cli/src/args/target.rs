//! Targets in flags and arguments: URLs, each perhaps with a name of the user's choice.

use std::{collections::BTreeSet, str::FromStr};

use netping_client::plan::Plan;
use netping_protocol::target::Target;

use crate::error::usage;

/// A server to measure, and its name in results: `URL` or `NAME=URL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTarget {
    /// Its name, if the user gave one; never empty.
    pub name: Option<String>,
    /// Its URL.
    pub url: Target,
}

impl FromStr for NamedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A query has '=' too, but comes after the scheme.
        let parts = text
            .split_once('=')
            .filter(|(name, _)| !name.contains([':', '/']));
        let (name, url) = match parts {
            None => (None, text),
            Some((name, url)) => (
                Some(checked_name(name, "a target", "new=http://HOST/")?),
                url,
            ),
        };
        let url = url.parse::<Target>().map_err(|error| error.to_string())?;
        Ok(Self { name, url })
    }
}

/// Returns a name that a user gives to something, as in the example, without the spaces around it.
pub fn checked_name(name: &str, what: &str, example: &str) -> Result<String, String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._ -".contains(letter);
    let name = name.trim();
    if name.is_empty() || !name.chars().all(is_part) {
        return Err(format!(
            "'{name}' is no name for {what}: use letters, digits, '.', '_', '-' and spaces, as in {example}"
        ));
    }
    Ok(name.to_owned())
}

/// Reads a target that must have a name.
pub fn with_name(text: &str) -> Result<NamedTarget, String> {
    let target: NamedTarget = text.parse()?;
    match &target.name {
        Some(_) => Ok(target),
        None => Err(format!("the name is missing; write NAME={text}")),
    }
}

/// Returns the URLs of targets.
pub fn urls<'a>(targets: impl IntoIterator<Item = &'a NamedTarget>) -> Vec<Target> {
    targets.into_iter().map(|own| own.url.clone()).collect()
}

/// Fails if two targets have one name.
pub fn check_names<'a>(targets: impl IntoIterator<Item = &'a NamedTarget>) -> anyhow::Result<()> {
    let mut known = BTreeSet::new();
    let mut names = targets.into_iter().filter_map(|own| own.name.as_deref());
    match names.find(|name| !known.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(usage(format!(
            "two targets have the name '{name}': give each its own"
        ))),
    }
}

/// Gives the plans of targets, in the same order, their names.
pub fn name<'a>(plans: &mut [Plan], targets: impl IntoIterator<Item = &'a NamedTarget>) {
    for (plan, target) in plans.iter_mut().zip(targets) {
        plan.target.label.clone_from(&target.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_url_and_a_query_has_none() {
        let read = |text: &str| {
            let target: NamedTarget = text.parse().unwrap();
            (target.name, target.url.to_string())
        };
        let named = |name: &str, url: &str| (Some(name.to_owned()), url.to_owned());
        assert_eq!(read("tcp://h:1"), (None, "tcp://h:1".to_owned()));
        assert_eq!(read("a.b_c-1=tcp://h:1"), named("a.b_c-1", "tcp://h:1"));
        assert_eq!(
            read("new build=http://h/"),
            named("new build", "http://h:80/")
        );
        assert_eq!(read("http://h/?a=b"), (None, "http://h:80/?a=b".to_owned()));
        assert_eq!(read("q=http://h/?a=b"), named("q", "http://h:80/?a=b"));
        for wrong in [
            "=tcp://h",
            " =tcp://h",
            "a,b=tcp://h",
            "\u{1b}[1m=tcp://h",
            "a=b=tcp://h",
        ] {
            assert!(wrong.parse::<NamedTarget>().is_err(), "{wrong}");
        }
        assert!(with_name("tcp://h").unwrap_err().contains("NAME=tcp://h"));
    }

    #[test]
    fn two_targets_cannot_have_one_name() {
        let read = |text: &str| text.parse::<NamedTarget>().unwrap();
        let all = ["a=tcp://h:1", "b=tcp://h:1", "tcp://h:1", "tcp://h:1"].map(read);
        assert!(check_names(&all).is_ok());
        assert!(check_names(&[read("a=tcp://h:1"), read("a=tcp://h:2")]).is_err());
    }
}
