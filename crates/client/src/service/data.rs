//! The data of requests: documents, and the pool of bodies made from them.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io::{self, Read},
    path::Path,
};

use bytes::Bytes;
use netping_protocol::pool::{Order, Pool};
use serde::de::IgnoredAny;

/// Bodies in a pool whose documents have placeholders, or somewhat more, so that each document is
/// there equally often.
pub const FILLED: usize = 4096;

/// Limit on the bytes of all bodies.
const LARGEST: usize = 1 << 30;

/// A number that differs from body to body, from 0 on.
const NUMBER: &str = "{{n}}";
/// A random UUID (version 4) that differs from body to body.
const UUID: &str = "{{uuid}}";

/// Names of files with a document in each line end so.
const LINES: [&str; 2] = ["jsonl", "ndjson"];

/// The data that the user gives.
#[derive(Debug, Clone, Default)]
pub struct Data {
    sources: Vec<DataSource>,
    /// The order in which documents are sent.
    pub order: Order,
}

/// A value of the flag.
#[derive(Debug, Clone)]
struct DataSource {
    /// The value of the flag, to name it in errors.
    name: String,
    contents: Vec<u8>,
    in_lines: bool,
}

/// The result of what may fail with a [`DataError`].
pub(super) type Result<T, E = DataError> = std::result::Result<T, E>;

/// Data or expected contents that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file of this name could not be read.
    #[error("cannot read {0}: {1}")]
    File(String, io::Error),
    /// A document does not fit, or the bodies would take too much memory.
    #[error("{0}")]
    Unfit(String),
}

/// Returns the error of a file that cannot be read.
pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> DataError {
    |reason| DataError::File(path.display().to_string(), reason)
}

impl Data {
    /// Reads the values of the flag: data, `@FILE`, or `-` for standard input.
    ///
    /// # Errors
    /// [`DataError::File`].
    pub fn read(values: &[String], order: Order) -> Result<Self> {
        let sources = values.iter().map(|value| DataSource::read(value));
        Ok(Self {
            sources: sources.collect::<Result<_, _>>()?,
            order,
        })
    }

    /// Returns true if there is no data.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns a hash of the data; `None` if there is none.
    pub fn hash(&self) -> Option<u64> {
        let parts = self.sources.iter().map(|source| &*source.contents);
        (!self.is_empty()).then(|| fnv1a(parts))
    }

    /// Returns a pool of the data as it is: each source is a body, or each of its lines if it is a
    /// file of lines.
    ///
    /// # Errors
    /// [`DataError::Unfit`].
    pub fn bodies(&self) -> Result<Pool> {
        let documents = |source: &DataSource| {
            if source.in_lines {
                return lines(&source.contents);
            }
            Ok(vec![source.contents.clone()])
        };
        self.pool(documents, |document| Ok(Bytes::copy_from_slice(document)))
    }

    /// Returns a pool of JSON documents, which follow each other in a source, each encoded by
    /// `encode`.
    ///
    /// # Errors
    /// [`DataError::Unfit`].
    pub fn messages(&self, encode: impl Fn(&str) -> Result<Bytes, String>) -> Result<Pool> {
        let documents = |source: &DataSource| json_documents(&source.contents);
        self.pool(documents, |document| encode(text(document)?))
    }

