//! What the peer's transport parameters say about the path: its hint, the path state that it echoes and its receive
//! windows.
//!
//! Reference: RFC 9000, section 18 (encoding), section 18.2 (receive windows) and section 7.4 (none is sent twice); RFC
//! 9001, section 8.2 (the extension of the `ClientHello` that carries them); RFC 8446, section 4.1.2 (`ClientHello`).
//!
//! The host reads its own parameters and ignores all others. So this module reads the client's `ClientHello` a second
//! time. It is not encrypted, and its transport parameters count only when the handshake that authenticates them
//! completes.
//!
//! Status: worked examples; no bytes make it panic.

use flowstart_core::path::PathKnowledge;
pub use flowstart_core::scone::wire::SCONE_SUPPORTED;
use flowstart_core::units::Bytes;

use crate::hint::{BandwidthHint, HintError};
use crate::varint;

/// The client's hint. Not registered with IANA: provisional, and above the two-byte identifiers that registrations use.
pub const HINT: u64 = 0x4b17;
/// Path state that a server sealed for an earlier connection, echoed by the client. Not registered either.
pub const PATH_STATE: u64 = 0x4b18;
/// The client answers requests of Quick-Start; empty. Not registered either.
pub const QUICK_START: u64 = 0x4b19;
/// Longest path state that is read or sent, so that a `ClientHello` still fits in one packet.
pub const MAX_PATH_STATE: usize = 256;

/// `initial_source_connection_id` (RFC 9000, section 18.2).
const INITIAL_SOURCE: u64 = 0x0f;
/// `initial_max_data`, `initial_max_stream_data_bidi_local`, `..._bidi_remote` and `..._uni` (RFC 9000, section 18.2).
const WINDOWS: [u64; 4] = [0x04, 0x05, 0x06, 0x07];
/// Identifiers of everything that is looked for.
const KNOWN: [u64; 9] =
    [HINT, PATH_STATE, SCONE_SUPPORTED, QUICK_START, INITIAL_SOURCE, WINDOWS[0], WINDOWS[1], WINDOWS[2], WINDOWS[3]];

/// Largest `ClientHello` that TLS stacks accept, rustls among them.
const MAX_CLIENT_HELLO: usize = 0xffff;
/// `quic_transport_parameters` of QUIC version 1, and of its drafts.
const EXTENSIONS: [u16; 2] = [0x0039, 0xffa5];

/// Why a transport parameter of the peer is not used. The connection goes on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A parameter announces more bytes than follow.
    #[error("transport parameters are cut off in the one that begins at byte {0}")]
    Truncated(usize),
    /// RFC 9000, section 7.4 forbids it.
    #[error("transport parameter {0:#x} comes more than once")]
    Repeated(u64),
    /// A window is not one number.
    #[error("transport parameter {0:#x} is not a number")]
    NotANumber(u64),
    /// One that only has to be there has a value of this many bytes.
    #[error("transport parameter {0:#x} has {1} bytes; allowed is none")]
    NotEmpty(u64, usize),
    /// A path state of another format.
    #[error("transport parameter {PATH_STATE:#x} has {0} bytes; allowed is 1 to {MAX_PATH_STATE}")]
    PathStateLength(usize),
    /// The hint is there and cannot be used.
    #[error(transparent)]
    Hint(#[from] HintError),
    /// The first message of the handshake violates RFC 8446 or is too long.
    #[error("the ClientHello cannot be read")]
    ClientHello,
}

/// How much the peer is ready to receive before it gives more credit (RFC 9000, section 18.2); zero is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveWindows {
    /// On all streams together: `initial_max_data`.
    pub connection: Bytes,
    /// On each bidirectional stream that the peer opens, such as those of a client's HTTP requests:
    /// `initial_max_stream_data_bidi_local`.
    pub peer_streams: Bytes,
    /// On each bidirectional stream that this end opens: `initial_max_stream_data_bidi_remote`.
    pub own_streams: Bytes,
    /// On each unidirectional stream that this end opens: `initial_max_stream_data_uni`.
    pub unidirectional: Bytes,
}

