//! `netping check`: this host and servers, before an expensive run.

pub mod args;
mod finding;
mod floor;
mod machine;
mod server;

use std::{
    fs,
    io::{self, Write},
};

use anyhow::Context;
use netping_report::table::{Column, Table};
use netping_results::format::on_one_line;

use self::{
    args::CheckArgs,
    finding::{Finding, State},
};
use crate::{
    error::{Failed, Verdict, tell},
    interrupt,
    run::{clock_demand::ClockDemand, options::JsonTo},
};

pub fn run(args: &CheckArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    let interrupt = interrupt::on_signals().context("cannot handle Ctrl-C")?;
    let clock = ClockDemand::default().check()?;
    let mut findings = machine::findings(&clock, args.connections);
    for plan in &plans {
        if interrupt.is_set() {
            return Ok(Verdict::Interrupted);
        }
        findings.extend(server::findings(
            plan,
            args.connections,
            args.max_clock_error,
            &interrupt,
        ));
    }
    let text = format!("{}\n{}", describe(&findings), machine::verdict(&findings));
    let to_stdout = args.json == Some(JsonTo::Stdout);
    // The exit code tells, even if nobody reads this.
    let _ = if to_stdout {
        writeln!(io::stderr(), "{text}")
    } else {
        writeln!(io::stdout(), "{text}")
    };
    if let Some(to) = &args.json
        && let Err(error) = write(to, &findings)
    {
        tell(&format!("error: {error:#}"));
        return Ok(Verdict::Unsaved);
    }
    let wrong = findings.iter().any(|finding| finding.state == State::Wrong);
    Ok(if wrong {
        Verdict::Condition
    } else {
        Verdict::Success
    })
}

/// Returns the findings by the machines and servers that they are about.
fn describe(findings: &[Finding]) -> String {
    let columns = ["state", "what", "value"].map(|title| Column::text(title, 0));
    let row = |finding: &Finding| {
        let (name, what) = (finding.state.name(), finding.what);
        let value = on_one_line(&finding.value);
        let value = if finding.remedy.is_empty() {
            value
        } else {
            format!("{value}: {}", finding.remedy)
        };
        vec![name.to_owned(), what.to_owned(), value]
    };
    let each = findings.chunk_by(|one, other| one.of == other.of);
    let each = each.map(|findings| {
        let rows: Vec<_> = findings.iter().map(row).collect();
        format!("{}\n{}\n", findings[0].of, Table::whole(&columns, &rows))
    });
    each.collect::<Vec<_>>().join("\n")
}

fn write(to: &JsonTo, findings: &[Finding]) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(findings)? + "\n";
    match to {
        JsonTo::Stdout => io::stdout()
            .write_all(text.as_bytes())
            .context("cannot write to standard output"),
        JsonTo::File(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
    }
}
