//! Every number that `record/quotes/` finds in a text is the one that its record has, rounded as it is written; so no
//! two texts say different numbers of the same thing. `record/README.md` says how the files are written.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The files of `record/quotes/` together.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Quotes {
    quote: Vec<Quote>,
    table: Vec<Table>,
    unchecked: Vec<Unchecked>,
}

impl Quotes {
    fn load() -> Self {
        let mut all = Self::default();
        for file in fs::read_dir(root().join("record/quotes")).unwrap().map(|entry| entry.unwrap().path()) {
            let part: Self = toml::from_str(&read(&file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            all.quote.extend(part.quote);
            all.table.extend(part.table);
            all.unchecked.extend(part.unchecked);
        }
        all
    }
}

/// Most characters of an answer in short.
const LONGEST: usize = 300;

/// A sentence, or a part of one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quote {
    text: PathBuf,
    record: String,
    /// What the text says, on any number of lines, with the numbers that are checked in brackets.
    says: String,
    /// What each number in brackets is.
    values: Vec<String>,
}

/// A part of an answer whose numbers in brackets no record has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    text: PathBuf,
    says: String,
    /// Why: the question gives the number, or it is of a machine.
    because: String,
}

/// A table in Markdown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    text: PathBuf,
    record: String,
    /// How the table's first line begins.
    begins: String,
    /// What a row is, by its first column: `{1}` of the values below, or several words with names of their own, such as
    /// `{size}`. Where nothing is said `{1}` is the first column, as `{2}` is the second.
    #[serde(default)]
    rows: BTreeMap<String, Row>,
    /// First columns of rows that are not checked.
    #[serde(default)]
    except: Vec<String>,
    /// For each column what its numbers are, in the order in which they stand there. What no record has is "".
    columns: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    Word(String),
    Words(BTreeMap<String, String>),
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The records that were read so far, by name.
#[derive(Default)]
struct Records(BTreeMap<String, Record>);

impl Records {
    fn get(&mut self, name: &str) -> &Record {
        self.0.entry(name.to_owned()).or_insert_with(|| Record::load(name))
    }
}

/// The numbers of a record, by cell and column.
#[derive(Default)]
struct Record(Vec<(String, BTreeMap<String, f64>)>);

impl Record {
    /// One record, or all that a name with `*` matches.
    fn load(name: &str) -> Self {
        if name.contains('*') {
            let all = fs::read_dir(root().join("record")).unwrap().map(|entry| entry.unwrap().file_name());
            let matching = all.filter_map(|one| one.into_string().ok()).filter(|one| matches(name, one));
            return Self(matching.flat_map(|one| Self::load(&one).0).collect());
        }
        let folder = Path::new("record").join(name);
        if root().join(&folder).join("verdict.json").exists() {
            Self::verdicts(&read(&folder.join("verdict.json")))
        } else {
            Self::cells(&read(&folder.join("cells.csv")))
        }
    }

    fn cells(text: &str) -> Self {
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let names = table.headers().unwrap().clone();
        let row = |row: csv::StringRecord| {
            let values =
                names.iter().zip(&row).skip(1).filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
            (row[0].to_owned(), values.collect())
        };
        Self(table.records().map(|one| row(one.unwrap())).collect())
    }

    /// The entry's `cells` and `misses`; for each miss, whose cell is named `CELL, METRIC`, `ours` and `reference`.
    fn verdicts(text: &str) -> Self {
        let verdicts: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut rows = Vec::new();
        for verdict in verdicts.as_array().unwrap() {
            let misses = verdict["misses"].as_array().unwrap();
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let counts = [("cells", verdict["cells"].as_f64().unwrap()), ("misses", misses.len() as f64)];
            let counts = counts.map(|(name, count)| (name.to_owned(), count));
            rows.push((verdict["name"].as_str().unwrap().to_owned(), counts.into()));
            for miss in misses {
                let cell = format!("{}, {}", miss["cell"].as_str().unwrap(), miss["metric"].as_str().unwrap());
                let number = |key: &str| miss[key].as_f64().map(|number| (key.to_owned(), number));
                rows.push((cell, ["ours", "reference"].into_iter().filter_map(number).collect()));
            }
        }
        Self(rows)
    }

