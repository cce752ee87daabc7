//! gRPC's own benchmark, on the stacks that have it.

use netping_protocol::grpc_testing::{
    Payload, PayloadType, SimpleRequest, SimpleResponse,
    benchmark_service_client::BenchmarkServiceClient,
};
use netping_server_grpc::SERVICE;
use netping_serving::testing::TestServer;
use tokio_stream::StreamExt;
use tonic::{Code, Status, transport::Channel};

const STACKS: [&str; 2] = ["tonic", "hyper"];

async fn start(stack: &str, flags: &[&str]) -> (TestServer, BenchmarkServiceClient<Channel>) {
    let server = TestServer::start(&SERVICE, &[&["--stack", stack], flags].concat());
    let url = format!("http://{}", server.address());
    let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
    (server, BenchmarkServiceClient::new(channel))
}

fn request(response_size: i32) -> SimpleRequest {
    SimpleRequest {
        response_type: PayloadType::Compressable.into(),
        response_size,
        payload: Some(Payload {
            r#type: PayloadType::Compressable.into(),
            body: vec![7; 100].into(),
        }),
    }
}

fn requests(sizes: &[i32]) -> impl tokio_stream::Stream<Item = SimpleRequest> + use<> {
    tokio_stream::iter(sizes.iter().copied().map(request).collect::<Vec<_>>())
}

/// Returns the length of a response, whose payload must be zeros.
fn length(response: SimpleResponse) -> usize {
    let Some(payload) = response.payload else {
        return 0;
    };
    assert!(payload.body.iter().all(|byte| *byte == 0));
    assert!(!payload.body.is_empty());
    payload.body.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_response_is_as_long_as_its_request_asks_for() {
    for stack in STACKS {
        let (server, mut client) = start(stack, &[]).await;
        // Up to and beyond the zeros that are shared.
        for size in [0, 1, 100, 65_536, 65_537, 3 << 20] {
            let reply = client.unary_call(request(size)).await.unwrap();
            assert_eq!(length(reply.into_inner()), size as usize, "{stack}");
        }
        let sizes = [5, 0, 100_000, 5];
        let replies = client.streaming_call(requests(&sizes)).await.unwrap();
        let replies: Vec<_> = replies.into_inner().collect().await;
        let lengths = replies.into_iter().map(|reply| length(reply.unwrap()));
        let expected = sizes.map(|size| size as usize);
        assert_eq!(lengths.collect::<Vec<_>>(), expected, "{stack}");
        let reply = client.streaming_from_client(requests(&[1, 2, 3])).await;
        assert_eq!(length(reply.unwrap().into_inner()), 3, "{stack}");
        let requests = server.metric("netping_requests_total").unwrap();
        assert_eq!(requests, "8", "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_pushes_until_the_client_ends_the_call() {
    for stack in STACKS {
        let (_server, mut client) = start(stack, &[]).await;
        let replies = client.streaming_from_server(request(1000)).await.unwrap();
        let replies: Vec<_> = replies.into_inner().take(10_000).collect().await;
        let lengths = replies.into_iter().map(|reply| length(reply.unwrap()));
        assert!(lengths.into_iter().all(|length| length == 1000), "{stack}");

        let (send, receive) = tokio::sync::mpsc::channel(1);
        send.send(request(20)).await.unwrap();
        let receive = tokio_stream::wrappers::ReceiverStream::new(receive);
        let replies = client.streaming_both_ways(receive).await.unwrap();
        let mut replies = replies.into_inner();
        for _ in 0..1000 {
            let reply = replies.next().await.unwrap().unwrap();
            assert_eq!(length(reply), 20, "{stack}");
        }
        // The size of the first one holds.
        send.send(request(30)).await.unwrap();
        drop(send);
        let rest: Vec<_> = replies.collect().await;
        assert!(
            rest.into_iter().all(|reply| length(reply.unwrap()) == 20),
            "{stack}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sizes_that_cannot_be_are_refused() {
    let refused = |status: Status, text: &str| {
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(text), "{status}");
    };
    for stack in STACKS {
        let (_server, mut client) = start(stack, &["--max-message", "1000"]).await;
        let status = client.unary_call(request(1001)).await.unwrap_err();
        refused(
            status,
            "a payload of 1001 bytes is longer than 1000 (the server's --max-message)",
        );
        let status = client.unary_call(request(-1)).await.unwrap_err();
        refused(status, "a response_size of -1 is negative");
        let replies = client.streaming_call(requests(&[1000, 1001])).await;
        let mut replies = replies.unwrap().into_inner();
        assert_eq!(length(replies.next().await.unwrap().unwrap()), 1000);
        refused(replies.next().await.unwrap().unwrap_err(), "1001");
        let status = client.streaming_from_server(request(1001)).await;
        refused(status.unwrap_err(), "1001");
        let mut long = request(1);
        long.payload.as_mut().unwrap().body = vec![0; 1001].into();
        let status = client.unary_call(long).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
    }
    let (_server, mut client) = start("floor", &[]).await;
    let status = client.unary_call(request(1)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_goes_on_outlives_the_time_of_a_request() {
    let (_server, mut client) = start("tonic", &["--request-timeout", "2s"]).await;
    let (send, receive) = tokio::sync::mpsc::channel(1);
    let receive = tokio_stream::wrappers::ReceiverStream::new(receive);
    let replies = client.streaming_call(receive).await.unwrap();
    let mut replies = replies.into_inner();
    // Each message comes in time, all of them together do not.
    for _ in 0..30 {
        send.send(request(1)).await.unwrap();
        assert_eq!(length(replies.next().await.unwrap().unwrap()), 1);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    // One that is silent for longer is ended.
    let status = replies.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}
