//! Tables for a terminal or a file.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal},
    iter,
    ops::Range,
};

use terminal_size::{Width, terminal_size_of};

/// A column: its title, with the unit, and its least width.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its title.
    pub title: Cow<'static, str>,
    /// Minimum width, in characters.
    pub width: u16,
    /// True where values are aligned left, as words are.
    pub left: bool,
    /// Rank among dispensable columns: in a narrow terminal those with the highest go first, and
    /// those with 0 stay.
    pub spare: u8,
}

impl Column {
    /// A column of numbers.
    pub const fn number(title: &'static str) -> Self {
        let mut column = Self::text(title);
        column.left = false;
        column
    }

    /// A column of words.
    pub const fn text(title: &'static str) -> Self {
        Self {
            title: Cow::Borrowed(title),
            width: 0,
            left: true,
            spare: 0,
        }
    }

    /// Columns of names and of numbers.
    pub fn named_rows<const N: usize>(titles: [&'static str; N]) -> [Self; N] {
        let mut columns = titles.map(Self::number);
        columns[0].left = true;
        columns
    }

    /// The column with a title made at run time.
    #[must_use]
    pub fn titled(mut self, title: String) -> Self {
        self.title = Cow::Owned(title);
        self
    }

    /// The column, at least `width` characters wide.
    #[must_use]
    pub const fn wide(mut self, width: u16) -> Self {
        self.width = width;
        self
    }

    /// The column, left out of a narrow terminal after those with a higher number.
    #[must_use]
    pub const fn spare(mut self, spare: u8) -> Self {
        self.spare = spare;
        self
    }

    /// Returns its width, in characters, without a gap.
    fn width(&self) -> usize {
        usize::from(self.width).max(self.title.chars().count())
    }

    /// Returns a cell as wide as the column.
    fn padded(&self, cell: &str) -> String {
        let width = self.width();
        if self.left {
            format!("{cell:<width$}")
        } else {
            format!("{cell:>width$}")
        }
    }
}

/// A way to lay out columns and rows as text.
pub type Layout = fn(&[Column], &[Vec<String>]) -> String;

/// A terminal's sequences for bold text, for red text and for plain text (ECMA-48, "select graphic rendition").
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Space between two columns.
const GAP: &str = "  ";

/// A table whose rows can be shown one by one, as they come about, and still stand under each
/// other.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    /// The rank above which columns are left out.
    most_spare: u8,
    styled: bool,
}

impl Table {
    /// A table for standard output: where that is a terminal, its titles are bold, unless
    /// `NO_COLOR` is set, and columns that can be spared are left out until it fits.
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            styled: is_styled(),
            ..Self::in_width(columns, terminal_width())
        }
    }

    /// A table without style that leaves out columns until it fits in this many characters.
    fn in_width(columns: Vec<Column>, width: Option<usize>) -> Self {
        let most = columns.iter().map(|column| column.spare).max().unwrap_or(0);
        let fits = |most: &u8| width.is_none_or(|width| width_of(&columns, *most) <= width);
        Self {
            most_spare: (0..=most).rev().find(fits).unwrap_or(0),
            columns,
            styled: false,
        }
    }

    /// The line of titles; above it one with those that are left out, if any are.
    pub fn header(&self) -> String {
        let titles: Vec<_> = self.columns.iter().map(|column| &column.title).collect();
        let mut header = self.row(&titles);
        if self.styled {
            header = format!("{BOLD}{header}{PLAIN}");
        }
        let left_out = self
            .columns
            .iter()
            .filter(|own| own.spare > self.most_spare);
        let left_out: Vec<&str> = left_out.map(|own| &*own.title).collect();
        if left_out.is_empty() {
            return header;
        }
        let left_out = left_out.join(", ");
        format!("left out for width: {left_out} (wider terminal or --json)\n{header}")
    }

    /// One row.
    pub fn row(&self, cells: &[impl AsRef<str>]) -> String {
        let kept = self.columns.iter().zip(cells);
        let kept = kept.filter(|(column, _)| column.spare <= self.most_spare);
        let padded: Vec<String> = kept
            .map(|(column, cell)| column.padded(cell.as_ref()))
            .collect();
        padded.join(GAP).trim_end().to_owned()
    }

    /// Titles and rows together, each column as wide as it needs. Rows that fit no terminal of this
    /// width are shown one below the other, a line for each cell.
    pub fn whole(columns: &[Column], rows: &[Vec<String>]) -> String {
        let columns = as_wide_as(columns, rows);
        match terminal_width() {
            Some(width) if width_of(&columns, 0) > width => records(&columns, rows, width),
            _ => Self::new(columns).with(rows),
        }
    }

    /// Titles and rows together, where the first column names the rows. Columns that do not fit the
    /// terminal side by side, or 80 characters where there is none, are in blocks one below the
    /// other, each of which begins with the names.
    pub fn folded(columns: &[Column], rows: &[Vec<String>]) -> String {
        let columns = as_wide_as(columns, rows);
        let width = terminal_width().unwrap_or(USUAL);
        let blocks = blocks(&columns, width).into_iter().map(|block| {
            let columns = [&columns[..1], &columns[block.clone()]].concat();
            let rows: Vec<Vec<String>> = rows
                .iter()
                .map(|row| [&row[..1], &row[block.clone()]].concat())
                .collect();
            Self::new(columns).with(&rows)
        });
        blocks.collect::<Vec<_>>().join("\n")
    }

    /// The same as text for a file: every column, nothing bold.
    pub fn plain(columns: &[Column], rows: &[Vec<String>]) -> String {
        Self::in_width(as_wide_as(columns, rows), None).with(rows)
    }

    fn with(&self, rows: &[Vec<String>]) -> String {
        let rows = rows.iter().map(|row| self.row(row));
        let lines: Vec<_> = iter::once(self.header()).chain(rows).collect();
        lines.join("\n")
    }
}