    /// The column of the cells that a pattern matches, in which `*` stands for anything.
    fn column(&self, pattern: &str, column: &str) -> Vec<f64> {
        let matching = self.0.iter().filter(|(cell, _)| matches(pattern, cell));
        matching.filter_map(|(_, values)| values.get(column).copied()).collect()
    }

    /// A value: terms `CELL COLUMN`, `median(CELLS COLUMN)` (also `mean`, `min`, `max`, `sum`) or a number, with ` / `,
    /// ` * `, ` - ` and ` + ` between them, from left to right.
    fn value(&self, expression: &str) -> Result<f64, String> {
        let mut total = None;
        let mut operator = "+";
        let mut rest = expression.trim();
        while !rest.is_empty() {
            let next = [" / ", " * ", " - ", " + "].iter().filter_map(|sign| Some((rest.find(sign)?, *sign))).min();
            let (term, sign, after) =
                next.map_or((rest, "", ""), |(at, sign)| (&rest[..at], sign.trim(), &rest[at + sign.len()..]));
            let value = self.term(term.trim())?;
            total = Some(match (total, operator) {
                (None, _) => value,
                (Some(total), "/") => total / value,
                (Some(total), "*") => total * value,
                (Some(total), "-") => total - value,
                (Some(total), _) => total + value,
            });
            (operator, rest) = (sign, after);
        }
        total.ok_or_else(|| "no value".to_owned())
    }

    fn term(&self, term: &str) -> Result<f64, String> {
        if let Ok(number) = term.parse() {
            return Ok(number);
        }
        let function = term.split_once('(').filter(|(name, _)| ["median", "mean", "min", "max", "sum"].contains(name));
        let inner = function.map_or(term, |(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
        let (pattern, column) = inner.rsplit_once(' ').ok_or_else(|| format!("`{term}` has no column"))?;
        let mut values = self.column(pattern, column);
        values.sort_by(f64::total_cmp);
        if values.is_empty() {
            return Err(format!("no `{column}` of `{pattern}`"));
        }
        let middle = values.len() / 2;
        let sum: f64 = values.iter().sum();
        Ok(match function {
            None if values.len() > 1 => return Err(format!("{} cells are `{pattern}`", values.len())),
            Some(("median", _)) if values.len().is_multiple_of(2) => f64::midpoint(values[middle - 1], values[middle]),
            Some(("median", _)) => values[middle],
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            Some(("mean", _)) => sum / values.len() as f64,
            Some(("sum", _)) => sum,
            Some(("max", _)) => values[values.len() - 1],
            _ => values[0],
        })
    }
}

/// Whether a text is like a pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text
            .strip_prefix(start)
            .is_some_and(|text| (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(rest, &text[at..]))),
    }
}

/// The numbers in a text as they are written.
fn numbers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut number = String::new();
    let mut before = ' ';
    for character in text.chars().chain([' ']) {
        let continues =
            character.is_ascii_digit() || (".,".contains(character) && number.ends_with(|c: char| c.is_ascii_digit()));
        let begins = character == '-' && number.is_empty() && !before.is_alphanumeric();
        if continues || begins {
            number.push(character);
        } else if !number.is_empty() {
            let written = std::mem::take(&mut number).trim_end_matches(['.', ',']).to_owned();
            if written.contains(|c: char| c.is_ascii_digit()) {
                found.push(written);
            }
        }
        before = character;
    }
    found
}

/// Whether a number is a value to as many places as it has.
fn is_rounded(written: &str, value: f64) -> bool {
    let plain = written.replace(',', "");
    let places = plain.split_once('.').map_or(0, |(_, places)| places.len());
    let unit = 10f64.powi(-i32::try_from(places).unwrap());
    let number: f64 = plain.parse().unwrap();
    // Records have six digits.
    (number - value).abs() <= 0.5 * unit + value.abs() * 1e-5
}

