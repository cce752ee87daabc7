//! gRPC methods that the user names, and the requests to them.

use std::path::Path;

use bytes::Bytes;
use netping_protocol::target::Target;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, ServiceDescriptor};
use serde::de::DeserializeSeed;
use serde_json::value::RawValue;

use super::{
    data::{Data, DataError},
    expect::{Check, ExpectedFields},
    matching::Matching,
    schema::{Result, Schema},
};
use crate::{
    error::SchemaError,
    plan::Destination,
    transport::{grpc_h2::prefixed, prepared::Prepared},
};

/// A gRPC method.
#[derive(Debug, Clone)]
pub struct Method(MethodDescriptor);

impl Method {
    /// Finds the method that the destination's URL names.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn find(schema: &Schema, destination: &Destination) -> Result<Self> {
        let mut methods = named(schema, destination)?;
        if parts(&destination.url).1.is_empty() {
            return Err(SchemaError::Name {
                target: destination.url.clone(),
                reason: "the URL names a service and no method".to_owned(),
                known: joined(methods.iter().map(MethodDescriptor::name)),
            });
        }
        Ok(Self(methods.swap_remove(0)))
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
        let messages: Vec<Bytes> = messages.iter().map(prefixed).collect();
        Ok(messages.concat().into())
    }

    /// Returns the check of replies that have to have the fields of a JSON message.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn expecting(&self, path: &Path) -> Result<Check, DataError> {
        Ok(Check::Fields(ExpectedFields::read(path, &self.0.output())?))
    }

    /// Returns the fields by which replies belong to messages.
    ///
    /// # Errors
    /// [`DataError::Unfit`].
    pub fn matching(&self, fields: &str) -> Result<Matching, DataError> {
        let found = Matching::find(fields, &self.0.input(), &self.0.output());
        found.map_err(|reason| DataError::Unfit(format!("--match: {reason}")))
    }
}

/// Prepares the calls of a method.
///
/// # Errors
/// [`DataError`].
pub fn prepared(method: &Method, data: &Data, check: Check) -> Result<Prepared, DataError> {
    let encode = |json: &str| method.encode(json);
    // The message whose fields all have their defaults.
    let empty = Data::read(&["{}".to_owned()], data.order)?;
    let sent = if data.is_empty() { &empty } else { data };
    Ok(Prepared {
        bodies: sent.messages(encode)?,
        streams_requests: method.0.is_client_streaming(),
        streams_replies: method.0.is_server_streaming(),
        check,
        data_hash: data.hash(),
        reply: Some(method.0.output()),
        ..Prepared::default()
    })
}

/// Returns the methods whose path begins with the one in the destination's URL; at least one.
pub(super) fn named(schema: &Schema, destination: &Destination) -> Result<Vec<MethodDescriptor>> {
    let (service, method) = parts(&destination.url);
    let pool = schema.read(destination, Some(service).filter(|name| !name.is_empty()))?;
    let unknown = |name: &str, known| SchemaError::Name {
        target: destination.url.clone(),
        reason: format!("the server has no '{name}'"),
        known,
    };
    let all: Vec<ServiceDescriptor> = pool.services().collect();
    let mut services = all.clone();
    services.retain(|own| service.is_empty() || own.full_name() == service);
    if services.is_empty() {
        let known = joined(all.iter().map(ServiceDescriptor::full_name));
        return Err(unknown(service, known));
    }
    let methods = services.iter().flat_map(ServiceDescriptor::methods);
    let all: Vec<MethodDescriptor> = methods.collect();
    let mut methods = all.clone();
    methods.retain(|own| method.is_empty() || own.name() == method);
    if methods.is_empty() {
        let known = joined(all.iter().map(MethodDescriptor::name));
        return Err(unknown(method, known));
    }
    Ok(methods)
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the service and the method that a target names.
pub(super) fn parts(target: &Target) -> (&str, &str) {
    let path = target.path.trim_start_matches('/');
    path.split_once('/').unwrap_or((path, ""))
}

fn message(kind: &MessageDescriptor, json: &str) -> Result<DynamicMessage, String> {
    let mut parser = serde_json::Deserializer::from_slice(json.as_bytes());
    let message = kind.clone().deserialize(&mut parser);
    message.map_err(|error| {
        let name = kind.full_name();
        format!("it does not fit {name}: {error}; 'netping grpc describe' shows its fields")
    })
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
    use prost::Message;
    use prost_reflect::DescriptorPool;

    use super::*;
    use crate::transport::grpc_reply::PREFIX;

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
