//! A host's part: its request, whether the answer is credible, and the resulting window.
//!
//! References: RFC 4782, sections 4.1 to 4.6; Sarolahti, Allman and Floyd, sections 3.1 and 5.2. The sender asks in a
//! packet that opens the connection, or later when it has been idle. The receiver echoes the rate, the difference of
//! the TTLs and the nonce. The sender takes the answer for an approval by all routers if the difference is the one it
//! sent and the nonce has the bits that fit the rate. The window is then what the rate carries in an RTT, without
//! headers (equation 1), and leaves paced over one RTT.
//!
//! Differences: none known. What happens after the window has left is the startup scheme's
//! ([`crate::startup`]).

use crate::quick_start::nonce::{BITS_PER_STEP, Nonce};
use crate::quick_start::rate::{RateCode, RateEncoding, Rounding};
use crate::quick_start::wire::{IpOption, Response};
use crate::rng::Substream;
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// What a sender asks for (section 5.2).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "kebab-case")
)]
pub enum RequestSize {
    /// The same always.
    Fixed {
        /// The rate.
        rate: Rate,
    },
    /// The capacity of the last hop, C.
    LastHop {
        /// C.
        capacity: Rate,
    },
    /// A share of a server's access link.
    AccessShare {
        /// The access link.
        access: Rate,
        /// The share, 0 to 1.
        share: f64,
    },
    /// As fast as buffers allow: min(S, W) / R.
    Buffers,
    /// What sends the object in one RTT: (O + O / MSS * H) / R: the paper's Ideal senders.
    Object,
}

/// What a sender knows when it asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// R: the RTT, or an estimate of it.
    pub rtt: Option<Duration>,
    /// O: bytes that the application will send.
    pub object: Option<Bytes>,
    /// S: size of the sender's buffer.
    pub send_buffer: Option<Bytes>,
    /// W: the receiver's window, unknown in a connection's first packet.
    pub receive_window: Option<Bytes>,
}

/// Sizes of a sender's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// MSS: payload of a full packet.
    pub mss: Bytes,
    /// H: headers of a packet.
    pub header: Bytes,
}

impl PacketSizes {
    /// `payload` with the headers of its packets, the last one not rounded up: O + O / MSS * H.
    fn on_the_wire(self, payload: Bytes) -> Bytes {
        let (mss, header) = (self.mss.get().max(1) as f64, self.header.get() as f64);
        payload.scale((mss + header) / mss)
    }
}

impl RequestSize {
    /// The rate to ask for; `None` if Quick-Start is useless or no rate can be derived. Data that fits `initial_window`
    /// needs no request (section 5.2).
    pub fn rate(self, known: &Known, sizes: PacketSizes, initial_window: Bytes) -> Option<Rate> {
        if known.object.is_some_and(|object| object <= initial_window) {
            return None;
        }
        match self {
            Self::Fixed { rate } => Some(rate),
            Self::LastHop { capacity } => Some(capacity),
            Self::AccessShare { access, share } => {
                Some(Rate::from_bits_per_sec((access.bits_per_sec() as f64 * share) as u64))
            }
            Self::Buffers => {
                let window = match (known.send_buffer, known.receive_window) {
                    (Some(buffer), Some(window)) => buffer.min(window),
                    (buffer, window) => buffer.or(window)?,
                };
                Rate::from_transfer(window, known.rtt?)
            }
            Self::Object => Rate::from_transfer(sizes.on_the_wire(known.object?), known.rtt?),
        }
    }
}

/// A request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    encoding: RateEncoding,
    rate: Rate,
    option: IpOption,
    /// IP TTL less QS TTL, modulo 256: what comes back when all routers took part.
    ttl_diff: u8,
    nonce: Nonce,
    /// Bits of each step of the nonce that are compared.
    nonce_bits: u32,
}

/// Why an answer gives no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A router has taken the rate away.
    Denied,
    /// A router did not take part: TTLs differ.
    TtlDiff,
    /// The nonce does not fit the rate: somebody lies.
    Nonce,
    /// The rate is higher than what was asked for.
    TooHigh,
}

impl Refusal {
    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::TtlDiff => "ttl-diff",
            Self::Nonce => "nonce",
            Self::TooHigh => "too-high",
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Denied => "a router took the rate away",
            Self::TtlDiff => "a router did not take part: the TTLs differ",
            Self::Nonce => "the nonce does not fit the rate",
            Self::TooHigh => "the rate is higher than what was asked for",
        })
    }
}

impl core::error::Error for Refusal {}

