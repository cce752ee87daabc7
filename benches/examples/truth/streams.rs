//! Messages on open streams: one stream of many that stalls, and streams that end while they owe replies.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use netping_benches::processes::netping;
use netping_protocol::echopb::{
    EchoRequest, EchoResponse, Tick, WatchRequest,
    echo_server::{Echo, EchoServer},
};
use tokio::{net::TcpListener, runtime::Builder, time::sleep};
use tonic::{
    Request, Response, Status, Streaming,
    transport::server::{Server, TcpIncoming},
};

use crate::{Tell, Truth};

/// Messages of each run, and the callers, each with a stream of its own.
const MESSAGES: u64 = 20_000;
const CALLERS: &str = "64";

/// The stream and the message of the stall, and its length.
const STALLED: (u64, u64) = (17, 50);
const STALL: Duration = Duration::from_millis(500);

/// The messages after which a stream ends.
const LIFE: u64 = 100;

/// Checks closed and open loops.
pub fn check(tell: Tell<'_>) {
    for (name, rate) in [("closed loop", None), ("open loop, 2,000/s", Some("2k"))] {
        tell(stall(name, rate));
        tell(ends(name, rate));
    }
}

fn stall(name: &str, rate: Option<&str>) -> Truth {
    let (url, _) = serve(Habit::Stalls);
    let said = measure(&url, rate);
    let times = &said["response_time"];
    let millis = |name: &str| times[name].as_u64().unwrap_or(0) as f64 / 1e6;
    let [max, p99] = ["max_ns", "p99_ns"].map(millis);
    Truth {
        what: format!("{name}: one of {CALLERS} streams stalls once, for 500 ms"),
        expected: format!("{MESSAGES} replies, max from 500 ms, p99 below half of it"),
        found: format!("{} replies, max {max:.0} ms, p99 {p99:.1} ms", said["ok"]),
        passed: Some(said["ok"] == MESSAGES && max >= 500.0 && (0.001..max / 2.0).contains(&p99)),
    }
}

fn ends(name: &str, rate: Option<&str>) -> Truth {
    let (url, ended) = serve(Habit::Ends);
    let said = measure(&url, rate);
    let ended = ended.load(Ordering::Relaxed);
    let ok = said["ok"].as_u64().unwrap_or(0);
    let failed = said["errors"]["grpc_14"].as_u64().unwrap_or(0);
    Truth {
        what: format!("{name}: each stream ends with UNAVAILABLE instead of its reply {LIFE}"),
        expected: format!("{ended} failures, and {} replies", MESSAGES - ended),
        found: format!("{failed} failures, and {ok} replies"),
        passed: Some(ended > 0 && failed == ended && ok + failed == MESSAGES),
    }
}

/// Sends messages; returns the step of the result.
fn measure(url: &str, rate: Option<&str>) -> serde_json::Value {
    let count = MESSAGES.to_string();
    let mut args = vec!["throughput", url, "--per-message", "-c", CALLERS];
    args.extend(["--connections", "4", "--requests", &count, "--warmup", "0s"]);
    args.extend(["--server-metrics", "off", "--no-first-call"]);
    args.extend(rate.iter().flat_map(|rate| ["--rate", rate]));
    netping(&args).step().clone()
}

/// A habit of a server.
#[derive(Clone, Copy)]
enum Habit {
    Stalls,
    Ends,
}

/// Starts a server, for the rest of the process; returns its URL, and the number of streams that it has ended.
fn serve(habit: Habit) -> (String, Arc<AtomicU64>) {
    let ended = Arc::<AtomicU64>::default();
    let chats = Chats {
        habit,
        streams: Arc::default(),
        ended: Arc::clone(&ended),
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a free port");
    let url = format!("grpc://{}", listener.local_addr().expect("an address"));
    let server = Server::builder().add_service(EchoServer::new(chats));
    thread::spawn(move || {
        runtime.block_on(server.serve_with_incoming(TcpIncoming::from(listener)))
    });
    (url, ended)
}

struct Chats {
    habit: Habit,
    streams: Arc<AtomicU64>,
    ended: Arc<AtomicU64>,
}

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Echo for Chats {
    type ChatStream = Streamed<EchoResponse>;
    type WatchStream = Streamed<Tick>;

    async fn echo(&self, _: Request<EchoRequest>) -> Result<Response<EchoResponse>, Status> {
        Err(Status::unimplemented("it has streams alone"))
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("it has no ticker"))
    }

    async fn chat(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        let (habit, ended) = (self.habit, Arc::clone(&self.ended));
        let stream = self.streams.fetch_add(1, Ordering::Relaxed) + 1;
        let numbered = request.into_inner().zip(stream::iter(1..));
        let answers = numbered.then(move |(message, number)| {
            let ended = Arc::clone(&ended);
            async move {
                match habit {
                    Habit::Stalls if (stream, number) == STALLED => sleep(STALL).await,
                    Habit::Ends if number == LIFE => {
                        ended.fetch_add(1, Ordering::Relaxed);
                        return Err(Status::unavailable("this stream has lived long enough"));
                    }
                    _ => {}
                }
                let output = message?.input;
                Ok(EchoResponse { output })
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}
