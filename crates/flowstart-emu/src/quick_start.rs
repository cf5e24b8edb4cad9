//! A Quick-Start router at the link to clients of a relay or of a router.
//!
//! Reference: RFC 4782, section 3.3. The rule is that of `flowstart-core`, as in the simulator. A packet with an option
//! leaves with what the router has made of it, and with a TTL that is one lower, as behind every router.
//!
//! Differences: the utilization counts a packet when it has left, not when it begins to leave. A relay ends the packets
//! of IP on either side: datagrams without an option begin anew with the TTL of this host, and options other than
//! Quick-Start's are not passed on, nor is one that cannot be read, because what a stranger wrote does not leave with
//! this host's privileges. The router of [`crate::router`] passes packets, so what it does not understand stays. Nobody
//! is told of a packet whose TTL or hop limit ends here (RFC 1812, section 5.3.1, wants a message of ICMP).

use flowstart_core::quick_start::router::{Config, Router, Verdict};
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_core::rng::Substream;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};

use crate::packet::Packet;

/// What a router has seen of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Rate Requests, of either pass.
    pub requests: u64,
    /// Of those, the ones that left with a lower rate, but with one.
    pub reduced: u64,
    /// Of those, the ones that left without a rate.
    pub denied: u64,
    /// Reports of Approved Rate.
    pub reports: u64,
    /// Datagrams whose option was taken away, or that were dropped for it, as the router's configuration says.
    pub removed: u64,
    /// Options that cannot be read; a relay's datagrams left without.
    pub malformed: u64,
    /// Datagrams with an option that were dropped, because their TTL or hop limit ended here.
    pub expired: u64,
}

impl Options {
    /// The requests that left with a rate.
    pub const fn approved(&self) -> u64 {
        self.requests - self.denied
    }
}

/// The IP header of a datagram that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rewritten {
    pub(crate) option: IpOption,
    pub(crate) ttl: u8,
}

/// The fate of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves as every other.
    Plain,
    /// It leaves as every other, without its option.
    Without,
    /// It leaves with this header.
    With(Rewritten),
    /// It does not leave.
    Drop,
}

/// The router.
#[derive(Clone, Debug)]
pub(crate) struct LinkRouter {
    router: Router,
    rng: Substream,
}

impl LinkRouter {
    /// A router at a link of this bandwidth.
    pub(crate) fn new(config: Config, bandwidth: Rate, seed: u64) -> Self {
        Self { router: Router::new(config, bandwidth), rng: Substream::new(seed, "quick-start router", 0) }
    }

    /// A packet has left.
    pub(crate) fn on_departure(&mut self, now: Timestamp, size: u32, flow: u32) {
        self.router.on_departure(now, Bytes::new(size.into()), flow.into());
    }

    /// A packet of IP arrives, and what becomes of its option is written into it; the TTL or hop limit with which it is
    /// to leave, or `None` if it does not leave.
    pub(crate) fn on_packet(
        &mut self,
        now: Timestamp,
        packet: &Packet,
        in_ip: &mut [u8],
        ttl: u8,
        seen: &mut Options,
    ) -> Option<u8> {
        match self.on_datagram(now, packet.flow, packet.version, packet.options(in_ip), Some(packet.ttl), seen) {
            Fate::Plain => Some(ttl),
            Fate::Without => {
                packet.replace_option(in_ip, packet.version.filling());
                Some(ttl)
            }
            Fate::With(rewritten) => {
                packet.replace_option(in_ip, rewritten.option.emit(packet.version));
                Some(rewritten.ttl)
            }
            Fate::Drop => None,
        }
    }