/// One line with single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is wrong with numbers that stand for values.
fn compare(place: &str, written: &[String], values: &[String], record: &Record) -> Vec<String> {
    if written.len() != values.len() {
        return vec![format!("{place}: {} numbers, {} values: {written:?}", written.len(), values.len())];
    }
    let wrong = |(written, expression): (&String, &String)| match record.value(expression) {
        _ if expression.is_empty() => None,
        Err(error) => Some(format!("{place}: {error}")),
        Ok(value) if is_rounded(written, value) => None,
        Ok(value) => Some(format!("{place}: says {written}, {expression} is {value}")),
    };
    written.iter().zip(values).filter_map(wrong).collect()
}

impl Quote {
    fn wrong(&self, records: &mut Records) -> Vec<String> {
        let place = self.text.display().to_string();
        let says = words(&self.says.replace(['[', ']'], ""));
        if !words(&read(&self.text)).contains(&says) {
            return vec![format!("{place} does not say: {says}")];
        }
        let bracketed = self.says.split('[').skip(1).map(|part| part.split(']').next().unwrap().to_owned());
        compare(&place, &bracketed.collect::<Vec<_>>(), &self.values, records.get(&self.record))
    }
}

impl Table {
    fn wrong(&self, records: &mut Records) -> Vec<String> {
        let text = read(&self.text);
        let lines: Vec<_> = text.lines().collect();
        let Some(start) = lines.iter().position(|line| line.starts_with(&self.begins)) else {
            return vec![format!("{} has no table that begins with {}", self.text.display(), self.begins)];
        };
        let mut first = String::new();
        let mut wrong = Vec::new();
        let mut checked = 0;
        // The line after the first is the one of dashes.
        for line in lines[start + 2..].iter().take_while(|line| line.starts_with('|')) {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            if cells.len() != self.columns.len() {
                wrong.push(format!("{}: {line} has not {} columns", self.text.display(), self.columns.len()));
            }
            // An empty first column is the one above.
            if !cells[0].is_empty() {
                first = cells[0].replace('`', "");
            }
            if self.except.contains(&first) {
                continue;
            }
            let second = cells[1].replace('`', "");
            let fill = |value: &String| {
                let value = value.replace("{2}", &second);
                match self.rows.get(&first) {
                    None => value.replace("{1}", &first),
                    Some(Row::Word(word)) => value.replace("{1}", word),
                    Some(Row::Words(words)) => {
                        words.iter().fold(value, |value, (name, word)| value.replace(&format!("{{{name}}}"), word))
                    }
                }
            };
            let record = records.get(&fill(&self.record));
            for (cell, values) in cells.iter().zip(&self.columns).filter(|(_, values)| !values.is_empty()) {
                let values: Vec<_> = values.iter().map(fill).collect();
                let place = format!("{}, {first}", self.text.display());
                wrong.extend(compare(&place, &numbers(cell), &values, record));
                checked += 1;
            }
        }
        assert!(checked > 0, "{}: nothing is checked of {}", self.text.display(), self.begins);
        wrong
    }
}

#[test]
fn texts_quote_numbers_that_are_recorded() {
    let quotes = Quotes::load();
    let mut records = Records::default();
    let mut wrong: Vec<_> = quotes.quote.iter().flat_map(|quote| quote.wrong(&mut records)).collect();
    wrong.extend(quotes.table.iter().flat_map(|table| table.wrong(&mut records)));
    assert!(wrong.is_empty(), "{} wrong numbers\n{}", wrong.len(), wrong.join("\n"));
}

/// The answer of a page in short: its first paragraph.
fn answer(page: &Path) -> String {
    words(read(page).split("\n\n").nth(1).unwrap_or_default())
}

