//! What stands at links and reads packets before they are queued.

pub(crate) mod routers;
pub mod signals;
