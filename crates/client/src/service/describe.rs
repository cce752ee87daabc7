//! Descriptions of a server as text: its methods, and the messages they take and return.

use std::{collections::BTreeMap, fmt::Write};

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, SerializeOptions, ServiceDescriptor,
};

use super::{method, schema::Schema};
use crate::{error::SchemaError, plan::Destination};

/// Returns a line for each method whose path begins with the one in the destination's URL.
///
/// # Errors
/// [`SchemaError`].
pub fn list(schema: &Schema, destination: &Destination) -> Result<String, SchemaError> {
    let service = method::parts(&destination.url).0;
    let pool = schema.read(destination, Some(service).filter(|name| !name.is_empty()))?;
    let methods = chosen(&pool, destination)?.into_iter();
    let lines = methods.map(|method| format!("{}\n", signature(&method)));
    Ok(lines.collect())
}

/// Returns the methods whose path begins with the one in the destination's URL.
fn chosen(
    pool: &DescriptorPool,
    destination: &Destination,
) -> Result<Vec<MethodDescriptor>, SchemaError> {
    let target = &destination.url;
    let (service, name) = method::parts(target);
    let chosen: Vec<_> = methods(pool)
        .filter(|method| service.is_empty() || method.parent_service().full_name() == service)
        .filter(|method| name.is_empty() || method.name() == name)
        .collect();
    if chosen.is_empty() {
        let known = methods(pool).map(|method| path(&method));
        return Err(SchemaError::Unknown {
            target: target.to_string(),
            name: target.path.trim_start_matches('/').to_owned(),
            known: known.collect::<Vec<_>>().join(", "),
        });
    }
    Ok(chosen)
}

/// Returns the methods whose path begins with the one in the destination's URL, with all their
/// messages and an example of data for each.
///
/// # Errors
/// [`SchemaError`].
pub fn describe(schema: &Schema, destination: &Destination) -> Result<String, SchemaError> {
    let target = &destination.url;
    let (service, _) = method::parts(target);
    let pool = schema.read(destination, Some(service).filter(|name| !name.is_empty()))?;
    let mut text = String::new();
    let mut types = Types::default();
    for method in chosen(&pool, destination)? {
        let example = example(&method.input());
        let authority = target.authority();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}\n  netping throughput '{}://{authority}/{}' --data '{example}'\n",
            signature(&method),
            target.scheme.as_str(),
            path(&method)
        );
        types.add(&method.input());
        types.add(&method.output());
    }
    text.push_str(&types.text());
    Ok(text)
}

fn methods(pool: &DescriptorPool) -> impl Iterator<Item = MethodDescriptor> {
    let services: Vec<ServiceDescriptor> = pool.services().collect();
    services
        .into_iter()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
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
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
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
            match field.kind() {
                Kind::Message(inner) if inner.is_map_entry() => {
                    match inner.map_entry_value_field().kind() {
                        Kind::Message(value) => self.add(&value),
                        Kind::Enum(value) => self.add_enum(&value),
                        _ => {}
                    }
                }
                Kind::Message(inner) => self.add(&inner),
                Kind::Enum(inner) => self.add_enum(&inner),
                _ => {}
            }
        }
    }

    fn add_enum(&mut self, kind: &EnumDescriptor) {
        let values = kind.values();
        let values = values.map(|value| format!("  {} = {};\n", value.name(), value.number()));
        let text = format!(
            "enum {} {{\n{}}}\n",
            kind.full_name(),
            values.collect::<String>()
        );
        self.0.insert(kind.full_name().to_owned(), text);
    }

    fn text(self) -> String {
        self.0.into_values().collect::<Vec<_>>().join("\n")
    }
}

fn declaration(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        Kind::Message(entry) if entry.is_map_entry() => {
            let [key, value] = [entry.map_entry_key_field(), entry.map_entry_value_field()];
            format!(
                "map<{}, {}>",
                kind_name(&key.kind()),
                kind_name(&value.kind())
            )
        }
        kind if field.cardinality() == Cardinality::Repeated => {
            format!("repeated {}", kind_name(&kind))
        }
        kind => kind_name(&kind),
    };
    format!("{kind} {} = {}", field.name(), field.number())
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(kind) => kind.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use netping_protocol::FILE_DESCRIPTOR_SET;

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