/// The answer of a page with its numbers: what stands before the paragraph with the command that repeats it, or before
/// tables and pictures.
fn whole_answer(page: &Path) -> String {
    let commands = ["`flowstart run ", "`flowstart trace ", "`flowstart validate ", "`make ", "`cargo "];
    let is_behind = |paragraph: &str| {
        paragraph.starts_with(['`', '#', '|', '-', '!']) || commands.iter().any(|command| paragraph.contains(command))
    };
    let text = read(page);
    let paragraphs = text.split("\n\n").skip(1).enumerate();
    let own = paragraphs.take_while(|(place, paragraph)| *place == 0 || !is_behind(paragraph));
    words(&own.map(|(_, paragraph)| paragraph).collect::<Vec<_>>().join(" "))
}

/// The pages of findings, without their index.
fn findings() -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("docs/findings")).unwrap().map(|entry| entry.unwrap().file_name());
    let pages = files.filter(|name| name != "README.md").map(|name| Path::new("docs/findings").join(name));
    pages.collect()
}

/// Where in a text the words stand that `says` has in brackets, if the text says so.
fn bracketed(text: &str, says: &str) -> Option<Vec<usize>> {
    let says = words(says);
    let mut at = text.find(&says.replace(['[', ']'], ""))?;
    let mut inside = false;
    let mut places = Vec::new();
    for character in says.chars() {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            _ => {
                if inside {
                    places.push(at);
                }
                at += character.len_utf8();
            }
        }
    }
    Some(places)
}

#[test]
fn numbers_of_answers_are_checked() {
    let quotes = Quotes::load();
    let mut missing = Vec::new();
    for unchecked in &quotes.unchecked {
        assert!(!unchecked.because.is_empty(), "{}: because?", unchecked.says);
        if bracketed(&words(&read(&unchecked.text)), &unchecked.says).is_none() {
            missing.push(format!("{} does not say: {}", unchecked.text.display(), unchecked.says));
        }
    }
    for page in findings() {
        let answer = whole_answer(&page);
        let quoted = quotes.quote.iter().map(|quote| (&quote.text, &quote.says));
        let said = quoted.chain(quotes.unchecked.iter().map(|one| (&one.text, &one.says)));
        let says = said.filter(|(text, _)| **text == page).map(|(_, says)| says);
        let places: Vec<usize> = says.filter_map(|says| bracketed(&answer, says)).flatten().collect();
        let mut code = false;
        let rest = answer.char_indices().map(|(at, character)| {
            code ^= character == '`';
            if code || places.contains(&at) { '_' } else { character }
        });
        let numbers = numbers(&rest.collect::<String>());
        if !numbers.is_empty() {
            missing.push(format!("{}: {}", page.display(), numbers.join(" ")));
        }
    }
    assert!(missing.is_empty(), "neither quoted nor said to be unchecked:\n{}", missing.join("\n"));
}

#[test]
fn the_index_gives_the_answers_of_its_pages() {
    let index = read(Path::new("docs/findings/README.md"));
    for page in findings() {
        let name = page.file_name().unwrap().to_str().unwrap();
        let line = index.lines().find(|line| line.contains(&format!("]({name}) |")));
        let given = line.unwrap_or_else(|| panic!("the index lacks {name}")).rsplit(" | ").next().unwrap();
        assert_eq!(given.trim_end_matches(" |"), answer(&page), "{name}");
        assert!(answer(&page).chars().count() <= LONGEST, "{name}: an index is for reading across");
    }
}

#[test]
fn records_say_where_they_come_from() {
    for folder in fs::read_dir(root().join("record")).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.is_dir() || folder.ends_with("quotes") {
            continue;
        }
        let about: BTreeMap<String, toml::Value> = toml::from_str(&read(&folder.join("record.toml"))).unwrap();
        for key in ["command", "version", "machine", "date"] {
            assert!(about.contains_key(key), "{} does not say its {key}", folder.display());
        }
        let data = ["cells.csv", "verdict.json", "output.txt"];
        assert!(data.iter().any(|file| folder.join(file).exists()), "{} has no data", folder.display());
    }
}

