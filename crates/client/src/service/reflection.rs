//! gRPC reflection: the schema of a server, from the server.
//!
//! Versions v1 and v1alpha differ only in the name of the service.

use std::collections::BTreeSet;

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use netping_measure::error_kind::ErrorKind;
use prost::Message;
use prost_reflect::{DescriptorPool, prost_types::FileDescriptorProto};
use tokio::{runtime, task::LocalSet, time};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse,
    server_reflection_request::MessageRequest as Question,
    server_reflection_response::MessageResponse as Answer,
};

use super::descriptors;
use crate::{
    clock::{Clock, Monotonic},
    error::{SchemaError, StartError, UNIMPLEMENTED},
    plan::Destination,
    transport::{
        Endpoint, Failure, Milestones, connect,
        grpc_call::call,
        grpc_h2::{head, prefixed},
        http2,
    },
};

/// The reflection services, the newer one first.
const SERVICES: [&str; 2] = ["grpc.reflection.v1", "grpc.reflection.v1alpha"];

/// The status of a name that a server does not know.
const NOT_FOUND: u16 = 5;

/// Time in which a server has to tell its schema.
const PATIENCE: time::Duration = time::Duration::from_secs(10);

/// Asks the server for the types of `service`, or of all its services.
///
/// # Errors
/// [`SchemaError`].
pub(super) fn read(
    destination: &Destination,
    service: Option<&str>,
) -> Result<DescriptorPool, SchemaError> {
    let endpoint = destination.endpoint()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Worker)?;
    let asking = async {
        let mut server = Server::connect(&endpoint).await?;
        let names = match service {
            Some(name) => vec![name.to_owned()],
            None => server.services().await?,
        };
        for name in &names {
            match server.learn(name).await {
                // A server may list a service without its schema.
                Err(SchemaError::Unknown { .. }) if service.is_none() => {}
                learnt => learnt?,
            }
        }
        server.pool()
    };
    let late = |_| SchemaError::Reflection {
        target: endpoint.target.to_string(),
        failure: Failure::request(ErrorKind::Timeout, "no answer in time"),
    };
    let asking = async { time::timeout(PATIENCE, asking).await.map_err(late) };
    LocalSet::new().block_on(&runtime, asking).flatten()
}

/// A server that is asked for its schema.
struct Server {
    target: String,
    send: SendRequest<Bytes>,
    head: Request<()>,
    /// The files learnt so far.
    files: Vec<FileDescriptorProto>,
}

impl Server {
    /// Connects, and finds the version of reflection that the server has.
    async fn connect(endpoint: &Endpoint) -> Result<Self, SchemaError> {
        let clock = Monotonic::start();
        let now = || clock.now();
        let mut milestones = Milestones::start(&now);
        let connecting = async {
            let stream = connect::open(endpoint, None, &mut milestones).await?;
            http2::handshake(stream, &mut milestones).await
        };
        let target = endpoint.target.to_string();
        let unreachable = |failure| StartError::Connect {
            target: endpoint.target.clone(),
            failure,
        };
        let mut send = connecting.await.map_err(unreachable)?;
        for service in SERVICES {
            let head = head(
                endpoint,
                &format!("/{service}.ServerReflection/ServerReflectionInfo"),
            );
            match ask(&mut send, &head, Question::ListServices(String::new())).await {
                Err(failure) if failure.kind == ErrorKind::Grpc(UNIMPLEMENTED) => {}
                Err(failure) if failure.lost => return Err(unreachable(failure).into()),
                Err(failure) => return Err(SchemaError::Reflection { target, failure }),
                Ok(_) => {
                    return Ok(Self {
                        target,
                        send,
                        head,
                        files: Vec::new(),
                    });
                }
            }
        }
        Err(SchemaError::NoReflection(target))
    }

