//! Path state that an earlier connection measured. The server seals it, the client keeps and echoes it, and the server
//! opens it, so the server needs no store.
//!
//! Reference: draft-ietf-tsvwg-careful-resume, section 3 (what is saved, and that it expires and belongs to one path);
//! draft-kuhn-quic-bdpframe-extension (the server sends it to the client, which returns it with its next connection);
//! RFC 5116 (authenticated encryption).
//!
//! When a transfer ends, the server measures ([`Measured::of`]), seals ([`Sealer::seal`]) and sends the bytes to its
//! client in a message of the application, such as a field of an HTTP response. The client gives them to
//! [`ClientConfig::with_path_state`](crate::session::ClientConfig::with_path_state), which sends them with the first
//! message of its next connection. The server opens them ([`Sealer::open`]) and passes the content to the scheme as
//! [`PathKnowledge::saved`](flowstart_core::path::PathKnowledge::saved).
//!
//! The client can neither read nor change the state. It is bound to the prefix of the client's address, so it is
//! worthless to clients of other prefixes. A client may send the same state again until it expires; this is intended.
//! Like a session ticket, the state tells the server that the client was here before. It travels in the first message,
//! so everyone on the path learns this, too. A client that does not resume its session should not echo the state.
//!
//! Version 1 is 70 bytes: the version, 12 random bytes, and AES-256-GCM of 41 bytes with a tag of 16. Inside are the
//! time in seconds, the RTT in nanoseconds and the window in bytes, 8 bytes each, and the prefix as 16 bytes of an IPv6
//! address, in which IPv4 is mapped, and its length.
//!
//! Differences from the references: the BDP frame is a QUIC frame, which a host would have to know. Careful Resume
//! saves half of cwnd while slow start runs. This module saves what the path delivered in one RTT, which does not
//! depend on what the window would have allowed. Careful Resume (RFC 9959, sections 3.2 and 3.5) gives a set of saved
//! parameters to one connection at a time and deletes it after a Safe Retreat. Here connections that begin together may
//! each launch from the same state, and a state that failed is used again until it expires: what is saved is the
//! client's, and the server forgets it. A scheme that shares its window, and the limit of lost launches, bound what
//! several such launches do.
//!
//! Random nonces are safe for 2^32 states of one key (NIST SP 800-38D, section 8.3). Rotate keys before that limit, and
//! at least once in a lifetime ([`Sealer::rotate`]).
//!
//! Status: worked examples; no bytes make it panic.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration as StdDuration, SystemTime};

use flowstart_core::path::SavedPath;
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use ipnet::{IpNet, Ipv6Net};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::crypto::SecureRandom;

use crate::flow::Status;

/// The version that is written and read.
pub const VERSION: u8 = 1;
/// Bytes of a key.
pub const KEY_LENGTH: usize = 32;
/// Bytes of a sealed state.
pub const SEALED_LENGTH: usize = 1 + NONCE_LEN + CONTENT + TAG;
/// Default lifetime of a state: 1 h, as for states in a store. Careful Resume leaves it to the operator and suggests
/// minutes to hours.
pub const DEFAULT_LIFETIME: Duration = Duration::from_millis(3_600_000);

/// Time, RTT, window, prefix.
const CONTENT: usize = 3 * 8 + 16 + 1;
const TAG: usize = 16;

/// What a connection measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Smallest RTT.
    pub rtt: Duration,
    /// Bytes delivered in one RTT.
    pub cwnd: Bytes,
}

impl Measured {
    /// What a connection has measured so far. `None` before it has delivered for an RTT. Also `None` after a move to
    /// another path, because measurements of two paths would mix.
    pub fn of(status: &Status) -> Option<Self> {
        let rtt = status.min_rtt.filter(|rtt| *rtt > Duration::ZERO && status.moves == 0)?;
        let cwnd = status.highest_rate?.amount_in(rtt);
        (cwnd > Bytes::ZERO).then_some(Self { rtt, cwnd })
    }
}

/// A key of the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key of path state has {0} bytes; allowed is {KEY_LENGTH}")]
pub struct KeyLength(usize);

/// A state that could not be sealed: there was no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path state cannot be sealed: no random bytes")]
pub struct SealError;

