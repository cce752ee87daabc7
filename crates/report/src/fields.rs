//! Parts of a result file as names and values.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Returns the fields of a part of a result file. Those of a nested object are listed with them, with its name before
/// theirs; those of bulk streams, which a step's own settings leave out, without.
pub(crate) fn fields(part: &impl Serialize) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let Ok(Value::Object(fields)) = serde_json::to_value(part) else {
        return found;
    };
    for (name, value) in fields {
        match value {
            Value::Object(inner) if name == "bulk" => found.extend(inner),
            Value::Object(inner) => {
                let inner = inner.into_iter();
                found.extend(inner.map(|(field, value)| (format!("{name}_{field}"), value)));
            }
            value => found.extend([(name, value)]),
        }
    }
    found
}