impl ReceiveWindows {
    /// The most that one stream of any kind can carry at once.
    pub fn largest(&self) -> Bytes {
        self.connection.min(self.peer_streams.max(self.own_streams).max(self.unidirectional))
    }
}

/// What the peer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerParameters {
    /// The client's hint; `None` when it sent none.
    pub hint: Result<Option<BandwidthHint>, ParameterError>,
    /// The sealed path state that the client echoes; `None` when it sent none.
    pub path_state: Result<Option<Vec<u8>>, ParameterError>,
    /// Whether it reads SCONE packets (draft-ietf-scone-protocol-08). The draft treats a non-empty value as a
    /// connection error; here the connection goes on without SCONE.
    pub scone: Result<bool, ParameterError>,
    /// Whether it answers requests of Quick-Start (RFC 4782).
    pub quick_start: Result<bool, ParameterError>,
    /// The connection ID that it chose for itself, to which the first packets go; `None` when it told none. The host
    /// checks that it is true.
    pub initial_source: Option<Vec<u8>>,
    /// Its receive windows.
    pub windows: Result<ReceiveWindows, ParameterError>,
}

impl PeerParameters {
    /// Reads encoded transport parameters. An error in one leaves the others.
    pub fn read(bytes: &[u8]) -> Self {
        match find(bytes) {
            Ok([hint, state, scone, quick_start, source, windows @ ..]) => Self {
                hint: hint.and_then(read_hint),
                path_state: state.and_then(read_path_state),
                scone: scone.and_then(|value| read_flag(SCONE_SUPPORTED, value)),
                quick_start: quick_start.and_then(|value| read_flag(QUICK_START, value)),
                initial_source: source.ok().flatten().map(<[u8]>::to_vec),
                windows: read_windows(windows),
            },
            Err(error) => Self::unreadable(error),
        }
    }

    /// None of them can be known.
    fn unreadable(error: ParameterError) -> Self {
        Self {
            hint: Err(error),
            path_state: Err(error),
            scone: Err(error),
            quick_start: Err(error),
            initial_source: None,
            windows: Err(error),
        }
    }

    /// What was wrong, for a log.
    pub fn errors(&self) -> impl Iterator<Item = ParameterError> {
        let (hint, state, windows) = (self.hint.err(), self.path_state.as_ref().err().copied(), self.windows.err());
        // An error that concerns all of them is reported once.
        let others = [state, self.scone.err(), self.quick_start.err(), windows].map(|one| one.filter(|_| one != hint));
        [hint].into_iter().chain(others).flatten()
    }

    /// Passes the receive window to Sensing: [`ReceiveWindows::largest`]. The hint and the path state are up to the
    /// server's policy.
    pub fn tell_window(&self, path: &mut PathKnowledge) {
        path.receive_window = self.windows.ok().map(|windows| windows.largest()).or(path.receive_window);
    }
}

type Found<'a> = Result<Option<&'a [u8]>, ParameterError>;

/// The values of the known parameters, in the order of [`KNOWN`].
fn find(bytes: &[u8]) -> Result<[Found<'_>; KNOWN.len()], ParameterError> {
    let mut found = [Ok(None); KNOWN.len()];
    let mut rest = bytes;
    while !rest.is_empty() {
        let cut_off = ParameterError::Truncated(bytes.len() - rest.len());
        let id = varint::read(rest).ok_or(cut_off)?;
        let length = varint::read(id.rest).ok_or(cut_off)?;
        let length_bytes = usize::try_from(length.value).map_err(|_| cut_off)?;
        let (value, after) = length.rest.split_at_checked(length_bytes).ok_or(cut_off)?;
        rest = after;
        if let Some(place) = KNOWN.iter().position(|known| *known == id.value) {
            found[place] =
                if found[place] == Ok(None) { Ok(Some(value)) } else { Err(ParameterError::Repeated(id.value)) };
        }
    }
    Ok(found)
}

