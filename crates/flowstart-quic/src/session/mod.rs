//! Custom transport parameters in noq: hints and path state of clients, and receive windows of either side.
//!
//! A server gives each connection a configuration of its own ([`accept_config`]), a client each connection that it
//! opens ([`ClientConfig::for_connection`]). Both connect three things that belong to one connection: the controller,
//! the [`Flow`] that it shares with the application, and the peer's transport parameters.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use flowstart_core::path::PathKnowledge;
//! # use flowstart_quic::{ControllerFactory, Flow, session};
//! # use noq_proto::ServerConfig;
//! # fn accept(incoming_config: &ServerConfig, factory: &ControllerFactory) -> Arc<ServerConfig> {
//! let flow = Flow::new(PathKnowledge::default());
//! session::accept_config(incoming_config, factory, &flow, |flow, client| {
//!     if let Ok(Some(hint)) = client.hint {
//!         flow.learn(|path| path.hint = Some(hint.hint()));
//!     }
//!     client.errors().for_each(|error| eprintln!("{error}"));
//! })
//! // ... goes to `Incoming::accept_with`.
//! # }
//! ```
//!
//! What the host does not give, and the consequences:
//!
//! - **A server's session is the host's own**; this module reads the client's parameters separately from the
//!   `ClientHello`. ALPN, server name, certificates, 0-RTT, tickets and Retry are the host's.
//! - **A client's session is this module's**, because the host's cannot send parameters that it does not know. Its
//!   `handshake_data` is [`HandshakeData`], because only the host can construct the host's type.
//! - **A client learns the server's receive windows at the end of the handshake**, and the RTT may be known a moment
//!   before. Use [`Flow::waiting`], and say how much will be sent when the connection is established.
//! - QUIC version 1 only, where this module's session is used.

use std::sync::{Arc, Mutex, PoisonError};

use noq_proto::TransportConfig;

use crate::flow::Flow;
use crate::noq::ControllerFactory;
use crate::transport_parameters::PeerParameters;

mod client;
pub mod observer;
mod server;
#[cfg(test)]
mod tests;

pub use client::{ClientConfig, ClientConfigError, HandshakeData};
pub use server::accept_config;

/// Takes the peer's parameters, once.
type Receiver = Box<dyn FnOnce(PeerParameters) + Send + Sync>;

/// The transport with controllers of this kind that work for `flow`.
fn with_factory(transport: &TransportConfig, factory: &ControllerFactory, flow: &Arc<Flow>) -> Arc<TransportConfig> {
    let mut own = transport.clone();
    own.congestion_controller_factory(Arc::new(factory.for_flow(Arc::clone(flow))));
    Arc::new(own)
}

/// Passes to the flow what needs no policy, and the rest to the application.
fn tell_flow(flow: Arc<Flow>, receiver: impl FnOnce(&Flow, PeerParameters) + Send + Sync + 'static) -> Receiver {
    Box::new(move |parameters| {
        flow.learn(|path| parameters.tell_window(path));
        receiver(&flow, parameters);
    })
}

/// State for one session only; the first session takes it.
fn take(receiver: &Mutex<Option<Receiver>>) -> Option<Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
}
