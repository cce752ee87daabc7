//! Other programs that this one runs as: netping-proxy, a server of nothing but std, and others of nothing but
//! tokio, tonic or quinn.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::ExitCode,
    thread,
};

use netping_benches::processes::SERVER;

use crate::{bare, bare_quic, peers::Peer};

/// The name under which it is netping-proxy.
pub const PROXY: &str = "proxy";

/// The name under which it is a server with a thread for each connection, of nothing but std.
pub const BARE: &str = "bare";

/// The names under which it is the server and the client of bulk over QUIC, on nothing but quinn.
pub const QUIC_SERVER: &str = "quic-server";
pub const QUIC_CLIENT: &str = "quic-client";

/// The names under which it sends lines over TCP, and requests of HTTP/1.1, on nothing but tokio.
pub const TCP_CLIENT: &str = "tcp-client";
pub const HTTP_CLIENT: &str = "http-client";

/// The names under which it is a server of HTTP/1.1 on nothing but tokio, and one of gRPC on nothing but tonic.
pub const HTTP_SERVER: &str = "http-server";
pub const TONIC_SERVER: &str = "tonic-server";

/// Starts one of its servers.
pub fn peer(name: &str) -> Option<Peer> {
    let name = name.to_owned();
    Peer::start(SERVER, &program()?, |address, _| {
        vec![name, address.to_owned()]
    })
}

/// Returns the path of this program.
pub fn program() -> Option<String> {
    Some(env::current_exe().ok()?.to_string_lossy().into_owned())
}

/// Runs as one of them, if the arguments say so.
pub fn run(args: &[String]) -> Option<ExitCode> {
    match args {
        [name, flags @ ..] if name == PROXY => {
            let line = [vec!["netping-proxy".to_owned()], flags.to_vec()].concat();
            Some(netping_serving::service::run(
                &netping_proxy::SERVICE,
                line.into_iter().map(Into::into),
            ))
        }
        [name, address] if name == BARE => {
            echo(address);
            Some(ExitCode::SUCCESS)
        }
        [name, address, connections, requests] if name == TCP_CLIENT || name == HTTP_CLIENT => {
            let number = |text: &String| text.parse::<u64>().expect("a number");
            let client = match &name[..] {
                TCP_CLIENT => bare::send_lines,
                _ => bare::send_http,
            };
            let sent = client(address, number(connections) as usize, number(requests));
            println!("{sent}");
            Some(ExitCode::SUCCESS)
        }
        [name, address] if name == HTTP_SERVER || name == TONIC_SERVER => {
            let address = address.parse().expect("an address");
            match &name[..] {
                HTTP_SERVER => bare::serve_http(address),
                _ => bare::serve_tonic(address),
            }
            Some(ExitCode::SUCCESS)
        }
        [name, address] if name == QUIC_SERVER || name == QUIC_CLIENT => {
            let address = address.parse().expect("an address");
            match &name[..] {
                QUIC_SERVER => bare_quic::server(address),
                _ => bare_quic::client(address),
            }
            Some(ExitCode::SUCCESS)
        }
        _ => None,
    }
}

fn echo(address: &str) {
    let listener = TcpListener::bind(address).expect("a free address");
    for stream in listener.incoming().flatten() {
        let _ = stream.set_nodelay(true);
        thread::spawn(move || {
            let mut reader = BufReader::new(&stream);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
                && (&stream).write_all(&line).is_ok()
            {
                line.clear();
            }
        });
    }
}

/// Makes a file with a pre-shared key.
pub fn make_key(path: &str) {
    fs::write(path, [7; 32]).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its permissions");
}