/// Returns true if standard output is a terminal, and `NO_COLOR` is not set.
fn is_styled() -> bool {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !no_color
}

/// Returns a line for standard output: red where that is a terminal, unless `NO_COLOR` is set.
pub fn red(line: &str) -> String {
    if is_styled() {
        format!("{RED}{line}{PLAIN}")
    } else {
        line.to_owned()
    }
}

/// Returns the width of the columns up to a rank, with the gaps between them.
fn width_of(columns: &[Column], most_spare: u8) -> usize {
    let kept = columns.iter().filter(|column| column.spare <= most_spare);
    let sum: usize = kept.map(|column| column.width() + GAP.len()).sum();
    sum.saturating_sub(GAP.len())
}

/// Returns the places of columns after the first, in as few blocks of equal size as fit this width.
fn blocks(columns: &[Column], width: usize) -> Vec<Range<usize>> {
    let cut = |size: usize| -> Vec<Range<usize>> {
        let starts = (1..columns.len()).step_by(size);
        starts
            .map(|start| start..columns.len().min(start + size))
            .collect()
    };
    let fits = |blocks: &Vec<Range<usize>>| {
        blocks.iter().all(|block| {
            let block = [&columns[..1], &columns[block.clone()]].concat();
            width_of(&block, u8::MAX) <= width
        })
    };
    let others = columns.len().saturating_sub(1).max(1);
    let mut counts = (1..=others).map(|count| cut(others.div_ceil(count)));
    counts.find(fits).unwrap_or_else(|| cut(1))
}

/// Returns rows one below the other: a line for each cell that is not empty, with its title.
fn records(columns: &[Column], rows: &[Vec<String>], width: usize) -> String {
    let titles = columns.iter().map(|column| column.title.chars().count());
    let longest = titles.max().unwrap_or(0);
    let indent = " ".repeat(longest + GAP.len());
    let line = |(cell, column): (&String, &Column)| {
        let title = format!("{:longest$}{GAP}", column.title);
        let options = textwrap::Options::new(width.max(NARROWEST))
            .initial_indent(&title)
            .subsequent_indent(&indent)
            .break_words(false);
        textwrap::fill(cell, options)
    };
    let record = |row: &Vec<String>| {
        let cells = row.iter().zip(columns).filter(|(cell, _)| !cell.is_empty());
        cells.map(line).collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(record).collect::<Vec<_>>().join("\n\n")
}

/// Columns as wide as their titles and cells need.
fn as_wide_as(columns: &[Column], rows: &[Vec<String>]) -> Vec<Column> {
    let mut columns = columns.to_vec();
    for (at, column) in columns.iter_mut().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let longest = cells.map(|cell| cell.chars().count()).max();
        column.width = longest.unwrap_or(0) as u16;
    }
    columns
}

/// Returns the width of the terminal on standard output, in characters; `None` if it is not a
/// terminal, or its width is unknown.
pub fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let given = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let own = || terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    given.or_else(own).filter(|&width| width > 0)
}

/// The width of a terminal that people usually have.
const USUAL: usize = 80;

/// The narrowest and the widest text.
const NARROWEST: usize = 40;
const WIDEST: usize = 200;

