//! Keys: the names of lines, with their colours and marks.

use maud::{Markup, html};

use super::pen::{CHARACTER, LINE, PALETTE, Pen, WIDTH, class, number, shape, shortened};
use crate::page::chart::{Form, Mark, Panel};

/// The name of a line, and how it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub(super) name: &'a str,
    pub(super) colour: usize,
    pub(super) dashed: bool,
}

/// The sample of a line before a name.
const SAMPLE: f64 = 21.0;

/// Returns the keys of a panel's lines, each once: trials of one target share one.
pub(super) fn of(panel: &Panel) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    if !matches!(panel.form, Form::Plane(_)) {
        return keys;
    }
    for series in &panel.series {
        let key = Key {
            name: &series.name,
            colour: series.colour,
            dashed: series.dashed,
        };
        let is_line = |mark| !matches!(mark, Mark::Cell { .. });
        let is_line = series
            .points
            .first()
            .is_some_and(|point| is_line(point.mark));
        if is_line && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Returns what all of several names end in, after their first comma: `, 64 callers`.
pub(super) fn shared(keys: &[Key<'_>]) -> String {
    let (Some(first), true) = (keys.first(), keys.len() > 1) else {
        return String::new();
    };
    let ends = first
        .name
        .match_indices(", ")
        .map(|(at, _)| &first.name[at..]);
    let is_shared = |end: &&str| keys.iter().all(|key| key.name.ends_with(*end));
    ends.into_iter()
        .find(is_shared)
        .unwrap_or_default()
        .to_owned()
}

/// Draws keys in as many columns as their names leave room for.
pub(super) fn key(keys: &[Key<'_>], pen: &mut Pen) -> Markup {
    let longest = keys.iter().map(|key| key.name.chars().count()).max();
    let needed = longest.unwrap_or(0) as f64 * CHARACTER + SAMPLE + 8.0;
    let columns = ((WIDTH / needed) as usize).clamp(1, 3);
    let top = pen.take(keys.len().div_ceil(columns) as f64 * LINE);
    let most = ((WIDTH - SAMPLE) / CHARACTER) as usize;
    html! {
        @for (at, key) in keys.iter().enumerate() {
            @let x = (at % columns) as f64 * WIDTH / columns as f64 + 2.0;
            @let y = top + (at / columns) as f64 * LINE + LINE / 2.0;
            (sample(*key, x, y))
            text x=(number(x + SAMPLE)) y=(number(y + 4.0)) { (shortened(key.name, most)) }
        }
    }
}

/// Draws a piece of a key's line, with its mark.
fn sample(key: Key<'_>, x: f64, y: f64) -> Markup {
    let Key { colour, dashed, .. } = key;
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
        let key = |name| Key {
            name,
            colour: 0,
            dashed: false,
        };
        shared(&names.iter().copied().map(key).collect::<Vec<_>>())
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
