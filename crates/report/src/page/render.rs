//! Charts as parts of a page, and as files.

use maud::{Markup, html};

use super::{chart::Chart, draw, table};

impl Chart {
    /// Returns the chart as an SVG file that needs nothing else.
    pub fn svg(&self) -> String {
        legible(&draw::standalone(self))
    }
}

/// Returns the chart in a page: picture, caption and table.
pub(super) fn figure(chart: &Chart) -> Markup {
    html! {
        figure data-chart=(chart.kind) data-variant=[chart.variant] {
            figcaption {
                strong { (chart.title) }
                " " (chart.note)
            }
            (draw::svg(chart, &html! {}))
            (table::of(chart))
        }
    }
}

/// Replaces control characters, which a file's text may hold and HTML and XML must not.
pub(super) fn legible(text: &str) -> String {
    let legible = |c: char| {
        if (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}') {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(legible).collect()
}
