//! The server's side: the host's TLS, with a listener for the client's first message.

use std::sync::{Arc, Mutex};

use super::observer::{ObservedConfig, Observer};
use super::{Receiver, take, tell_flow, with_factory};
use crate::flow::Flow;
use crate::noq::ControllerFactory;
use crate::transport_parameters::{ClientHello, PeerParameters};

/// The configuration of one connection that a server is about to accept, for `Incoming::accept_with` or
/// `Endpoint::accept`: as `config`, with controllers of this kind that work for `flow`.
///
/// When the host reads the client's first message, and so before the launch, the flow learns the client's receive
/// window, and `receiver` gets the rest: a hint and path state for the server's policy, and errors for its log.
/// `receiver` is not called if the client's first message never arrives.
///
/// Accept only one connection with it. Another one would neither launch nor learn anything of its client.
pub fn accept_config(
    config: &noq_proto::ServerConfig,
    factory: &ControllerFactory,
    flow: &Arc<Flow>,
    receiver: impl FnOnce(&Flow, PeerParameters) + Send + Sync + 'static,
) -> Arc<noq_proto::ServerConfig> {
    let mut own = config.clone();
    own.transport = with_factory(&config.transport, factory, flow);
    let receiver = Mutex::new(Some(tell_flow(Arc::clone(flow), receiver)));
    let listener = move || Listener(take(&receiver).map(|receiver| (ClientHello::default(), receiver)));
    own.crypto = Arc::new(ObservedConfig::new(Arc::clone(&config.crypto), listener));
    Arc::new(own)
}

/// Reads the client's first message a second time, until the `ClientHello` is complete.
struct Listener(Option<(ClientHello, Receiver)>);

impl Observer for Listener {
    fn on_message(&mut self, message: &[u8]) {
        if let Some((mut hello, receiver)) = self.0.take() {
            match hello.take(message) {
                Some(parameters) => receiver(parameters),
                None => self.0 = Some((hello, receiver)),
            }
        }
    }
}
