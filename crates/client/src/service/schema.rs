//! Schemas of gRPC services: from the server itself, or from files.

use std::{fmt::Display, fs, path::PathBuf};

use netping_results::format::on_one_line;
use prost::Message;
use prost_reflect::{
    DescriptorPool,
    prost_types::{
        DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
        FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, OneofDescriptorProto,
        field_descriptor_proto::{Label, Type},
    },
};
use protox::Compiler;

use super::{data::unreadable, reflection};
use crate::{error::SchemaError, plan::Destination};

/// The result of what may find no schema.
pub(super) type Result<T, E = SchemaError> = std::result::Result<T, E>;

/// The place that the schema of a service comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// The server, by gRPC reflection.
    Server,
    /// Source files, with the folders in which they and their imports are.
    Sources {
        /// The files.
        files: Vec<PathBuf>,
        /// The folders; if there is none, those of the files.
        folders: Vec<PathBuf>,
    },
    /// A file with an encoded `FileDescriptorSet`, as `protoc --descriptor_set_out` writes it.
    Encoded(PathBuf),
}

impl Schema {
    /// Returns the types of the service with this name; `None`: those of all services, as far as
    /// they can be known.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn read(&self, destination: &Destination, service: Option<&str>) -> Result<DescriptorPool> {
        match self {
            Self::Server => {
                let files = reflection::read(destination, service)?;
                let origin = format!("what {} tells by reflection", destination.url);
                pool(files, origin)
            }
            Self::Sources { files, folders } => compile(files, folders),
            Self::Encoded(path) => {
                let bytes = fs::read(path).map_err(unreadable(path))?;
                let set = FileDescriptorSet::decode(&*bytes).map_err(|error| {
                    let path = path.display();
                    SchemaError::Invalid(format!(
                        "{path} is no FileDescriptorSet, as protoc --descriptor_set_out writes it: {error}"
                    ))
                })?;
                pool(set.file, path.display())
            }
        }
    }
}

fn compile(files: &[PathBuf], folders: &[PathBuf]) -> Result<DescriptorPool> {
    let mut folders = folders.to_vec();
    if folders.is_empty() {
        let own = files.iter().filter_map(|file| file.parent());
        folders.extend(own.map(|folder| match folder.as_os_str() {
            name if name.is_empty() => PathBuf::from("."),
            _ => folder.to_owned(),
        }));
    }
    for file in files {
        fs::metadata(file).map_err(unreadable(file))?;
    }
    // The library's short form of an error leaves out the place.
    let wrong = |error: protox::Error| {
        let mut text = format!("{error:?}");
        if text.contains("found 'edition'") {
            text.push_str("; editions are read from --protoset FILE, which protoc writes");
        }
        SchemaError::Invalid(text)
    };
    let mut compiler = Compiler::new(folders).map_err(wrong)?;
    compiler.open_files(files).map_err(wrong)?;
    Ok(compiler.descriptor_pool())
}

/// Returns the types that files from `origin` declare.
///
/// # Errors
/// [`SchemaError::Invalid`].
fn pool(mut files: Vec<FileDescriptorProto>, origin: impl Display) -> Result<DescriptorPool> {
    if let Some(name) = files.iter().find_map(wrong_name) {
        let name = on_one_line(&name);
        return Err(SchemaError::Invalid(format!(
            "{origin} has the name '{name}', and names are letters, digits and '_'"
        )));
    }
    files.iter_mut().for_each(without_edition);
    let mut pool = DescriptorPool::new();
    let added = pool.add_file_descriptor_protos(files);
    added.map_err(|error| SchemaError::Invalid(format!("{origin} is not whole: {error}")))?;
    Ok(pool)
}

/// Returns a name in a file that is no identifier of Protocol Buffers. Names are shown, also as parts of command
/// lines to paste.
fn wrong_name(file: &FileDescriptorProto) -> Option<String> {
    let mut names = vec![file.package()];
    for service in &file.service {
        names.push(service.name());
        names.extend(service.method.iter().map(MethodDescriptorProto::name));
    }
    let mut enums: Vec<&EnumDescriptorProto> = file.enum_type.iter().collect();
    let mut messages: Vec<&DescriptorProto> = file.message_type.iter().collect();
    names.extend(file.extension.iter().map(FieldDescriptorProto::name));
    while let Some(message) = messages.pop() {
        names.push(message.name());
        let fields = message.field.iter().chain(&message.extension);
        names.extend(fields.map(FieldDescriptorProto::name));
        names.extend(message.oneof_decl.iter().map(OneofDescriptorProto::name));
        enums.extend(&message.enum_type);
        messages.extend(&message.nested_type);
    }
    for own in enums {
        names.push(own.name());
        names.extend(own.value.iter().map(EnumValueDescriptorProto::name));
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    let wrong = names.into_iter().find(|name| !name.chars().all(is_part));
    wrong.map(str::to_owned)
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
                let options = field.options.get_or_insert_default();
                options.packed.get_or_insert(true);
            }
        }
        messages.extend(&mut message.nested_type);
    }
}

#[cfg(test)]
mod tests {
    use netping_protocol::FILE_DESCRIPTOR_SET;

    use super::*;

    #[test]
    fn names_are_identifiers_whatever_a_server_says() {
        let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        assert!(pool(set.file.clone(), "the test").is_ok());
        let hostile = "Say\nVALID: all is well";
        let renamed: [fn(&mut FileDescriptorProto, String); 3] = [
            |file, name| file.service[0].method[0].name = Some(name),
            |file, name| file.message_type[0].field[0].name = Some(name),
            |file, name| file.package = Some(name),
        ];
        for rename in renamed {
            let mut files = set.file.clone();
            rename(&mut files[0], hostile.to_owned());
            let error = pool(files, "the test").unwrap_err().to_string();
            let told = "the test has the name 'Say\u{fffd}VALID: all is well'";
            assert!(error.contains(told), "{error}");
        }
    }

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
