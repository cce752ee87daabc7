//! gRPC's own benchmark, which the drivers and workers of other languages speak.

use std::{pin::Pin, sync::Arc, task::Poll};

use bytes::Bytes;
use futures_util::{Stream, stream};
use netping_protocol::grpc_testing::{
    Payload, PayloadType, SimpleRequest, SimpleResponse, benchmark_service_server::BenchmarkService,
};
use netping_serving::Connection;
use tonic::{Request, Status, Streaming};

use crate::{
    reply_body::Announcement,
    services::{Reply, Services, announcing, count_message, turn},
};

/// The contents of payloads that are not longer.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

type Responses = Pin<Box<dyn Stream<Item = Result<SimpleResponse, Status>> + Send>>;

impl Services {
    /// Returns the length of the payload that a request asks for.
    fn response_length(&self, request: &SimpleRequest) -> Result<usize, Status> {
        let size = request.response_size;
        let length = usize::try_from(size)
            .map_err(|_| self.invalid(format!("a response_size of {size} is negative")))?;
        self.check_length("a payload", length)?;
        Ok(length)
    }

    async fn next_request(
        &self,
        requests: &mut Streaming<SimpleRequest>,
    ) -> Result<Option<SimpleRequest>, Status> {
        let request = requests.message().await;
        request.map_err(|status| self.name_limit(status))
    }
}

/// Returns responses of one length, without end.
fn endless(connection: Option<Arc<Connection>>, length: usize) -> Responses {
    Box::pin(stream::unfold(connection, move |connection| async move {
        turn(connection.as_ref(), length).await;
        Some((Ok(response(length)), connection))
    }))
}

fn response(length: usize) -> SimpleResponse {
    let body = match ZEROS.get(..length) {
        Some(zeros) => Bytes::from_static(zeros),
        None => Bytes::from(vec![0; length]),
    };
    let payload = Payload {
        r#type: PayloadType::Compressable.into(),
        body,
    };
    SimpleResponse {
        payload: (length > 0).then_some(payload),
    }
}

#[tonic::async_trait]
impl BenchmarkService for Services {
    type StreamingCallStream = Responses;
    type StreamingFromServerStream = Responses;
    type StreamingBothWaysStream = Responses;

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Reply<SimpleResponse> {
        let (_, extensions, request) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let length = self.response_length(&request)?;
        drop(request);
        let reserved = self.reserve(connection, 0, length).await?;
        Ok(self.holding(response(length), reserved, length))
    }

    async fn streaming_call(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Reply<Self::StreamingCallStream> {
        let connection = self.begin(request.extensions()).await.cloned();
        let (services, requests) = (self.clone(), request.into_inner());
        let announcement = Announcement::of_each(&self.long_work);
        // The longest so far.
        let state = (services, connection, 0, announcement.next.clone());
        let responses = stream::try_unfold((state, requests), |(state, mut requests)| async move {
            let (services, connection, longest, next) = state;
            let Some(request) = services.next_request(&mut requests).await? else {
                return Ok(None);
            };
            let length = services.response_length(&request)?;
            let open = connection.as_ref();
            let _held = count_message(open, longest, length)?;
            turn(open, length).await;
            next.announce(length).await;
            let state = (services, connection, longest.max(length), next);
            Ok(Some((response(length), (state, requests))))
        });
        Ok(announcing(Box::pin(responses), announcement))
    }

    async fn streaming_from_client(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Reply<SimpleResponse> {
        let (_, extensions, mut requests) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let mut length = 0;
        while let Some(request) = self.next_request(&mut requests).await? {
            length = self.response_length(&request)?;
        }
        let reserved = self.reserve(connection, 0, length).await?;
        Ok(self.holding(response(length), reserved, length))
    }

    async fn streaming_from_server(
        &self,
        request: Request<SimpleRequest>,
    ) -> Reply<Self::StreamingFromServerStream> {
        let connection = self.begin(request.extensions()).await;
        let length = self.response_length(request.get_ref())?;
        count_message(connection, 0, length)?;
        Ok(self.holding(endless(connection.cloned(), length), None, length))
    }

    async fn streaming_both_ways(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Reply<Self::StreamingBothWaysStream> {
        let (_, extensions, mut requests) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let Some(first) = self.next_request(&mut requests).await? else {
            return Ok(self.holding(Box::pin(stream::empty()), None, 0));
        };
        let length = self.response_length(&first)?;
        count_message(connection, 0, length)?;
        let services = self.clone();
        let mut responses = endless(connection.cloned(), length);
        // Requests are read beside the responses, and only their end matters.
        let responses = stream::poll_fn(move |cx| {
            loop {
                match Pin::new(&mut requests).poll_next(cx) {
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(status))) => {
                        return Poll::Ready(Some(Err(services.name_limit(status))));
                    }
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => return responses.as_mut().poll_next(cx),
                }
            }
        });
        Ok(self.holding(Box::pin(responses), None, length))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use netping_serving::testing::accepted;

    use super::*;
    use crate::{
        long_work::LONG,
        services::tests::{begins_elsewhere, request, services},
    };

    #[tokio::test]
    async fn long_responses_are_made_elsewhere() {
        let (_, chassis, _) = accepted();
        let mut services = services(&chassis);
        Arc::make_mut(&mut services.args).max_message = LONG;
        let asked = &SimpleRequest {
            response_size: i32::try_from(LONG).unwrap(),
            ..SimpleRequest::default()
        };
        let replies = [
            services.streaming_call(request(asked)).await,
            services.streaming_both_ways(request(asked)).await,
            services
                .streaming_from_server(Request::new(asked.clone()))
                .await,
        ];
        for reply in replies {
            assert!(begins_elsewhere(reply.unwrap()));
        }
    }

    #[tokio::test]
    async fn long_responses_of_a_connection_take_turns() {
        let (accepted, ..) = accepted();
        let mut responses = endless(Some(Arc::clone(accepted.connection())), 80 << 10);
        assert!(responses.next().now_or_never().is_some());
        assert!(responses.next().now_or_never().is_none());
        assert!(responses.next().await.is_some());
    }
}
