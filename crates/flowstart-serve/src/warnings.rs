//! Warnings of a server for its operator.

use std::fmt;
use std::sync::Arc;

/// Takes warnings, a line each. The default ignores them.
#[derive(Clone)]
pub struct Warnings(Arc<dyn Fn(&str) + Send + Sync>);

impl Warnings {
    /// Gives every warning to `take`, which must not block for long.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Warns.
    pub(crate) fn tell(&self, warning: impl fmt::Display) {
        (self.0)(&warning.to_string());
    }
}

impl Default for Warnings {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Warnings")
    }
}