/// Why a sealed state is not used. The connection goes on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is not even a version.
    #[error("path state is empty")]
    Empty,
    /// A later program sealed it.
    #[error("path state has version {0}; this program reads version {VERSION}")]
    Version(u8),
    /// It is truncated, or extra bytes follow.
    #[error("path state has {0} bytes instead of {SEALED_LENGTH}")]
    Length(usize),
    /// None of the keys fits.
    #[error("no key opens the path state: it is forged, changed, or sealed with a key that is gone")]
    WrongKey,
    /// It was sealed for another prefix.
    #[error("path state is for another address prefix")]
    OtherAddress,
    /// It is too old.
    #[error("path state is {age} old; allowed is less than {lifetime}")]
    Expired {
        /// Time since it was sealed.
        age: Duration,
        /// How long a state may be used.
        lifetime: Duration,
    },
    /// It comes from the future, so a clock is wrong: it would outlive all others.
    #[error("path state was sealed {ahead} ahead of this server's clock; allowed is less than {lifetime}")]
    Future {
        /// Time until it was sealed.
        ahead: Duration,
        /// How long a state may be used.
        lifetime: Duration,
    },
}

/// Seals and opens path state. Servers that share their keys open each other's.
#[derive(Clone)]
pub struct Sealer {
    current: LessSafeKey,
    previous: Option<LessSafeKey>,
    lifetime: Duration,
}

impl fmt::Debug for Sealer {
    /// Without the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

fn key(bytes: &[u8]) -> Result<LessSafeKey, KeyLength> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| KeyLength(bytes.len()))
}

/// Additional authenticated data: a key that also serves another purpose opens nothing that was sealed for that
/// purpose.
fn context() -> Aad<[u8; 21]> {
    let mut context = *b"flowstart path state ";
    context[20] = VERSION;
    Aad::from(context)
}

impl Sealer {
    /// Seals and opens with this key of [`KEY_LENGTH`] random bytes.
    ///
    /// # Errors
    ///
    /// [`KeyLength`] when the key has another length.
    pub fn new(current: &[u8]) -> Result<Self, KeyLength> {
        Ok(Self { current: key(current)?, previous: None, lifetime: DEFAULT_LIFETIME })
    }

    /// States of this age or older are refused, in whole seconds.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime, ..self }
    }

    /// Seals with this key from now on, and still opens states that the previous key sealed.
    ///
    /// # Errors
    ///
    /// [`KeyLength`] when the key has another length; the keys then stay unchanged.
    pub fn rotate(&mut self, current: &[u8]) -> Result<(), KeyLength> {
        let before = std::mem::replace(&mut self.current, key(current)?);
        self.previous = Some(before);
        Ok(())
    }

    /// The state for the client that `prefix` belongs to, measured at `now`.
    ///
    /// # Errors
    ///
    /// [`SealError`] when there is no randomness.
    pub fn seal(
        &self,
        measured: &Measured,
        prefix: IpNet,
        now: SystemTime,
        random: &dyn SecureRandom,
    ) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce).map_err(|_| SealError)?;
        let prefix = mapped(prefix);
        let mut content = Vec::with_capacity(CONTENT + TAG);
        for number in [unix_seconds(now), measured.rtt.as_nanos(), measured.cwnd.get()] {
            content.extend_from_slice(&number.to_be_bytes());
        }
        content.extend_from_slice(&prefix.addr().octets());
        content.push(prefix.prefix_len());
        let nonce_of_key = Nonce::assume_unique_for_key(nonce);
        self.current.seal_in_place_append_tag(nonce_of_key, context(), &mut content).map_err(|_| SealError)?;
        Ok([&[VERSION], &nonce[..], &content].concat())
    }

    /// What an earlier connection of a client from `prefix` measured.
    ///
    /// # Errors
    ///
    /// [`OpenError`] unless this server, or another with its keys, sealed the state for this prefix within its
    /// lifetime.
    pub fn open(&self, sealed: &[u8], prefix: IpNet, now: SystemTime) -> Result<SavedPath, OpenError> {
        let (version, rest) = sealed.split_first().ok_or(OpenError::Empty)?;
        if *version != VERSION {
            return Err(OpenError::Version(*version));
        }
        let length = OpenError::Length(sealed.len());
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>().ok_or(length)?;
        let encrypted: &[u8; CONTENT + TAG] = rest.try_into().map_err(|_| length)?;
        let content = [Some(&self.current), self.previous.as_ref()].into_iter().flatten().find_map(|key| {
            let mut content = *encrypted;
            let nonce = Nonce::assume_unique_for_key(*nonce);
            key.open_in_place(nonce, context(), &mut content).ok()?;
            content.first_chunk::<CONTENT>().copied()
        });
        let content = content.ok_or(OpenError::WrongKey)?;
        let (numbers, bound) = content.split_at(3 * 8);
        let prefix = mapped(prefix);
        if bound != [&prefix.addr().octets()[..], &[prefix.prefix_len()]].concat() {
            return Err(OpenError::OtherAddress);
        }
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|number| u64::from_be_bytes(*number));
        let mut number = || numbers.next().unwrap_or_default();
        let (at, rtt, cwnd) = (number(), number(), number());
        let (age, ahead) = (seconds(unix_seconds(now), at), seconds(at, unix_seconds(now)));
        let lifetime = self.lifetime;
        if age >= lifetime {
            return Err(OpenError::Expired { age, lifetime });
        }
        if ahead >= lifetime {
            return Err(OpenError::Future { ahead, lifetime });
        }
        Ok(SavedPath { rtt: Duration::from_nanos(rtt), cwnd: Bytes::new(cwnd), age })
    }
}

