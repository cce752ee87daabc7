//! The variables of a scenario: `${name}` in a text stands for a value of the table `[variables]`,
//! or for another that the command line gives.

use std::{borrow::Cow, collections::BTreeMap};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{VARIABLES, Wrong, scalar, wrong};

/// The values of variables, by their names.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Reads the table, and replaces its values by those that are given.
    pub fn read(table: &DeTable<'_>, given: &[(String, String)]) -> Result<Self, Wrong> {
        let mut values = BTreeMap::new();
        for (name, value) in table {
            let text = scalar(value.get_ref())
                .map_err(|reason| wrong(value, &format!("{}: {reason}", name.get_ref())))?;
            values.insert(name.get_ref().to_string(), text);
        }
        let mut variables = Self(values);
        for (name, value) in given {
            match variables.0.get_mut(name) {
                Some(own) => own.clone_from(value),
                None => return Err(variables.unknown(name)),
            }
        }
        Ok(variables)
    }

    /// Replaces the variables in all texts of a value.
    pub fn put_into(&self, value: &mut Spanned<DeValue<'_>>) -> Result<(), Wrong> {
        let at = value.span();
        match value.get_mut() {
            DeValue::String(text) => {
                let new = self.expand(text).map_err(|reason| Wrong { at, reason })?;
                *text = Cow::Owned(new);
                Ok(())
            }
            DeValue::Array(all) => all.iter_mut().try_for_each(|value| self.put_into(value)),
            DeValue::Table(all) => {
                let mut values = all.iter_mut().map(|(_, value)| value);
                values.try_for_each(|value| self.put_into(value))
            }
            _ => Ok(()),
        }
    }

    fn expand(&self, text: &str) -> Result<String, String> {
        let (mut whole, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("'${{' without '}}' in '{text}'"))?;
            let value = self.0.get(name).ok_or_else(|| self.unknown(name).reason)?;
            whole.push_str(before);
            whole.push_str(value);
            rest = after;
        }
        whole.push_str(rest);
        Ok(whole)
    }

    fn unknown(&self, name: &str) -> Wrong {
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let known = if known.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", known.join(", "))
        };
        Wrong {
            at: 0..0,
            reason: format!("[{VARIABLES}] has no '{name}'; {known}"),
        }
    }
}
