//! The HTTP client hints `Downlink`, `RTT` and `ECT` of unmodified browsers, as a floor under the client's rate.
//!
//! Reference: Network Information API, W3C community group draft, sections on the three request header fields; RFC 8942
//! (`Accept-CH`). `Downlink` is the rate in Mbit/s, `RTT` the round-trip time in ms of the browser's requests, `ECT`
//! the name of a mobile network with a similar feel.
//!
//! Browsers send coarse values on purpose. Chromium (`content/browser/client_hints/client_hints.cc`) multiplies the
//! rate with a number between 0.9 and 1.1 that it keeps for each site, caps it at 10 Mbit/s and rounds it to 50 kbit/s;
//! the RTT gets the same noise, a cap of 3 s and steps of 50 ms. The draft rounds to 25 kbit/s and 25 ms.
//!
//! A browser that has measured nothing says so in two ways. Chromium has a default for each kind of connection
//! (`net/nqe/network_quality_estimator_params.cc`), such as 1.456 Mbit/s and 90 ms for Ethernet, which it sends with
//! the same noise. Without these it sends 10 Mbit/s, or 9 and more with the noise, and 0 ms. None of these is a floor.
//!
//! So `Downlink: d` says that the rate is at least (d - 25 kbit/s) / 1.1. For the cap of 10 this is 9.07 Mbit/s; the
//! true rate may be any higher one. [`ClientHints::floor`] is a hint of this rate. `RTT` contains the server's time,
//! and `ECT` is derived from it. So neither changes the floor, and neither names an access technology.
//!
//! These hints come with a request, after the handshake. A server that wants them for the launch uses
//! [`Flow::waiting`](crate::Flow::waiting), and asks for them in an earlier answer: [`ACCEPT_CH`].
//!
//! Status: worked examples; no bytes make it panic.

use std::fmt;

use flowstart_core::path::AccessTechnology;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use super::codec::{BandwidthHint, MIN_RATE};

/// The value of `Accept-CH` that asks for them.
pub const ACCEPT_CH: &str = "Downlink, RTT, ECT";

/// Browsers cap `Downlink` here.
pub const DOWNLINK_CAP: Rate = Rate::from_mbit(10);
/// Half of Chromium's step, the coarser one.
const ROUNDING: u64 = 25_000;
/// The largest factor of the noise is 11 / 10.
const NOISE: (u64, u64) = (11, 10);

/// Chromium's defaults in kbit/s and ms: of an unknown connection, Ethernet, Wi-Fi, 4G, 3G and 2G.
const DEFAULTS: [(u64, u64); 6] = [(1961, 115), (1456, 90), (2658, 116), (1708, 137), (749, 273), (74, 1726)];

/// Digits of `Downlink` before its point, and of `RTT`: more than any network needs, and no product overflows.
const MAX_DIGITS: usize = 6;
/// Digits after the point: kbit/s.
const MAX_FRACTION: usize = 3;

/// `ECT`: which mobile network the client's feels like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectiveType {
    /// `slow-2g`.
    Slow2g,
    /// `2g`.
    SecondGeneration,
    /// `3g`.
    ThirdGeneration,
    /// `4g`, and everything faster.
    FourthGeneration,
}

impl fmt::Display for EffectiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slow2g => "slow-2g",
            Self::SecondGeneration => "2g",
            Self::ThirdGeneration => "3g",
            Self::FourthGeneration => "4g",
        })
    }
}

/// A client hint that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientHintError {
    /// Not a decimal number.
    #[error("`Downlink` is not a rate in Mbit/s with up to 6 digits and 3 after the point, such as 1.7")]
    Downlink,
    /// Not a whole number.
    #[error("`RTT` is not a time in ms with up to 6 digits, such as 125")]
    Rtt,
    /// Not a name.
    #[error("`ECT` is not slow-2g, 2g, 3g or 4g")]
    EffectiveType,
    /// A field that came before.
    #[error("`{0}` comes more than once")]
    Repeated(&'static str),
}

/// What a browser says of its network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientHints {
    /// `Downlink` as it was sent.
    pub downlink: Option<Rate>,
    /// `RTT` as it was sent.
    pub rtt: Option<Duration>,
    /// `ECT`.
    pub effective_type: Option<EffectiveType>,
}

