//! Custom transport parameters in noq: hints and path state of clients, and receive windows of either side.
//!
//! A server gives each connection a configuration of its own ([`accept_config`]), a client each connection that it
//! opens ([`ClientConfig::for_connection`]). Both tie three things together that must not be mixed up between
//! connections: the controller, the [`Flow`] that it shares with the application, and what the peer's transport
//! parameters say.
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
//! What the host does not give, and what follows from it:
//!
//! - **A server's session is the host's own**, and what the client sent is read beside it from the `ClientHello`. ALPN,
//!   server name, certificates, 0-RTT, tickets and Retry are the host's.
//! - **A client's session is this module's**, because the host's cannot send parameters that it does not know. Its
//!   `handshake_data` is [`HandshakeData`]: nobody but the host can make the host's.
//! - **A client learns the server's receive windows at the end of the handshake**, and its RTT may be known a moment
//!   before. Use [`Flow::waiting`] and tell what will be sent when the connection stands.
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

/// Takes what the peer sent, once.
type Receiver = Box<dyn FnOnce(PeerParameters) + Send + Sync>;

/// The transport with controllers of this kind that work for `flow`.
fn with_factory(transport: &TransportConfig, factory: &ControllerFactory, flow: &Arc<Flow>) -> Arc<TransportConfig> {
    let mut own = transport.clone();
    own.congestion_controller_factory(Arc::new(factory.for_flow(Arc::clone(flow))));
    Arc::new(own)
}

/// Tells the flow what needs no policy, and the application the rest.
fn tell_flow(flow: Arc<Flow>, receiver: impl FnOnce(&Flow, PeerParameters) + Send + Sync + 'static) -> Receiver {
    Box::new(move |parameters| {
        flow.learn(|path| parameters.tell_window(path));
        receiver(&flow, parameters);
    })
}

/// What is kept for one session only: the first one takes it.
fn take(receiver: &Mutex<Option<Receiver>>) -> Option<Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
}