fn read_hint(value: Option<&[u8]>) -> Result<Option<BandwidthHint>, ParameterError> {
    Ok(value.map(BandwidthHint::decode).transpose()?)
}

fn read_path_state(value: Option<&[u8]>) -> Result<Option<Vec<u8>>, ParameterError> {
    value.map(|value| check_path_state(value).map(<[u8]>::to_vec)).transpose()
}

/// Whether a parameter without a value is there.
fn read_flag(id: u64, value: Option<&[u8]>) -> Result<bool, ParameterError> {
    match value {
        None => Ok(false),
        Some([]) => Ok(true),
        Some(value) => Err(ParameterError::NotEmpty(id, value.len())),
    }
}

/// Refuses a path state that no server sealed.
pub(crate) fn check_path_state(value: &[u8]) -> Result<&[u8], ParameterError> {
    let allowed = 1..=MAX_PATH_STATE;
    if allowed.contains(&value.len()) { Ok(value) } else { Err(ParameterError::PathStateLength(value.len())) }
}

fn read_windows(found: [Found<'_>; WINDOWS.len()]) -> Result<ReceiveWindows, ParameterError> {
    let mut windows = [Bytes::ZERO; WINDOWS.len()];
    for ((window, found), id) in windows.iter_mut().zip(found).zip(WINDOWS) {
        let Some(value) = found? else { continue };
        let number = varint::read(value).filter(|number| number.rest.is_empty());
        *window = Bytes::new(number.ok_or(ParameterError::NotANumber(id))?.value);
    }
    let [connection, peer_streams, own_streams, unidirectional] = windows;
    Ok(ReceiveWindows { connection, peer_streams, own_streams, unidirectional })
}

/// Appends a parameter.
pub(crate) fn write(id: u64, value: &[u8], bytes: &mut Vec<u8>) {
    varint::write(id, bytes);
    varint::write(value.len() as u64, bytes);
    bytes.extend_from_slice(value);
}

/// Collects a client's first handshake message and finds its transport parameters.
#[derive(Clone, Debug, Default)]
pub struct ClientHello {
    message: Vec<u8>,
}

impl ClientHello {
    /// Takes the next bytes. Returns the parameters, or what was wrong, once they can be known.
    pub fn take(&mut self, bytes: &[u8]) -> Option<PeerParameters> {
        self.message.extend_from_slice(bytes);
        let length = match *self.message.as_slice() {
            // `HandshakeType` 1 is client_hello; three bytes of length follow.
            [1, high, middle, low, ..] => usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low),
            [] | [1] | [1, _] | [1, _, _] => return None,
            _ => return Some(PeerParameters::unreadable(ParameterError::ClientHello)),
        };
        if length > MAX_CLIENT_HELLO {
            return Some(PeerParameters::unreadable(ParameterError::ClientHello));
        }
        let body = self.message.get(4..4 + length)?;
        let parameters = match transport_parameters(body) {
            Some(parameters) => PeerParameters::read(parameters),
            None => PeerParameters::unreadable(ParameterError::ClientHello),
        };
        Some(parameters)
    }
}

/// The transport parameters of a `ClientHello` (RFC 8446, section 4.1.2); `None` when it is malformed or has none.
fn transport_parameters(hello: &[u8]) -> Option<&[u8]> {
    // Legacy version and random.
    let (_, rest) = hello.split_at_checked(2 + 32)?;
    let (_session_id, rest) = vector::<1>(rest)?;
    let (_cipher_suites, rest) = vector::<2>(rest)?;
    let (_compression_methods, rest) = vector::<1>(rest)?;
    let (mut extensions, _) = vector::<2>(rest)?;
    while let Some((kind, rest)) = extensions.split_first_chunk() {
        let (content, rest) = vector::<2>(rest)?;
        if EXTENSIONS.contains(&u16::from_be_bytes(*kind)) {
            return Some(content);
        }
        extensions = rest;
    }
    None
}

