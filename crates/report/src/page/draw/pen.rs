//! Elements that all drawings share.

use maud::{Markup, html};

use crate::page::chart::{Panel, Point};

/// The width of a drawing whose unit is near a pixel on a phone; the page scales it.
pub(in crate::page) const NARROW: f64 = 400.0;

/// That of one whose unit is near a pixel on a screen.
pub(in crate::page) const WIDE: f64 = 960.0;

/// The height of a line of text.
pub(super) const LINE: f64 = 16.0;

/// The mean width of a character on a phone, where text is largest.
pub(super) const CHARACTER: f64 = 8.7;

/// The width of a digit on a phone. The names of points and the numbers of axes have little else.
pub(super) const DIGIT: f64 = 9.7;

/// Near the colours of Okabe and Ito ("Color Universal Design", 2008), which people who see few
/// colours tell apart; the bright ones are darker, to show on white. The style sheet has them for
/// both themes.
pub(super) const PALETTE: [&str; 8] = [
    "#005f9e", "#cc5200", "#00805e", "#a8488a", "#d18b00", "#3fa0d8", "#4a4f57", "#857c00",
];

/// Where drawing has come to, from the top, and its width.
pub(super) struct Pen {
    pub(super) y: f64,
    pub(super) width: f64,
}

impl Pen {
    pub(super) fn is_wide(&self) -> bool {
        self.width > NARROW
    }

    /// Returns the most characters that fit beside each other into `width`.
    pub(super) fn characters(width: f64) -> usize {
        (width / CHARACTER) as usize
    }

    /// Takes `height`, and says where it begins.
    pub(super) fn take(&mut self, height: f64) -> f64 {
        let top = self.y;
        self.y += height;
        top
    }
}

/// A group in the colour at a place of the palette.
pub(super) fn coloured(colour: usize, content: &Markup) -> Markup {
    html! {
        g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) fill="currentColor" stroke="currentColor" {
            (content)
        }
    }
}

pub(super) fn class(colour: usize) -> String {
    format!("c{}", colour % PALETTE.len())
}

/// A point: the shape at `path`, with its numbers, and what a reader sees when pointing at
/// it.
pub(super) fn point(panel: &Panel, series: &str, x: &str, point: &Point, path: &str) -> Markup {
    let name = point.name.as_ref().map(|name| format!(", {name}"));
    html! {
        path."pt" d=(path) data-series=(series) data-x=(maud::display(&point.x)) data-y=(maud::display(&point.y)) {
            title { (series) (name.unwrap_or_default()) ", " (x) ": " (panel.shown(point)) }
        }
    }
}

/// The head of an arrow that ends at a place and points along an axis.
pub(super) fn arrow([x, y]: [f64; 2], [dx, dy]: [f64; 2]) -> String {
    let (back_x, back_y) = (x - dx * 4.0, y - dy * 4.0);
    let sides =
        [1.0, -1.0].map(|side| [back_x + dy * 3.0 * side, back_y + dx * 3.0 * side].map(number));
    let [x, y] = [x, y].map(number);
    format!(
        "M{} {}L{x} {y}L{} {}",
        sides[0][0], sides[0][1], sides[1][0], sides[1][1]
    )
}

/// The outline of a marker: it distinguishes series without colours.
pub(super) fn shape(colour: usize, hollow: bool, x: f64, y: f64, radius: f64) -> String {
    let [x, y, r, d] = [x, y, radius, radius * 2.0].map(number);
    let ring = format!("m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0");
    let wide = number(radius * 1.35);
    let twice = number(radius * 2.7);
    match colour % 4 {
        // The second ring, drawn the other way, leaves a hole.
        _ if hollow => {
            let half = number(radius * 0.5);
            format!("M{x} {y}{ring}m{half} 0a{half} {half} 0 1 1 {r} 0a{half} {half} 0 1 1-{r} 0z")
        }
        0 => format!("M{x} {y}{ring}z"),
        1 => format!("M{x} {y}m-{r}-{r}h{d}v{d}h-{d}z"),
        2 => format!("M{x} {y}m0-{wide}l{wide} {wide}l-{wide} {wide}l-{wide}-{wide}z"),
        _ => format!("M{x} {y}m0-{wide}l{wide} {twice}h-{twice}z"),
    }
}

/// A coordinate, to a tenth.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0")
        .map_or_else(|| text.clone(), str::to_owned)
}

/// A name that fits into `most` characters: its middle gives way.
pub(super) fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let head = most / 2;
    let tail: String = name.chars().skip(count - (most - head - 1)).collect();
    format!("{}…{tail}", name.chars().take(head).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_loses_its_middle() {
        assert_eq!(shortened("tcp://h:1", 9), "tcp://h:1");
        assert_eq!(shortened("tcp://häuser:8004", 10), "tcp:/…8004");
    }
}
