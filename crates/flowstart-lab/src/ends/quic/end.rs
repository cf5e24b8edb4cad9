//! The two ends of a connection: certificate, TLS and noq's configuration. Sizes and times of packets depend neither on
//! chance nor on the machine's clock.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use flowstart_core::rng::Substream;
use flowstart_core::sources::name;
use flowstart_core::time::Timestamp;
use flowstart_quic::session::observer::ObservedConfig;
use flowstart_quic::sharing::SharedWindow;
use flowstart_quic::transport_parameters::{HINT, SCONE_SUPPORTED};
use flowstart_quic::{ControllerFactory, Flow, session};
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;
use noq_proto::crypto::rustls::QuicServerConfig;
use noq_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Endpoint, EndpointConfig, FourTuple, MtuDiscoveryConfig, ServerConfig, TimeSource, TokenLog, TokenReuseError,
    TransportConfig, ValidationTokenConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};

use super::watch::{Watch, WatchedFactory};
use crate::ends::capture::Secrets;
use crate::spec::stack::StackOptions;

/// The client of a connection, and its server.
pub(super) const CLIENT: usize = 0;
/// The server.
pub(super) const SERVER: usize = 1;

/// The name in the certificate.
const NAME: &str = "localhost";
/// The wall-clock time of all ends.
const WALL_CLOCK: Duration = Duration::from_secs(1_700_000_000);
/// The time before the simulation at which the connection behind a 0-RTT handshake took place.
const EARLIER: Duration = Duration::from_secs(60);
/// Port of the first flow's client.
const CLIENT_PORT: u16 = 40_000;
/// Length of connection IDs, as in the model's packets.
pub(super) const ID_LENGTH: usize = 8;

/// The zero of simulated time on noq's clock.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(|| Instant::now() + EARLIER * 2)
}

/// A simulated time on noq's clock.
pub(super) fn instant(time: Timestamp) -> Instant {
    origin() + Duration::from_nanos(time.as_nanos())
}

/// A time of noq's clock as simulated time.
pub(super) fn timestamp(time: Instant) -> Timestamp {
    let nanos = time.saturating_duration_since(origin()).as_nanos();
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// An end that could not be set up, because of a defect of this program or its TLS library.
pub(super) type SetupError = Box<dyn std::error::Error + Send + Sync>;

/// The server's certificate and key. Only their lengths matter, which are fixed: Ed25519 and a fixed serial.
fn identity() -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), SetupError> {
    static IDENTITY: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    let (certificate, key) = match IDENTITY.get() {
        Some(identity) => identity,
        None => {
            let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
            let mut parameters = rcgen::CertificateParams::new(vec![NAME.to_owned()])?;
            parameters.serial_number = Some(1u64.into());
            let certificate = parameters.self_signed(&key)?;
            IDENTITY.get_or_init(|| (certificate.der().to_vec(), key.serialize_der()))
        }
    };
    Ok((CertificateDer::from(certificate.clone()), PrivatePkcs8KeyDer::from(key.clone()).into()))
}

impl rustls::KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.tell(label, client_random, secret);
    }
}

/// A clock that stands still.
#[derive(Debug)]
struct Stopped;

impl rustls::time_provider::TimeProvider for Stopped {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(WALL_CLOCK))
    }
}

impl TimeSource for Stopped {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + WALL_CLOCK
    }
}

/// Tokens that servers gave (RFC 9000, section 8.1.3) are accepted as often as they come.
struct AcceptTokens;

impl TokenLog for AcceptTokens {
    fn check_and_insert(&self, _: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        Ok(())
    }
}

/// Consecutive connection IDs. Other flows and the other end have different ones, so a capture can separate
/// connections.
struct Counter(u64);

impl Counter {
    /// `owner` is a side, or neither for the IDs that clients invent for their servers.
    fn new(place: u16, owner: u64) -> Self {
        Self(owner << 56 | u64::from(place) << 32)
    }
}

impl ConnectionIdGenerator for Counter {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        ID_LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// An end of a connection.
pub(super) struct End {
    pub(super) endpoint: Endpoint,
    pub(super) connection: Option<(ConnectionHandle, Connection)>,
    pub(super) watch: Watch,
    pub(super) address: SocketAddr,
}

impl End {
    fn new(setup: &Setup<'_>, side: usize, server: Option<ServerConfig>, watch: Watch) -> Self {
        let mut rng = Substream::new(setup.seed, "noq endpoint", side as u64);
        let mut bytes = [0; 32];
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.next_u64().to_be_bytes()));
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(bytes));
        let place = setup.place;
        config.cid_generator(Arc::new(move || Box::new(Counter::new(place, side as u64 + 1))));
        let discovers = setup.options.mtu_discovery;
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), discovers);
        Self { endpoint, connection: None, watch, address: address(side, place) }
    }

    /// Begins the connection.
    pub(super) fn connect(&mut self, now: Instant, config: ClientConfig) -> Result<(), SetupError> {
        self.connection = Some(self.endpoint.connect(now, config, address(SERVER, 0), NAME)?);
        Ok(())
    }

    /// Exchanges events between the endpoint and its connection.
    pub(super) fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }
}

