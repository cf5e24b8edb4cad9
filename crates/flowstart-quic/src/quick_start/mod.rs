//! Quick-Start (RFC 4782) for noq, which knows no options of IP: sockets below the stack.
//!
//! A server asks the routers of the path with an option of its first datagram to a client, and reports with a later one
//! what was approved. A client reads the request as it arrives, and answers it. It says in its transport parameters
//! that it does ([`ClientConfig::with_quick_start`](crate::session::ClientConfig::with_quick_start)); nobody else is
//! asked, because some networks drop packets with options. The response travels in what the application sends; an
//! approved rate goes to [`Flow::hear`](crate::Flow::hear) before the launch.
//!
//! | Who | What |
//! |---|---|
//! | a server | [`Clients`], which it tells of each connection that is to ask; [`ServerSocket`] |
//! | a client | [`Requests`], which knows what has arrived; [`ClientSocket`] |
//!
//! What this costs and what it cannot do:
//!
//! - **Privileges.** A server needs Linux and `CAP_NET_RAW` ([`try_asking`]), a client Linux only.
//! - **IPv6.** There the option is one of a hop-by-hop header (RFC 4782, section 3.2). Routers may drop packets with
//!   one or handle them slowly (RFC 9098), and a client's host may be told to drop options that it does not know
//!   (`net.ipv6.max_hbh_opts_number`). Then the handshake takes as long as below.
//! - **The handshake.** The request is in the datagram that answers the client's first. If the path drops it because of
//!   the option, that datagram is repeated without, after a timeout. A repetition never carries a request, and neither
//!   do Retry and Version Negotiation, which belong to no connection.
//! - **Age.** Routers reserve what they approve for a short time only, and a client may respond later: the application
//!   judges how old an approval may be.
//! - **Headers.** The scheme's `header` is TCP's 40 bytes unless it is told otherwise. Those of IPv4 and UDP are 28
//!   (`quick-start:header=28B`), which makes a window one percent larger; those of IPv6 and UDP are 48.
//! - **Size.** A datagram with an option is 8 bytes longer than the stack knows, and 16 in IPv6. One that the path
//!   would not carry for this leaves without, and is counted as one whose option was not sent.
//! - **Batches.** While an option waits, the sender asks the stack for single datagrams.
//! - **Trust.** A request counts if its datagram comes from the server that was met and names a connection ID that this
//!   end has given out. The socket cannot know whether the datagram can be decrypted.
//! - **Only at the beginning.** Nothing is asked in mid-connection, and there is one pass.

mod client;
mod peers;
mod server;

use std::net::IpAddr;

use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_datagram::try_sending;

pub use client::ClientSocket;
pub use peers::{Asked, Clients, Requests};
pub use server::ServerSocket;

/// Why there can be no requests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unable {
    /// The process or the system cannot send them.
    #[error("a request is an option of IP, and {0}")]
    Options(#[from] flowstart_datagram::Unable),
}

/// Finds out whether a socket of this address could send requests now.
///
/// # Errors
///
/// [`Unable`] says why not.
pub fn try_asking(address: IpAddr) -> Result<(), Unable> {
    let nothing = IpOption::RateRequest { rate: RateCode::ZERO, ttl: 0, nonce: Nonce::from_bits(0) };
    Ok(try_sending(address, &nothing.emit(IpVersion::of(address)))?)
}
