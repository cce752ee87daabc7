//! The JSON schema of scenario files, for editors.

use clap::Command;
use serde_json::{Value, json};

use super::{COMMAND, COMMANDS, DEFAULTS, STEPS, VARIABLES, key_of, takes_values};
use crate::args::help;

/// Returns the JSON schema of scenario files.
pub fn schema() -> Value {
    let definition = help::command();
    let mut steps = vec![step_schema(&definition, None)];
    let commands = COMMANDS
        .iter()
        .filter_map(|name| definition.find_subcommand(name));
    steps.extend(commands.map(|command| step_schema(command, Some(command.get_name()))));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario file of netping",
        "type": "object",
        "properties": {
            STEPS: { "type": "array", "minItems": 1, "items": { "anyOf": steps } },
            DEFAULTS: { "type": "object", "description": "Keys of all steps that have them, and do not set them or one that excludes them." },
            VARIABLES: {
                "type": "object",
                "description": "Values that ${name} stands for in texts; --set name=value gives another.",
                "additionalProperties": { "type": ["string", "number"] },
            },
        },
        "required": [STEPS],
        "additionalProperties": false,
    })
}

fn step_schema(command: &Command, name: Option<&str>) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    if let Some(name) = name {
        properties.insert(COMMAND.to_owned(), json!({ "const": name }));
        required.push(COMMAND.to_owned());
    }
    for arg in command.get_arguments() {
        let Some(key) = key_of(arg).filter(|_| !arg.is_hide_set()) else {
            continue;
        };
        let one = json!({ "type": ["string", "number"] });
        let mut schema = if takes_values(arg) {
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        } else {
            json!({ "type": "boolean" })
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        schema["description"] = json!(help);
        properties.insert(key.to_owned(), schema);
        if arg.is_required_set() {
            required.push(key.to_owned());
        }
    }
    json!({
        "type": "object",
        "description": command.get_about().map(ToString::to_string),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    use super::*;

    #[test]
    fn the_committed_schema_is_that_of_the_flags() {
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema/scenario.schema.json");
        if env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap() == text,
            "{} differs from the flags: UPDATE_SCHEMA=1 cargo test -p netping-client --lib scenario",
            path.display()
        );
    }
}