impl ClientHints {
    /// Takes a header field of a request. Returns whether it is a client hint; ignores other fields.
    ///
    /// # Errors
    ///
    /// [`ClientHintError`] when it is a client hint that cannot be read. The request is valid without it.
    pub fn take(&mut self, name: &str, value: &[u8]) -> Result<bool, ClientHintError> {
        if name.eq_ignore_ascii_case("downlink") {
            set(&mut self.downlink, "Downlink", read_downlink(value).ok_or(ClientHintError::Downlink)?)
        } else if name.eq_ignore_ascii_case("rtt") {
            set(&mut self.rtt, "RTT", read_rtt(value).ok_or(ClientHintError::Rtt)?)
        } else if name.eq_ignore_ascii_case("ect") {
            set(&mut self.effective_type, "ECT", read_type(value).ok_or(ClientHintError::EffectiveType)?)
        } else {
            Ok(false)
        }
    }

    /// A hint of the client's minimum rate. `None` without `Downlink`, when a browser knows nothing, and when the value
    /// is too low to be a rate.
    pub fn floor(&self) -> Option<BandwidthHint> {
        let downlink = self.downlink?;
        if self.rtt.is_some_and(|rtt| is_default(downlink, rtt)) {
            return None;
        }
        let bits = downlink.min(DOWNLINK_CAP).bits_per_sec().saturating_sub(ROUNDING) * NOISE.1 / NOISE.0;
        let rate = Rate::from_bits_per_sec(bits);
        let technology = AccessTechnology::Unknown;
        (rate >= MIN_RATE).then_some(BandwidthHint { rate, technology, age: Duration::ZERO })
    }
}

/// Whether a browser that has measured nothing sends these.
fn is_default(downlink: Rate, rtt: Duration) -> bool {
    // The noise, and half a step of the rounding.
    let is_near = |sent: u64, value: u64, half_step: u64| {
        (value * 9 / 10).saturating_sub(half_step) <= sent && sent <= value * 11 / 10 + half_step
    };
    let (kbit, ms) = (downlink.bits_per_sec() / 1000, rtt.as_nanos() / 1_000_000);
    (kbit >= 9000 && ms == 0) || DEFAULTS.iter().any(|(rate, time)| is_near(kbit, *rate, 25) && is_near(ms, *time, 25))
}

fn set<T>(field: &mut Option<T>, name: &'static str, value: T) -> Result<bool, ClientHintError> {
    match field.replace(value) {
        None => Ok(true),
        Some(first) => {
            *field = Some(first);
            Err(ClientHintError::Repeated(name))
        }
    }
}

