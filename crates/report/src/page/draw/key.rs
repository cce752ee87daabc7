//! Keys: the names of lines, with their colours and marks.

use maud::{Markup, html};

use super::pen::{CHARACTER, LINE, PALETTE, Pen, class, number, shape, shortened};
use crate::page::chart::{Mark, Panel, Series};

/// The sample of a line before a name.
const SAMPLE: f64 = 21.0;

/// Returns the lines of panels, one of each name: panels, and trials of one target, share it.
pub(super) fn of(panels: &[Panel]) -> Vec<&Series> {
    let mut keys: Vec<&Series> = Vec::new();
    let planes = panels.iter().filter(|panel| panel.plane.is_some());
    for series in planes.flat_map(|panel| &panel.series) {
        let first = series.points.first();
        let is_line = first.is_some_and(|point| point.mark == Mark::Dot);
        if is_line && !keys.iter().any(|key| key.is_like(series)) {
            keys.push(series);
        }
    }
    keys
}

/// Draws keys in as many columns as their names leave room for.
pub(super) fn key(keys: &[&Series], pen: &mut Pen) -> Markup {
    let longest = keys.iter().map(|key| key.name.chars().count()).max();
    let needed = longest.unwrap_or(0) as f64 * CHARACTER + SAMPLE + 8.0;
    let columns = ((pen.width / needed) as usize).clamp(1, 6);
    let column = (pen.width / columns as f64).min(needed.max(pen.width / 6.0));
    let top = pen.take(keys.len().div_ceil(columns) as f64 * LINE);
    let most = Pen::characters(pen.width - SAMPLE);
    html! {
        @for (at, key) in keys.iter().enumerate() {
            @let x = (at % columns) as f64 * column + 2.0;
            @let y = top + (at / columns) as f64 * LINE + LINE / 2.0;
            (sample(key, x, y))
            text x=(number(x + SAMPLE)) y=(number(y + 4.0)) { (shortened(&key.name, most)) }
        }
    }
}

/// Draws a piece of a key's line, with its mark.
fn sample(key: &Series, x: f64, y: f64) -> Markup {
    let (colour, dashed) = (key.colour, key.dashed);
    html! {
        g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) stroke="currentColor" fill="currentColor" {
            path."line" d={ "M" (number(x)) " " (number(y)) "h16" } stroke-width="1.6"
                stroke-dasharray=[dashed.then_some("3 2")] {}
            path d=(shape(colour, dashed, x + 8.0, y, 2.6)) stroke="none" {}
        }
    }
}
