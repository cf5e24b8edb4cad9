//! Elements at links that read packets before they are queued.

pub(crate) mod routers;
pub mod signals;
