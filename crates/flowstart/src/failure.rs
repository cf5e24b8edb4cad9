//! Errors as users see them, and their exit codes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flowstart_lab::results::folder::ExperimentError;
use flowstart_lab::spec::InputError;
use flowstart_lab::study::scenario::ScenarioError;
use flowstart_serve::client::ClientError;
use flowstart_serve::perf::PerfError;
use flowstart_serve::tls::TlsError;
use flowstart_serve::tokens::TokensError;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceSpan};
use toml::de::DeTable;

/// Exit code of a run that failed or a validation that missed.
pub(crate) const FAILED: u8 = 1;
/// Exit code of bad input.
pub(crate) const BAD_INPUT: u8 = 2;

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
                tell!("error: {message}");
                ExitCode::from(BAD_INPUT)
            }
            Self::File { file, message, text: Some((text, span)) } => {
                let line = span.as_ref().map_or(String::new(), |span| {
                    format!(", line {}", text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1)
                });
                let problem = Problem {
                    message: format!("{}{line}: {message}", file.display()),
                    source: NamedSource::new(file.display().to_string(), text),
                    span: span.map(SourceSpan::from),
                };
                tell!("{:?}", miette::Report::new(problem));
                ExitCode::from(BAD_INPUT)
            }
            Self::File { file, message, text: None } => {
                tell!("error: {}: {message}", file.display());
                ExitCode::from(BAD_INPUT)
            }
            Self::Other(message) => {
                tell!("error: {message}");
                ExitCode::from(FAILED)
            }
        }
    }
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
