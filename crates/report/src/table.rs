//! Tables for a terminal or a file.

use std::io::{self, IsTerminal};

use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};

/// A column: its title, with the unit, and its least width.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// What stands above it.
    pub title: &'static str,
    /// Characters that its values need at the least.
    pub width: u16,
    /// Whether values stand at its left; numbers stand at the right.
    pub left: bool,
}

impl Column {
    /// A column of numbers.
    pub const fn number(title: &'static str, width: u16) -> Self {
        Self { title, width, left: false }
    }

    /// A column of words.
    pub const fn text(title: &'static str, width: u16) -> Self {
        Self { title, width, left: true }
    }
}

/// A table whose rows can be shown one by one, as they come about, and still stand under each other.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    styled: bool,
}

impl Table {
    /// A table for standard output: its titles are bold where that is a terminal, unless `NO_COLOR` is set.
    pub fn new(columns: Vec<Column>) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { columns, styled: io::stdout().is_terminal() && !no_color }
    }

    /// The line of titles.
    pub fn header(&self) -> String {
        self.lines(&[self.columns.iter().map(|column| column.title.to_owned()).collect()], self.styled)
    }

    /// One row.
    pub fn row(&self, cells: &[String]) -> String {
        self.lines(&[cells.to_vec()], false)
    }

    /// Titles and rows together, each column as wide as it needs.
    pub fn whole(columns: &[Column], rows: &[Vec<String>]) -> String {
        let columns = columns.iter().enumerate().map(|(at, column)| {
            let longest = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
            let width = longest.unwrap_or(0).max(column.title.chars().count()) as u16;
            Column { width, ..*column }
        });
        let table = Self::new(columns.collect());
        format!("{}\n{}", table.header(), table.lines(rows, false))
    }

    fn lines(&self, rows: &[Vec<String>], bold: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if bold {
            table.enforce_styling();
        }
        for row in rows {
            table.add_row(row.iter().zip(&self.columns).map(|(text, column)| {
                let cell = Cell::new(text);
                let cell = if bold { cell.add_attribute(Attribute::Bold) } else { cell };
                cell.set_alignment(if column.left { CellAlignment::Left } else { CellAlignment::Right })
            }));
        }
        for (at, column) in self.columns.iter().enumerate() {
            if let Some(settings) = table.column_mut(at) {
                settings.set_padding((0, 2));
                settings.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(column.width + 2)));
            }
        }
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_shown_one_by_one_stand_under_their_titles() {
        let table = Table::new(vec![Column::text("target", 8), Column::number("p50 us", 8)]);
        assert_eq!(table.header(), "target      p50 us");
        assert_eq!(table.row(&["tcp".to_owned(), "7.52".to_owned()]), "tcp           7.52");
    }

    #[test]
    fn a_whole_table_is_as_wide_as_its_longest_cells() {
        let columns = [Column::text("rung", 0), Column::number("n", 0)];
        let rows = [vec!["threads".to_owned(), "1".to_owned()], vec!["x".to_owned(), "1,000".to_owned()]];
        assert_eq!(Table::whole(&columns, &rows), "rung         n\nthreads      1\nx        1,000");
    }
}
