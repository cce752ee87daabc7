//! Reads result files.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    path::Path,
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::{
    file::{check::check, version_2},
    format::{is_unsafe, on_one_line},
    run::{Run, SCHEMA_VERSION},
};

/// Maximum size of a result file, in bytes: 64 MiB, which is thousands of steps.
pub const LARGEST: u64 = 64 << 20;

/// A result file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct LoadError {
    /// The file, or standard input.
    pub name: String,
    /// The reason.
    pub reason: Unreadable,
}

/// The reason why a result file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system reported an error.
    #[error("cannot be read: {0}")]
    System(io::Error),
    /// It has more than [`LARGEST`] bytes.
    #[error("larger than {} MiB, the limit for a result file: if it is one, measure fewer steps in a run", LARGEST >> 20)]
    TooLarge,
    /// It ends too early.
    #[error("empty or cut off ({0}): copy it again, or measure again")]
    CutOff(serde_json::Error),
    /// It is not JSON.
    #[error("not JSON ({0}): not a result file of netping, or changed since")]
    NoJson(serde_json::Error),
    /// It is JSON, but not of netping.
    #[error("not a result file of netping: it is JSON, but has no schema_version")]
    Foreign,
    /// Its schema version is neither [`SCHEMA_VERSION`] nor the one before.
    #[error(
        "schema version {version}, and this netping reads {old} and {own}: use the netping that wrote it{tool}",
        old = version_2::VERSION,
        own = SCHEMA_VERSION
    )]
    OtherVersion {
        /// The file's `schema_version`.
        version: u64,
        /// The version of the netping that wrote it, in brackets; empty where the file does not
        /// tell.
        tool: String,
    },
    /// Something in it is not of the form that it says it has.
    #[error("not a valid result file ({0}): it was changed, or written by another program")]
    Form(serde_json::Error),
    /// Its numbers are inconsistent.
    #[error("inconsistent numbers: {0}; the file was changed or damaged")]
    Unsound(String),
}

/// The part of the form that all versions share.
#[derive(Deserialize)]
struct Head {
    schema_version: u64,
}

impl Run {
    /// Reads a result file; `-` is standard input. Of a larger file than [`LARGEST`] no more than that is read.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let (name, bytes) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), read(io::stdin().lock()))
        } else {
            (path.display().to_string(), open(path))
        };
        bytes
            .and_then(|bytes| Self::from_json(&bytes))
            .map_err(|reason| LoadError { name, reason })
    }

    /// Reads a result file's text and checks its numbers.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn from_json(json: &[u8]) -> Result<Self, Unreadable> {
        // The whole text first, so that invalid JSON is reported as such.
        serde_json::from_slice::<IgnoredAny>(json).map_err(|error| {
            if error.is_eof() {
                Unreadable::CutOff(error)
            } else {
                Unreadable::NoJson(error)
            }
        })?;
        let head = serde_json::from_slice::<Head>(json).map_err(|_| Unreadable::Foreign)?;
        let version = head.schema_version;
        let known = [version_2::VERSION, SCHEMA_VERSION].map(u64::from);
        if !known.contains(&version) {
            // Later versions may still tell it.
            let file: Value = serde_json::from_slice(json).unwrap_or_default();
            let tool = file["tool"]["version"].as_str();
            let tool = tool.map_or_else(String::new, |own| format!(" ({})", on_one_line(own)));
            return Err(Unreadable::OtherVersion { version, tool });
        }
        let clean = clean(json);
        let json = clean.as_deref().unwrap_or(json);
        let mut run: Self = serde_json::from_slice(json).map_err(Unreadable::Form)?;
        if version == u64::from(version_2::VERSION) {
            let old = serde_json::from_slice(json).map_err(Unreadable::Form)?;
            version_2::upgrade(&mut run, old).map_err(Unreadable::Unsound)?;
        }
        check(&run).map_err(Unreadable::Unsound)?;
        Ok(run)
    }
}

/// The field that is no text for people, and is repeated to the letter.
const COMMAND_LINE: &str = "command_line";