    fn pool(
        &self,
        documents: impl Fn(&DataSource) -> Result<Vec<Vec<u8>>, String>,
        encode: impl Fn(&[u8]) -> Result<Bytes, String>,
    ) -> Result<Pool> {
        let mut all = Vec::new();
        for source in &self.sources {
            let own = documents(source).map_err(|reason| source.wrong(None, &reason))?;
            let several = own.len() > 1;
            for (document, number) in own.into_iter().zip(1..) {
                all.push((document, source, several.then_some(number)));
            }
        }
        let mut documents = all.iter().map(|(document, ..)| document);
        let differ = documents.any(|document| fill(document, 0) != *document);
        let rounds = if differ {
            FILLED.div_ceil(all.len())
        } else {
            1
        };
        let bytes: usize = all.iter().map(|(document, ..)| document.len()).sum();
        let (bodies, bytes) = (all.len() * rounds, bytes.saturating_mul(rounds));
        if bytes > LARGEST {
            return Err(DataError::Unfit(format!(
                "--data: {bodies} bodies of {bytes} bytes in all are more than {LARGEST} bytes; shorten the documents \
                 that have placeholders, or leave out some"
            )));
        }
        let numbered = (0..rounds).flat_map(|_| &all).enumerate();
        let bodies = numbered.map(|(n, (document, source, number))| {
            encode(&fill(document, n)).map_err(|reason| source.wrong(*number, &reason))
        });
        let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
        Ok(Pool::new(bodies, self.order).unwrap_or_default())
    }
}

impl DataSource {
    /// Returns the error of a document that does not fit.
    fn wrong(&self, number: Option<usize>, reason: &str) -> DataError {
        let number = number.map(|number| format!(", document {number}"));
        let number = number.unwrap_or_default();
        let is_file = !self.name.starts_with('@') && Path::new(&self.name).is_file();
        let hint = if is_file {
            "; '@' before its name means the file's contents"
        } else {
            ""
        };
        DataError::Unfit(format!("--data {}{number}: {reason}{hint}", self.name))
    }

    fn read(value: &str) -> Result<Self> {
        let path = value.strip_prefix('@').map(Path::new);
        let contents = match path {
            Some(path) => fs::read(path),
            None if value == "-" => {
                let mut input = Vec::new();
                io::stdin().read_to_end(&mut input).map(|_| input)
            }
            None => Ok(value.into()),
        };
        let name = shortened(value);
        let unreadable = |reason| DataError::File(format!("--data {name}"), reason);
        let contents = contents.map_err(unreadable)?;
        let ending = path.and_then(|path| path.extension()?.to_str());
        Ok(Self {
            name,
            contents,
            in_lines: ending.is_some_and(|ending| LINES.contains(&ending)),
        })
    }
}

/// Returns the beginning of a value, as errors show it.
fn shortened(value: &str) -> String {
    const LONGEST: usize = 40;
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

/// Returns the 64-bit FNV-1a hash of several parts, each ended by a byte that no UTF-8 has (Fowler,
/// Noll and Vo; RFC 9923).
fn fnv1a<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let bytes = parts.flat_map(|part| part.iter().chain(&[0xFF]));
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8: {error}"))
}

/// Returns the lines that are not empty.
fn lines(contents: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let lines = contents.split(|byte| *byte == b'\n');
    let trimmed = lines.map(|line| line.trim_ascii().to_vec());
    let lines: Vec<_> = trimmed.filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err("it has no line".to_owned());
    }
    Ok(lines)
}

/// Returns the JSON documents that follow each other in `contents`. A placeholder may stand where a
/// number may.
fn json_documents(contents: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let contents = text(contents)?;
    // Digits of the same length, so that places stay the same.
    let digits = |placeholder: &str| "1".repeat(placeholder.len());
    let masked = contents.replace(NUMBER, &digits(NUMBER));
    let masked = masked.replace(UUID, &digits(UUID));
    let mut documents = Vec::new();
    let mut parser = serde_json::Deserializer::from_str(&masked).into_iter::<IgnoredAny>();
    let mut from = 0;
    while let Some(document) = parser.next() {
        document.map_err(|error| format!("it is not JSON: {error}"))?;
        let end = parser.byte_offset();
        documents.push(contents[from..end].trim_start().as_bytes().to_vec());
        from = end;
    }
    if documents.is_empty() {
        return Err("it has no JSON document".to_owned());
    }
    Ok(documents)
}

/// Returns the document with its placeholders, which are text in text, filled for the body with this
/// number.
fn fill(document: &[u8], number: usize) -> Vec<u8> {
    let Ok(text) = text(document) else {
        return document.to_vec();
    };
    let numbered = text.replace(NUMBER, &number.to_string());
    let mut parts = numbered.split(UUID);
    let beginning = parts.next().unwrap_or_default().to_owned();
    let filled = parts.fold(beginning, |filled, part| filled + &uuid() + part);
    filled.into_bytes()
}

