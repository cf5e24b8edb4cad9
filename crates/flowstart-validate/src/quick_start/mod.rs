//! Quick-Start: the paper of Sarolahti, Allman and Floyd (2007). What ns-2 did is in `ns2.rs`.

pub(crate) mod attacks;
pub(crate) mod figures;
