//! Schemas of gRPC services: from the server itself, or from files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;
use prost_reflect::{DescriptorPool, prost_types::FileDescriptorSet};
use protox::Compiler;

use super::{descriptors::pool, reflection};
use crate::{error::SchemaError, plan::Destination};

/// The place that the schema of a service comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// The server, by gRPC reflection.
    Server,
    /// Source files, with the folders in which they and their imports are.
    Sources {
        /// The files.
        files: Vec<PathBuf>,
        /// The folders; if there is none, those of the files.
        folders: Vec<PathBuf>,
    },
    /// A file with an encoded `FileDescriptorSet`, as `protoc --descriptor_set_out` writes it.
    Encoded(PathBuf),
}

impl Schema {
    /// Returns the types of the service with this name; `None`: those of all services, as far as
    /// they can be known.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn read(
        &self,
        destination: &Destination,
        service: Option<&str>,
    ) -> Result<DescriptorPool, SchemaError> {
        match self {
            Self::Server => reflection::read(destination, service),
            Self::Sources { files, folders } => compile(files, folders),
            Self::Encoded(path) => {
                let origin = path.display().to_string();
                let bytes = fs::read(path).map_err(cannot_read(path))?;
                let set = FileDescriptorSet::decode(&*bytes)
                    .map_err(|error| SchemaError::NoDescriptors(origin.clone(), error))?;
                pool(set.file, &origin)
            }
        }
    }
}

fn cannot_read(path: &Path) -> impl FnOnce(io::Error) -> SchemaError {
    |reason| SchemaError::File {
        path: path.to_owned(),
        reason,
    }
}

fn compile(files: &[PathBuf], folders: &[PathBuf]) -> Result<DescriptorPool, SchemaError> {
    let own = || files.iter().filter_map(|file| file.parent());
    let folders: Vec<PathBuf> = if folders.is_empty() {
        let place = |folder: &Path| {
            if folder.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                folder.to_owned()
            }
        };
        own().map(place).collect()
    } else {
        folders.to_vec()
    };
    for file in files {
        fs::metadata(file).map_err(cannot_read(file))?;
    }
    // The library's short form of an error leaves out the place.
    let wrong = |error: protox::Error| {
        let mut text = format!("{error:?}");
        if text.contains("found 'edition'") {
            text.push_str("; editions are read from --protoset FILE, which protoc writes");
        }
        SchemaError::Source(text)
    };
    let mut compiler = Compiler::new(folders).map_err(wrong)?;
    compiler.open_files(files).map_err(wrong)?;
    Ok(compiler.descriptor_pool())
}
