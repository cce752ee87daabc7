//! A run, or several, as one HTML page that needs no network and no other file.

mod chart;
mod charts;
mod comparison;
mod draw;
mod headline;
mod render;
mod scale;
mod series;
mod settings;
mod table;
mod unit;

pub use chart::{Axis, Chart, Exact, Mark, Panel, Plane, Point, Series};
pub use comparison::comparison;
pub use scale::AxisScale;
pub use unit::PageUnit;

use std::{fs, path::Path};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use netping_results::{
    file::save::{SaveError, write_atomically},
    run::Run,
};

use self::unit::counted;

/// The page's security policy: whatever a result file contains, nothing is fetched or sent.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Returns the page: the verdict, what came out, the chart that shows it, and, folded, the other charts, the settings and
/// the environment. Where there are several runs, their series share the charts.
pub fn html(runs: &[Run]) -> String {
    let content = html! {
        (headline::section(runs))
        (figures(&charts(runs)))
        (settings::section(runs))
    };
    document(&headline::title(runs), &content)
}

/// Returns a page around its content.
fn document(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) }
                // A browser asks for an icon otherwise.
                link rel="icon" href="data:,";
                style {
                    (PreEscaped(include_str!("chart.css")))
                    (PreEscaped(include_str!("style.css")))
                }
            }
            body {
                main { (content) }
                output."tip" aria-live="polite" hidden {}
                script { (PreEscaped(include_str!("script.js"))) }
            }
        }
    };
    render::legible(&page.into_string())
}

/// Shows the charts that lead, and the others folded.
fn figures(charts: &[Chart]) -> Markup {
    let (leads, others): (Vec<_>, Vec<_>) = charts.iter().partition(|chart| chart.leads);
    // The many rungs of a ladder leave no room for another chart beside theirs.
    let alone = leads.len() == 1 || leads.iter().any(|chart| chart.kind == "ladder");
    html! {
        @if !leads.is_empty() {
            section."charts"."alone"[alone] aria-label="Charts" {
                @for chart in &leads { (render::figure(chart, alone)) }
            }
        }
        @if !others.is_empty() {
            details."more" {
                summary { (counted(others.len() as f64, "more charts")) }
                section."charts" aria-label="More charts" {
                    @for chart in &others { (render::figure(chart, false)) }
                }
            }
        }
    }
}

/// The charts that the runs have data for.
pub fn charts(runs: &[Run]) -> Vec<Chart> {
    charts::all(runs)
}

/// Writes each of the [`charts()`] to a file of its own in `folder`, which is made if it is not
/// there, and says how many there are.
///
/// # Errors
/// [`SaveError`]; charts before the one that failed are there.
pub fn save_charts(runs: &[Run], folder: &Path) -> Result<usize, SaveError> {
    fs::create_dir_all(folder).map_err(|reason| SaveError {
        path: folder.to_owned(),
        reason,
    })?;
    let charts = charts(runs);
    for chart in &charts {
        write_atomically(
            &folder.join(chart.file_stem()).with_extension("svg"),
            chart.svg().as_bytes(),
        )?;
    }
    Ok(charts.len())
}