    /// Returns the names of the services.
    async fn services(&mut self) -> Result<Vec<String>, SchemaError> {
        match self.ask(Question::ListServices(String::new())).await? {
            Answer::ListServicesResponse(list) => Ok(list
                .service
                .into_iter()
                .map(|service| service.name)
                .collect()),
            _ => Err(self.failed("it answered another question")),
        }
    }

    /// Learns the file that declares `service`, and all that it imports.
    async fn learn(&mut self, service: &str) -> Result<(), SchemaError> {
        let question = Question::FileContainingSymbol(service.to_owned());
        match self.ask(question).await {
            // An answer with this error, or a call that fails with it: servers do either.
            Ok(Answer::ErrorResponse(error)) if error.error_code == i32::from(NOT_FOUND) => {
                return Err(self.unknown(service).await);
            }
            Err(SchemaError::Reflection { failure, .. })
                if failure.kind == ErrorKind::Grpc(NOT_FOUND) =>
            {
                return Err(self.unknown(service).await);
            }
            answer => self.add(answer?)?,
        }
        // Some servers send imports along, others wait to be asked.
        while let Some(import) = self.missing_import() {
            let answer = self.ask(Question::FileByFilename(import.clone())).await?;
            self.add(answer)?;
            if self.missing_import() == Some(import) {
                return Err(self.failed("it sent another file than was asked for"));
            }
        }
        Ok(())
    }

    /// Returns the error of a service that the server does not have.
    async fn unknown(&mut self, service: &str) -> SchemaError {
        match self.services().await {
            Ok(known) => SchemaError::Unknown {
                target: self.target.clone(),
                name: service.to_owned(),
                known: known.join(", "),
            },
            Err(error) => error,
        }
    }

    /// Adds the files of an answer.
    fn add(&mut self, answer: Answer) -> Result<(), SchemaError> {
        let files = match answer {
            Answer::FileDescriptorResponse(files) => files.file_descriptor_proto,
            Answer::ErrorResponse(error) => return Err(self.failed(&error.error_message)),
            _ => return Err(self.failed("it answered another question")),
        };
        for file in files {
            let file = FileDescriptorProto::decode(&*file)
                .map_err(|error| self.failed(&format!("it sent no file descriptor: {error}")))?;
            if self.files.iter().all(|known| known.name() != file.name()) {
                self.files.push(file);
            }
        }
        Ok(())
    }

    /// Returns an imported file that is not known yet.
    fn missing_import(&self) -> Option<String> {
        let known: BTreeSet<&str> = self.files.iter().map(FileDescriptorProto::name).collect();
        let mut imports = self.files.iter().flat_map(|file| &file.dependency);
        imports
            .find(|import| !known.contains(import.as_str()))
            .cloned()
    }

    /// Returns the types of all files.
    fn pool(self) -> Result<DescriptorPool, SchemaError> {
        let origin = format!("what {} tells by reflection", self.target);
        descriptors::pool(self.files, &origin)
    }

    async fn ask(&mut self, question: Question) -> Result<Answer, SchemaError> {
        let answer = ask(&mut self.send, &self.head, question).await;
        answer.map_err(|failure| SchemaError::Reflection {
            target: self.target.clone(),
            failure,
        })
    }

    fn failed(&self, what: &str) -> SchemaError {
        SchemaError::Reflection {
            target: self.target.clone(),
            failure: Failure::request(ErrorKind::Protocol, what),
        }
    }
}

/// Asks one question on a stream of its own.
async fn ask(
    send: &mut SendRequest<Bytes>,
    head: &Request<()>,
    question: Question,
) -> Result<Answer, Failure> {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(question),
    };
    let mut answer = None;
    call(send, head, prefixed(&request), |message| {
        let response = ServerReflectionResponse::decode(message)
            .map_err(|error| Failure::request(ErrorKind::Protocol, error))?;
        answer = response.message_response;
        Ok(())
    })
    .await?;
    answer.ok_or_else(|| Failure::request(ErrorKind::Protocol, "the answer is empty"))
}
