//! Times in flags.

use std::time::Duration;

use humantime::parse_duration;
use netping_client::plan::Warmup;

/// Reads a warm-up: a time, or `auto`.
pub fn warmup(text: &str) -> Result<Warmup, String> {
    if text == "auto" {
        return Ok(Warmup::Auto);
    }
    let time = parse_duration(text).map(Warmup::Time);
    time.map_err(|_| "a warm-up is a time with its unit, such as 500ms or 2s, or 'auto'".to_owned())
}

/// Reads a time above zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("0 is too short".to_owned()),
        Ok(duration) => Ok(duration),
        Err(_) => {
            // grpcurl and curl have '-d' for it.
            let looks_like_data = text.starts_with(['{', '[', '@']);
            let tip = if looks_like_data {
                "; a request's data is given by --data"
            } else {
                ""
            };
            Err(format!("a time has a unit, such as 500ms, 2s or 1m{tip}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_in_the_place_of_a_time_is_told_its_flag() {
        for (text, expected) in [("{\"id\": 1}", true), ("@file", true), ("5", false)] {
            assert_eq!(
                positive(text).unwrap_err().contains("--data"),
                expected,
                "{text}"
            );
        }
    }
}
