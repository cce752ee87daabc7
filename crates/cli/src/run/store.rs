//! The results of a run: its steps and the files that hold them.

use std::{
    env,
    path::{Path, PathBuf},
    slice,
};

use netping_client::clock;
use netping_measure::status::Status;
use netping_results::run::{Kind, Run, SCHEMA_VERSION, Tool};

use crate::{
    args::export::{Exports, JsonTo},
    environment,
    run::command_line::command_line,
};

/// The steps of a run, and the files that hold them.
#[derive(Debug)]
pub struct Store {
    /// The run as it is now.
    pub run: Run,
    /// Destination of the JSON.
    pub json: Option<JsonTo>,
    exports: Exports,
}

impl Store {
    /// Begins an empty run of this kind and creates its files. Files of an earlier run stay until there is
    /// something to replace them with.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn create(kind: Kind, json: Option<JsonTo>, exports: Exports) -> anyhow::Result<Self> {
        let run = Run {
            schema_version: SCHEMA_VERSION,
            status: Status::Partial,
            tool: tool(),
            command_line: command_line(),
            started_at: clock::timestamp(),
            environment: environment::fingerprint(),
            clock: None,
            order_seed: None,
            kind,
            pairings: Vec::new(),
            looks: 1,
            margin: None,
            proof: None,
            replaced: None,
            allowed: Vec::new(),
            steps: Vec::new(),
            parts: Vec::new(),
        };
        if let Some(JsonTo::File(path)) = &json {
            run.prepare(path)?;
        }
        exports.prepare(slice::from_ref(&run))?;
        Ok(Self { run, json, exports })
    }

    /// Adds a page and a result file with this stem to the files that are written from now on,
    /// unless others were asked for; here, or in a folder where everybody may write. Returns their
    /// paths.
    pub fn add_files(&mut self, stem: &str) -> Vec<PathBuf> {
        let folder = if tempfile::tempfile_in(".").is_ok() {
            PathBuf::new()
        } else {
            env::temp_dir()
        };
        let path = |extension: &str| folder.join(stem).with_extension(extension);
        let page = self.exports.page_or(&path("html"));
        let json = self.json.get_or_insert_with(|| JsonTo::File(path("json")));
        [page]
            .into_iter()
            .chain(json.file().map(Path::to_owned))
            .collect()
    }

    /// Returns true if there is anything that an earlier result should be replaced with.
    pub fn is_worth_saving(&self) -> bool {
        self.run.status == Status::Complete || !self.run.steps.is_empty()
    }

    /// Writes all files; returns a line for each failure.
    pub fn save(&self) -> Vec<String> {
        let exported = self.exports.write(slice::from_ref(&self.run));
        let mut failures: Vec<_> = exported.err().iter().map(ToString::to_string).collect();
        if let Some(JsonTo::File(path)) = &self.json
            && let Err(error) = self.run.save(path)
        {
            failures.push(format!("{error}; the file is as it was before"));
        }
        failures
    }

    /// Writes the JSON to standard output, if it belongs there.
    pub fn print(&self) -> anyhow::Result<()> {
        match &self.json {
            Some(to @ JsonTo::Stdout) => to.write(&self.run.to_json()?),
            _ => Ok(()),
        }
    }
}

/// Returns this program's entry in result files.
pub fn tool() -> Tool {
    Tool {
        name: "netping".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("NETPING_COMMIT").map(str::to_owned),
    }
}