    /// A datagram arrives whose header, of this version of IP, has these options and this TTL or hop limit.
    pub(crate) fn on_datagram(
        &mut self,
        now: Timestamp,
        flow: u32,
        version: IpVersion,
        options: &[u8],
        ttl: Option<u8>,
        seen: &mut Options,
    ) -> Fate {
        let (option, ttl) = match (IpOption::among(version, options), ttl) {
            (Ok(None), _) => return Fate::Plain,
            (Ok(Some(option)), Some(ttl)) => (option, ttl),
            (Ok(Some(_)), None) | (Err(_), _) => {
                seen.malformed += 1;
                return Fate::Plain;
            }
        };
        // Its time is over (RFC 791, section 3.2; RFC 8200, section 3).
        if ttl <= 1 {
            seen.expired += 1;
            return Fate::Drop;
        }
        let rate = |option| match option {
            IpOption::RateRequest { rate, .. } | IpOption::RateConfirmation { rate, .. } => Some(rate.rate()),
            IpOption::ApprovedRate { .. } => None,
        };
        let verdict = self.router.on_option(now, flow.into(), option, &mut self.rng);
        match rate(option) {
            Some(_) => seen.requests += 1,
            None => seen.reports += 1,
        }
        match verdict {
            Verdict::Forward(left) => {
                if let (Some(before), Some(after)) = (rate(option), rate(left)) {
                    seen.denied += u64::from(after == Rate::ZERO && before > after);
                    seen.reduced += u64::from(after > Rate::ZERO && before > after);
                }
                Fate::With(Rewritten { option: left, ttl: ttl - 1 })
            }
            Verdict::Delete => {
                seen.removed += 1;
                Fate::Without
            }
            Verdict::Drop => {
                seen.removed += 1;
                Fate::Drop
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::quick_start::host::{Refusal, Request, respond};
    use flowstart_core::quick_start::rate::{RateEncoding, Rounding};
    use flowstart_core::quick_start::router::Behaviour;
    use flowstart_core::time::Duration;

    use super::*;

    fn request() -> Request {
        let mut rng = Substream::new(7, "quick-start", 0);
        Request::new(Rate::from_mbit(100), Rounding::Up, RateEncoding::Exponential, 64, &mut rng).unwrap()
    }

    fn router(behaviour: Behaviour) -> LinkRouter {
        LinkRouter::new(Config { behaviour, ..Config::default() }, Rate::from_mbit(20), 1)
    }

    #[test]
    fn a_request_leaves_with_what_the_link_allows() {
        let (mut router, mut seen) = (router(Behaviour::Participate), Options::default());
        let option = request().option().emit(IpVersion::V4);
        let of_ipv6 = request().option().emit(IpVersion::V6);
        let fate = router.on_datagram(Timestamp::ZERO, 1, IpVersion::V4, &option, Some(64), &mut seen);
        let Fate::With(left) = fate else { panic!("{fate:?}") };
        let response = respond(left.option, left.ttl).unwrap();
        // 90 % of 20 Mbit/s are 18; 40 kbit/s * 2^8 = 10.24 Mbit/s is the next rate below.
        assert_eq!((left.ttl, request().verify(&response)), (63, Ok(Rate::from_bits_per_sec(10_240_000))));
        // A link that is in use approves nothing.
        let second = |ms| Timestamp::ZERO + Duration::from_millis(ms);
        for ms in 0..2000 {
            router.on_departure(second(ms), 2500, 1);
        }
        let fate = router.on_datagram(second(2000), 2, IpVersion::V6, &of_ipv6, Some(64), &mut seen);
        let Fate::With(left) = fate else { panic!("{fate:?}") };
        let response = respond(left.option, left.ttl).unwrap();
        assert_eq!(request().verify(&response), Err(Refusal::Denied));
        let report = request().report(Rate::from_mbit(10));
        let bytes = report.emit(IpVersion::V4);
        let fate = router.on_datagram(second(2000), 1, IpVersion::V4, &bytes, Some(64), &mut seen);
        assert_eq!(fate, Fate::With(Rewritten { option: report, ttl: 63 }));
        assert_eq!(seen, Options { requests: 2, reduced: 1, denied: 1, reports: 1, ..Options::default() });
    }

    #[test]
    fn what_cannot_be_read_or_is_too_old_does_not_go_on() {
        let (mut router, mut seen) = (router(Behaviour::Participate), Options::default());
        let option = request().option().emit(IpVersion::V4);
        let mut fate =
            |options: &[u8], ttl| router.on_datagram(Timestamp::ZERO, 1, IpVersion::V4, options, ttl, &mut seen);
        let source_route = [131, 7, 4, 192, 0, 2, 1, 1];
        assert_eq!(fate(&[], Some(64)), Fate::Plain);
        assert_eq!(fate(&source_route, Some(64)), Fate::Plain);
        for malformed in [&option[..7], &[option, option].concat(), &[25, 8, 0x3b, 0, 0, 0, 0, 0], &[25]] {
            assert_eq!(fate(malformed, Some(64)), Fate::Plain, "{malformed:?}");
        }
        assert_eq!(fate(&option, None), Fate::Plain);
        assert_eq!((fate(&option, Some(1)), fate(&option, Some(0))), (Fate::Drop, Fate::Drop));
        let Fate::With(left) = fate(&[&source_route[..], &option].concat(), Some(64)) else { panic!("no option") };
        assert_eq!(left.ttl, 63, "only its own option is written again");
        assert_eq!(seen, Options { requests: 1, reduced: 1, malformed: 5, expired: 2, ..Options::default() });
    }

    #[test]
    fn a_router_may_take_options_away() {
        let option = request().option().emit(IpVersion::V4);
        for (behaviour, expected) in [(Behaviour::Delete, Fate::Without), (Behaviour::Drop, Fate::Drop)] {
            let mut seen = Options::default();
            let mut router = router(behaviour);
            let fate = router.on_datagram(Timestamp::ZERO, 1, IpVersion::V4, &option, Some(64), &mut seen);
            assert_eq!(fate, expected);
            assert_eq!((seen.requests, seen.removed), (1, 1));
        }
    }
}