/// A vector after its length of `N` bytes, and what follows it.
fn vector<const N: usize>(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<N>()?;
    rest.split_at_checked(length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use flowstart_core::path::AccessTechnology;
    use flowstart_core::time::Duration;
    use flowstart_core::units::Rate;
    use proptest::prelude::*;

    use super::*;

    fn hint() -> BandwidthHint {
        BandwidthHint { rate: Rate::from_mbit(50), technology: AccessTechnology::Dsl, age: Duration::ZERO }
    }

    /// 0x4b17 takes four bytes as it is over 2^14, marked by 0x80; then the length, 7, and the hint.
    const HINTED: [u8; 12] = [0x80, 0x00, 0x4b, 0x17, 7, 0x02, 0x02, 0x82, 0xfa, 0xf0, 0x80, 0x00];

    /// A `ClientHello` with these extensions.
    fn client_hello(extensions: &[u8]) -> Vec<u8> {
        let length = u16::try_from(extensions.len()).unwrap().to_be_bytes();
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 0x01], &[1, 0], &length, extensions].concat();
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[1, 0][..], &length, &body].concat()
    }

    #[test]
    fn a_hint_is_found_among_other_parameters() {
        let mut bytes = Vec::new();
        write(0x01, &[0x40, 0x64], &mut bytes);
        write(HINT, &hint().encode().unwrap(), &mut bytes);
        assert_eq!(bytes, [&[0x01, 0x02, 0x40, 0x64][..], &HINTED].concat());
        // 0x04, one byte: 9; 0x06, two bytes: 0x4123 is 0x0123 = 291.
        bytes.extend_from_slice(&[0x04, 1, 9, 0x06, 2, 0x41, 0x23]);
        let read = PeerParameters::read(&bytes);
        assert_eq!((read.hint, read.path_state.clone()), (Ok(Some(hint())), Ok(None)));
        let windows = read.windows.unwrap();
        assert_eq!((windows.connection, windows.own_streams), (Bytes::new(9), Bytes::new(291)));
        assert_eq!((windows.peer_streams, windows.unidirectional), (Bytes::ZERO, Bytes::ZERO));
        let mut path = PathKnowledge::default();
        read.tell_window(&mut path);
        // One stream carries 291 bytes, but the connection only 9.
        assert_eq!(path.receive_window, Some(Bytes::new(9)));
        assert_eq!(read.errors().count(), 0);
    }

    #[test]
    fn each_defect_has_its_error() {
        let read = PeerParameters::read;
        // The truncated parameter begins after the first one.
        let cut = read(&[&[0x01, 0x01, 0x00], &HINTED[..11]].concat());
        assert_eq!(cut.errors().collect::<Vec<_>>(), [ParameterError::Truncated(3)]);
        assert_eq!(read(&[0x40]).hint, Err(ParameterError::Truncated(0)));
        // 2^62 - 1 bytes are announced.
        assert_eq!(read(&[&[0x01][..], &[0xff; 8]].concat()).hint, Err(ParameterError::Truncated(0)));
        let twice = read(&[HINTED, HINTED].concat());
        assert_eq!((twice.hint, twice.path_state), (Err(ParameterError::Repeated(HINT)), Ok(None)));
        assert_eq!(read(&[HINTED, HINTED, HINTED].concat()).hint, Err(ParameterError::Repeated(HINT)));
        assert_eq!(read(&[0x04, 2, 1, 1]).windows, Err(ParameterError::NotANumber(0x04)));
        let later = read(&[0x80, 0x00, 0x4b, 0x17, 1, 9]);
        assert_eq!(later.hint, Err(ParameterError::Hint(HintError::Version(9))));
        assert_eq!((read(&[0x61, 0x9e, 0]).scone, read(&HINTED).scone), (Ok(true), Ok(false)));
        assert_eq!((read(&[0x0f, 2, 5, 6]).initial_source, read(&[]).initial_source), (Some(vec![5, 6]), None));
        assert_eq!(read(&[0x61, 0x9e, 1, 7]).scone, Err(ParameterError::NotEmpty(SCONE_SUPPORTED, 1)));
        let mut long = Vec::new();
        write(PATH_STATE, &[0; 257], &mut long);
        assert_eq!(read(&long).path_state, Err(ParameterError::PathStateLength(257)));
    }

    #[test]
    fn a_client_hello_may_come_in_pieces() {
        let parameters = [&[0x00, 0x39, 0, 12][..], &HINTED].concat();
        // Another extension first: server_name, empty.
        let hello = client_hello(&[&[0, 0, 0, 0], &parameters[..]].concat());
        let mut reader = ClientHello::default();
        let (last, others) = hello.split_last().unwrap();
        for byte in others {
            assert_eq!(reader.take(&[*byte]), None);
        }
        assert_eq!(reader.take(&[*last]).unwrap().hint, Ok(Some(hint())));
    }

    #[test]
    fn a_client_hello_that_is_none_is_told() {
        let unreadable = Some(PeerParameters::unreadable(ParameterError::ClientHello));
        assert_eq!(ClientHello::default().take(&[2]), unreadable, "a ServerHello");
        assert_eq!(ClientHello::default().take(&[1, 1, 0, 0]), unreadable, "64 KB");
        assert_eq!(ClientHello::default().take(&client_hello(&[])), unreadable, "no transport parameters");
        assert_eq!(ClientHello::default().take(&client_hello(&[0, 0x39, 0, 1])), unreadable, "a short extension");
        assert_eq!(ClientHello::default().take(&[1, 0, 0, 1, 0]), unreadable, "a short message");
    }

    proptest! {
        #[test]
        fn whatever_follows_a_hint_is_read_or_refused_with_the_reason(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            state in prop::option::of(0..300usize),
        ) {
            let mut all = HINTED.to_vec();
            if let Some(length) = state {
                write(PATH_STATE, &vec![7; length], &mut all);
            }
            let known = all.len();
            all.extend_from_slice(&bytes);
            let read = PeerParameters::read(&all);
            let errors: Vec<_> = read.errors().collect();
            // An error of all of them is reported once, with its place.
            if let Some(ParameterError::Truncated(at)) = errors.iter().find(|e| matches!(e, ParameterError::Truncated(_))) {
                prop_assert!((known..all.len()).contains(at) && errors.len() == 1, "{errors:?}");
                return Ok(());
            }
            let repeated = |id| errors.contains(&ParameterError::Repeated(id));
            prop_assert!(read.hint == Ok(Some(hint())) || repeated(HINT), "{read:?}");
            match (&read.path_state, state) {
                (Ok(read), Some(length)) => prop_assert_eq!(read, &Some(vec![7; length])),
                (Ok(read), None) => {
                    let sent = |state: &Vec<u8>| bytes.windows(state.len().max(1)).any(|part| part == state);
                    prop_assert!(read.as_ref().is_none_or(sent), "{read:?}");
                }
                (Err(ParameterError::PathStateLength(length)), _) => prop_assert!(!(1..=MAX_PATH_STATE).contains(length)),
                (Err(_), _) => prop_assert!(repeated(PATH_STATE), "{read:?}"),
            }
        }

        #[test]
        fn no_client_hello_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..200) {
            let mut hello = client_hello(&[&[0x00, 0x39, 0, 12][..], &HINTED].concat());
            for (old, new) in hello.iter_mut().skip(at).zip(&bytes) {
                *old = *new;
            }
            for message in [bytes, hello] {
                let mut reader = ClientHello::default();
                let _ = message.chunks(7).find_map(|piece| reader.take(piece));
            }
        }
    }
}
