//! From a client's first packet to its connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use flowstart_core::path::PathKnowledge;
use flowstart_core::sources::Verdict;
use flowstart_quic::hint::policy::Evidence;
use flowstart_quic::transport_parameters::PeerParameters;
use flowstart_quic::{Flow, session};
use h3::error::Code;
use noq::{Connecting, ConnectionError, Incoming, ServerConfig};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answers::Client;
use super::limits::{Counted, OfPrefix};
use super::memory::Room;
use super::qlog;
use super::quick_start::Asking;
use super::scone::Advised;
use super::shared::{Shared, h3_code, locked};
use super::sources;
use crate::metrics::Attempt;
use crate::scheme::Scheme;

/// A connection among all of them, and among those of its prefix if these are limited.
type Place = (Counted, Option<OfPrefix>);

/// A client's first message, its connection's SCONE packets if it reads them, and whether the connection asks routers.
struct Said {
    parameters: PeerParameters,
    advised: Option<Advised>,
    asking: Option<Asking>,
}

impl Shared {
    /// Decides whether to accept a connection.
    pub(super) fn admit(self: &Arc<Self>, incoming: Incoming, tasks: &TaskTracker, stop: &CancellationToken) {
        let client = incoming.remote_address().ip();
        let count = |result| {
            self.metrics.attempts.get_or_create(&Attempt { result }).inc();
        };
        let may_prove = !incoming.remote_address_validated() && incoming.may_retry();
        // Who may still prove an address is asked to, and then gets more than anybody.
        let turn_away = |incoming: Incoming, result| {
            if may_prove {
                drop(incoming.retry());
                count("retry");
            } else {
                incoming.refuse();
                count(result);
            }
        };
        let room = self.memory.as_ref().map_or(Room::Enough, |memory| memory.room(self.connections.now()));
        // Forgers get neither the last handshakes nor the last places.
        let is_busy = room != Room::Enough
            || self.handshakes.now() >= self.limits.handshakes
            || self.connections.now() >= self.limits.connections / 2;
        if may_prove && is_busy {
            return turn_away(incoming, "retry");
        }
        if self.connections.now() >= self.limits.connections {
            incoming.refuse();
            return count("full");
        }
        if room == Room::None {
            incoming.refuse();
            return count("memory");
        }
        let of_prefix = self.of_prefix.as_ref().map(|limit| limit.enter(client, !may_prove));
        if matches!(of_prefix, Some(None)) {
            return turn_away(incoming, "prefix");
        }
        // Last, so that nobody who is turned away uses up the rate.
        if self.rate.as_ref().is_some_and(|rate| !rate.admit(client, !may_prove, Instant::now())) {
            return turn_away(incoming, "rate");
        }
        let connected = (self.connections.enter(), of_prefix.flatten());
        let counted = (connected, self.handshakes.enter());
        tasks.spawn(self.clone().accept(incoming, counted, stop.clone()));
    }

    /// One connection from its first packet to its end.
    async fn accept(self: Arc<Self>, incoming: Incoming, counted: (Place, Counted), stop: CancellationToken) {
        let (_connected, shaking_hands) = counted;
        let count = |result| {
            self.metrics.attempts.get_or_create(&Attempt { result }).inc();
        };
        let remote = incoming.remote_address();
        let address = remote.ip();
        let (scheme, label) = self.policy.choose(address, rand::random(), Instant::now());
        // Nothing is sent before the first request, so waiting for it costs nothing, and it says how much there is to
        // send.
        let flow = Flow::waiting(PathKnowledge::default());
        flow.doubt_handshake();
        if scheme.shares_window() {
            flow.share(self.windows.of(address));
        }
        let (senses, is_validated) = (scheme.senses(), incoming.remote_address_validated());
        let said: Arc<Mutex<Option<Said>>> = Arc::default();
        let notes = qlog::Notes::default();
        let config = self.config_for((scheme, &label), &flow, remote, said.clone(), notes.clone());
        let heard = tokio::spawn(self.sources.clone().ask(address));
        let connected = match incoming.accept_with(config) {
            Ok(connecting) => timeout(self.limits.handshake, self.connected(connecting)).await,
            Err(error) => Ok(Err(error)),
        };
        let said = locked(&said).take();
        for error in said.iter().flat_map(|said| said.parameters.errors()) {
            self.log.tell(&format!("{address}: {error}"));
        }
        let Ok(Ok(connection)) = connected else { return count("failed") };
        let completed = self.clone().completed(connection.clone(), shaking_hands, notes.clone());
        if self.early_data {
            tokio::spawn(completed);
        } else {
            completed.await;
        }
        let evidence = heard.await.map_or_else(|_| Evidence::default(), |heard| heard.tell(&flow));
        self.metrics.active.inc();
        let mut client = Client::new(self.clone(), connection, flow.clone(), &label, notes, address, evidence)
            .with_start(senses, is_validated);
        if let Some(Said { parameters, advised, asking }) = said {
            client = client.with_path(advised, asking);
            if let Ok(Some(hint)) = parameters.hint {
                client.hear_hint(hint);
            }
            if let (Some(seal), Ok(Some(state))) = (&self.seal, parameters.path_state) {
                match seal.open(address, &state) {
                    Ok(told) => flow.hear(|all| sources::remember(all, told)),
                    Err(error) => {
                        flow.hear(|all| all.lack(sources::name::PATH_STATE, Verdict::Failed, "it cannot be opened"));
                        self.log.tell(&format!("{address}: {error}"));
                    }
                }
            }
        }
        let client = Arc::new(client);
        if let Some(memory) = &self.memory {
            let holder: Weak<Client> = Arc::downgrade(&client);
            memory.enter(holder);
        }
        client.serve(stop).await;
        self.metrics.active.dec();
    }

