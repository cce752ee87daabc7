//! A scenario file as it is written: its parts, its variables, and the places of mistakes.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::{args::choice::Named, error::usage};

/// The place of a mistake in the text, in bytes, and the reason.
pub(super) type Mistake = (usize, String);

/// A table of keys and values, each with its place.
pub(super) type Keys = BTreeMap<String, Spanned<Value>>;

/// The parts of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    variables: BTreeMap<String, Value>,
    pub defaults: Option<Defaults>,
    #[serde(default, rename = "step")]
    pub steps: Vec<Spanned<Keys>>,
    #[serde(default)]
    pub published: Vec<Spanned<PublishedTable>>,
}

/// Flags that the steps share.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    pub flags: Spanned<String>,
}

/// A table of published numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedTable {
    pub source: String,
    /// Keys of every row that does not have them.
    #[serde(default)]
    pub all: Keys,
    pub rows: Vec<Spanned<Keys>>,
}

/// The values of variables, by their names.
#[derive(Debug)]
pub(super) struct Variables(BTreeMap<String, String>);

/// Reads a file; a mistake in it is told with its line.
pub(super) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Mistake>,
) -> anyhow::Result<T> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    parse(&text).map_err(|(at, reason)| usage(format!("{name}:{}: {reason}", line_of(&text, at))))
}

impl File {
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or_default().start;
            (at, error.message().to_owned())
        })
    }

    /// Returns the values of the variables, replaced by those that are given.
    pub fn variables(&self, given: &[Named<String>]) -> Result<Variables, Mistake> {
        let own = self.variables.iter();
        let own = own.map(|(name, value)| (name.clone(), text_of(value)));
        let mut variables = Variables(own.collect());
        for Named { name, value } in given {
            match variables.0.get_mut(name) {
                Some(own) => own.clone_from(value),
                None => return Err((0, variables.has_no(name))),
            }
        }
        Ok(variables)
    }
}

impl Variables {
    /// Replaces each `${name}` in a text by the variable's value.
    pub fn expand(&self, text: &str) -> Result<String, String> {
        if self.0.is_empty() {
            return Ok(text.to_owned());
        }
        let mut parts = text.split("${");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, after) = part
                .split_once('}')
                .ok_or_else(|| format!("'${{' without '}}' in '{text}'"))?;
            whole += self.0.get(name).ok_or_else(|| self.has_no(name))?;
            whole += after;
        }
        Ok(whole)
    }

    fn has_no(&self, name: &str) -> String {
        let known: Vec<&String> = self.0.keys().collect();
        format!("[variables] has no '{name}', only {known:?}")
    }
}

/// Returns a value as text: a string without quotes.
pub(super) fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn wrong<T>(at: &Spanned<T>, reason: impl Into<String>) -> Mistake {
    (at.span().start, reason.into())
}

/// Returns the line of a place in a text, from 1 on.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    before.split(|byte| *byte == b'\n').count()
}
