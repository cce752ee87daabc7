//! The contents that replies have to have.

use std::{fs, path::Path};

use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage, Value};
use serde::de::DeserializeSeed;

use super::data::{DataError, Result, unreadable};

/// Returns the check of bodies that have to be the same as the contents of a file.
///
/// # Errors
/// [`DataError::File`].
pub fn expected_body(path: &Path) -> Result<Check> {
    Ok(Check::Body(fs::read(path).map_err(unreadable(path))?))
}

/// The check of a reply's body or message.
#[derive(Debug, Clone, Default)]
pub enum Check {
    /// A body is as long as that of the first good reply; a message is well-formed.
    #[default]
    Form,
    /// A body may be of any length; a message is well-formed.
    Any,
    /// A body is the same.
    Body(Vec<u8>),
    /// A message has the same fields.
    Fields(ExpectedFields),
}

impl Check {
    /// Returns true if contents are compared.
    pub fn has_contents(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Fields(_))
    }

    /// Compares the contents of a body or message.
    ///
    /// # Errors
    /// A description of the first difference.
    pub fn compare(&self, contents: &[u8]) -> Result<(), String> {
        match self {
            Self::Form | Self::Any => Ok(()),
            Self::Body(expected) => compare_bodies(expected, contents),
            Self::Fields(expected) => expected.compare(contents),
        }
    }
}

fn compare_bodies(expected: &[u8], body: &[u8]) -> Result<(), String> {
    if body == expected {
        return Ok(());
    }
    let pairs = body.iter().zip(expected);
    let same = pairs.take_while(|(one, other)| one == other).count();
    let (length, right) = (body.len(), expected.len());
    Err(format!(
        "of {length} bytes differs from the expected {right} from byte {same} on"
    ))
}

/// The fields that messages have to have. Those that the user does not name may have any value.
#[derive(Debug, Clone)]
pub struct ExpectedFields {
    named: serde_json::Value,
    message: DynamicMessage,
}

impl ExpectedFields {
    /// Reads the JSON message of the type `kind` in a file.
    pub(super) fn read(path: &Path, kind: &MessageDescriptor) -> Result<Self> {
        let wrong = |reason: serde_json::Error| {
            let (path, kind) = (path.display(), kind.full_name());
            DataError::Unfit(format!("{path} does not fit {kind}: {reason}"))
        };
        let contents = fs::read(path).map_err(unreadable(path))?;
        let mut parser = serde_json::Deserializer::from_slice(&contents);
        let message = kind.clone().deserialize(&mut parser).map_err(wrong)?;
        parser.end().map_err(wrong)?;
        let named = serde_json::from_slice(&contents).map_err(wrong)?;
        Ok(Self { named, message })
    }

    fn compare(&self, message: &[u8]) -> Result<(), String> {
        let kind = self.message.descriptor();
        let invalid = |error| format!("is not a valid message: {error}");
        let reply = DynamicMessage::decode(kind.clone(), message).map_err(invalid)?;
        // The JSON of these does not name their fields.
        if has_json_of_its_own(&kind) {
            let other = || "is another than the expected one".to_owned();
            return (reply == self.message).then_some(()).ok_or_else(other);
        }
        compare_fields(&self.named, &self.message, &reply, "")
    }
}

/// Compares the fields that `named` has, and those of messages within, with a reply's.
fn compare_fields(
    named: &serde_json::Value,
    expected: &DynamicMessage,
    reply: &DynamicMessage,
    within: &str,
) -> Result<(), String> {
    for (name, named) in named.as_object().into_iter().flatten() {
        let kind = expected.descriptor();
        let by_json = kind.get_field_by_json_name(name);
        let Some(field) = by_json.or_else(|| kind.get_field_by_name(name)) else {
            // Only an extension is read without being a field; it is not compared by its name.
            let kind = kind.full_name();
            return Err(format!("cannot be compared: {name} is no field of {kind}"));
        };
        let path = format!("{within}{name}");
        let (right, found) = (expected.get_field(&field), reply.get_field(&field));
        if let (Value::Message(right), Value::Message(found)) = (&*right, &*found)
            && named.is_object()
            && !has_json_of_its_own(&right.descriptor())
        {
            compare_fields(named, right, found, &format!("{path}."))?;
        } else if right != found {
            let (found, right) = (shown(&found), shown(&right));
            return Err(format!("has {path} = {found}, where {right} is expected"));
        }
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::I32(value) | Value::EnumNumber(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::String(value) => format!("{value:?}"),
        // Too long for a line, mostly.
        _ => "another".to_owned(),
    }
}

/// Returns true for types whose JSON has another form than their fields.
fn has_json_of_its_own(kind: &MessageDescriptor) -> bool {
    kind.package_name() == "google.protobuf"
}

#[cfg(test)]
mod tests {
    use netping_protocol::{FILE_DESCRIPTOR_SET, hello::BenchmarkMessage};
    use prost::Message;
    use prost_reflect::DescriptorPool;

    use super::*;

    fn check(expected: &str, field1: &str, field2: i32) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, expected).unwrap();
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let kind = pool.get_message_by_name("pb.BenchmarkMessage").unwrap();
        let expected = ExpectedFields::read(file.path(), &kind).unwrap();
        let reply = BenchmarkMessage {
            field1: field1.to_owned(),
            field2,
            ..BenchmarkMessage::default()
        };
        expected.compare(&reply.encode_to_vec())
    }

    #[test]
    fn only_named_fields_are_compared_even_where_they_are_zero() {
        assert_eq!(check("{\"field1\": \"OK\"}", "OK", 5), Ok(()));
        assert!(
            check("{\"field1\": \"OK\"}", "no", 5)
                .unwrap_err()
                .contains("field1")
        );
        assert_eq!(check("{\"field2\": 0}", "OK", 0), Ok(()));
        assert!(check("{\"field2\": 0}", "OK", 5).is_err());
    }

    #[test]
    fn a_body_is_compared_byte_by_byte() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "abc").unwrap();
        let expected = expected_body(file.path()).unwrap();
        assert_eq!(expected.compare(b"abc"), Ok(()));
        let different = expected.compare(b"abd").unwrap_err();
        assert!(different.contains("from byte 2 on"));
        assert!(expected.compare(b"ab").is_err());
    }
}
