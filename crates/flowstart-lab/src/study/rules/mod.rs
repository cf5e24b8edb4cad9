//! What cannot be combined in a study.

pub(in crate::study) mod oracle;
pub(in crate::study) mod web_sessions;
