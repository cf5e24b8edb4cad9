//! The end that serves clients' requests for data.

use std::net::SocketAddr;
use std::sync::Arc;

use flowstart_core::units::Bytes;
use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, RecvStream, SendStream};

use super::{Congestion, ENOUGH, PerfError, Progress, SEND_WINDOW, write};
use crate::endpoint::bind;

/// A server that listens. It takes connections while [`Server::run`] does.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Server {
    /// Listens at `address`, with TLS for [`super::PERF`]. `receive_window` bounds clients' unread data.
    ///
    /// # Errors
    ///
    /// [`PerfError`] when the address or the TLS cannot be used.
    pub fn start(
        address: SocketAddr,
        tls: rustls::ServerConfig,
        congestion: &Congestion,
        receive_window: Bytes,
    ) -> Result<Self, PerfError> {
        Self::with_windows(address, tls, congestion, SEND_WINDOW, receive_window)
    }

    pub(super) fn with_windows(
        address: SocketAddr,
        tls: rustls::ServerConfig,
        congestion: &Congestion,
        send: Bytes,
        receive: Bytes,
    ) -> Result<Self, PerfError> {
        let crypto = QuicServerConfig::try_from(tls).map_err(|error| PerfError::Quic(error.to_string()))?;
        let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(congestion.transport(send, receive));
        let unusable = |cause| PerfError::Listen { address, cause };
        let endpoint = bind(address, Some(config)).map_err(unusable)?;
        let address = endpoint.local_addr().map_err(unusable)?;
        Ok(Self { endpoint, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for as long as it is open.
    pub async fn run(&self) {
        while let Some(incoming) = self.endpoint.accept().await {
            tokio::spawn(async move {
                // A client that does not connect or leaves does not affect the server.
                let Ok(connection) = incoming.await else { return };
                while let Ok((send, receive)) = connection.accept_bi().await {
                    tokio::spawn(answer(send, receive));
                }
            });
        }
    }

    pub(super) fn close(&self) {
        self.endpoint.close(ENOUGH, b"");
    }
}

/// Reads a stream's data and sends what it requests. An error means that the client has ended the stream.
async fn answer(mut send: SendStream, mut receive: RecvStream) -> Option<()> {
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await.ok()?;
    while receive.read_chunk(usize::MAX).await.ok()?.is_some() {}
    write(&mut send, u64::from_be_bytes(wanted), &Progress::default()).await?;
    send.finish().ok()
}
