//! Times of day in result files: nanoseconds since 1970 as RFC 3339 in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes a time.
///
/// # Errors
/// Those of `serializer`.
#[expect(clippy::ref_option, reason = "serde gives the field")]
pub fn serialize<S: Serializer>(time: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        None => serializer.serialize_none(),
        Some(nanoseconds) => serializer.serialize_str(&text(*nanoseconds)),
    }
}

/// Reads a time.
///
/// # Errors
/// Those of `deserializer`, and text that is no such time.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parse = |text: String| {
        let wrong = || D::Error::custom(format!("'{text}' is not a time as in RFC 3339"));
        let time = humantime::parse_rfc3339(&text).map_err(|_| wrong())?;
        let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
        u64::try_from(since.as_nanos()).map_err(|_| wrong())
    };
    text.map(parse).transpose()
}

/// Returns nanoseconds since 1970 as text.
fn text(nanoseconds: u64) -> String {
    let time: SystemTime = UNIX_EPOCH + Duration::from_nanos(nanoseconds);
    humantime::format_rfc3339_nanos(time).to_string()
}
