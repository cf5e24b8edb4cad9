//! Model transports: what an end host does with packets.
//!
//! | Looking for | Where |
//! |---|---|
//! | named sets of policies | [`profile`] |
//! | connection set-up | [`handshake`] |
//! | the QUIC sender | [`quic`] |
//! | the TCP sender | [`tcp`] |
//! | what TCP knows about its segments | `scoreboard.rs`, `rack.rs` |
//! | receivers and when they acknowledge | [`receiver`] |
//! | how receive windows grow | [`receive_window`], [`receive_buffer`] |
//! | Quick-Start's requests and answers | [`quick_start`] |
//! | what both senders share | [`sender`] |
//! | delivery rate samples | [`sampling`] |

pub mod handshake;
pub mod profile;
pub mod quic;
pub mod quick_start;
mod rack;
pub mod receive_buffer;
pub mod receive_window;
pub mod receiver;
pub mod sampling;
pub mod scone;
mod scoreboard;
pub mod sender;
mod spurious;
pub mod tcp;
mod tick_estimator;