/// A number of one to `most` digits.
fn digits(text: &[u8], most: usize) -> Option<u64> {
    let fits = (1..=most).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    fits.then(|| text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// `1*DIGIT [ "." 1*DIGIT ]` in Mbit/s.
fn read_downlink(text: &[u8]) -> Option<Rate> {
    let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
        None => (text, &b"0"[..]),
        Some(point) => (&text[..point], &text[point + 1..]),
    };
    let mbit = digits(whole, MAX_DIGITS)?;
    let thousandths = digits(fraction, MAX_FRACTION)? * [1, 100, 10, 1][fraction.len()];
    Some(Rate::from_bits_per_sec((mbit * 1000 + thousandths) * 1000))
}

/// `1*DIGIT` in ms.
fn read_rtt(text: &[u8]) -> Option<Duration> {
    digits(text, MAX_DIGITS).map(Duration::from_millis)
}

fn read_type(text: &[u8]) -> Option<EffectiveType> {
    Some(match text {
        b"slow-2g" => EffectiveType::Slow2g,
        b"2g" => EffectiveType::SecondGeneration,
        b"3g" => EffectiveType::ThirdGeneration,
        b"4g" => EffectiveType::FourthGeneration,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn downlink(text: &str) -> Result<Option<u64>, ClientHintError> {
        let mut hints = ClientHints::default();
        hints.take("Downlink", text.as_bytes())?;
        Ok(hints.floor().map(|hint| hint.rate.bits_per_sec()))
    }

    #[test]
    fn a_downlink_is_a_floor() {
        // (1,700,000 - 25,000) / 1.1 = 1,522,727.
        assert_eq!(downlink("1.7"), Ok(Some(1_522_727)));
        // The cap: (10,000,000 - 25,000) / 1.1 = 9,068,181, and no more for a browser without one.
        assert_eq!(downlink("10"), Ok(Some(9_068_181)));
        assert_eq!(downlink("100"), Ok(Some(9_068_181)));
        assert_eq!(downlink("0.05"), Ok(Some(22_727)));
        // Rounded to nothing, or with nothing left after rounding.
        assert_eq!(downlink("0"), Ok(None));
        assert_eq!(downlink("0.025"), Ok(None));
        assert_eq!(downlink("0.026"), Ok(None), "1 kbit/s / 1.1 is less than a rate may be");
    }

    #[test]
    fn whoever_knows_nothing_has_no_floor() {
        let mut hints = ClientHints::default();
        assert_eq!(hints.floor(), None);
        assert_eq!((hints.take("downlink", b"10"), hints.take("rtt", b"0")), (Ok(true), Ok(true)));
        assert_eq!(hints.floor(), None);
        let near = ClientHints { downlink: Some(Rate::from_mbit(5)), ..hints };
        assert!(near.floor().is_some(), "a short RTT alone is one");
    }

    #[test]
    fn all_three_are_read() {
        let mut hints = ClientHints::default();
        assert_eq!(hints.take("DOWNLINK", b"1.35"), Ok(true));
        assert_eq!(hints.take("RTT", b"125"), Ok(true));
        assert_eq!(hints.take("ect", b"3g"), Ok(true));
        assert_eq!(hints.take("accept", b"*/*"), Ok(false));
        let expected = ClientHints {
            downlink: Some(Rate::from_bits_per_sec(1_350_000)),
            rtt: Some(Duration::from_millis(125)),
            effective_type: Some(EffectiveType::ThirdGeneration),
        };
        assert_eq!(hints, expected);
        assert_eq!(hints.take("rtt", b"50"), Err(ClientHintError::Repeated("RTT")));
        assert_eq!(hints, expected, "the first one counts");
    }

    #[test]
    fn what_is_not_in_the_grammar_is_refused() {
        for text in
            ["", "-1", "+1", "1e3", ".5", "1.", "1.2345", "1234567", "1,5", " 1", "1 ", "10, 10", "nan", "\u{0661}"]
        {
            assert_eq!(downlink(text), Err(ClientHintError::Downlink), "{text:?}");
        }
        let mut hints = ClientHints::default();
        for text in ["", "-1", "1.5", "1234567", "0x10"] {
            assert_eq!(hints.take("rtt", text.as_bytes()), Err(ClientHintError::Rtt), "{text:?}");
        }
        for text in ["", "5g", "4G", "slow2g", "4g "] {
            assert_eq!(hints.take("ect", text.as_bytes()), Err(ClientHintError::EffectiveType), "{text:?}");
        }
        assert_eq!(hints, ClientHints::default());
    }

    proptest! {
        #[test]
        fn the_floor_is_below_the_truth(kbit in 100u64..1_000_000, noise in 0.9..=1.1f64) {
            // What Chromium sends for this rate.
            let noisy = (kbit as f64 * noise).min(10_000.0);
            let sent = (noisy / 50.0).round() * 50.0 / 1000.0;
            let floor = downlink(&sent.to_string()).unwrap().unwrap_or(0);
            prop_assert!(floor <= kbit * 1000, "{floor} of {kbit} kbit/s, sent as {sent}");
        }

        #[test]
        fn what_a_browser_sends_that_has_measured_nothing_is_no_floor(
            default in prop::sample::select(DEFAULTS.to_vec()), noise in 0.9..=1.1f64,
        ) {
            let (kbit, ms) = default;
            let [downlink, rtt] = [kbit, ms].map(|value| (value as f64 * noise / 50.0).round() * 50.0);
            let mut hints = ClientHints::default();
            hints.take("downlink", (downlink / 1000.0).to_string().as_bytes()).unwrap();
            hints.take("rtt", rtt.to_string().as_bytes()).unwrap();
            prop_assert_eq!(hints.floor(), None, "{} {}", downlink, rtt);
        }

        #[test]
        fn no_bytes_make_it_panic(
            name in prop::sample::select(vec!["downlink", "rtt", "ect"]), value in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut hints = ClientHints::default();
            if hints.take(name, &value).is_ok() {
                prop_assert!(hints.floor().is_none_or(|hint| hint.rate < DOWNLINK_CAP));
            } else {
                prop_assert_eq!(hints, ClientHints::default());
            }
        }
    }
}
