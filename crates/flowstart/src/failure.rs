//! Errors as users see them, and their exit codes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flowstart_lab::results::folder::ExperimentError;
use flowstart_lab::spec::InputError;
use flowstart_lab::study::scenario::ScenarioError;
use flowstart_serve::client::ClientError;
use flowstart_serve::perf::PerfError;
use flowstart_serve::printable;
use flowstart_serve::tls::TlsError;
use flowstart_serve::tokens::TokensError;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceSpan};
use toml::de::DeTable;

/// Exit code of a run that failed or a validation that missed.
pub(crate) const FAILED: u8 = 1;
/// Exit code of bad input.
pub(crate) const BAD_INPUT: u8 = 2;

/// A path on a terminal.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad input on the command line.
    Input(String),
    /// Bad input in a file.
    File { file: PathBuf, message: String, text: Option<(String, Option<Range<usize>>)> },
    /// A failure that is not the input's fault.
    Other(String),
}

impl From<InputError> for Failure {
    /// On the command line a field is an option.
    fn from(error: InputError) -> Self {
        Self::Input(format!("--{error}"))
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Folder { .. } | ExperimentError::Question { .. } => Self::Input(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::File { file, problem } => Self::File { file, message: problem, text: None },
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<TokensError> for Failure {
    fn from(error: TokensError) -> Self {
        match error {
            TokensError::Unusable { file, problem } => Self::File { file, message: problem, text: None },
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::File { file, problem } => Self::File { file, message: problem, text: None },
            ClientError::Url { .. } => Self::Input(error.to_string()),
            other => Self::Other(advised(other.to_string())),
        }
    }
}

impl From<PerfError> for Failure {
    fn from(error: PerfError) -> Self {
        match error {
            PerfError::Listen { address, cause } => Self::Input(format!("--listen `{address}`: {cause}")),
            PerfError::Tls(error) => error.into(),
            other => Self::Other(advised(other.to_string())),
        }
    }
}

impl Failure {
    /// A scenario file that cannot be used.
    pub(crate) fn scenario(file: &Path, error: ScenarioError) -> Self {
        let (file, message) = (file.to_owned(), error.to_string());
        let text = match error {
            ScenarioError::Invalid { text, span, .. } => Some((text, span)),
            ScenarioError::Unreadable(_) | ScenarioError::NotText { .. } => None,
        };
        Self::File { file, message, text }
    }

    /// A field of a scenario file with an unusable value; looks for its place in the file.
    pub(crate) fn field(file: &Path, text: String, error: &InputError) -> Self {
        let span = place(&text, error);
        Self::File { file: file.to_owned(), message: error.to_string(), text: Some((text, span)) }
    }

    /// Refuses a file whose folder is not there, before the work for it.
    pub(crate) fn without_folder(option: &str, file: &Path) -> Result<(), Self> {
        match file.parent().filter(|folder| *folder != Path::new("") && !folder.is_dir()) {
            Some(folder) => {
                let problem = format!("there is no folder {}", folder.display());
                Err(Self::Input(format!("{option} `{}`: {problem}", file.display())))
            }
            None => Ok(()),
        }
    }

    /// Tells the user, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Input(message) => {
                tell!("error: {}", shortened(&message));
                ExitCode::from(BAD_INPUT)
            }
            Self::File { file, message, text: Some((text, span)) } => {
                let line = span.as_ref().map_or(String::new(), |span| {
                    format!(", line {}", text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1)
                });
                let span = span.filter(|span| is_shown(&text, span));
                let problem = Problem {
                    message: format!("{}{line}: {}", shown(&file), shortened(&message)),
                    source: NamedSource::new(shown(&file), text),
                    span: span.map(SourceSpan::from),
                };
                tell!("{:?}", miette::Report::new(problem));
                ExitCode::from(BAD_INPUT)
            }
            Self::File { file, message, text: None } => {
                tell!("error: {}: {}", shown(&file), shortened(&message));
                ExitCode::from(BAD_INPUT)
            }
            Self::Other(message) => {
                tell!("error: {}", shortened(&message));
                ExitCode::from(FAILED)
            }
        }
    }
}