    /// A connection after its handshake; with early data as soon as its client's first message is read.
    async fn connected(&self, mut connecting: Connecting) -> Result<noq::Connection, ConnectionError> {
        if !self.early_data {
            return connecting.await;
        }
        connecting.handshake_data().await?;
        match connecting.into_0rtt() {
            Ok((connection, _)) => Ok(connection),
            Err(connecting) => connecting.await,
        }
    }

    /// Counts a connection when its handshake is complete, or ends it when the handshake takes too long.
    async fn completed(self: Arc<Self>, connection: noq::Connection, _shaking_hands: Counted, notes: qlog::Notes) {
        let completed = timeout(self.limits.handshake, connection.authenticated()).await;
        // A client may have ended the connection since.
        let was_completed = connection.stats().frame_tx.handshake_done > 0;
        let result = if was_completed || matches!(completed, Ok(Ok(()))) { "accepted" } else { "failed" };
        if result == "accepted" {
            notes.proven();
        }
        if completed.is_err() {
            connection.close(h3_code(Code::H3_NO_ERROR), b"the handshake took too long");
        }
        self.metrics.attempts.get_or_create(&Attempt { result }).inc();
    }

    /// The configuration of one connection; `said` gets the content of the client's first message, `notes` go into its
    /// qlog file.
    fn config_for(
        self: &Arc<Self>,
        (scheme, label): (&Scheme, &str),
        flow: &Arc<Flow>,
        remote: SocketAddr,
        said: Arc<Mutex<Option<Said>>>,
        notes: qlog::Notes,
    ) -> Arc<ServerConfig> {
        let (server, request) = (self.clone(), scheme.request().copied());
        let receiver = move |_: &Flow, parameters: PeerParameters| {
            let id = parameters.initial_source.as_deref().filter(|_| parameters.scone == Ok(true));
            // The answer to this message carries the first SCONE packet and the request to the routers.
            let reader = server.scone.as_ref().zip(id).and_then(|(clients, id)| clients.admit(remote, id));
            let (advised, asking) = (reader.map(Advised::new), server.ask(request.as_ref(), remote, &parameters));
            *locked(&said) = Some(Said { parameters, advised, asking });
        };
        let Some(qlog) = &self.qlog else {
            return session::accept_config(&self.config, scheme.factory(), flow, receiver);
        };
        let mut transport = self.transport.clone();
        let network = self.qlog_networks.as_ref().map(|all| all.prefix_of(remote.ip()).network().to_string());
        transport.qlog_factory(qlog.of(flow.clone(), (label, scheme.avoidance_text()), network, notes));
        let mut config = self.config.clone();
        config.transport_config(Arc::new(transport));
        session::accept_config(&config, scheme.factory(), flow, receiver)
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::avoidance::{AvoidanceConfig, cubic};
    use futures_util::FutureExt;
    use noq::crypto::rustls::QuicClientConfig;

    use super::*;
    use crate::H3;
    use crate::endpoint;
    use crate::server::{Config, Limits, RECEIVE_WINDOW, Schemes, Server};
    use crate::tls::{Certificate, Trust};
    use crate::warnings::Warnings;

    /// Streams that a client may open at once.
    async fn streams(server: &Server) -> usize {
        let tls = QuicClientConfig::try_from(Trust::Anyone.config(&[H3]).unwrap()).unwrap();
        let client = noq::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = noq::ClientConfig::new(Arc::new(tls));
        let connection = client.connect_with(config, server.address(), "localhost").unwrap().await.unwrap();
        let mut open = Vec::new();
        while let Some(stream) = connection.open_bi().now_or_never() {
            open.push(stream.unwrap());
        }
        open.len()
    }

    #[tokio::test]
    async fn qlog_changes_no_limit_of_the_transport() {
        let folder = tempfile::tempdir().unwrap();
        let plain = || Scheme::plain(&AvoidanceConfig::Cubic(cubic::Config::default())).unwrap();
        let scheme = plain();
        // Without the last field, which says whether there is qlog.
        let limits = |transport: &noq::TransportConfig| {
            let text = format!("{transport:?}");
            text.split_once(", qlog_factory").unwrap().0.to_owned()
        };
        let wanted = limits(&endpoint::transport(&scheme, Limits::default().connection_memory, RECEIVE_WINDOW));
        for limit in ["max_concurrent_bidi_streams: 128", "receive_window: 262144", "send_window: 32000000"] {
            assert!(wanted.contains(limit), "{limit} is not in {wanted}");
        }
        for qlog in [None, Some(folder.path().to_owned())] {
            let tls = Certificate::SelfSigned.config(&[H3], &Warnings::default()).unwrap();
            let config = Config { qlog: qlog.clone(), ..Config::new(tls, Schemes::new(plain(), plain())) };
            let server = Server::start(config).await.unwrap();
            let flow = Flow::waiting(PathKnowledge::default());
            let remote = "192.0.2.1:443".parse().unwrap();
            let config = server.shared.config_for(
                (&scheme, scheme.name()),
                &flow,
                remote,
                Arc::default(),
                qlog::Notes::default(),
            );
            assert_eq!(limits(&config.transport), wanted, "{qlog:?}");
            tokio::select! {
                open = streams(&server) => assert_eq!(open, 128, "{qlog:?}"),
                () = server.run(std::future::pending()) => panic!("the server ended"),
            }
        }
    }
}