impl Request {
    /// A request for `rate` in a packet with this IP TTL; `None` for a rate that is rounded to nothing.
    pub fn new(
        rate: Rate,
        rounding: Rounding,
        encoding: RateEncoding,
        ip_ttl: u8,
        rng: &mut Substream,
    ) -> Option<Self> {
        let rate = encoding.round(rate, rounding);
        if rate == Rate::from_bits_per_sec(0) {
            return None;
        }
        let ttl = rng.next_u64() as u8;
        let (code, written) = encoding.written(rate);
        let nonce = match encoding {
            RateEncoding::Exponential => Nonce::random(rng),
            RateEncoding::Linear => written,
        };
        let option = IpOption::RateRequest { rate: code, ttl, nonce };
        let ttl_diff = ip_ttl.wrapping_sub(ttl);
        Some(Self { encoding, rate, option, ttl_diff, nonce, nonce_bits: BITS_PER_STEP })
    }

    /// The same request of a sender that compares only so many bits of each step of the nonce, 0 to 2 (section 8.2; RFC
    /// 4782 has two).
    #[must_use]
    pub fn comparing(self, nonce_bits: u32) -> Self {
        Self { nonce_bits, ..self }
    }

    /// The second pass for what the first has left (section 8.2): routers confirm this rate or refuse it.
    pub fn second_pass(&self, approved: Rate, ip_ttl: u8, rng: &mut Substream) -> Option<Self> {
        let request = Self::new(approved, Rounding::Down, self.encoding, ip_ttl, rng)?.comparing(self.nonce_bits);
        let IpOption::RateRequest { rate, ttl, nonce } = request.option else { return None };
        Some(Self { option: IpOption::RateConfirmation { rate, ttl, nonce }, ..request })
    }

    /// The option to send.
    pub fn option(&self) -> IpOption {
        self.option
    }

    /// What it asks for.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// What `response` says of it: the approved rate.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when not all routers approved it, or the answer is not credible.
    pub fn verify(&self, response: &Response) -> Result<Rate, Refusal> {
        let approved = self.encoding.requested(response.rate, response.nonce);
        if approved == Rate::from_bits_per_sec(0) {
            return Err(Refusal::Denied);
        }
        if approved > self.rate {
            return Err(Refusal::TooHigh);
        }
        // The rate of the second pass is approved in full or not at all.
        if approved < self.rate && matches!(self.option, IpOption::RateConfirmation { .. }) {
            return Err(Refusal::Denied);
        }
        if response.ttl_diff != self.ttl_diff {
            return Err(Refusal::TtlDiff);
        }
        let nonce_confirms = self.nonce.confirms_by(self.nonce_bits, response.nonce, response.rate);
        if self.encoding == RateEncoding::Exponential && !nonce_confirms {
            return Err(Refusal::Nonce);
        }
        Ok(approved)
    }

    /// The report of what was approved, for the routers (RFC 4782, section 4.4).
    pub fn report(&self, approved: Rate) -> IpOption {
        IpOption::ApprovedRate { rate: RateCode::at_most(approved), nonce: self.nonce }
    }
}

/// A receiver's answer to the option of a packet that arrived with this IP TTL.
pub fn respond(option: IpOption, ip_ttl: u8) -> Option<Response> {
    match option {
        IpOption::RateRequest { rate, ttl, nonce } | IpOption::RateConfirmation { rate, ttl, nonce } => {
            Some(Response { rate, ttl_diff: ip_ttl.wrapping_sub(ttl), nonce })
        }
        IpOption::ApprovedRate { .. } => None,
    }
}