/// Longest line of a file that is shown beside a message, in bytes.
const LONGEST_LINE: usize = 1000;
/// Longest begin and end of a message that is longer than both, in characters.
const LONGEST_PART: usize = 1000;

/// A message of which a user can read all: what is wrong, and not all of a value without end. Its escape sequences do
/// not reach the terminal.
fn shortened(message: &str) -> String {
    let message = message.lines().map(printable).collect::<Vec<_>>().join("\n");
    let starts: Vec<usize> = message.char_indices().map(|(start, _)| start).collect();
    match starts.len().checked_sub(2 * LONGEST_PART) {
        None | Some(0) => message,
        Some(left_out) => {
            let (begin, end) = (starts[LONGEST_PART], starts[starts.len() - LONGEST_PART]);
            format!("{} [... {left_out} characters ...] {}", &message[..begin], &message[end..])
        }
    }
}

/// Whether the place of a problem is shown: its lines, and those beside them, are not too long and command no terminal.
fn is_shown(text: &str, span: &Range<usize>) -> bool {
    let (before, after) = (text.get(..span.start).unwrap_or_default(), text.get(span.end..).unwrap_or_default());
    let begin = before.rmatch_indices('\n').nth(1).map_or(0, |(place, _)| place);
    let end = after.match_indices('\n').nth(1).map_or(text.len(), |(place, _)| span.end + place);
    let is_plain = |line: &str| line.len() <= LONGEST_LINE && !line.contains(|c: char| c.is_control() && c != '\t');
    text.get(begin..end).unwrap_or_default().lines().all(is_plain)
}

/// The place of a wrong value in a scenario: within what is written for its field, which is all of it if the value is
/// only a part of its meaning. A field that is not written has a default, or was given elsewhere.
fn place(text: &str, error: &InputError) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let written = table.get_ref().iter().find(|(key, _)| **key.get_ref() == *error.field)?.1.span();
    let found = text.get(written.clone())?.find(&error.value).filter(|_| !error.value.is_empty());
    Some(found.map_or(written.clone(), |start| {
        let start = written.start + start;
        start..start + error.value.len()
    }))
}

/// A message about a broken connection. The QUIC stack's own message does not mention the window.
pub(crate) fn advised(message: String) -> String {
    let advice =
        if message.contains("too many gaps") { "; use a smaller --receive-window; the default is safe" } else { "" };
    message + advice
}

/// A problem with a place in a file.
#[derive(Debug)]
struct Problem {
    message: String,
    source: NamedSource<String>,
    span: Option<SourceSpan>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some("here".into()), span))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_begin_and_its_end() {
        let short = "é".repeat(2 * LONGEST_PART);
        assert_eq!(shortened(&short), short);
        let long = shortened(&format!("begin{}end", "é".repeat(2 * LONGEST_PART)));
        assert!(
            long.starts_with("beginé") && long.ends_with("éend") && long.contains("... 8 characters ..."),
            "{long}"
        );
        assert!(!shortened("size: `\u{1b}[2J\u{7}`\nis not a size").contains(['\u{1b}', '\u{7}']));
    }

    #[test]
    fn a_place_beside_a_line_without_end_is_not_shown() {
        let long = "x".repeat(LONGEST_LINE + 1);
        for (text, shown) in [
            ("a = 1\nb = 2\nc = 3\n".to_owned(), true),
            (format!("{long}\na = 1\nb = 2\nc = 3\n{long}"), true),
            (format!("{long}\nb = 2\nc = 3"), false),
            (format!("a = 1\nb = 2\n{long}"), false),
            ("a = 1\nb = 2\n# \u{1b}[2J\n".to_owned(), false),
        ] {
            let place = text.find('2').unwrap();
            assert_eq!(is_shown(&text, &(place..place + 1)), shown, "{text}");
        }
    }
}
