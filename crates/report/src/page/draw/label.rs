//! Names at the ends of lines.

use std::borrow::Cow;

use maud::{Markup, html};
use textwrap::{Options, WordSeparator, WordSplitter, core::Word};

use super::{
    key::shared,
    pen::{Area, CHARACTER, PALETTE, class, number, shape, shortened},
};
use crate::page::chart::Series;

/// The height of a line of a name.
const LINE: f64 = 15.0;

/// Most characters in a line of a name, and in the whole of it.
const COLUMNS: usize = 16;
const LONGEST: usize = 40;

/// The space between the axes and a name: it has the name's mark.
const SPACE: f64 = 17.0;

/// A name at the end of a line.
pub(super) struct Label<'a> {
    pub(super) key: &'a Series,
    /// The name, broken, without what all names end in.
    lines: Vec<String>,
}

/// Returns the labels of two lines or more; a single one needs none.
pub(super) fn of<'a>(keys: &[&'a Series]) -> Vec<Label<'a>> {
    if keys.len() < 2 {
        return Vec::new();
    }
    let end = shared(keys).len();
    let label = |&key: &&'a Series| Label {
        key,
        lines: broken(&key.name[..key.name.len() - end]),
    };
    keys.iter().map(label).collect()
}

/// Returns the height that labels need.
pub(super) fn height(labels: &[Label<'_>]) -> f64 {
    labels.iter().map(Label::height).sum()
}

/// Returns the width that labels need; `None` where there are none.
pub(super) fn width(labels: &[Label<'_>]) -> Option<f64> {
    let lines = labels.iter().flat_map(|label| &label.lines);
    let longest = lines.map(|line| line.chars().count()).max()?;
    Some(SPACE + longest as f64 * CHARACTER + 14.0)
}

/// Draws labels beside the ends of their lines, or as near to them as the others permit.
pub(super) fn draw(mut labels: Vec<(f64, Label<'_>)>, area: Area) -> Markup {
    labels.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut least = area.top;
    let place = |(end, label): &(f64, Label<'_>)| {
        let top = (end - label.height() / 2.0).max(least);
        least = top + label.height();
        top
    };
    let mut tops: Vec<f64> = labels.iter().map(place).collect();
    let mut most = area.bottom;
    for ((_, label), top) in labels.iter().zip(&mut tops).rev() {
        *top = top.min(most - label.height());
        most = *top;
    }
    html! {
        @for ((end, label), top) in labels.iter().zip(&tops) {
            @let (colour, middle) = (label.key.colour, top + label.height() / 2.0);
            @let mark = shape(colour, label.key.dashed, area.right + 10.0, middle, 2.6);
            g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) fill="currentColor" stroke="currentColor" {
                path d={ "M" (number(area.right)) " " (number(*end)) "L" (number(area.right + 7.0)) " " (number(middle)) }
                    fill="none" stroke-width="0.7" {}
                path d=(mark) stroke="none" {}
            }
            g."label" {
                @for (at, line) in label.lines.iter().enumerate() {
                    text x=(number(area.right + SPACE)) y=(number(top + (at + 1) as f64 * LINE - 3.5)) { (line) }
                }
                @if label.lines.concat() != label.key.name { title { (label.key.name) } }
            }
        }
    }
}

impl Label<'_> {
    fn height(&self) -> f64 {
        self.lines.len() as f64 * LINE
    }
}

/// Breaks a name after spaces and slashes, or within a word that is too long; the middle of one that
/// needs too many lines gives way.
fn broken(name: &str) -> Vec<String> {
    let name = shortened(name, LONGEST);
    let options = Options::new(COLUMNS).word_splitter(WordSplitter::NoHyphenation);
    let options = options.word_separator(WordSeparator::Custom(|line| {
        Box::new(line.split_inclusive([' ', '/']).map(Word::from))
    }));
    let lines = textwrap::wrap(&name, options).into_iter();
    lines.map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_broken_where_they_may_be() {
        assert_eq!(broken("tcp"), ["tcp"]);
        assert_eq!(
            broken("grpc+tls://127.0.0.1:8005"),
            ["grpc+tls://", "127.0.0.1:8005"]
        );
        assert_eq!(
            broken("run 2: tcp://h:1, 4 connections"),
            ["run 2: tcp://", "h:1, 4", "connections"]
        );
    }
}
