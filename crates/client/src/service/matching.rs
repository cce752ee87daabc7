//! The fields by whose values replies belong to messages.

use prost::{
    DecodeError,
    bytes::Buf,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};

/// The places of the field that a message has in common with its reply.
#[derive(Debug, Clone)]
pub struct Matching {
    /// Its fields as the user named them.
    pub text: String,
    message: Place,
    reply: Place,
}

/// The number of a field, after those of the messages that it is in, from the outermost on.
type Place = Vec<u32>;

/// A field's value. One that is absent is the default value: 0, or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Matching {
    /// Reads `FIELD`, or `FIELD=REPLY_FIELD` where the reply's has another name. A field within a message is
    /// `OUTER.INNER`.
    ///
    /// # Errors
    /// A description of what does not fit the types of messages and replies.
    pub(super) fn find(
        text: &str,
        message: &MessageDescriptor,
        reply: &MessageDescriptor,
    ) -> Result<Self, String> {
        let (own, other) = text.split_once('=').unwrap_or((text, text));
        let (own, other) = (field(own, message)?, field(other, reply)?);
        if own.kind != other.kind {
            return Err(format!(
                "{} is {:?} in {}, and {} is {:?} in {}",
                own.name,
                own.kind,
                message.full_name(),
                other.name,
                other.kind,
                reply.full_name()
            ));
        }
        Ok(Self {
            text: text.to_owned(),
            message: own.place,
            reply: other.place,
        })
    }

    /// Returns the places of fields by their numbers.
    #[cfg(test)]
    pub(crate) fn at(message: &[u32], reply: &[u32]) -> Self {
        Self {
            text: String::new(),
            message: message.into(),
            reply: reply.into(),
        }
    }

    /// Returns the value in a message.
    pub fn of_message(&self, message: &[u8]) -> Key {
        Key::find(&self.message, message)
    }

    /// Returns the value in a reply.
    pub fn of_reply(&self, reply: &[u8]) -> Key {
        Key::find(&self.reply, reply)
    }
}

/// A field of a type.
struct Found<'a> {
    name: &'a str,
    kind: Kind,
    place: Place,
}

fn field<'a>(name: &'a str, within: &MessageDescriptor) -> Result<Found<'a>, String> {
    let (mut within, mut place) = (within.clone(), Vec::new());
    let mut parts = name.split('.').peekable();
    while let Some(part) = parts.next() {
        let by_json = within.get_field_by_json_name(part);
        let own = by_json.or_else(|| within.get_field_by_name(part));
        let own: FieldDescriptor =
            own.ok_or_else(|| format!("{} has no field '{part}'", within.full_name()))?;
        place.push(own.number());
        let is_single = own.cardinality() != Cardinality::Repeated;
        match own.kind() {
            Kind::Message(inner) if parts.peek().is_some() && is_single => within = inner,
            Kind::Message(_) | Kind::Double | Kind::Float => break,
            kind if parts.peek().is_none() && is_single => {
                return Ok(Found { name, kind, place });
            }
            _ => break,
        }
    }
    Err(format!(
        "{name} is not a single whole number, text or bytes; name a field that is, such as OUTER.INNER"
    ))
}

impl Key {
    fn find(place: &[u32], message: &[u8]) -> Self {
        let mut found = Self(Vec::new());
        // What is not well-formed is found out when the reply is examined.
        let _ = found.look(place, message);
        found
    }

    /// Takes the last value at a place, as every decoder does.
    fn look(&mut self, place: &[u32], mut message: &[u8]) -> Result<(), DecodeError> {
        let Some((number, within)) = place.split_first() else {
            return Ok(());
        };
        while message.has_remaining() {
            let (tag, kind) = decode_key(&mut message)?;
            let mut value = message;
            skip_field(kind, tag, &mut message, DecodeContext::default())?;
            if tag != *number {
                continue;
            }
            value = &value[..value.len() - message.len()];
            match kind {
                WireType::Varint => self.set_number(&decode_varint(&mut value)?.to_le_bytes()),
                WireType::LengthDelimited => {
                    decode_varint(&mut value)?;
                    if within.is_empty() {
                        self.0 = value.to_vec();
                    } else {
                        self.look(within, value)?;
                    }
                }
                _ => self.set_number(value),
            }
        }
        Ok(())
    }

    /// Sets it to a number, whose lowest byte comes first.
    fn set_number(&mut self, bytes: &[u8]) {
        let end = bytes.iter().rposition(|byte| *byte != 0);
        self.0 = bytes[..end.map_or(0, |last| last + 1)].to_vec();
    }
}

#[cfg(test)]
mod tests {
    use netping_protocol::{FILE_DESCRIPTOR_SET, hello::BenchmarkMessage};
    use prost::Message;
    use prost_reflect::DescriptorPool;

    use super::*;

    fn found(text: &str) -> Result<Matching, String> {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let [message, reply] = ["pb.BenchmarkMessage", "echopb.EchoRequest"]
            .map(|name| pool.get_message_by_name(name).unwrap());
        Matching::find(text, &message, &reply)
    }

    #[test]
    fn a_value_is_the_last_of_its_field_and_absent_ones_are_zero() {
        let matching = Matching::at(&[2], &[3, 1]);
        let of = |field2| {
            let message = BenchmarkMessage {
                field1: "a".to_owned(),
                field2,
                ..BenchmarkMessage::default()
            };
            matching.of_message(&message.encode_to_vec())
        };
        assert_eq!(of(-7), of(-7));
        assert_ne!(of(7), of(7 << 8));
        assert_eq!(of(0), matching.of_message(&[]));
        assert_eq!(matching.of_message(&[0x10, 1, 0x10, 5]), of(5));
        // Field 3 has a message of two bytes, in which field 1 is 5.
        assert_eq!(matching.of_reply(&[0x1A, 2, 0x08, 5]), of(5));
        // Numbers of a fixed length.
        assert_eq!(matching.of_message(&[0x15, 5, 0, 0, 0]), of(5));
        // It ends within a field.
        assert_eq!(matching.of_message(&[0x1A, 9, 0x08]), of(0));
    }

    #[test]
    fn the_fields_exist_and_are_of_one_kind() {
        let matching = found("field1=input").unwrap();
        assert_eq!((&*matching.message, &*matching.reply), (&[1][..], &[1][..]));
        assert!(found("field2=response_bytes").is_err());
        let wrong = |text| found(text).unwrap_err();
        assert_eq!(wrong("id"), "pb.BenchmarkMessage has no field 'id'");
        assert_eq!(wrong("field1=id"), "echopb.EchoRequest has no field 'id'");
        assert!(wrong("field1.inner=input").contains("not a single"));
        assert!(wrong("field1=responseBytes").contains("field1 is string in pb.BenchmarkMessage"));
    }
}
