//! Flags about results.

use std::{path::PathBuf, str::FromStr};

use clap::Args;

/// Where results go.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Write the results as JSON, anew after every step; '-': to standard output at the end, with tables on stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTo>,
    /// Exit with 1 when a larger share of requests fails, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub max_error_rate: f64,
}

/// Where JSON goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTo {
    /// To standard output.
    Stdout,
    /// To this file.
    File(PathBuf),
}

impl FromStr for JsonTo {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share @ 0.0..=1.0) => Ok(share),
        _ => Err("not a share from 0 to 1, such as 0.001".to_owned()),
    }
}
