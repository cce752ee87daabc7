//! gRPC reflection: the schema of a server, from the server.
//!
//! Versions v1 and v1alpha differ only in the name of the service.

use std::collections::BTreeSet;

use netping_http2::{client::Body, head::Head};
use netping_measure::error_kind::ErrorKind;
use netping_results::format::on_one_line;
use prost::Message;
use prost_reflect::prost_types::FileDescriptorProto;
use tokio::{runtime, task::LocalSet, time};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse,
    server_reflection_request::MessageRequest as Question,
    server_reflection_response::MessageResponse as Answer,
};

use crate::{
    error::{CANNOT_CONNECT, SchemaError, StartError, UNIMPLEMENTED},
    explain::explained,
    plan::Destination,
    transport::{
        Failure, Milestones, ServerEndpoint, connect,
        grpc_h2::{head, prefixed},
        grpc_reply::GrpcReply,
        http2::{self, Handle},
    },
};

/// The reflection services, the newer one first.
const SERVICES: [&str; 2] = ["grpc.reflection.v1", "grpc.reflection.v1alpha"];

/// The status of a name that a server does not know.
const NOT_FOUND: u16 = 5;

/// Time in which a server has to tell its schema.
const PATIENCE: time::Duration = time::Duration::from_secs(10);

/// Asks the server for the files that declare `service`, or all its services.
///
/// # Errors
/// [`SchemaError`].
pub(super) fn read(
    destination: &Destination,
    service: Option<&str>,
) -> Result<Vec<FileDescriptorProto>, SchemaError> {
    let endpoint = destination.endpoint()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Worker)?;
    let asking = async { time::timeout(PATIENCE, learn(&endpoint, service)).await };
    let late = Failure::request(ErrorKind::Timeout, "no answer in time");
    let learnt = LocalSet::new().block_on(&runtime, asking);
    learnt.unwrap_or_else(|_| Err(failed(&endpoint, late)))
}

fn failed(endpoint: &ServerEndpoint, failure: Failure) -> SchemaError {
    SchemaError::Reflection(endpoint.destination.url.clone(), failure)
}

async fn learn(
    endpoint: &ServerEndpoint,
    service: Option<&str>,
) -> Result<Vec<FileDescriptorProto>, SchemaError> {
    let (mut schema, services) = ServerSchema::connect(endpoint).await?;
    let names = service.map_or_else(|| services.clone(), |name| vec![name.to_owned()]);
    for name in names {
        let learnt = schema.learn(&name).await;
        let is_known = learnt.map_err(|failure| failed(endpoint, failure))?;
        // A server may list a service without its schema.
        if !is_known && service.is_some() {
            return Err(SchemaError::Name {
                target: endpoint.destination.url.clone(),
                reason: format!("the server has no '{name}'"),
                known: on_one_line(&services.join(", ")),
            });
        }
    }
    Ok(schema.files)
}

/// The schema of a server, as far as it has been asked for it.
struct ServerSchema {
    connection: Handle,
    head: Head,
    /// The files learnt so far.
    files: Vec<FileDescriptorProto>,
}

impl ServerSchema {
    /// Connects, and finds the version of reflection that the server has. Returns the names of its
    /// services too.
    async fn connect(endpoint: &ServerEndpoint) -> Result<(Self, Vec<String>), SchemaError> {
        let target = &endpoint.destination.url;
        let unreachable =
            |failure: Failure| explained(&endpoint.destination, failure.at(CANNOT_CONNECT));
        let mut milestones = Milestones::untimed();
        let stream = connect::open(endpoint, None, &mut milestones).await;
        let connection = http2::handshake(stream.map_err(unreachable)?, &mut milestones).await;
        let head_of = |service| {
            let method = format!("/{service}.ServerReflection/ServerReflectionInfo");
            http2::prepare(&head(endpoint, &method))
        };
        let mut schema = Self {
            connection: connection.map_err(unreachable)?,
            head: head_of(SERVICES[0]),
            files: Vec::new(),
        };
        for service in SERVICES {
            schema.head = head_of(service);
            match schema.services().await {
                Ok(services) => return Ok((schema, services)),
                Err(failure) if failure.kind == ErrorKind::Grpc(UNIMPLEMENTED) => {}
                Err(failure) if failure.lost => return Err(unreachable(failure).into()),
                Err(failure) => return Err(failed(endpoint, failure)),
            }
        }
        Err(SchemaError::NoReflection(target.clone()))
    }

    /// Returns the names of the services.
    async fn services(&mut self) -> Result<Vec<String>, Failure> {
        match self.ask(Question::ListServices(String::new())).await? {
            Answer::ListServicesResponse(list) => {
                Ok(list.service.into_iter().map(|own| own.name).collect())
            }
            _ => Err(wrong("it answered another question")),
        }
    }

    /// Learns the file that declares `service`, and all that it imports. Returns false if the
    /// server does not know the service.
    async fn learn(&mut self, service: &str) -> Result<bool, Failure> {
        let question = Question::FileContainingSymbol(service.to_owned());
        match self.ask(question).await {
            // An answer with this error, or a call that fails with it: servers do either.
            Ok(Answer::ErrorResponse(error)) if error.error_code == i32::from(NOT_FOUND) => {
                return Ok(false);
            }
            Err(failure) if failure.kind == ErrorKind::Grpc(NOT_FOUND) => return Ok(false),
            answer => self.add(answer?)?,
        }
        // Some servers send imports along, others wait to be asked.
        while let Some(import) = self.missing_import() {
            let answer = self.ask(Question::FileByFilename(import.clone())).await?;
            self.add(answer)?;
            if self.missing_import() == Some(import) {
                return Err(wrong("it sent another file than was asked for"));
            }
        }
        Ok(true)
    }

    /// Adds the files of an answer.
    fn add(&mut self, answer: Answer) -> Result<(), Failure> {
        let files = match answer {
            Answer::FileDescriptorResponse(files) => files.file_descriptor_proto,
            Answer::ErrorResponse(error) => return Err(wrong(&error.error_message)),
            _ => return Err(wrong("it answered another question")),
        };
        for file in files {
            let file = FileDescriptorProto::decode(&*file)
                .map_err(|error| wrong(&format!("it sent no file descriptor: {error}")))?;
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
        let missing = imports.find(|import| !known.contains(import.as_str()));
        missing.cloned()
    }

    /// Asks one question on a stream of its own.
    async fn ask(&mut self, question: Question) -> Result<Answer, Failure> {
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(question),
        };
        let mut answer = None;
        let mut reply = GrpcReply::<_>::expected(|message: &[u8]| {
            let response = ServerReflectionResponse::decode(message)
                .map_err(|error| wrong(&error.to_string()))?;
            answer = response.message_response;
            Ok(())
        });
        let body = prefixed(&request);
        let body = Body::Shared(&body);
        self.connection.call(&self.head, body, &mut reply).await?;
        answer.ok_or_else(|| wrong("the answer is empty"))
    }
}

fn wrong(what: &str) -> Failure {
    Failure::request(ErrorKind::Protocol, what)
}
