//! Quick-Start: ns-2's implementation, and the paper of Sarolahti, Allman and Floyd (2007).

pub(crate) mod attacks;
pub(crate) mod figures;
pub(crate) mod ns2;
pub(crate) mod web;
