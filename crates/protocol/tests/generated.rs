//! Holds the committed gRPC code to the schemas of `proto/`.
//!
//! The code is committed so that a first build compiles no schema compiler and needs no protoc.
//! After a change of a schema: `UPDATE_GENERATED=1 cargo test -p netping-protocol --test
//! generated`.

use std::{env, fs, path::Path};

use prost::Message;

#[test]
fn generated_code_matches_the_schemas() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = [
        "echo.proto",
        "hello.proto",
        "dataservice.proto",
        "benchmark.proto",
    ];
    let descriptors = protox::compile(schemas, [package.join("../../proto")]).unwrap();
    let fresh = tempfile::tempdir().unwrap();
    fs::write(
        fresh.path().join("descriptors.bin"),
        descriptors.encode_to_vec(),
    )
    .unwrap();
    // `Bytes` for data that is not looked at: a chunk is handed to the transport without a copy.
    tonic_prost_build::configure()
        .bytes(".echopb")
        .bytes(".grpc_bench")
        .bytes(".grpc.testing")
        .out_dir(fresh.path())
        .compile_fds(descriptors)
        .unwrap();

    let committed = package.join("src/generated");
    let update = env::var_os("UPDATE_GENERATED").is_some();
    for entry in fs::read_dir(fresh.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if update {
            fs::copy(&path, committed.join(name)).unwrap();
        }
        assert!(
            fs::read(&path).unwrap() == fs::read(committed.join(name)).unwrap(),
            "src/generated/{} is out of date; run this test with UPDATE_GENERATED=1",
            name.display()
        );
    }
}
