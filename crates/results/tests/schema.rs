//! Holds the committed schema of result files to the types.

use std::{env, fs, path::Path};

use netping_results::file::form::ResultFile;
use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    // Descriptions of a newer netping's fields are in its own schema.
    let settings = settings.with_transform(RecursiveTransform(|schema: &mut Schema| {
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
    }));
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<ResultFile<'_>>();
    schema.insert("title".to_owned(), json!("A result file of netping"));
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/run.schema.json");
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(
        committed == serde_json::from_str::<Value>(&text).unwrap(),
        "{} differs from the types: UPDATE_SCHEMA=1 cargo test -p netping-results --test schema",
        path.display()
    );
}
