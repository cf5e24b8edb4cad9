//! SCONE (draft-ietf-scone-protocol-08) for noq, which does not support it: a socket below the stack.
//!
//! A server puts SCONE packets before its datagrams, for elements of the path to write their advice into. A client
//! removes them, remembers the advice and passes the rest to its stack. The client says in its transport parameters
//! that it reads them ([`ClientConfig::with_scone`](crate::session::ClientConfig::with_scone)). The report to the
//! server is up to the application, which passes the advice to [`Flow::advise`](crate::Flow::advise).
//!
//! | Who | What |
//! |---|---|
//! | a server | [`Clients`], which it tells of each connection whose client reads SCONE packets |
//! | a client | [`Servers`], which knows what their paths advise |
//! | both | [`Socket`] around the runtime's socket |
//!
//! What this costs and what it cannot do:
//!
//! - **Size.** A SCONE packet is sent only where the whole datagram has at most 1232 bytes, which every path of IPv6
//!   carries. Larger datagrams wait for a smaller one, so a server turns the search for larger packets off. If a path
//!   carries no more than QUIC's 1200 bytes, the first three datagrams of a flow are lost and repeated without.
//! - **Batches.** While a SCONE packet is due, the sender asks the stack for single datagrams. A batch that comes
//!   nevertheless (segmentation offload) leaves as it is.
//! - **Amplification.** The stack does not know of the SCONE packets. Before the client's address is proven they add up
//!   to 69 bytes to the three times 1200 that a server may send.
//! - **Trust.** A signal counts if its packet and the one behind name the same connection ID, and this end has given it
//!   out. The draft also wants the packet behind to be decrypted; a socket cannot know that.
//! - **Indication.** A client's datagrams say that SCONE packets are wanted until the server answers. A client that
//!   moves says nothing again on its new path.
//! - **Paths.** Advice is for the addresses of both ends. A server that changes its own address is not noticed.

use crate::invariants;

mod batch;
mod datagram;
mod peers;
mod socket;

pub use peers::{Clients, Reader, Servers};
pub use socket::Socket;
