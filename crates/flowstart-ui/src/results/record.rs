//! Records: the numbers behind published texts, as a table or as what a command printed.

use super::FolderError;

/// The file that makes a folder a record.
pub(crate) const RECORD: &str = "record.toml";
/// Most bytes of a file of a record.
pub(super) const LARGEST: u64 = 16 << 20;
/// Most rows, columns and letters that are shown.
const MOST_ROWS: usize = 400;
const MOST_COLUMNS: usize = 60;
const MOST_LETTERS: usize = 200_000;

/// A record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// What is known of it, by name: the command, the version, the date.
    pub(crate) facts: Vec<(String, String)>,
    /// The names of the columns of its cells.
    pub(crate) header: Vec<String>,
    /// Its cells.
    pub(crate) rows: Vec<Vec<String>>,
    /// Rows that are not shown.
    pub(crate) more: usize,
    /// What its command printed, in the place of cells.
    pub(crate) text: String,
}

/// Why a record cannot be shown.
pub(super) enum Problem {
    /// A file cannot be read.
    Folder(FolderError),
    /// What is wrong in a file.
    Content(String),
}

impl Record {
    /// Reads the files of a record.
    pub(super) fn read(content: impl Fn(&str) -> Result<Option<Vec<u8>>, FolderError>) -> Result<Self, Problem> {
        let text = |file| {
            let bytes = content(file).map_err(Problem::Folder)?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        let head = text(RECORD)?.unwrap_or_default();
        let head: toml::Table = head
            .parse()
            .map_err(|error: toml::de::Error| Problem::Content(format!("{RECORD}: {}", error.message())))?;
        let facts = head.into_iter().map(|(name, value)| match value {
            toml::Value::String(value) => (name, value),
            other => (name, other.to_string()),
        });
        let mut record = Self { facts: facts.collect(), ..Self::default() };
        if let Some(cells) = text("cells.csv")? {
            record.read_cells(&cells)?;
        }
        for file in ["verdict.json", "output.txt"] {
            let printed = text(file)?.unwrap_or_default();
            record.text.extend(printed.chars().take(MOST_LETTERS));
        }
        Ok(record)
    }

    fn read_cells(&mut self, cells: &str) -> Result<(), Problem> {
        let refused = |error: csv::Error| Problem::Content(format!("cells.csv: {error}"));
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(cells.as_bytes());
        let fields = |record: &csv::StringRecord| record.iter().take(MOST_COLUMNS).map(str::to_owned).collect();
        self.header = fields(reader.headers().map_err(refused)?);
        for row in reader.records() {
            let row = row.map_err(refused)?;
            if self.rows.len() < MOST_ROWS {
                self.rows.push(fields(&row));
            } else {
                self.more += 1;
            }
        }
        Ok(())
    }

    /// The command that made it.
    pub(crate) fn command(&self) -> String {
        let command = self.facts.iter().find(|(name, _)| name == "command");
        command.map_or(String::new(), |(_, command)| command.clone())
    }
}