/// Equation (1): the window, in payload, that `rate` carries in `rtt`: rate * RTT * MSS / (MSS + H).
pub fn window(rate: Rate, rtt: Duration, sizes: PacketSizes) -> Bytes {
    let (mss, header) = (sizes.mss.get() as f64, sizes.header.get() as f64);
    let bytes = rate.bits_per_sec() as f64 / 8.0 * rtt.as_secs();
    Bytes::new((bytes * mss / (mss + header)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quick_start::router::{Behaviour, Config, Router, Verdict};
    use crate::time::Timestamp;

    const SIZES: PacketSizes = PacketSizes { mss: Bytes::new(1460), header: Bytes::new(40) };

    fn rng() -> Substream {
        Substream::new(7, "quick-start", 0)
    }

    fn request(rate: Rate) -> Request {
        Request::new(rate, Rounding::Up, RateEncoding::Exponential, 64, &mut rng()).unwrap()
    }

    /// The request through routers of these behaviours at links of 100 Mbit/s, and the answer.
    fn through(request: &Request, behaviours: &[Behaviour]) -> Option<Result<Rate, Refusal>> {
        let (mut option, mut ip_ttl) = (request.option(), 64);
        for behaviour in behaviours {
            let mut router = Router::new(Config { behaviour: *behaviour, ..Config::default() }, Rate::from_mbit(100));
            match router.on_option(Timestamp::ZERO, 1, option, &mut rng()) {
                Verdict::Forward(left) => option = left,
                Verdict::Delete | Verdict::Drop => return None,
            }
            ip_ttl -= 1;
        }
        Some(request.verify(&respond(option, ip_ttl)?))
    }

    #[test]
    fn all_routers_have_to_take_part() {
        use Behaviour::{ApproveAll, Delete, Drop, Ignore, Participate, Zero};
        // 163.84 Mbit/s are asked for; 90 % of 100 Mbit/s rounded down are 81.92 Mbit/s.
        let request = request(Rate::from_mbit(100));
        let granted = Ok(Rate::from_bits_per_sec(81_920_000));
        assert_eq!(through(&request, &[Participate, Participate]), Some(granted));
        assert_eq!(through(&request, &[Participate, Ignore]), Some(Err(Refusal::TtlDiff)));
        assert_eq!(through(&request, &[Ignore; 3]), Some(Err(Refusal::TtlDiff)));
        assert_eq!(through(&request, &[Participate, Zero]), Some(Err(Refusal::Denied)));
        assert_eq!(through(&request, &[ApproveAll]), Some(Ok(request.rate())));
        assert_eq!(through(&request, &[Participate, Delete]), None);
        assert_eq!(through(&request, &[Drop]), None);
    }

    #[test]
    fn the_second_pass_is_approved_as_it_is_or_not_at_all() {
        let second = request(Rate::from_mbit(100)).second_pass(Rate::from_mbit(90), 64, &mut rng()).unwrap();
        // 90 Mbit/s are 81.92 in the code: 11.
        assert_eq!(second.rate(), RateCode::from_bits(11).rate());
        let Some(Response { rate, ttl_diff, nonce }) = respond(second.option(), 64) else { panic!("an answer") };
        assert_eq!(second.verify(&Response { rate, ttl_diff, nonce }), Ok(second.rate()));
        assert_eq!(second.verify(&Response { rate: RateCode::from_bits(10), ttl_diff, nonce }), Err(Refusal::Denied));
        assert_eq!(second.verify(&Response { rate: RateCode::from_bits(12), ttl_diff, nonce }), Err(Refusal::TooHigh));
    }

    #[test]
    fn a_receiver_that_raises_the_rate_is_found_out() {
        let request = request(Rate::from_mbit(100));
        let IpOption::RateRequest { ttl, nonce, .. } = request.option() else { panic!("a request") };
        // A router has reduced 12 to 9 and drawn the bits of the steps between anew: here they are inverted.
        let arrived = Nonce::from_bits(nonce.bits() ^ (0b11_1111 << 18));
        let response =
            |code| Response { rate: RateCode::from_bits(code), ttl_diff: 64u8.wrapping_sub(ttl), nonce: arrived };
        assert_eq!(request.verify(&response(9)), Ok(RateCode::from_bits(9).rate()));
        assert_eq!(request.verify(&response(10)), Err(Refusal::Nonce));
        assert_eq!(request.verify(&response(13)), Err(Refusal::TooHigh));
        // A sender that does not look at the nonce believes it.
        assert_eq!(request.comparing(0).verify(&response(10)), Ok(RateCode::from_bits(10).rate()));
    }

    #[test]
    fn equation_1() {
        // 10.24 MB/s * 20 ms = 204,800 bytes in packets of 1500, of which 1460 are payload: 136.5 packets (ns-2: 136).
        let rate = RateCode::at_most(Rate::from_mbit(90)).rate();
        let window = window(rate, Duration::from_millis(20), SIZES);
        assert_eq!(window, Bytes::new(199_338));
        assert_eq!(window.get() / 1460, 136);
    }

    #[test]
    fn requests_are_sized_by_what_is_known() {
        let known = Known {
            rtt: Some(Duration::from_millis(100)),
            object: Some(Bytes::new(146_000)),
            send_buffer: Some(Bytes::new(100_000)),
            receive_window: Some(Bytes::new(50_000)),
        };
        let iw = Bytes::new(3 * 1460);
        // 100 packets of 1500 bytes in 100 ms: 12 Mbit/s.
        assert_eq!(RequestSize::Object.rate(&known, SIZES, iw), Some(Rate::from_mbit(12)));
        // min(100 KB, 50 KB) / 100 ms = 4 Mbit/s; without a window the buffer counts.
        assert_eq!(RequestSize::Buffers.rate(&known, SIZES, iw), Some(Rate::from_mbit(4)));
        let blind = Known { receive_window: None, ..known };
        assert_eq!(RequestSize::Buffers.rate(&blind, SIZES, iw), Some(Rate::from_mbit(8)));
        let share = RequestSize::AccessShare { access: Rate::from_mbit(100), share: 0.2 };
        assert_eq!(share.rate(&known, SIZES, iw), Some(Rate::from_mbit(20)));
        let small = Known { object: Some(iw), ..known };
        assert_eq!(RequestSize::Fixed { rate: Rate::from_mbit(1) }.rate(&small, SIZES, iw), None);
        assert_eq!(RequestSize::Object.rate(&Known::default(), SIZES, iw), None);
    }
}
