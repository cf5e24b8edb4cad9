//! Model transports: the packet handling of end hosts.
//!
//! | Looking for | Where |
//! |---|---|
//! | decisions in which hosts differ | [`policy`] |
//! | named sets of policies | [`profile`] |
//! | connection set-up | [`handshake`] |
//! | senders without congestion control | [`constant`], [`call`] |
//! | the QUIC sender | [`quic`] |
//! | the TCP sender | [`tcp`] |
//! | receivers, when they acknowledge and how their windows grow | [`receiver`] |
//! | Quick-Start's requests and answers | [`quick_start`] |
//! | the common part of both senders | [`sender`] |
//! | delivery rate samples | [`sampling`] |

pub mod call;
pub mod constant;
pub mod handshake;
pub mod policy;
pub mod profile;
pub mod quic;
pub mod quick_start;
pub mod receiver;
pub mod sampling;
pub mod scone;
pub mod sender;
pub mod tcp;
