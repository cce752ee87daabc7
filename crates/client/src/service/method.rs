//! gRPC methods that the user names, and the requests to them.

use std::{path::Path, sync::Arc};

use bytes::{Bytes, BytesMut};
use netping_protocol::target::Target;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde::de::DeserializeSeed;
use serde_json::value::RawValue;

use super::{
    data::{Data, DataError},
    expect::{self, ExpectError},
    schema::Schema,
};
use crate::{
    error::SchemaError,
    plan::Destination,
    transport::{
        grpc_h2::{PREFIX, put_prefix},
        prepared::{Check, Prepared, Show},
    },
};

/// A gRPC method.
#[derive(Debug, Clone)]
pub struct Method(MethodDescriptor);

impl Method {
    /// Finds the method that the destination's URL names.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn find(schema: &Schema, destination: &Destination) -> Result<Self, SchemaError> {
        let target = &destination.url;
        let (service, name) = parts(target);
        let pool = schema.read(destination, Some(service))?;
        let unknown = |name: &str, known: Vec<String>| SchemaError::Unknown {
            target: target.to_string(),
            name: name.to_owned(),
            known: known.join(", "),
        };
        let Some(found) = pool.get_service_by_name(service) else {
            let known = pool
                .services()
                .map(|service| service.full_name().to_owned());
            return Err(unknown(service, known.collect()));
        };
        if name.is_empty() {
            return Err(SchemaError::NoMethod {
                target: target.to_string(),
                known: found
                    .methods()
                    .map(|method| method.name().to_owned())
                    .collect(),
            });
        }
        let method = found.methods().find(|method| method.name() == name);
        let methods = || found.methods().map(|method| method.name().to_owned());
        method
            .map(Self)
            .ok_or_else(|| unknown(name, methods().collect()))
    }

    /// Encodes JSON as the messages of a call: an array is a stream of messages if the method takes
    /// one.
    fn encode(&self, json: &str) -> Result<Bytes, String> {
        let input = self.0.input();
        let messages = if self.0.is_client_streaming() && json.trim_start().starts_with('[') {
            stream(&input, json)?
        } else {
            vec![message(&input, json)?]
        };
        let length = messages
            .iter()
            .map(|message| PREFIX + message.encoded_len());
        let mut bytes = BytesMut::with_capacity(length.sum());
        for message in messages {
            put_prefix(&mut bytes, message.encoded_len());
            message.encode_raw(&mut bytes);
        }
        Ok(bytes.freeze())
    }

    /// Shows a message of a reply as JSON.
    fn show(&self, message: &[u8]) -> String {
        match DynamicMessage::decode(self.0.output(), message) {
            Ok(message) => {
                serde_json::to_string(&message).unwrap_or_else(|error| error.to_string())
            }
            Err(error) => format!("not a {}: {error}", self.0.output().full_name()),
        }
    }

    /// Returns the check of replies that have to have the fields of a JSON message.
    ///
    /// # Errors
    /// [`ExpectError`].
    pub fn expecting(&self, path: &Path) -> Result<Check, ExpectError> {
        expect::expected_fields(path, &self.0.output())
    }
}

/// Prepares the calls of a method.
///
/// # Errors
/// [`DataError`].
pub fn prepared(method: &Method, data: &Data, check: Check) -> Result<Prepared, DataError> {
    let encode = |json: &str| method.encode(json);
    let bodies = if data.is_empty() {
        // The message whose fields all have their defaults.
        Data::read(&["{}".to_owned()], data.order)?.messages(encode)?
    } else {
        data.messages(encode)?
    };
    Ok(Prepared {
        bodies,
        streams_requests: method.0.is_client_streaming(),
        streams_replies: method.0.is_server_streaming(),
        check,
        data_hash: data.hash(),
        show: {
            let method = method.clone();
            Show(Arc::new(move |message| method.show(message)))
        },
        ..Prepared::default()
    })
}

/// Returns the service and the method that a target names.
pub(super) fn parts(target: &Target) -> (&str, &str) {
    let path = target.path.trim_start_matches('/');
    path.split_once('/').unwrap_or((path, ""))
}

fn message(kind: &MessageDescriptor, json: &str) -> Result<DynamicMessage, String> {
    let mut parser = serde_json::Deserializer::from_str(json);
    let message = kind.clone().deserialize(&mut parser);
    message.map_err(|error| format!("it does not fit {}: {error}", kind.full_name()))
}

fn stream(kind: &MessageDescriptor, json: &str) -> Result<Vec<DynamicMessage>, String> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let element = |(at, element): (usize, &&RawValue)| {
        message(kind, element.get()).map_err(|reason| format!("message {}: {reason}", at + 1))
    };
    elements.iter().enumerate().map(element).collect()
}

#[cfg(test)]
mod tests {
    use netping_protocol::{FILE_DESCRIPTOR_SET, echopb::EchoRequest, grpc_bench::DataRequest};
    use prost_reflect::DescriptorPool;

    use super::*;

    fn method(service: &str) -> Method {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let service = pool.get_service_by_name(service).unwrap();
        Method(service.methods().next().unwrap())
    }

    #[test]
    fn json_becomes_a_message_with_its_prefix() {
        let bytes = method("echopb.Echo")
            .encode("{\"input\": \"x\", \"responseBytes\": 3}")
            .unwrap();
        let decoded = EchoRequest::decode(&bytes[PREFIX..]).unwrap();
        assert_eq!((&*decoded.input, decoded.response_bytes), ("x", 3));
        let bytes = method("grpc_bench.DataService")
            .encode("{\"total_bytes\": \"7\"}")
            .unwrap();
        assert_eq!(
            DataRequest::decode(&bytes[PREFIX..]).unwrap().total_bytes,
            7
        );
    }

    #[test]
    fn json_that_does_not_fit_is_told_with_field_and_place() {
        let error = |json| method("echopb.Echo").encode(json).unwrap_err();
        let unknown = error("{\"inputs\": 1}");
        assert!(
            unknown.contains("does not fit echopb.EchoRequest"),
            "{unknown}"
        );
        assert!(
            unknown.contains("inputs") && unknown.contains("line 1 column"),
            "{unknown}"
        );
        assert!(error("[{}]").contains("line 1 column"), "{}", error("[{}]"));
    }
}
