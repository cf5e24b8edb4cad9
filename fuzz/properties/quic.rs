//! What peers say in transport parameters and requests.

use flowstart_quic::careful_resume::{SEALED_LENGTH, Sealer};
use flowstart_quic::hint::client_hints::DOWNLINK_CAP;
use flowstart_quic::hint::codec::{MAX_AGE, MAX_RATE, MIN_RATE};
use flowstart_quic::hint::{BandwidthHint, ClientHints, HintPolicy};
use flowstart_quic::transport_parameters::{ClientHello, MAX_PATH_STATE, PeerParameters};

use super::text;

/// A client's bandwidth hint.
pub fn bandwidth_hint(data: &[u8]) -> bool {
    let read = BandwidthHint::decode(data).inspect_err(|error| assert!(!error.to_string().is_empty()));
    let Ok(hint) = read else { return false };
    assert!((MIN_RATE..=MAX_RATE).contains(&hint.rate) && hint.age <= MAX_AGE);
    assert_eq!(hint.encode().as_deref(), Ok(data));
    true
}

/// The header fields of a request, a line each, as in `Downlink:1.7`.
pub fn client_hints(data: &[u8]) -> bool {
    let mut hints = ClientHints::default();
    let mut good = false;
    for line in data.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let Some(name) = text(&line[..colon]) else { continue };
        let before = hints;
        match hints.take(name, &line[colon + 1..]) {
            Ok(taken) => good |= taken,
            Err(error) => {
                assert!(hints == before && !error.to_string().is_empty());
                return false;
            }
        }
    }
    assert!(hints.floor().is_none_or(|hint| (MIN_RATE..DOWNLINK_CAP).contains(&hint.rate)));
    good
}

/// A server's hint policy.
pub fn hint_policy(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let read = text.parse::<HintPolicy>().inspect_err(|error| assert!(!error.problem.is_empty()));
    let Ok(policy) = read else { return false };
    assert_eq!(policy.validate(), Ok(()));
    assert_eq!(policy.to_string().parse(), Ok(policy));
    true
}

/// Whether all of the peer's parameters could be read.
fn good(parameters: &PeerParameters) -> bool {
    assert!(parameters.errors().all(|error| !error.to_string().is_empty()));
    if let Ok(Some(state)) = &parameters.path_state {
        assert!((1..=MAX_PATH_STATE).contains(&state.len()));
    }
    if let Ok(windows) = parameters.windows {
        assert!(windows.largest() <= windows.connection && windows.connection.get() < 1 << 62);
    }
    parameters.errors().next().is_none()
}

/// A peer's transport parameters.
pub fn transport_parameters(data: &[u8]) -> bool {
    good(&PeerParameters::read(data))
}

/// A client's first handshake message.
pub fn client_hello(data: &[u8]) -> bool {
    let at_once = ClientHello::default().take(data);
    let mut pieces = ClientHello::default();
    let piecewise = data.chunks(7).find_map(|piece| pieces.take(piece));
    assert_eq!(at_once, piecewise);
    at_once.as_ref().is_some_and(good)
}

/// Path state that was sealed for 192.0.2.0/24 with a key of ones, a million seconds after 1970.
pub fn path_state(data: &[u8]) -> bool {
    let sealer = Sealer::new(&[1; 32]).expect("a key has 32 bytes");
    let prefix = "192.0.2.0/24".parse().expect("it is a prefix");
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let opened = sealer.open(data, prefix, now).inspect_err(|error| assert!(!error.to_string().is_empty()));
    assert!(opened.is_err() || data.len() == SEALED_LENGTH);
    opened.is_ok()
}
