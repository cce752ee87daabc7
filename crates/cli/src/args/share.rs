//! Shares in flags.

/// Reads a share in per cent.
pub fn share_in_percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("not a share from 0% to 100%, such as 5%".to_owned()),
    }
}

/// Reads a share from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share @ 0.0..=1.0) => Ok(share),
        _ => Err("not a share from 0 to 1, such as 0.001".to_owned()),
    }
}
