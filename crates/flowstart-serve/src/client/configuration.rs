//! The configuration of each of a client's connections. They differ in the path state, and share all else: what servers
//! gave to one, tickets and tokens, is for the others.

use std::fmt;
use std::sync::Arc;

use flowstart_quic::session;
use noq::crypto::rustls::QuicClientConfig;
use noq::{TokenMemoryCache, TokenStore};

use super::ClientError;
use super::kept_state::KeptState;
use crate::tokens::Tokens;

/// TLS of connections.
pub(super) enum Crypto {
    /// noq's own, with nothing to tell servers.
    Plain(Arc<QuicClientConfig>),
    /// With what it tells them.
    Telling(Box<session::ClientConfig>),
}

/// What connections have in common.
pub(super) struct Configuration {
    crypto: Crypto,
    transport: Arc<noq::TransportConfig>,
    tokens: Arc<dyn TokenStore>,
}

impl Configuration {
    /// Without `tokens`, those that servers give are kept as long as the client.
    pub(super) fn new(crypto: Crypto, transport: noq::TransportConfig, tokens: Option<Arc<Tokens>>) -> Self {
        let tokens: Arc<dyn TokenStore> = match tokens {
            Some(tokens) => tokens,
            None => Arc::new(TokenMemoryCache::default()),
        };
        Self { crypto, transport: Arc::new(transport), tokens }
    }

    /// That of the next connection, with the latest path state.
    ///
    /// # Errors
    ///
    /// [`ClientError::File`] with a path state that cannot be sent.
    pub(super) fn of_next(&self, kept: Option<&KeptState>) -> Result<noq::ClientConfig, ClientError> {
        let mut config = match (&self.crypto, kept) {
            (Crypto::Plain(crypto), _) => noq::ClientConfig::new(crypto.clone()),
            (Crypto::Telling(crypto), None) => noq::ClientConfig::new(Arc::new(crypto.as_ref().clone())),
            (Crypto::Telling(crypto), Some(kept)) => {
                let telling = crypto.as_ref().clone().with_path_state(kept.latest().as_deref());
                noq::ClientConfig::new(Arc::new(telling.map_err(|error| kept.refused(&error))?))
            }
        };
        config.token_store(self.tokens.clone()).transport_config(self.transport.clone());
        Ok(config)
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration").field("transport", &self.transport).finish_non_exhaustive()
    }
}