/// Returns a file whose texts, which may be somebody else's, are each one line that can be shown; `None` where
/// they are so already.
fn clean(json: &[u8]) -> Option<Vec<u8>> {
    // Control characters are escaped in JSON, and all others that matter are not in ASCII.
    if json.iter().all(|byte| byte.is_ascii() && *byte != b'\\') {
        return None;
    }
    let mut file: Value = serde_json::from_slice(json).unwrap_or_default();
    let mut is_changed = false;
    let mut open = vec![&mut file];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if text.contains(is_unsafe) => {
                *text = on_one_line(text);
                is_changed = true;
            }
            Value::Array(all) => open.extend(all),
            Value::Object(fields) => {
                if fields.keys().any(|name| name.contains(is_unsafe)) {
                    is_changed = true;
                    let old = mem::take(fields).into_iter();
                    fields.extend(old.map(|(name, value)| (on_one_line(&name), value)));
                }
                let texts = fields.iter_mut().filter(|(name, _)| *name != COMMAND_LINE);
                open.extend(texts.map(|(_, value)| value));
            }
            _ => {}
        }
    }
    is_changed.then(|| serde_json::to_vec(&file).unwrap_or_default())
}

fn open(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let file = File::open(path).map_err(Unreadable::System)?;
    if file.metadata().is_ok_and(|about| about.len() > LARGEST) {
        return Err(Unreadable::TooLarge);
    }
    read(file)
}

