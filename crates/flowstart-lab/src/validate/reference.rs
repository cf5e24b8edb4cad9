//! Reference tables: CSV whose columns are looked up by name.

use std::path::Path;

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    source: String,
    header: Vec<String>,
    rows: Vec<(u64, Vec<String>)>,
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    table: &'a Table,
    line: u64,
    fields: &'a [String],
}

impl Table {
    /// The tables to compare with: the given file, or the built-in ones.
    pub(super) fn load(file: Option<&Path>, builtin: &[(&str, &str)]) -> Result<Vec<Self>, String> {
        let Some(file) = file else {
            return builtin.iter().map(|(name, text)| Self::parse(name, text.as_bytes())).collect();
        };
        let shown = file.display().to_string();
        let bytes = std::fs::read(file).map_err(|error| format!("--reference {shown}: cannot be read: {error}"))?;
        Ok(vec![Self::parse(&shown, &bytes)?])
    }

    /// Reads a table; `source` is for messages.
    pub(super) fn parse(source: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
        let refused = |error: csv::Error| format!("{source}: {error}");
        let header: Vec<String> = reader.headers().map_err(refused)?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(refused)?;
            let line = record.position().map_or(0, csv::Position::line);
            rows.push((line, record.iter().map(str::to_owned).collect()));
        }
        if rows.is_empty() {
            return Err(format!("{source}: no rows"));
        }
        Ok(Self { source: source.to_owned(), header, rows })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|(line, fields)| Row { table: self, line: *line, fields })
    }
}

impl<'a> Row<'a> {
    /// The text in a column, if there is such a column.
    pub(super) fn optional(&self, column: &str) -> Option<&'a str> {
        let index = self.table.header.iter().position(|name| name == column)?;
        self.fields.get(index).map(String::as_str)
    }

    /// The text in a column.
    pub(super) fn text(&self, column: &str) -> Result<&'a str, String> {
        self.optional(column).ok_or_else(|| format!("{}: no column `{column}`", self.table.source))
    }

    /// The number in a column.
    pub(super) fn number(&self, column: &str) -> Result<f64, String> {
        let text = self.text(column)?;
        text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| {
            format!("{}, line {}: `{text}` in column `{column}` is not a number", self.table.source, self.line)
        })
    }

    /// The number in a column, which must be in this range.
    pub(super) fn number_in(&self, column: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
        let value = self.number(column)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = (range.start(), range.end());
        Err(format!("{}, line {}: {column} is {value}; allowed is {low} to {high}", self.table.source, self.line))
    }
}