/// Returns a random UUID (version 4 of RFC 9562).
fn uuid() -> String {
    // Its keys are random.
    let random = RandomState::new();
    let [high, low] = [0, 1].map(|half| random.hash_one(half));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFF,
        ((low >> 48) & 0x3FFF) | 0x8000,
        low & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn data(values: &[&str]) -> Data {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        Data::read(&values, Order::Turn).unwrap()
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "it stands for an encoder, which may fail"
    )]
    fn plain(document: &str) -> Result<Bytes, String> {
        Ok(Bytes::copy_from_slice(document.as_bytes()))
    }

    #[test]
    fn json_documents_follow_each_other_with_or_without_lines() {
        let pool = data(&["{\"a\": 1} {\"a\":\n2}", "[3]"])
            .messages(plain)
            .unwrap();
        assert_eq!(pool.bodies(), ["{\"a\": 1}", "{\"a\":\n2}", "[3]"]);
    }

    #[test]
    fn placeholders_make_a_pool_of_different_bodies() {
        let pool = data(&["{\"id\": {{n}}, \"key\": \"{{uuid}}\"} {\"id\": {{n}}}"]);
        let pool = pool.messages(plain).unwrap();
        assert_eq!(pool.bodies().len(), FILLED);
        let different: BTreeSet<_> = pool.bodies().iter().collect();
        assert_eq!(different.len(), FILLED);
        assert_eq!(pool.bodies()[4095], "{\"id\": 4095}");
        assert!(pool.bodies()[4094].starts_with(b"{\"id\": 4094, \"key\": \""));
    }

    #[test]
    fn uuids_are_random_and_of_version_4() {
        let all: BTreeSet<_> = (0..1000).map(|_| uuid()).collect();
        assert_eq!(all.len(), 1000);
        for uuid in all {
            let parts: Vec<_> = uuid.split('-').collect();
            assert_eq!(
                parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
                [8, 4, 4, 4, 12]
            );
            assert!(
                parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']),
                "{uuid}"
            );
        }
    }

    #[test]
    fn data_without_json_is_a_body_as_it_is() {
        let file = tempfile::Builder::new()
            .suffix(".jsonl")
            .tempfile()
            .unwrap();
        fs::write(&file, "one\n\n two \n").unwrap();
        let name = format!("@{}", file.path().display());
        let pool = data(&["a b\n", &name]).bodies().unwrap();
        assert_eq!(pool.bodies(), ["a b\n", "one", "two"]);
    }

    #[test]
    fn the_hash_is_that_of_the_data_and_its_parts() {
        assert_eq!(Data::default().hash(), None);
        // The hash of `a` alone, from the authors' test vectors, and the end of the part after it.
        let a = 0xAF63_DC4C_8601_EC8C_u64;
        let end = (a ^ 0xFF).wrapping_mul(0x0000_0100_0000_01B3);
        assert_eq!(data(&["a"]).hash(), Some(end));
        assert_ne!(data(&["a", "b"]).hash(), data(&["ab"]).hash());
    }

    #[test]
    fn an_error_names_the_document_and_its_place() {
        let error = |values: &[&str]| data(values).messages(plain).unwrap_err().to_string();
        assert_eq!(
            error(&["{\"a\": }"]),
            "--data {\"a\": }: it is not JSON: expected value at line 1 column 7"
        );
        assert!(error(&[" "]).contains("no JSON document"));
        let second = data(&["1 2"]).messages(|document| match document {
            "2" => Err("no good".to_owned()),
            _ => plain(document),
        });
        assert_eq!(
            second.unwrap_err().to_string(),
            "--data 1 2, document 2: no good"
        );
        let missing = Data::read(&["@/nowhere/x".to_owned()], Order::Turn).unwrap_err();
        assert!(
            missing.to_string().contains("--data @/nowhere/x"),
            "{missing}"
        );
    }
}