/// Returns text for standard output whose lines are broken at words to fit the terminal, or `width`
/// where that is none.
pub fn wrap(text: &str, width: usize) -> String {
    let terminal = terminal_width().map(|width| width.clamp(NARROWEST, WIDEST));
    let options = textwrap::Options::new(terminal.unwrap_or(width)).break_words(false);
    let lines = text.lines().map(|line| textwrap::fill(line, &options));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true if the locale's character set is UTF-8.
pub fn is_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|text| !text.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_fit_are_shown_cell_by_cell() {
        let columns = [
            Column::text("target"),
            Column::number("p50 us"),
            Column::text("shown"),
            Column::number("conns").spare(1),
        ];
        let row = |target: &str, shown: &str| -> Vec<String> {
            [target, "7.52", shown, "1"].map(str::to_owned).to_vec()
        };
        let shown = "no difference shown (could have seen 12.3%)";
        let rows = [
            row("tcp://127.0.0.1:8004", ""),
            row("grpc://127.0.0.1:8005", shown),
        ];
        let wide = as_wide_as(&columns, &rows);
        // Without the column that can be spared.
        assert_eq!(width_of(&wide, 0), 21 + 2 + 6 + 2 + shown.len());
        assert_eq!(
            records(&wide, &rows, 40),
            "target  tcp://127.0.0.1:8004\n\
             p50 us  7.52\n\
             conns   1\n\
             \n\
             target  grpc://127.0.0.1:8005\n\
             p50 us  7.52\n\
             shown   no difference shown (could have\n        seen 12.3%)\n\
             conns   1"
        );
    }

    #[test]
    fn rows_shown_one_by_one_stand_under_their_titles() {
        let table = Table::new(vec![
            Column::text("target").wide(8),
            Column::number("p50 us").wide(8),
        ]);
        assert_eq!(table.header(), "target      p50 us");
        assert_eq!(
            table.row(&["tcp".to_owned(), "7.52".to_owned()]),
            "tcp           7.52"
        );
    }

    #[test]
    fn a_whole_table_is_as_wide_as_its_longest_cells() {
        let columns = [Column::text("rung"), Column::number("n")];
        let rows = [
            vec!["threads".to_owned(), "1".to_owned()],
            vec!["x".to_owned(), "1,000".to_owned()],
        ];
        assert_eq!(
            Table::whole(&columns, &rows),
            "rung         n\nthreads      1\nx        1,000"
        );
    }

    #[test]
    fn columns_that_do_not_fit_are_folded_into_equal_blocks() {
        let titles = ["path", "p50", "p90", "p99", "max"];
        let columns = Column::named_rows(titles);
        let cell = |width: usize| "1".repeat(width);
        let rows = [vec![
            "direct".to_owned(),
            cell(3),
            cell(3),
            cell(31),
            cell(31),
        ]];
        assert_eq!(
            Table::folded(&columns, &rows),
            format!(
                "path    p50  p90\ndirect  111  111\npath    {:>31}  {:>31}\ndirect  {}  {2}",
                "p99",
                "max",
                cell(31)
            )
        );
        let wide = as_wide_as(&columns, &rows);
        assert_eq!(blocks(&wide, 82), vec![1..5]);
        assert_eq!(blocks(&wide, 81), [1..3, 3..5]);
        assert_eq!(blocks(&wide, 71), [1..2, 2..3, 3..4, 4..5]);
        assert_eq!(blocks(&wide, 1), [1..2, 2..3, 3..4, 4..5]);
        assert!(blocks(&wide[..1], 80).is_empty());
    }

    #[test]
    fn dispensable_columns_are_left_out_and_named() {
        let columns = vec![
            Column::number("req/s").wide(9),
            Column::number("p99 us").wide(6).spare(1),
            Column::number("p99.9 us").wide(8).spare(3),
            Column::number("max us").wide(7).spare(2),
        ];
        let titles = |width| Table::in_width(columns.clone(), width).header();
        assert_eq!(titles(None), "    req/s  p99 us  p99.9 us   max us");
        assert_eq!(titles(Some(36)), titles(None));
        assert_eq!(
            titles(Some(35)),
            "left out for width: p99.9 us (wider terminal or --json)\n    req/s  p99 us   max us"
        );
        assert_eq!(
            titles(Some(1)),
            "left out for width: p99 us, p99.9 us, max us (wider terminal or --json)\n    req/s"
        );
    }

    #[test]
    fn a_row_leaves_out_what_its_titles_do() {
        let columns = vec![
            Column::text("a").wide(1),
            Column::number("b").wide(9).spare(1),
            Column::number("c").wide(1),
        ];
        let table = Table::in_width(columns, Some(10));
        assert_eq!(table.row(&["x", "y", "z"].map(str::to_owned)), "x  z");
    }
}
