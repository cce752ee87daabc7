//! Descriptions of a server as text: its methods, and the messages they take and return.

use std::{collections::BTreeMap, fmt::Write};

use netping_results::format::on_one_line;
use prost_reflect::{
    Cardinality, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    SerializeOptions,
};

use super::{method::named, schema::Schema};
use crate::{error::SchemaError, plan::Destination};

/// Returns a line for each method whose path begins with the one in the destination's URL.
///
/// # Errors
/// [`SchemaError`].
pub fn list(schema: &Schema, destination: &Destination) -> Result<String, SchemaError> {
    let methods = named(schema, destination)?;
    let lines = methods.iter().map(|method| signature(method) + "\n");
    Ok(lines.collect())
}

/// Returns the paths of all methods that a server tells by reflection, but for those about the server itself.
///
/// # Errors
/// [`SchemaError`].
pub fn paths(destination: &Destination) -> Result<Vec<String>, SchemaError> {
    let methods = named(&Schema::Server, destination)?;
    let paths = methods.iter().map(path);
    Ok(paths.filter(|path| !path.starts_with("grpc.")).collect())
}

/// Returns the methods whose path begins with the one in the destination's URL, with all their
/// messages and an example of data for each.
///
/// # Errors
/// [`SchemaError`].
pub fn describe(schema: &Schema, destination: &Destination) -> Result<String, SchemaError> {
    let server = format!(
        "{}://{}",
        destination.url.scheme.as_str(),
        destination.url.authority()
    );
    let mut text = String::new();
    let mut types = Types::default();
    for method in named(schema, destination)? {
        let (signature, path, example) =
            (signature(&method), path(&method), example(&method.input()));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{signature}\n  netping throughput '{server}/{path}' --data '{example}'\n"
        );
        types.add(&method.input());
        types.add(&method.output());
    }
    Ok(text + &types.text())
}

fn path(method: &MethodDescriptor) -> String {
    format!("{}/{}", method.parent_service().full_name(), method.name())
}

fn signature(method: &MethodDescriptor) -> String {
    let of = |streams, message: &MessageDescriptor| {
        let stream = if streams { "stream " } else { "" };
        format!("{stream}{}", message.full_name())
    };
    format!(
        "{} ({}) returns ({})",
        path(method),
        of(method.is_client_streaming(), &method.input()),
        of(method.is_server_streaming(), &method.output())
    )
}

/// Returns a message with all fields at their defaults, as JSON.
fn example(message: &MessageDescriptor) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let options = SerializeOptions::new().skip_default_fields(false);
    let empty = DynamicMessage::new(message.clone());
    match empty.serialize_with_options(&mut serializer, &options) {
        // It stands in single quotes of a shell.
        Ok(()) => on_one_line(&String::from_utf8_lossy(&bytes)).replace('\'', "\\u0027"),
        Err(_) => "{}".to_owned(),
    }
}

/// Messages and enums, by their names.
#[derive(Default)]
struct Types(BTreeMap<String, String>);

impl Types {
    /// Adds a message and all types that it has in it.
    fn add(&mut self, message: &MessageDescriptor) {
        let name = message.full_name();
        if self.0.contains_key(name) {
            return;
        }
        let fields = message
            .fields()
            .map(|field| format!("  {};\n", declaration(&field)));
        let text = format!("message {name} {{\n{}}}\n", fields.collect::<String>());
        self.0.insert(name.to_owned(), text);
        for field in message.fields() {
            self.add_kind(&field.kind());
        }
    }

    fn add_kind(&mut self, kind: &Kind) {
        match kind {
            Kind::Message(entry) if entry.is_map_entry() => {
                self.add_kind(&entry.map_entry_value_field().kind());
            }
            Kind::Message(message) => self.add(message),
            Kind::Enum(kind) => {
                let values = kind.values();
                let values =
                    values.map(|value| format!("  {} = {};\n", value.name(), value.number()));
                let (name, values) = (kind.full_name(), values.collect::<String>());
                let text = format!("enum {name} {{\n{values}}}\n");
                self.0.insert(name.to_owned(), text);
            }
            _ => {}
        }
    }

    fn text(self) -> String {
        self.0.into_values().collect::<Vec<_>>().join("\n")
    }
}

fn declaration(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        Kind::Message(entry) if entry.is_map_entry() => {
            let [key, value] = [entry.map_entry_key_field(), entry.map_entry_value_field()];
            format!("map<{:?}, {:?}>", key.kind(), value.kind())
        }
        kind if field.cardinality() == Cardinality::Repeated => format!("repeated {kind:?}"),
        kind => format!("{kind:?}"),
    };
    format!("{kind} {} = {}", field.name(), field.number())
}

#[cfg(test)]
mod tests {
    use netping_protocol::FILE_DESCRIPTOR_SET;
    use prost_reflect::DescriptorPool;

    use super::*;

    #[test]
    fn a_method_has_its_signature_an_example_and_its_types() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let service = pool.get_service_by_name("grpc_bench.DataService").unwrap();
        let method = service.methods().next().unwrap();
        assert_eq!(
            signature(&method),
            "grpc_bench.DataService/GiveMeData (grpc_bench.DataRequest) returns (stream \
             grpc_bench.DataResponse)"
        );
        assert_eq!(
            example(&method.input()),
            "{\"totalBytes\":\"0\",\"chunkBytes\":0}"
        );
        let mut types = Types::default();
        types.add(&method.input());
        assert_eq!(
            types.text(),
            "message grpc_bench.DataRequest {\n  uint64 total_bytes = 1;\n  uint32 chunk_bytes = \
             2;\n}\n"
        );
    }
}
