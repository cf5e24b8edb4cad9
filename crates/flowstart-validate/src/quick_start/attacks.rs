//! What Sarolahti, Allman and Floyd say of attacks on Quick-Start (sections 7 and 8). Their orderings are in
//! `validation/quick-start/statements.toml`; here are guesses of the nonce.
//!
//! Shares of guessed nonces lie within five standard deviations. The paper prints a chance of guessing that grows with
//! the steps; guessing X S independent bits succeeds with 2^(-X S), so that statement is a miss, and stays one.

use flowstart_core::quick_start::host::{Request, respond};
use flowstart_core::quick_start::misbehaviour::raised;
use flowstart_core::quick_start::rate::{RateCode, RateEncoding, Rounding};
use flowstart_core::quick_start::wire::IpOption;
use flowstart_core::rng::Substream;

use crate::check::{Checker, judged, near};
use crate::{Input, statements};

/// Lies for each share of those believed.
const LIES: u32 = 1 << 16;

/// The orderings, and what guesses of the nonce are believed.
pub(crate) fn attacks(input: &Input, checker: &mut Checker) -> Result<String, String> {
    statements::of_scenarios(input, checker)?;
    Ok(format!("lies believed, two bits a step, S = 1 to 5: {}", guesses(checker)))
}

/// Receivers that claim S steps more than arrived, against 2^(-X S) and against what the paper prints.
fn guesses(checker: &mut Checker) -> String {
    let mut rng = Substream::new(1, "lying receiver", 0);
    let mut shares = Vec::new();
    for bits in [1u32, 2] {
        let mut by_steps = Vec::new();
        for steps in 1..=5u8 {
            let believed = (0..LIES).filter(|_| believed(bits, steps, &mut rng)).count() as f64;
            let chance = 1.0 / f64::from(1u32 << (bits * u32::from(steps)));
            let (share, deviation) = (believed / f64::from(LIES), libm::sqrt(chance / f64::from(LIES)));
            let cell = format!("{bits} bits a step, {steps} steps");
            let band = near(chance, 5.0 * deviation).saying("2^(-X S), five standard deviations");
            checker.check(&cell, "share of lies believed", share, band);
            by_steps.push(share);
        }
        let printed = 5.0 / f64::from(1u32 << bits);
        let cell = format!("{bits} bits a step, 5 steps");
        let grows = judged(by_steps[4] > by_steps[0], printed, "more than with 1 step");
        checker.check(&cell, "the chance printed grows with the steps", by_steps[4], grows);
        shares = by_steps;
    }
    shares.iter().map(|share| format!("{:.2} %", share * 100.0)).collect::<Vec<_>>().join(", ")
}

/// Whether a sender that compares so many bits of each step believes a receiver that claims `steps` more than arrived.
fn believed(bits: u32, steps: u8, rng: &mut Substream) -> bool {
    let (asked, left) = (RateCode::from_bits(12), RateCode::from_bits(7));
    let request = Request::new(asked.rate(), Rounding::Up, RateEncoding::Exponential, 64, rng);
    let Some(request) = request.map(|request| request.comparing(bits)) else { return false };
    let IpOption::RateRequest { ttl, nonce, .. } = request.option() else { return false };
    // What a router leaves of it.
    let arrived = IpOption::RateRequest { rate: left, ttl, nonce: nonce.reduced(asked, left, rng) };
    respond(arrived, 64).is_some_and(|honest| request.verify(&raised(honest, steps, rng)).is_ok())
}
