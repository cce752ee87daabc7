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

/// The page's security policy: whatever a result file contains, nothing is fetched or sent.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Returns the page: verdict, charts, settings and environment. Where there are several runs, their
/// series share the charts.
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

fn figures(charts: &[Chart]) -> Markup {
    html! {
        @if !charts.is_empty() {
            section."charts" aria-label="Charts" {
                @for chart in charts { (render::figure(chart)) }
            }
        }
    }
}

/// The charts that the runs have data for.
pub fn charts(runs: &[Run]) -> Vec<Chart> {
    let makers = charts::makers(runs).iter();
    let mut charts: Vec<Chart> = makers.flat_map(|maker| maker(runs)).collect();
    charts.retain(|chart| !chart.panels.is_empty());
    charts
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
