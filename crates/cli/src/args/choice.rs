//! Values of flags that are names or have one, and flags that concern no target.

use std::{fmt::Display, str::FromStr};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use netping_protocol::target::Target;

use crate::error::usage;

/// Returns a reader of one of these names, each with what it stands for.
pub fn one_of<T: Clone + Send + Sync + 'static>(
    choices: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(choices.iter().map(|(name, _)| *name));
    names.try_map(|given| {
        let choice = choices.iter().find(|(name, _)| *name == given);
        choice.map(|(_, value)| value.clone()).ok_or("unknown")
    })
}

/// A value with a name: `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<T> {
    /// The name; never empty.
    pub name: String,
    /// The value.
    pub value: T,
}

impl<T: FromStr<Err: Display>> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let both = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = both.ok_or("the name is missing; write NAME=, such as haproxy=")?;
        let value = value.parse::<T>().map_err(|error| error.to_string())?;
        let name = name.to_owned();
        Ok(Self { name, value })
    }
}

/// Rejects flags that are given though no target is `kind`: their user expects what does not happen.
pub fn reject_unused(
    targets: &[Target],
    kind: &str,
    is_one: impl Fn(&Target) -> bool,
    flags: &[(&str, bool)],
) -> anyhow::Result<()> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) if !targets.iter().any(is_one) => {
            Err(usage(format!("{flag} is for {kind}, and no target is one")))
        }
        _ => Ok(()),
    }
}
