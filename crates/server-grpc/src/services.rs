//! Implementations of the RPCs.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use netping_protocol::{
    echopb::{EchoRequest, EchoResponse, echo_server::Echo},
    grpc_bench::{DataReceived, DataRequest, DataResponse, data_service_server::DataService},
    hello::{BenchmarkMessage, hello_server::Hello},
    message, payload,
};
use netping_serving::{chassis::Chassis, connection::Connection};
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status, Streaming};

/// Offset of a bulk stream's chunk within a page, in bytes. tonic copies the chunk to a few bytes
/// after the beginning of a page. glibc copies with `rep movsb`, which on AMD's Zen 3 and 4 is
/// several times slower if the source lies just below the destination within its page (glibc bug
/// 30994).
const PAGE_OFFSET: usize = 128;

/// The state of all RPCs.
#[derive(Debug, Clone)]
pub(crate) struct Services {
    pub chassis: Chassis,
    /// Longest reply or chunk, in bytes.
    pub max_message: usize,
    /// Default length of a bulk stream, in bytes.
    pub bulk_total: u64,
    /// Default length of the messages of a bulk stream, in bytes.
    pub bulk_chunk: u32,
}

impl Services {
    /// Applies the synthetic load to a request and counts it on its connection.
    async fn begin<T>(&self, request: &Request<T>) {
        self.chassis.load().apply().await;
        if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
            connection.count_requests(1);
        }
    }

    fn invalid(&self, message: String) -> Status {
        self.chassis.count_error("grpc_invalid_argument");
        Status::invalid_argument(message)
    }

    /// Adds the name of the flag to tonic's refusal of a message over the limit.
    fn name_limit(&self, status: Status) -> Status {
        if status.code() != Code::OutOfRange {
            return status;
        }
        self.chassis.count_error("grpc_out_of_range");
        Status::out_of_range(format!("{} (the server's --max-message)", status.message()))
    }

    /// Rejects a reply or a chunk over the limit.
    fn check_length(&self, what: &str, length: usize) -> Result<(), Status> {
        if length <= self.max_message {
            return Ok(());
        }
        let limit = self.max_message;
        Err(self.invalid(format!(
            "{what} of {length} bytes is longer than {limit} (the server's --max-message)"
        )))
    }
}

#[tonic::async_trait]
impl Echo for Services {
    async fn echo(&self, request: Request<EchoRequest>) -> Result<Response<EchoResponse>, Status> {
        self.begin(&request).await;
        let EchoRequest {
            input,
            response_bytes,
        } = request.into_inner();
        let length = response_bytes as usize;
        if length == 0 {
            return Ok(Response::new(EchoResponse { output: input }));
        }
        self.check_length("a reply", length)?;
        // It is cut anywhere, and must still be UTF-8.
        if !input.is_ascii() {
            return Err(self.invalid("with response_bytes, the input must be ASCII".to_owned()));
        }
        let mut output = Vec::with_capacity(length);
        payload::repeat_into(input.as_bytes(), length, &mut output);
        let output =
            String::from_utf8(output).map_err(|_| Status::internal("ASCII that is not UTF-8"))?;
        Ok(Response::new(EchoResponse { output }))
    }
}

#[tonic::async_trait]
impl Hello for Services {
    async fn say(
        &self,
        request: Request<BenchmarkMessage>,
    ) -> Result<Response<BenchmarkMessage>, Status> {
        self.begin(&request).await;
        Ok(Response::new(message::say(request.into_inner())))
    }
}

#[tonic::async_trait]
impl DataService for Services {
    type GiveMeDataStream = Pin<Box<dyn Stream<Item = Result<DataResponse, Status>> + Send>>;

    async fn give_me_data(
        &self,
        request: Request<DataRequest>,
    ) -> Result<Response<Self::GiveMeDataStream>, Status> {
        self.begin(&request).await;
        let request = request.into_inner();
        let mut left = match request.total_bytes {
            0 => self.bulk_total,
            total => total,
        };
        let chunk = match request.chunk_bytes {
            0 => self.bulk_chunk,
            chunk => chunk,
        } as usize;
        self.check_length("a chunk", chunk)?;
        // All messages of the stream share one chunk. A short stream needs no more than its length.
        let longest = left.min(chunk as u64) as usize;
        let mut pattern = Vec::with_capacity(PAGE_OFFSET + longest);
        pattern.resize(PAGE_OFFSET, 0);
        payload::repeat_into(payload::BULK_PATTERN, longest, &mut pattern);
        let pattern = Bytes::from(pattern).slice(PAGE_OFFSET..);
        let messages = std::iter::from_fn(move || {
            let length = left.min(chunk as u64);
            left -= length;
            let data = pattern.slice(..length as usize);
            (length > 0).then_some(Ok(DataResponse { data }))
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(messages))))
    }

    async fn take_my_data(
        &self,
        request: Request<Streaming<DataResponse>>,
    ) -> Result<Response<DataReceived>, Status> {
        self.begin(&request).await;
        let mut messages = request.into_inner();
        let mut received = DataReceived::default();
        let named = |status| self.name_limit(status);
        while let Some(message) = messages.message().await.map_err(named)? {
            received.total_bytes += message.data.len() as u64;
            received.chunks += 1;
        }
        Ok(Response::new(received))
    }
}
