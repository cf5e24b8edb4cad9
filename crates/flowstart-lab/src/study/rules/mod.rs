//! Combinations that a study cannot have.

pub(in crate::study) mod connections;
pub(in crate::study) mod cross_traffic;
pub(in crate::study) mod oracle;
pub(in crate::study) mod pages;
pub(in crate::study) mod proxies;
pub(in crate::study) mod sharing;
pub(in crate::study) mod sockets;
pub(in crate::study) mod trains;
pub(in crate::study) mod web_sessions;
