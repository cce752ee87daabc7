//! Charts as parts of a page, and as files.

use maud::{Markup, html};
use netping_results::format::is_unsafe;

use super::{chart::Chart, draw, table};

impl Chart {
    /// Returns the chart as an SVG file that needs nothing else.
    pub fn svg(&self) -> String {
        legible(&draw::standalone(self))
    }
}

/// Returns the chart in a page: caption, picture and table; `alone`: it has the whole width of the page, and a second
/// picture for narrow ones.
pub(super) fn figure(chart: &Chart, alone: bool) -> Markup {
    html! {
        figure data-chart=(chart.kind) data-variant=[chart.variant] {
            figcaption { strong { (chart.title) } }
            @if alone { (draw::svg(chart, draw::WIDE, &html! {})) }
            (draw::svg(chart, draw::NARROW, &html! {}))
            p."note" { (chart.note) }
            (table::of(chart))
        }
    }
}

/// Replaces characters that a file's text may hold and HTML and XML must not, or that would hide what is around them.
pub(super) fn legible(text: &str) -> String {
    let is_illegible =
        |c: char| (is_unsafe(c) && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.replace(is_illegible, "\u{fffd}")
}
