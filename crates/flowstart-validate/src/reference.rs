//! Reference tables: CSV whose columns are looked up by name.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

/// Built-in tables, in whose place another file with the same columns may stand.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// Names and texts of the files.
    pub files: &'static [(&'static str, &'static str)],
    /// Whether other columns are refused: what they say may tell rows apart that would be taken for the same.
    pub only_columns: bool,
    /// What is said where `no row` can be compared; empty: every row is.
    pub rows: &'static str,
}

impl Reference {
    /// Tables of which every row is compared.
    pub(crate) const fn of(files: &'static [(&'static str, &'static str)]) -> Self {
        Self { files, only_columns: false, rows: "" }
    }
}

/// Largest file, a hundred times the largest that is built in.
const LARGEST: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    source: String,
    header: Vec<String>,
    rows: Vec<(u64, Vec<String>)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    table: &'a Table,
    line: u64,
    fields: &'a [String],
}

impl Table {
    /// The tables to compare with: the given file, or the built-in ones.
    pub(crate) fn load(file: Option<&Path>, reference: &Reference) -> Result<Vec<Self>, String> {
        let builtin = reference.files.iter().map(|(name, text)| Self::parse(name, text.as_bytes()));
        let Some(file) = file else { return builtin.collect() };
        let shown = file.display().to_string();
        let bytes =
            flowstart_files::read(file, LARGEST).map_err(|problem| format!("--reference {shown}: {problem}"))?;
        let table = Self::parse(&shown, &bytes)?;
        if reference.only_columns {
            let known = builtin.collect::<Result<Vec<Self>, String>>()?;
            table.has_only(&known.iter().flat_map(|table| &table.header).map(String::as_str).collect::<Vec<_>>())?;
        }
        Ok(vec![table])
    }

    /// Reads a table; `source` is for messages.
    ///
    /// # Errors
    ///
    /// No CSV, a column twice, or no rows.
    pub(crate) fn parse(source: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
        let refused = |error: csv::Error| format!("{source}: {error}");
        let header: Vec<String> = reader.headers().map_err(refused)?.iter().map(str::to_owned).collect();
        for (index, column) in header.iter().enumerate() {
            if header[..index].contains(column) {
                return Err(format!("{source}: two columns are called `{column}`; allowed is one"));
            }
        }
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

    fn has_only(&self, known: &[&str]) -> Result<(), String> {
        match self.header.iter().find(|column| !known.contains(&column.as_str())) {
            None => Ok(()),
            Some(column) => {
                Err(format!("{}: column `{column}` is not known; allowed are {}", self.source, known.join(", ")))
            }
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|(line, fields)| Row { table: self, line: *line, fields })
    }
}

impl<'a> Row<'a> {
    /// The text in a column, if there is such a column.
    pub(crate) fn optional(&self, column: &str) -> Option<&'a str> {
        let index = self.table.header.iter().position(|name| name == column)?;
        self.fields.get(index).map(String::as_str)
    }

    pub(crate) fn text(&self, column: &str) -> Result<&'a str, String> {
        self.optional(column).ok_or_else(|| format!("{}: no column `{column}`", self.table.source))
    }

    pub(crate) fn number(&self, column: &str) -> Result<f64, String> {
        let text = self.text(column)?;
        text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| {
            format!("{}, line {}: `{text}` in column `{column}` is not a number", self.table.source, self.line)
        })
    }

    /// The number in a column, which must be in this range.
    pub(crate) fn number_in(&self, column: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
        let value = self.number(column)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = (range.start(), range.end());
        Err(self.refused(column, value, &format!("{low} to {high}")))
    }

    /// The whole number in a column, which must be in this range.
    pub(crate) fn whole_in(&self, column: &str, range: RangeInclusive<f64>) -> Result<u64, String> {
        let value = self.number_in(column, range)?;
        if value.fract() == 0.0 {
            return Ok(value as u64);
        }
        Err(self.refused(column, value, "a whole number"))
    }

    /// The rate in a column, which must be in this range of bit/s.
    pub(crate) fn rate(&self, column: &str, range: RangeInclusive<f64>) -> Result<Rate, String> {
        Ok(Rate::from_bits_per_sec(self.number_in(column, range)? as u64))
    }

    /// The round-trip time in column `rtt_ms`, which must be in this range.
    pub(crate) fn rtt(&self, range: RangeInclusive<f64>) -> Result<Duration, String> {
        Ok(Duration::from_secs(self.number_in("rtt_ms", range)? / 1000.0))
    }

    /// What is wrong with a field.
    pub(crate) fn refused(&self, column: &str, value: impl std::fmt::Display, allowed: &str) -> String {
        format!("{}, line {}: {column} is {value}; allowed is {allowed}", self.table.source, self.line)
    }
}

/// What has the same key together, in the order in which keys came first.
pub(crate) fn grouped<K: Ord + Clone, V>(items: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let load = |file: &Path| Table::load(Some(file), &Reference::of(&[])).unwrap_err();
        for endless in ["/dev/zero", "/dev/null", "/"] {
            assert!(load(Path::new(endless)).contains("is not a regular file"), "{endless}");
        }
        let file = std::env::temp_dir().join(format!("flowstart-reference-{}.csv", std::process::id()));
        std::fs::write(&file, "a\n".repeat(LARGEST as usize / 2 + 1)).expect("a temporary file");
        let problem = load(&file);
        std::fs::remove_file(&file).expect("the file is ours");
        assert!(problem.contains("is too long; allowed is up to 10000000 bytes"), "{problem}");
    }

    #[test]
    fn a_column_has_one_meaning() {
        let problem = Table::parse("x.csv", b"a,b,a\n1,2,3\n").unwrap_err();
        assert_eq!(problem, "x.csv: two columns are called `a`; allowed is one");
        let table = Table::parse("x.csv", b"a,b\n1,2.5\n").unwrap();
        assert_eq!(table.has_only(&["a", "b", "c"]), Ok(()));
        assert_eq!(table.has_only(&["a"]).unwrap_err(), "x.csv: column `b` is not known; allowed are a");
        let row = table.rows().next().unwrap();
        assert_eq!(row.whole_in("a", 0.0..=1.0), Ok(1));
        assert_eq!(row.whole_in("b", 0.0..=9.0).unwrap_err(), "x.csv, line 2: b is 2.5; allowed is a whole number");
    }
}