/// The address of an end: the hosts of captures of model flows, and a port for each client.
fn address(side: usize, place: u16) -> SocketAddr {
    let (host, port) = if side == CLIENT { (2, CLIENT_PORT.wrapping_add(place)) } else { (1, 443) };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

/// The identity of a connection.
pub(super) struct Setup<'a> {
    /// Its place among the connections of its world.
    pub(super) place: u16,
    pub(super) seed: u64,
    /// The receiver of its TLS secrets.
    pub(super) secrets: Option<Secrets>,
    pub(super) options: &'a StackOptions,
    /// The client's hint.
    pub(super) hint: Option<Vec<u8>>,
    /// The window that the server's connections to the client share.
    pub(super) shared: Option<Arc<SharedWindow>>,
}

/// The two ends of a connection before it begins, and the client's initial configuration.
pub(super) struct BothEnds {
    pub(super) client: End,
    pub(super) server: End,
    pub(super) client_config: ClientConfig,
}

impl BothEnds {
    /// Both ends of a connection with the policies of `profile`. Its server uses `factory` for its path and reports to
    /// `flow`.
    pub(super) fn new(
        profile: &Profile,
        factory: &ControllerFactory,
        flow: &Arc<Flow>,
        setup: &Setup<'_>,
    ) -> Result<Self, SetupError> {
        let (mut client_tls, mut server_tls) = tls(profile)?;
        if let Some(secrets) = &setup.secrets {
            // Each end reports a secret before it sends packets that need the secret.
            client_tls.key_log = Arc::new(secrets.clone());
            server_tls.key_log = Arc::new(secrets.clone());
        }
        let watches = [Watch::default(), Watch::default()];
        let mut parameters = setup.hint.as_ref().map_or(Vec::new(), |hint| parameter(HINT, hint));
        if !profile.scone.is_none() {
            parameters.extend(parameter(SCONE_SUPPORTED, &[]));
        }
        let client_crypto = session::ClientConfig::new(client_tls)?.with_encoded_parameters(parameters);
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server_tls)?));
        let mut tokens = ValidationTokenConfig::default();
        tokens.log(Arc::new(AcceptTokens)).sent(u32::from(profile.token));
        server.time_source(Arc::new(Stopped)).validation_token_config(tokens);
        let store = Arc::new(noq_proto::TokenMemoryCache::default());
        let Counter(first) = Counter::new(setup.place, 0);
        let client = |config, watch: &Watch| {
            let watch = watch.clone();
            let mut client = ClientConfig::new(Arc::new(ObservedConfig::new(config, move || watch.clone())));
            client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first.to_be_bytes())));
            client.token_store(store.clone());
            client
        };
        if profile.opening == Opening::ZeroRtt {
            let mut earlier = server.clone();
            earlier.transport_config(Arc::new(transport(profile, setup.options)));
            let mut config = client(client_crypto.clone(), &Watch::default());
            config.transport_config(Arc::new(transport(profile, setup.options)));
            become_acquainted(config, earlier, setup)?;
        }
        let mut server = hear_hint(&server, factory, flow, setup.options.clone(), &watches[SERVER]);
        let mut server_transport = transport(profile, setup.options);
        let watched =
            WatchedFactory { factory: Arc::new(factory.for_flow(flow.clone())), watch: watches[SERVER].clone() };
        server_transport.congestion_controller_factory(Arc::new(watched));
        let asked = |profile: &Profile| (profile.ack.every, profile.ack.max_delay);
        if asked(profile) != asked(&Profile::noq()) {
            let mut frequency = AckFrequencyConfig::default();
            frequency.ack_eliciting_threshold(VarInt::from_u32(profile.ack.every.saturating_sub(1)));
            frequency.max_ack_delay(Some(Duration::from_nanos(profile.ack.max_delay.as_nanos())));
            server_transport.ack_frequency_config(Some(frequency));
        }
        server.transport_config(Arc::new(server_transport));
        let mut client_config = client(client_crypto, &watches[CLIENT]);
        client_config.transport_config(Arc::new(transport(profile, setup.options)));
        let [client_watch, server_watch] = watches;
        Ok(Self {
            client: End::new(setup, CLIENT, None, client_watch),
            server: End::new(setup, SERVER, Some(server), server_watch),
            client_config,
        })
    }
}

