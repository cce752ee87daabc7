//! Keys: the names of lines, with their colours and marks.

use maud::{Markup, html};

use super::pen::{CHARACTER, LINE, PALETTE, Pen, WIDTH, class, number, shape, shortened};
use crate::page::chart::{Mark, Panel, Series};

/// The sample of a line before a name.
const SAMPLE: f64 = 21.0;

/// Returns the lines of a panel, one of each name: trials of one target share it.
pub(super) fn of(panel: &Panel) -> Vec<&Series> {
    let mut keys: Vec<&Series> = Vec::new();
    for series in panel.series.iter().filter(|_| panel.plane.is_some()) {
        let first = series.points.first();
        let is_line = first.is_some_and(|point| !matches!(point.mark, Mark::Cell { .. }));
        if is_line && !keys.iter().any(|key| key.is_like(series)) {
            keys.push(series);
        }
    }
    keys
}

/// Returns what all of several names end in, after their first comma: `, 64 callers`.
pub(super) fn shared(keys: &[&Series]) -> String {
    let Some(first) = keys.first().filter(|_| keys.len() > 1) else {
        return String::new();
    };
    let commas = first.name.match_indices(", ");
    let mut ends = commas.map(|(at, _)| &first.name[at..]);
    let shared = ends.find(|end| keys.iter().all(|key| key.name.ends_with(*end)));
    shared.unwrap_or_default().to_owned()
}

/// Draws keys in as many columns as their names leave room for.
pub(super) fn key(keys: &[&Series], pen: &mut Pen) -> Markup {
    let longest = keys.iter().map(|key| key.name.chars().count()).max();
    let needed = longest.unwrap_or(0) as f64 * CHARACTER + SAMPLE + 8.0;
    let columns = ((WIDTH / needed) as usize).clamp(1, 3);
    let top = pen.take(keys.len().div_ceil(columns) as f64 * LINE);
    let most = ((WIDTH - SAMPLE) / CHARACTER) as usize;
    html! {
        @for (at, key) in keys.iter().enumerate() {
            @let x = (at % columns) as f64 * WIDTH / columns as f64 + 2.0;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn end(names: &[&str]) -> String {
        let keys = names.iter();
        let keys: Vec<Series> = keys
            .map(|name| Series::new((*name).to_owned(), 0, Vec::new()))
            .collect();
        shared(&keys.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_share_what_follows_a_comma() {
        assert_eq!(
            end(&["tcp, 64 callers", "grpc, 64 callers"]),
            ", 64 callers"
        );
        assert_eq!(end(&["tcp, 4 callers", "grpc, 64 callers"]), "");
        assert_eq!(end(&["a, x, 1 caller", "b, x, 1 caller"]), ", x, 1 caller");
        // One alone is named in full, and no name is all of it.
        assert_eq!(end(&["tcp, 64 callers"]), "");
        assert_eq!(end(&["tcp", "tcp"]), "");
    }
}
