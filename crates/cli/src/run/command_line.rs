//! The command line as result files have it.

use std::{
    env,
    sync::{Mutex, PoisonError},
};

/// The command line that a scenario's step stands for, while it runs.
static STEP: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Flags whose values are headers.
pub const HEADER_FLAGS: [&str; 3] = ["-H", "--header", "--metadata"];

/// Parts of the names of headers whose values may be secret.
const SECRET: [&str; 6] = ["auth", "cookie", "token", "key", "secret", "password"];

/// Replacement for a secret value, after the header's name.
pub const HIDDEN: &str = ": hidden";

/// Makes `words` the command line in result files, as if they were this process's own.
pub fn stand_for(words: Vec<String>) {
    *STEP.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// Returns the command line, without the values of headers that may be secret: result files are
/// shown to others.
pub fn command_line() -> Vec<String> {
    let step = STEP.lock().unwrap_or_else(PoisonError::into_inner);
    let own = || {
        let words = env::args_os();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    };
    without_secrets(step.clone().unwrap_or_else(own))
}

fn without_secrets(words: Vec<String>) -> Vec<String> {
    let mut follows = false;
    let hide = |word: String| {
        let flag = HEADER_FLAGS.iter().find(|flag| word.starts_with(**flag));
        let is_header = follows || flag.is_some();
        follows = flag.is_some_and(|flag| word == *flag);
        match word.split_once(':') {
            Some((name, _)) if is_header && is_secret(name) => format!("{name}{HIDDEN}"),
            _ => word,
        }
    };
    words.into_iter().map(hide).collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_headers_that_may_be_secret_are_hidden() {
        let shown = |line: &str| {
            let words = shlex::split(line).unwrap();
            without_secrets(words)[1..].to_vec()
        };
        assert_eq!(
            shown("netping -H 'Authorization: Bearer x' --header=x-api-key:1 '-HCookie: c'"),
            [
                "-H",
                "Authorization: hidden",
                "--header=x-api-key: hidden",
                "-HCookie: hidden"
            ]
        );
        let open = ["-H", "accept: text/html", "--data", "{\"token\": 1}"];
        let line = "netping -H 'accept: text/html' --data '{\"token\": 1}'";
        assert_eq!(shown(line), open);
    }
}