/// The server's configuration for one client. The server reads the client's hint and lets `watch` see its packets.
fn hear_hint(
    server: &ServerConfig,
    factory: &ControllerFactory,
    flow: &Arc<Flow>,
    options: StackOptions,
    watch: &Watch,
) -> ServerConfig {
    let noted = watch.clone();
    let heard = session::accept_config(server, factory, flow, move |flow, client| {
        noted.seen().scone = client.scone == Ok(true);
        let hint = match client.hint {
            Ok(None) => return,
            Ok(Some(hint)) => hint,
            Err(_) => {
                noted.seen().hint = Some((None, None));
                return;
            }
        };
        let verdict = options.judge(&hint, &flow.knowledge());
        flow.hear_hint(name::HINT, &hint, &verdict);
        noted.seen().hint = Some((Some(hint.rate), verdict.rate));
    });
    let mut server = ServerConfig::clone(&heard);
    let watch = watch.clone();
    server.crypto = Arc::new(ObservedConfig::new(server.crypto.clone(), move || watch.clone()));
    server
}

/// A transport parameter (RFC 9000, section 18). Numbers of four bytes begin with the bits 10.
fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let number = |number: u64| (number as u32 | 0x8000_0000).to_be_bytes();
    [&number(id), &number(value.len() as u64), value].concat()
}

/// TLS of client and server, with their own session store: other connections must have no effect.
fn tls(profile: &Profile) -> Result<(rustls::ClientConfig, rustls::ServerConfig), SetupError> {
    let (certificate, key) = identity()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = &[&rustls::version::TLS13];
    let mut server = rustls::ServerConfig::builder_with_details(provider.clone(), Arc::new(Stopped))
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = rustls::ClientConfig::builder_with_details(provider, Arc::new(Stopped))
        .with_protocol_versions(versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let early = profile.opening == Opening::ZeroRtt;
    client.enable_early_data = early;
    client.resumption =
        if early { rustls::client::Resumption::in_memory_sessions(4) } else { rustls::client::Resumption::disabled() };
    server.session_storage = rustls::server::ServerSessionMemoryCache::new(4);
    server.max_early_data_size = if early { u32::MAX } else { 0 };
    let protocol = vec![b"flowstart".to_vec()];
    (client.alpn_protocols, server.alpn_protocols) = (protocol.clone(), protocol);
    Ok((client, server))
}

/// The parts of a profile and the options that both ends use.
fn transport(profile: &Profile, options: &StackOptions) -> TransportConfig {
    let packet = (profile.payload + profile.overhead_in_flight).min(65_527) as u16;
    let window = VarInt::from_u64(profile.receive_window.get()).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(packet)
        .min_mtu(packet.min(1200))
        .mtu_discovery_config(options.mtu_discovery.then(MtuDiscoveryConfig::default))
        .stream_receive_window(window)
        .receive_window(VarInt::MAX)
        .send_window(u64::MAX)
        .packet_threshold(profile.packet_threshold)
        .time_threshold(profile.time_threshold.unwrap_or(1.125) as f32)
        .initial_rtt(Duration::from_nanos(profile.initial_timeout.as_nanos()))
        .max_idle_timeout(None)
        .allow_spin(false);
    transport
}

/// An earlier connection of the same ends, before the simulation and on a path without delay. It gives the client a
/// session ticket and a token.
fn become_acquainted(client: ClientConfig, server: ServerConfig, setup: &Setup<'_>) -> Result<(), SetupError> {
    let now = origin() - EARLIER;
    let mut ends =
        [End::new(setup, CLIENT, None, Watch::default()), End::new(setup, SERVER, Some(server), Watch::default())];
    ends[CLIENT].connect(now, client)?;
    let (mut buffer, mut response) = (Vec::new(), Vec::new());
    loop {
        let mut moved = false;
        for side in [CLIENT, SERVER] {
            loop {
                ends[side].settle();
                let Some((_, connection)) = &mut ends[side].connection else { break };
                while connection.poll().is_some() {}
                buffer.clear();
                if connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer).is_none() {
                    break;
                }
                moved = true;
                let (from, other) = (FourTuple::new(ends[side].address, None), &mut ends[1 - side]);
                match other.endpoint.handle(now, from, None, BytesMut::from(&buffer[..]), &mut response) {
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        if let Some((_, connection)) = &mut other.connection {
                            connection.handle_event(event);
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        let accepted = other.endpoint.accept(incoming, now, &mut response, None);
                        other.connection = Some(accepted.map_err(|error| error.cause)?);
                    }
                    Some(DatagramEvent::Response(_)) | None => {}
                }
            }
        }
        if !moved {
            return Ok(());
        }
    }
}
