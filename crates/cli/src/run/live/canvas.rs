//! A grid of characters, as a terminal has it.

use textwrap::core::display_width;

/// The style of a character: parameters of "Select Graphic Rendition" (ECMA-48).
pub(super) type Style = &'static str;

pub(super) const PLAIN: Style = "0";
pub(super) const BOLD: Style = "0;1";
pub(super) const DIM: Style = "0;2";
pub(super) const YELLOW: Style = "0;33";
pub(super) const CYAN: Style = "0;36";

/// Stands to the right of a character that is two columns wide.
const COVERED: char = '\0';

/// Rows of characters with their styles.
#[derive(Debug)]
pub(super) struct Canvas(Vec<Vec<(char, Style)>>);

impl Canvas {
    /// Returns an empty canvas.
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self(vec![vec![(' ', PLAIN); width]; height])
    }

    /// Returns a canvas with the lines of a text.
    pub(super) fn text(width: usize, height: usize, style: Style, text: &str) -> Self {
        let mut canvas = Self::new(width, height);
        for (row, line) in text.lines().enumerate() {
            canvas.write(row, 0, style, line);
        }
        canvas
    }

    /// Writes a text, as far as it fits, without characters that have no width. Returns the column behind it.
    pub(super) fn write(&mut self, row: usize, column: usize, style: Style, text: &str) -> usize {
        let mut end = column;
        for symbol in text.chars() {
            let width = display_width(symbol.encode_utf8(&mut [0; 4]));
            let cells = self.0.get_mut(row);
            let Some(cells) = cells.and_then(|row| row.get_mut(end..end + width)) else {
                break;
            };
            cells.fill((COVERED, style));
            if let Some(first) = cells.first_mut() {
                first.0 = symbol;
            }
            end += width;
        }
        end
    }

    /// Draws a straight line between two dots (column, row), of which a character has two by four.
    pub(super) fn draw(&mut self, style: Style, from: [usize; 2], to: [usize; 2]) {
        // As the bits of Unicode's Braille patterns.
        const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let steps = from[0].abs_diff(to[0]).max(from[1].abs_diff(to[1]));
        for step in 0..=steps {
            let share = step as f64 / steps.max(1) as f64;
            let [x, y] = [0, 1].map(|axis| {
                let (from, to) = (from[axis] as f64, to[axis] as f64);
                (from + (to - from) * share).round() as usize
            });
            if let Some(cell) = self.0.get_mut(y / 4).and_then(|row| row.get_mut(x / 2)) {
                let known = match cell.0 {
                    dots @ '\u{2800}'..='\u{28ff}' => dots,
                    _ => '\u{2800}',
                };
                let dots = char::from_u32(u32::from(known) | DOTS[y % 4][x % 2]);
                *cell = (dots.unwrap_or(known), style);
            }
        }
    }

    /// Puts another canvas to the right.
    pub(super) fn beside(mut self, right: Self) -> Self {
        for (row, right) in self.0.iter_mut().zip(right.0) {
            row.extend(right);
        }
        self
    }

    /// Keeps so many rows, and puts another canvas below.
    pub(super) fn above(mut self, rows: usize, below: Self) -> Self {
        self.0.truncate(rows);
        self.0.extend(below.0);
        self
    }

    /// Spells what is drawn in ASCII, for a terminal that has nothing else.
    pub(super) fn spell(&mut self) {
        for (symbol, _) in self.0.iter_mut().flatten() {
            *symbol = match *symbol {
                COVERED | '\u{2800}' => ' ',
                '─' | '━' => '-',
                '│' | '┤' => '|',
                '\u{2801}'..='\u{28ff}' => '*',
                ascii if ascii.is_ascii() => ascii,
                _ => '?',
            };
        }
    }

    /// Returns the rows as text, with escape sequences for their styles if it `is_styled`.
    pub(super) fn rows(&self, is_styled: bool) -> Vec<String> {
        let text = |cells: &[(char, Style)]| {
            let symbols = cells.iter().map(|(symbol, _)| *symbol);
            let text: String = symbols.filter(|symbol| *symbol != COVERED).collect();
            match cells {
                [(_, style), ..] if is_styled => format!("\x1b[{style}m{text}"),
                _ => text,
            }
        };
        let rows = self.0.iter();
        rows.map(|row| {
            row.chunk_by(|left, right| left.1 == right.1)
                .map(text)
                .collect()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_at_the_edge_whatever_its_width() {
        let mut canvas = Canvas::text(5, 2, BOLD, "a\u{1b}日本語\nb\nc");
        assert_eq!(
            canvas.rows(true),
            ["\x1b[0;1ma日本", "\x1b[0;1mb\x1b[0m    "]
        );
        assert_eq!(canvas.write(1, 2, CYAN, "e\u{301}日日"), 5);
        assert_eq!(canvas.write(1, 4, CYAN, "日"), 4);
        assert_eq!(
            (canvas.write(2, 0, CYAN, "x"), canvas.write(0, 9, CYAN, "x")),
            (0, 9)
        );
        assert_eq!(canvas.rows(false), ["a日本", "b e日"]);
        let mut both = canvas.beside(Canvas::text(2, 3, PLAIN, "┤x"));
        both.spell();
        assert_eq!(both.rows(false), ["a? ? |x", "b e?   "]);
        assert_eq!(
            both.above(1, Canvas::text(1, 1, PLAIN, "y")).rows(false),
            ["a? ? |x", "y"]
        );
    }

    #[test]
    fn a_character_has_two_by_four_dots() {
        let drawn = |from, to| {
            let mut canvas = Canvas::text(2, 2, PLAIN, "ab\n日");
            canvas.draw(PLAIN, from, to);
            canvas.rows(false).join(" ")
        };
        assert_eq!(drawn([0, 0], [0, 0]), "⠁b 日");
        assert_eq!(drawn([1, 1], [1, 1]), "⠐b 日");
        assert_eq!(drawn([0, 0], [0, 7]), "⡇b ⡇");
        assert_eq!(drawn([3, 3], [0, 3]), "⣀⣀ 日");
        assert_eq!(drawn([0, 6], [3, 0]), "a⡜ ⠜");
        // Beyond the edges there is nothing.
        assert_eq!(drawn([4, 0], [9, 9]), "ab 日");
    }
}
