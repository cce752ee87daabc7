//! Compiles the schemas of `proto/` with protox, so that no protoc is needed.

use std::{env, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", folder.display());
    let files = ["echo.proto", "hello.proto", "dataservice.proto"];
    let descriptors = protox::compile(files, [&folder])?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // `Bytes` for the bulk stream's data: a chunk is handed to the transport without a copy.
    tonic_prost_build::configure()
        .bytes(".grpc_bench")
        .compile_fds(descriptors)?;
    Ok(())
}
