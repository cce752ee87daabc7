//! Parts of a result file as names and values.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Objects whose fields are known by their own names.
const WELL_KNOWN: [&str; 2] = ["bulk", "system"];

/// Returns the fields of a part of a result file. Those of a nested object are listed with them, by its name and theirs,
/// such as `part_callers` beside `callers`; those of [`WELL_KNOWN`] ones by theirs.
pub(crate) fn fields(part: &impl Serialize) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let Ok(Value::Object(fields)) = serde_json::to_value(part) else {
        return found;
    };
    for (name, value) in fields {
        match value {
            Value::Object(inner) if WELL_KNOWN.contains(&&*name) => found.extend(inner),
            Value::Object(inner) => {
                let inner = inner.into_iter();
                found.extend(inner.map(|(field, value)| (format!("{name}_{field}"), value)));
            }
            value => found.extend([(name, value)]),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nested_field_has_the_name_of_its_object_unless_that_is_well_known() {
        let part = json!({
            "callers": 4,
            "part": {"callers": 8},
            "system": {"clock_source": "tsc"},
            "bulk": {"size_bytes": 5},
        });
        let expected = json!({
            "callers": 4,
            "part_callers": 8,
            "clock_source": "tsc",
            "size_bytes": 5,
        });
        assert_eq!(serde_json::to_value(fields(&part)).unwrap(), expected);
    }
}