/// What `scripts/record --check` says of a folder of records.
fn checked(records: &Path) -> (bool, String) {
    let script = root().join("scripts/record");
    let done = Command::new("python3").arg(script).arg("--check").arg(records).output().unwrap();
    (done.status.success(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn every_number_is_the_one_that_was_written() {
    assert_eq!(checked(&root().join("record")), (true, String::new()));
}

#[test]
fn an_edited_number_is_named() {
    let folder = tempfile::TempDir::new().unwrap();
    let copied = |name: &str| {
        let (from, to) = (root().join("record").join(name), folder.path().join(name));
        fs::create_dir(&to).unwrap();
        for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
        to
    };
    let table = copied("pareto").join("cells.csv");
    let text = fs::read_to_string(&table).unwrap();
    let (titles, row) = (text.lines().next().unwrap(), text.lines().nth(3).unwrap());
    let mut fields: Vec<&str> = row.split(',').collect();
    fields[1] = "12345.6";
    fs::write(&table, text.replacen(row, &fields.join(","), 1)).unwrap();
    let column = titles.split(',').nth(1).unwrap();
    let expected = format!("pareto: cells.csv, {}, {column}: 12345.6 is not what was written\n", fields[0]);
    assert_eq!(checked(folder.path()), (false, expected));

    // Of two edited numbers only the lines and the columns are known.
    let (second, other) = (text.lines().nth(2).unwrap(), titles.split(',').nth(2).unwrap());
    let mut more: Vec<&str> = second.split(',').collect();
    more[2] = "12345.6";
    let edited = text.replacen(row, &fields.join(","), 1).replacen(second, &more.join(","), 1);
    fs::write(&table, edited).unwrap();
    let (is_right, says) = checked(folder.path());
    let places = format!("of {column}, {other} in {}, {}\n", more[0], fields[0]);
    assert!(!is_right && says.contains("at least 2 numbers") && says.ends_with(&places), "{says}");

    fs::write(&table, &text).unwrap();
    let about = table.with_file_name("record.toml");
    let command = fs::read_to_string(&about).unwrap();
    fs::write(&about, command.replacen("flowstart run", "flowstart run -q", 1)).unwrap();
    assert_eq!(checked(folder.path()), (false, "pareto: record.toml, command: is not the one that was run\n".into()));
    fs::write(&about, command).unwrap();

    let verdict = copied("validate-slides-speedup").join("verdict.json");
    fs::write(&verdict, fs::read_to_string(&verdict).unwrap().replacen(": ", ": 7", 1)).unwrap();
    let (is_right, says) = checked(folder.path());
    assert!(!is_right && says.starts_with("validate-slides-speedup: verdict.json, line "), "{says}");
    fs::remove_file(verdict.with_file_name("checksums.txt")).unwrap();
    assert!(checked(folder.path()).1.contains("checksums.txt"));
}

#[test]
fn a_folder_without_records_is_no_folder_of_records() {
    let folder = tempfile::TempDir::new().unwrap();
    let (is_right, says) = checked(&folder.path().join("missing"));
    assert!(!is_right && says.ends_with("missing: cannot be read: No such file or directory\n"), "{says}");
    let (is_right, says) = checked(folder.path());
    assert!(!is_right && says.ends_with(": holds no record\n"), "{says}");
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/checksums.txt"), "").unwrap();
    assert_eq!(checked(folder.path()), (false, "a: has checksums.txt and no record.toml\n".to_owned()));
}

#[test]
fn numbers_are_found_and_compared_as_they_are_rounded() {
    assert_eq!(numbers("0.35 / 1,234 ms, -7 %, `iw=3`."), ["0.35", "1,234", "-7", "3"]);
    assert!(is_rounded("0.35", 0.3549) && !is_rounded("0.35", 0.3561));
    assert!(is_rounded("1,234", 1234.4) && !is_rounded("1,234", 1235.0));
    assert!(matches("a/*/c*", "a/b/b/cd") && !matches("a/*/c", "a/b/cd"));
}
