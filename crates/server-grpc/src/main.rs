//! `netping-server-grpc`: gRPC on tonic, on hyper, or on bare HTTP/2.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    netping_serving::service::run(&netping_server_grpc::SERVICE, std::env::args_os())
}
