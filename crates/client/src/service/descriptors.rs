//! The descriptors of a schema, as the library takes them.

use prost_reflect::{
    DescriptorPool,
    prost_types::{
        DescriptorProto, FileDescriptorProto,
        field_descriptor_proto::{Label, Type},
    },
};

use crate::error::SchemaError;

/// Returns the types that files declare.
///
/// # Errors
/// [`SchemaError::Descriptors`].
pub(super) fn pool(
    mut files: Vec<FileDescriptorProto>,
    origin: &str,
) -> Result<DescriptorPool, SchemaError> {
    files.iter_mut().for_each(without_edition);
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files)
        .map_err(|reason| SchemaError::Descriptors {
            origin: origin.to_owned(),
            reason,
        })?;
    Ok(pool)
}

/// Rewrites a file of an edition of Protocol Buffers as the library knows it: with fields that are
/// present or not as in proto2, and packed numbers as in proto3. These are the defaults of edition
/// 2023; what a schema chooses otherwise is ignored.
fn without_edition(file: &mut FileDescriptorProto) {
    if file.syntax() != "editions" {
        return;
    }
    file.syntax = Some("proto2".to_owned());
    let mut messages: Vec<&mut DescriptorProto> = file.message_type.iter_mut().collect();
    while let Some(message) = messages.pop() {
        for field in &mut message.field {
            let packs = !matches!(
                field.r#type(),
                Type::String | Type::Bytes | Type::Message | Type::Group
            );
            if packs && field.label() == Label::Repeated {
                field
                    .options
                    .get_or_insert_default()
                    .packed
                    .get_or_insert(true);
            }
        }
        messages.extend(&mut message.nested_type);
    }
}

#[cfg(test)]
mod tests {
    use netping_protocol::FILE_DESCRIPTOR_SET;
    use prost::Message;
    use prost_reflect::prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn a_schema_of_an_edition_has_fields_with_presence_and_packed_numbers() {
        let mut set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        for file in &mut set.file {
            file.syntax = Some("editions".to_owned());
            for field in file
                .message_type
                .iter_mut()
                .flat_map(|message| &mut message.field)
            {
                if field.name() == "response_bytes" {
                    field.set_label(Label::Repeated);
                }
            }
        }
        let pool = pool(set.file, "the test").unwrap();
        let request = pool.get_message_by_name("echopb.EchoRequest").unwrap();
        assert!(
            request
                .get_field_by_name("input")
                .unwrap()
                .supports_presence()
        );
        assert!(
            request
                .get_field_by_name("response_bytes")
                .unwrap()
                .is_packed()
        );
    }
}
