//! Parties that change answers on their way to the sender: receivers that lie about the rate, and performance boosters.
//!
//! Reference: Sarolahti, Allman and Floyd, section 8.1. A receiver raises the rate that arrived before it echoes it. A
//! middlebox near the sender raises the rate, or repairs the difference of the TTLs so that hops without Quick-Start do
//! not show.
//!
//! A receiver knows what arrived, and has to guess the nonce of the steps that it adds. A middlebox in front of the
//! sender has seen the request and knows the original nonce and TTL, so no nonce detects it.

use alloc::collections::BTreeMap;

use crate::quick_start::host::respond;
use crate::quick_start::nonce::Nonce;
use crate::quick_start::rate::RateCode;
use crate::quick_start::router::FlowId;
use crate::quick_start::wire::{IpOption, Response};
use crate::registry::ConfigError;
use crate::rng::Substream;

/// Requests that a middlebox remembers; with more it forgets them all.
const MOST_REQUESTS: usize = 1024;

/// The answer of a receiver that claims `steps` more than arrived, at most the highest rate, and guesses the nonce of
/// these steps.
pub fn raised(response: Response, steps: u8, rng: &mut Substream) -> Response {
    let claimed = RateCode::from_bits((response.rate.bits() + steps).min(RateCode::MAX.bits()));
    Response { rate: claimed, nonce: response.nonce.reduced(claimed, response.rate, rng), ..response }
}

/// What a performance booster does to answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct BoosterConfig {
    /// Steps that it adds to the approved rate, up to what was asked for; 0, none.
    pub steps: u8,
    /// Whether it repairs the difference of the TTLs; no.
    pub ttl: bool,
}

impl BoosterConfig {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("steps", self.steps, 0..=RateCode::MAX.bits())
    }
}

/// What it knows of a request.
#[derive(Clone, Copy, Debug)]
struct Seen {
    rate: RateCode,
    nonce: Nonce,
    ttl_diff: u8,
}

/// A performance booster near the sender: requests and answers pass it.
#[derive(Clone, Debug)]
pub struct Booster {
    config: BoosterConfig,
    seen: BTreeMap<FlowId, Seen>,
}

impl Booster {
    /// It has seen nothing yet.
    pub fn new(config: BoosterConfig) -> Self {
        Self { config, seen: BTreeMap::new() }
    }

    /// A request passes with this IP TTL.
    pub fn on_option(&mut self, flow: FlowId, option: IpOption, ip_ttl: u8) {
        let Some(Response { rate, ttl_diff, nonce }) = respond(option, ip_ttl) else { return };
        if self.seen.len() >= MOST_REQUESTS {
            self.seen.clear();
        }
        self.seen.insert(flow, Seen { rate, nonce, ttl_diff });
    }

    /// What it makes of the answer to that request.
    pub fn on_response(&mut self, flow: FlowId, response: Response) -> Response {
        let Some(seen) = self.seen.get(&flow) else { return response };
        let raised = response.rate.bits().saturating_add(self.config.steps).min(seen.rate.bits());
        let rate = response.rate.max(RateCode::from_bits(raised));
        Response { rate, nonce: seen.nonce, ttl_diff: if self.config.ttl { seen.ttl_diff } else { response.ttl_diff } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quick_start::host::{Refusal, Request};
    use crate::quick_start::rate::{RateEncoding, Rounding};
    use crate::quick_start::router::{Behaviour, Config, Router, Verdict};
    use crate::time::Timestamp;
    use crate::units::Rate;

    fn code(bits: u8) -> RateCode {
        RateCode::from_bits(bits)
    }

    /// A request for the code 10, and what arrives through a router of 10 Mbit/s, which leaves 7 of it, and one of this
    /// behaviour.
    fn arrived(rng: &mut Substream, second: Behaviour) -> (Request, Response) {
        let request = Request::new(code(10).rate(), Rounding::Up, RateEncoding::Exponential, 64, rng).unwrap();
        let mut option = request.option();
        for behaviour in [Behaviour::Participate, second] {
            let config = Config { behaviour, ..Config::default() };
            let mut router = Router::new(config, Rate::from_mbit(10));
            let Verdict::Forward(left) = router.on_option(Timestamp::ZERO, 1, option, rng) else {
                panic!("it is forwarded")
            };
            option = left;
        }
        (request, respond(option, 62).unwrap())
    }

    #[test]
    fn a_receiver_that_raises_the_rate_by_s_steps_succeeds_with_two_to_the_minus_x_s() {
        let mut rng = Substream::new(7, "misbehaviour", 0);
        for steps in 1..=3u8 {
            let tries = 1 << 14;
            let mut believed = [0u32; 3];
            for _ in 0..tries {
                let (request, honest) = arrived(&mut rng, Behaviour::Participate);
                let lie = raised(honest, steps, &mut rng);
                assert_eq!(lie.rate, code(7 + steps));
                for (bits, believed) in (0..).zip(&mut believed) {
                    *believed += u32::from(request.comparing(bits).verify(&lie).is_ok());
                }
            }
            for (bits, believed) in (0u32..).zip(believed) {
                let expected = f64::from(tries) / f64::from(1u32 << (bits * u32::from(steps)));
                assert!((f64::from(believed) - expected).abs() <= 5.0 * libm::sqrt(expected), "{steps}: {believed}");
            }
        }
    }

    #[test]
    fn a_booster_that_has_seen_the_request_is_believed() {
        let mut rng = Substream::new(7, "misbehaviour", 1);
        let cases = [
            // Two steps more than approved, although the sender checks the nonce.
            (Behaviour::Participate, 2, false, Ok(code(9).rate())),
            // Never more than requested, because that would show.
            (Behaviour::Participate, 9, false, Ok(code(10).rate())),
            // A hop that did not take part shows, until the difference of the TTLs is repaired.
            (Behaviour::Ignore, 0, false, Err(Refusal::TtlDiff)),
            (Behaviour::Ignore, 0, true, Ok(code(7).rate())),
            // And even if everything was refused.
            (Behaviour::Zero, 3, true, Ok(code(3).rate())),
        ];
        for (behaviour, steps, ttl, expected) in cases {
            let (request, honest) = arrived(&mut rng, behaviour);
            let mut booster = Booster::new(BoosterConfig { steps, ttl });
            booster.on_option(1, request.option(), 64);
            assert_eq!(request.verify(&booster.on_response(1, honest)), expected, "{behaviour:?} {steps} {ttl}");
        }
    }

    #[test]
    fn a_booster_does_not_grow() {
        let mut booster = Booster::new(BoosterConfig { steps: 1, ttl: true });
        let option = IpOption::RateRequest { rate: code(3), ttl: 1, nonce: Nonce::default() };
        for flow in 0..100_000 {
            booster.on_option(flow, option, 64);
        }
        assert!(booster.seen.len() <= MOST_REQUESTS);
        assert!(BoosterConfig { steps: 16, ttl: false }.validate().is_err());
    }
}
