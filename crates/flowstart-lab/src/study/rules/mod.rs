//! Combinations that a study cannot have.

pub(in crate::study) mod oracle;
pub(in crate::study) mod web_sessions;
