//! Parts of a result file as names and values.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Returns the fields of a part of a result file; those of a nested object are listed with them.
pub(crate) fn fields(part: &impl Serialize) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let Ok(Value::Object(fields)) = serde_json::to_value(part) else {
        return found;
    };
    for (name, value) in fields {
        match value {
            Value::Object(inner) => found.extend(inner),
            value => found.extend([(name, value)]),
        }
    }
    found
}
