//! [`RenderError`] says why a page could not be written.

use std::fmt;

/// A page could not be written. This is a fault of the renderer, not of the data.
#[derive(Debug)]
pub struct RenderError(Problem);

#[derive(Debug)]
enum Problem {
    Template(minijinja::Error),
    Json(serde_json::Error),
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            // The alternate form names the template and the line.
            Problem::Template(error) => write!(f, "cannot write the report: {error:#}"),
            Problem::Json(error) => write!(f, "cannot write the report's charts: {error}"),
        }
    }
}

impl std::error::Error for RenderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Problem::Template(error) => Some(error),
            Problem::Json(error) => Some(error),
        }
    }
}

impl From<minijinja::Error> for RenderError {
    fn from(error: minijinja::Error) -> Self {
        Self(Problem::Template(error))
    }
}

impl From<serde_json::Error> for RenderError {
    fn from(error: serde_json::Error) -> Self {
        Self(Problem::Json(error))
    }
}