/// Reads to the end, but one byte beyond the limit at the most: a pipe does not tell its length.
fn read(source: impl Read) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    source
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(Unreadable::System)?;
    let is_whole = bytes.len() as u64 <= LARGEST;
    is_whole.then_some(bytes).ok_or(Unreadable::TooLarge)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::LazyLock};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        compare::compare_runs,
        fixtures::{self, run, step},
        merge::{MergeRules, merge},
    };

    static JSON: LazyLock<String> = LazyLock::new(|| {
        run(vec![step(6, |second| vec![1000 + second, 2000, 3000])])
            .to_json()
            .unwrap()
    });

    /// The error of a valid file with one thing changed.
    fn changed(change: impl FnOnce(&mut Value)) -> String {
        let mut value: Value = serde_json::from_str(&JSON).unwrap();
        change(&mut value);
        Run::from_json(value.to_string().as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_written_file_is_read_back() {
        let read = Run::from_json(JSON.as_bytes()).unwrap();
        let (step, whole) = (
            &read.steps[0],
            step(6, |second| vec![1000 + second, 2000, 3000]),
        );
        assert_eq!(
            (&step.summary.accounting, &step.intervals),
            (&whole.summary.accounting, &whole.intervals)
        );
        assert_eq!(step.histograms, whole.histograms);
        // A file may have been written before a field was added, or after a later one was.
        let mut other: Value = serde_json::from_str(&JSON).unwrap();
        let step = &mut other["steps"][0];
        for (at, name) in [
            ("", "window_started_at"),
            ("", "client_late"),
            ("", "early"),
            ("/histograms", "client_late"),
            ("/histograms", "censored"),
        ] {
            let part = step.pointer_mut(at).unwrap().as_object_mut().unwrap();
            part.remove(name).unwrap();
            part.insert("later".to_owned(), json!([1]));
        }
        let other = Run::from_json(other.to_string().as_bytes()).unwrap();
        assert_eq!(other.steps[0].window_started_at, None);
        assert_eq!(other.steps[0].histograms, whole.histograms);
    }

    #[test]
    fn each_kind_of_unreadable_file_has_its_own_reason() {
        let error = |text: &str| Run::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(
            error(&JSON[..JSON.len() / 2]).contains("cut off (EOF"),
            "{}",
            error(&JSON[..JSON.len() / 2])
        );
        assert!(error("").contains("empty or cut off"));
        assert!(error("{\n  \"a\": x").contains("not JSON (expected value at line 2"));
        for foreign in [
            "{\"a\": 1}",
            "[1, 2]",
            "\"text\"",
            "null",
            "{\"schema_version\": \"one\"}",
        ] {
            assert!(matches!(
                Run::from_json(foreign.as_bytes()),
                Err(Unreadable::Foreign | Unreadable::Form(_))
            ));
        }
        assert!(error("{\"a\": 1}").contains("no schema_version"));
        assert!(error("{\"schema_version\": 2}").contains("missing field `status`"));
        assert!(changed(|run| run["steps"] = json!(7)).contains("invalid type: integer `7`"));
    }

    #[test]
    fn another_version_says_what_reads_it() {
        for version in [1, 4] {
            let error = changed(|run| {
                run["schema_version"] = json!(version);
                run["tool"]["version"] = json!("9.1.0");
                run["steps"] = json!("of another kind");
            });
            assert_eq!(
                error,
                format!(
                    "schema version {version}, and this netping reads 2 and 3: use the netping that wrote it (9.1.0)"
                )
            );
        }
        let error = Run::from_json(b"{\"schema_version\": 4}")
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("use the netping that wrote it"), "{error}");
    }

    #[test]
    fn texts_are_each_one_line_and_the_command_line_is_as_it_was() {
        let mut value: Value = serde_json::from_str(&JSON).unwrap();
        value["steps"][0]["label"] = json!("a\nVALID: \u{202e}b");
        value["command_line"] = json!(["netping", "--data", "{\n}"]);
        let run = Run::from_json(value.to_string().as_bytes()).unwrap();
        assert_eq!(
            run.steps[0].label.as_deref(),
            Some("a\u{fffd}VALID: \u{fffd}b")
        );
        assert_eq!(run.command_line[2], "{\n}");
        let error = changed(|run| run["steps"][0]["label"] = json!({"\u{1b}[2J\n": 1}));
        assert!(!error.contains(['\u{1b}', '\n']), "{error}");
    }

    #[test]
    fn inconsistent_numbers_are_found() {
        let cases: [(&str, Value, &str); 6] = [
            ("/steps/0/scheduled", json!(7), "'scheduled'"),
            ("/steps/0/ok", json!(u64::MAX), "'scheduled'"),
            ("/steps/0/late", json!(1000), "'late'"),
            ("/steps/0/rate_per_s", json!(-1.0), "rate"),
            ("/steps/0/service_time/count", json!(3), "service_time"),
            ("/steps/0/settings/callers", json!(0), "callers"),
        ];
        for (path, value, expected) in cases {
            let error = changed(|run| *run.pointer_mut(path).unwrap() = value);
            assert!(
                error.contains("step 1 (tcp://") && error.contains(expected),
                "{path}: {error}"
            );
        }
    }

    #[test]
    fn a_histogram_that_is_no_histogram_is_found() {
        let error = changed(|run| run["steps"][0]["histograms"]["lag"] = json!("AAAA"));
        assert!(
            error.contains("invalid histogram: not an HdrHistogram"),
            "{error}"
        );
    }

    #[test]
    fn a_histogram_of_other_times_is_found() {
        let error = changed(|run| {
            let histograms = &mut run["steps"][0]["histograms"];
            histograms["response_time"] = histograms["lag"].clone();
        });
        assert!(
            error.contains("response_time says a minimum of 1000 ns, and its histogram has 0 ns"),
            "{error}"
        );
    }

    #[test]
    fn numbers_of_bulk_streams_have_bounds_too() {
        let sound = |run: &mut Value| {
            let steps = fixtures::bulk("grpc://h:3", &[0.5]);
            run["steps"] = json!([serde_json::to_value(&steps[0]).unwrap()]);
        };
        let mut value: Value = serde_json::from_str(&JSON).unwrap();
        sound(&mut value);
        Run::from_json(value.to_string().as_bytes()).unwrap();
        for (path, value) in [
            ("gib_per_second", json!(1e308)),
            ("first_byte_seconds", json!(-1.0)),
            ("client_cpu_seconds_per_gib", json!(-1.0)),
        ] {
            let error = changed(|run| {
                sound(run);
                run["steps"][0]["bulk"][path] = value;
            });
            assert!(error.contains(path), "{path}: {error}");
        }
    }

    #[test]
    fn numbers_of_measurements_have_bounds() {
        for (path, value, expected) in [
            ("/looks", json!(1_000_000_000_000_000_000_u64), "looks"),
            ("/looks", json!(0), "looks"),
            ("/margin", json!(-0.5), "margin"),
            (
                "/pairings",
                json!([{ "base": 0, "new": u32::MAX }]),
                "measurement 4294967295",
            ),
            ("/steps/0/measurement", json!(u32::MAX), "measurement"),
        ] {
            let error = changed(|run| {
                run["looks"] = json!(1);
                run["margin"] = json!(0.5);
                run["pairings"] = json!([]);
                *run.pointer_mut(path).unwrap() = value;
            });
            assert!(error.contains(expected), "{path}: {error}");
        }
    }

    #[test]
    fn what_is_told_of_connections_fits_together() {
        let with = |[sum, min, max]: [u64; 3], closed: u64| {
            let path = json!({
                "connections": 2, "opened": 0, "closed": closed,
                "facts": { "sent_packets": { "sum": sum, "min": min, "max": max } },
            });
            let mut run: Value = serde_json::from_str(&JSON).unwrap();
            run["steps"][0]["path"] = path;
            Run::from_json(run.to_string().as_bytes()).map_err(|error| error.to_string())
        };
        assert!(with([10, 3, 7], 0).is_ok());
        for wrong in [with([10, 8, 7], 0), with([6, 3, 7], 0)] {
            assert!(wrong.unwrap_err().contains("path: SentPackets"));
        }
        assert!(
            with([10, 3, 7], u64::MAX)
                .unwrap_err()
                .contains("path.closed")
        );
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let nested = "[".repeat(1_000_000);
        let inside = |text: &str| format!("{{\"schema_version\": 3, \"steps\": {text}");
        for text in [
            nested.clone(),
            inside(&nested),
            inside(&(nested.clone() + &"]".repeat(1_000_000) + "}")),
        ] {
            assert!(Run::from_json(text.as_bytes()).is_err());
        }
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        assert!(matches!(read(io::repeat(b' ')), Err(Unreadable::TooLarge)));
        let file = tempfile::NamedTempFile::new().unwrap();
        // Without a byte in it: it is refused by its length.
        file.as_file().set_len(200 << 20).unwrap();
        let error = Run::load(file.path()).unwrap_err().to_string();
        assert!(
            error.contains("larger than 64 MiB") && error.contains(&*file.path().to_string_lossy()),
            "{error}"
        );
        let error = Run::load(Path::new("/no/such/file.json"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/no/such/file.json: cannot be read: No such file"),
            "{error}"
        );
        assert!(Run::load(Path::new("/")).is_err());
    }

    /// Whatever is read is fit for what is done with it.
    fn use_it(bytes: &[u8]) {
        if let Ok(read) = Run::from_json(bytes) {
            let other = Run::from_json(JSON.as_bytes()).unwrap();
            let files = compare_runs(&other, &read, &[]);
            let within = read.compared();
            let pairs = files.pairs.iter().chain(&within);
            for comparison in pairs.flat_map(|pair| &pair.comparisons) {
                comparison.finding();
            }
            let tool = read.tool.clone();
            let names = ["a", "b"].map(str::to_owned);
            let load = |at: usize| Ok::<_, Infallible>([&other, &read][at].clone());
            let _ = merge(&names, load, &MergeRules::default(), tool, Vec::new());
        }
    }

    proptest! {
        #[test]
        fn a_file_that_is_cut_off_is_an_error(at in any::<prop::sample::Index>()) {
            // Without its last newline and bracket.
            let bytes = &JSON.as_bytes()[..at.index(JSON.len() - 2)];
            prop_assert!(matches!(Run::from_json(bytes), Err(Unreadable::CutOff(_) | Unreadable::NoJson(_))));
        }

        #[test]
        fn bytes_that_changed_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = JSON.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            use_it(&bytes);
        }

        #[test]
        fn digits_that_changed_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..10), 1..6),
        ) {
            let mut bytes = JSON.as_bytes().to_vec();
            let digits: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
            for (at, digit) in changes {
                bytes[*at.get(&digits)] = b'0' + digit;
            }
            use_it(&bytes);
        }
    }
}
