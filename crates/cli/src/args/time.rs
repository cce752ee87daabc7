//! Times in flags.

use std::time::Duration;

use netping_client::plan::Warmup;
use netping_protocol::units;

/// Reads a warm-up: a time, or `auto`.
pub fn warmup(text: &str) -> Result<Warmup, String> {
    if text == "auto" {
        return Ok(Warmup::Auto);
    }
    let time = units::time(text).map(Warmup::Time);
    time.map_err(|error| format!("{error}; a warm-up may also be 'auto'"))
}

/// Reads a time above zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    match units::time(text) {
        Ok(Duration::ZERO) => Err("0 is too short".to_owned()),
        // grpcurl and curl have '-d' for it.
        Err(error) if text.starts_with(['{', '[', '@']) => {
            Err(format!("{error}; a request's data is given by --data"))
        }
        known => known,
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