/// The network as one of IPv6, in which IPv4 is mapped (RFC 4291, section 2.5.5.2), without its host bits.
fn mapped(prefix: IpNet) -> Ipv6Net {
    let address = match prefix.trunc().addr() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let bits = 128 - (prefix.max_prefix_len() - prefix.prefix_len());
    // Never longer than an address: at most 128.
    Ipv6Net::new(address, bits).unwrap_or(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0))
}

/// Whole seconds since 1970-01-01 UTC; zero before.
fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since: StdDuration| since.as_secs())
}

/// The time between two points in seconds; zero when `from` is later.
fn seconds(to: u64, from: u64) -> Duration {
    Duration::from_nanos(to.saturating_sub(from).saturating_mul(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use flowstart_core::units::Rate;
    use proptest::prelude::*;

    use super::*;

    const MEASURED: Measured = Measured { rtt: Duration::from_millis(50), cwnd: Bytes::new(625_000) };

    #[derive(Debug)]
    struct Fixed;
    impl SecureRandom for Fixed {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), rustls::crypto::GetRandomFailed> {
            bytes.fill(9);
            Ok(())
        }
    }

    #[derive(Debug)]
    struct Missing;
    impl SecureRandom for Missing {
        fn fill(&self, _: &mut [u8]) -> Result<(), rustls::crypto::GetRandomFailed> {
            Err(rustls::crypto::GetRandomFailed)
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + StdDuration::from_secs(seconds)
    }

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn sealer(byte: u8) -> Sealer {
        Sealer::new(&[byte; KEY_LENGTH]).unwrap()
    }

    fn sealed() -> Vec<u8> {
        sealer(1).seal(&MEASURED, net("192.0.2.7/24"), at(1_000_000), &Fixed).unwrap()
    }

    fn open(sealed: &[u8], prefix: &str, now: u64) -> Result<SavedPath, OpenError> {
        sealer(1).open(sealed, net(prefix), at(now))
    }

    #[test]
    fn what_was_sealed_is_opened_with_its_age() {
        let sealed = sealed();
        assert_eq!(sealed.len(), 70);
        assert_eq!(sealed[..13], [1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
        // Another address of the prefix, a minute later.
        let expected = SavedPath { rtt: MEASURED.rtt, cwnd: MEASURED.cwnd, age: Duration::from_millis(60_000) };
        assert_eq!(open(&sealed, "192.0.2.200/24", 1_000_060), Ok(expected));
        // A clock that is a minute behind.
        assert_eq!(open(&sealed, "192.0.2.7/24", 999_940).map(|saved| saved.age), Ok(Duration::ZERO));
        let v6 = sealer(1).seal(&MEASURED, net("2001:db8:1::/48"), at(7), &Fixed).unwrap();
        assert!(open(&v6, "2001:db8:1:2::3/48", 8).is_ok());
    }

    #[test]
    fn each_defect_has_its_error() {
        let good = sealed();
        let prefix = "192.0.2.0/24";
        assert_eq!(open(&[], prefix, 0), Err(OpenError::Empty));
        assert_eq!(open(&[2, 0], prefix, 0), Err(OpenError::Version(2)));
        assert_eq!(open(&good[..69], prefix, 0), Err(OpenError::Length(69)));
        assert_eq!(open(&good[..5], prefix, 0), Err(OpenError::Length(5)));
        assert_eq!(open(&[&good[..], &[0]].concat(), prefix, 0), Err(OpenError::Length(71)));
        assert_eq!(sealer(2).open(&good, net(prefix), at(1_000_000)), Err(OpenError::WrongKey));
        for prefix in ["192.0.3.0/24", "192.0.2.0/25", "::ffff:192.0.2.0/112", "2001:db8::/48"] {
            assert_eq!(open(&good, prefix, 1_000_000), Err(OpenError::OtherAddress), "{prefix}");
        }
        let hour = DEFAULT_LIFETIME;
        assert!(open(&good, prefix, 1_003_599).is_ok());
        assert_eq!(open(&good, prefix, 1_003_600), Err(OpenError::Expired { age: hour, lifetime: hour }));
        assert_eq!(open(&good, prefix, 996_400), Err(OpenError::Future { ahead: hour, lifetime: hour }));
        let brief = sealer(1).with_lifetime(Duration::from_millis(10_000));
        assert!(matches!(brief.open(&good, net(prefix), at(1_000_010)), Err(OpenError::Expired { .. })));
    }

    #[test]
    fn every_bit_is_authenticated() {
        let good = sealed();
        for place in 8..good.len() * 8 {
            let mut changed = good.clone();
            changed[place / 8] ^= 1 << (place % 8);
            assert_eq!(open(&changed, "192.0.2.0/24", 1_000_000), Err(OpenError::WrongKey), "bit {place}");
        }
    }

    #[test]
    fn a_key_is_good_until_the_next_but_one() {
        let sealed = sealed();
        let mut rotated = sealer(1);
        rotated.rotate(&[2; KEY_LENGTH]).unwrap();
        assert!(rotated.open(&sealed, net("192.0.2.0/24"), at(1_000_000)).is_ok());
        assert_eq!(rotated.rotate(&[3; 16]), Err(KeyLength(16)));
        assert!(rotated.open(&sealed, net("192.0.2.0/24"), at(1_000_000)).is_ok(), "a bad key changes nothing");
        rotated.rotate(&[3; KEY_LENGTH]).unwrap();
        assert_eq!(rotated.open(&sealed, net("192.0.2.0/24"), at(1_000_000)), Err(OpenError::WrongKey));
    }

    #[test]
    fn without_randomness_nothing_is_sealed() {
        assert_eq!(sealer(1).seal(&MEASURED, net("192.0.2.0/24"), at(0), &Missing), Err(SealError));
        assert_eq!(Sealer::new(&[]).unwrap_err(), KeyLength(0));
        assert!(!format!("{:?}", sealer(0x41)).contains("65"));
    }

    #[test]
    fn measured_is_what_one_rtt_delivered() {
        let status = Status {
            min_rtt: Some(Duration::from_millis(50)),
            highest_rate: Some(Rate::from_mbit(100)),
            ..Status::default()
        };
        // 100 Mbit/s * 50 ms / 8 = 625,000 bytes.
        assert_eq!(Measured::of(&status), Some(MEASURED));
        assert_eq!(Measured::of(&Status { moves: 1, ..status }), None);
        assert_eq!(Measured::of(&Status { highest_rate: None, ..status }), None);
        assert_eq!(Measured::of(&Status { min_rtt: Some(Duration::ZERO), ..status }), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..90), versioned in any::<bool>(), cut in 0usize..=70,
        ) {
            let mut bytes = bytes;
            if versioned && let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            prop_assert!(open(&bytes, "192.0.2.0/24", 1_000_000).is_err());
            let cut = open(&sealed()[..cut], "192.0.2.0/24", 1_000_000).is_ok() == (cut == 70);
            prop_assert!(cut);
        }

        #[test]
        fn what_was_sealed_is_opened(
            rtt in any::<u64>(), cwnd in any::<u64>(), now in 0u64..1 << 40, address in any::<u128>(), bits in 0u8..=128,
        ) {
            let prefix = IpNet::new(IpAddr::V6(address.into()), bits).unwrap();
            let measured = Measured { rtt: Duration::from_nanos(rtt), cwnd: Bytes::new(cwnd) };
            let sealed = sealer(1).seal(&measured, prefix, at(now), &Fixed).unwrap();
            let expected = SavedPath { rtt: measured.rtt, cwnd: measured.cwnd, age: Duration::ZERO };
            prop_assert_eq!(sealer(1).open(&sealed, prefix, at(now)), Ok(expected));
        }
    }
}
