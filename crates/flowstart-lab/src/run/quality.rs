//! Quality of a conversation: the E-model's rating of a voice stream from its delay and its loss.
//!
//! Reference: ITU-T G.107 (the E-model), with every parameter but delay and loss at its default, so that
//! `R = 93.2 - Id - Ie,eff`. Several independent implementations agree on these formulas and constants:
//!
//! - Id as simplified by R. Cole and J. Rosenbluth ("Voice over IP performance monitoring", CCR 2001): 0.024 d + 0.11
//!   (d - 177.3) for the part above 177.3 ms. It fits delays up to about 400 ms and is too small above.
//! - Ie,eff = Ie + (95 - Ie) Ppl / (Ppl + Bpl), for loss that is random (`BurstR` = 1). Loss in bursts is worse for a
//!   listener.
//! - Ie = 0 and Bpl = 25.1: G.711 with packet loss concealment (ITU-T G.113, appendix I). That appendix has no entry
//!   for Opus, and published values for it differ, so the stream is rated as if it were G.711. Only differences between
//!   two streams matter.
//! - MOS from R as in annex B of G.107.
//!
//! Differences: no wideband scale (G.107.1), no advantage factor, no echo. Status: worked examples below; no listening
//! tests.

use flowstart_core::time::Duration;

/// Rating of a call without delay and loss, every parameter of G.107 at its default.
const BEST: f64 = 93.2;
/// Impairment of the codec itself (G.711).
const IE: f64 = 0.0;
/// Robustness against packet loss, in percent (G.711 with packet loss concealment).
const BPL: f64 = 25.1;
/// Largest impairment by equipment (G.107).
const WORST_IE: f64 = 95.0;
/// Impairment by each millisecond of delay.
const PER_MS: f64 = 0.024;
/// One-way delay above which people begin to interrupt each other, in milliseconds.
const INTERRUPTING: f64 = 177.3;
/// Impairment by each further millisecond.
const PER_MS_MORE: f64 = 0.11;

/// Look-ahead of the codec in addition to the frame: that of Opus (26.5 ms in total with frames of 20 ms).
pub const LOOK_AHEAD: Duration = Duration::from_nanos(6_500_000);

/// The rating R, 0 to 100, of speech that arrives `delay` after it was spoken and lacks this share of its packets, 0 to
/// 1.
pub fn rating(delay: Duration, loss: f64) -> f64 {
    let ms = delay.as_millis_f64();
    let delay_impairment = PER_MS * ms + PER_MS_MORE * (ms - INTERRUPTING).max(0.0);
    let percent = 100.0 * loss;
    let equipment = IE + (WORST_IE - IE) * percent / (percent + BPL);
    (BEST - delay_impairment - equipment).clamp(0.0, 100.0)
}

/// Mean opinion score of a rating: 1 (bad) to 4.5 (the best for a telephone).
pub fn mos(rating: f64) -> f64 {
    // The cubic dips below 1 between 0 and 6.5.
    let cubic = 1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
    if rating <= 0.0 { 1.0 } else { cubic.clamp(1.0, 4.5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_call_without_delay_and_loss_is_as_good_as_a_telephone_gets() {
        // 1 + 0.035 * 93.2 + 93.2 * 33.2 * 6.8 * 7e-6 = 1 + 3.262 + 0.1473 = 4.409
        assert!((rating(ms(0), 0.0) - 93.2).abs() < 1e-12);
        assert!((mos(93.2) - 4.4093).abs() < 1e-4, "{}", mos(93.2));
    }

    #[test]
    fn delay_hurts_slowly_at_first_and_then_five_times_as_much() {
        // 93.2 - 0.024 * 100 = 90.8; 93.2 - 0.024 * 300 - 0.11 * 122.7 = 72.503
        assert!((rating(ms(100), 0.0) - 90.8).abs() < 1e-9);
        assert!((rating(ms(300), 0.0) - 72.503).abs() < 1e-9);
    }

    #[test]
    fn loss_hurts_by_its_part_of_loss_and_robustness() {
        // 93.2 - 95 * 5 / 30.1 = 77.419; all lost: 93.2 - 95 * 100 / 125.1 = 17.261
        assert!((rating(ms(0), 0.05) - 77.419).abs() < 1e-3);
        assert!((rating(ms(0), 1.0) - 17.261).abs() < 1e-3);
    }

    #[test]
    fn a_score_stays_between_its_ends_and_never_falls_as_the_rating_rises() {
        assert_eq!((mos(0.0), mos(-1.0), mos(100.0)), (1.0, 1.0, 4.5));
        // 60: 1 + 2.1 + 0; the scale of G.107 calls 3.1 "nearly all users dissatisfied" at its upper end.
        assert!((mos(60.0) - 3.1).abs() < 1e-12);
        let scores: Vec<f64> = (0..=1000).map(|tenth| mos(f64::from(tenth) / 10.0)).collect();
        assert!(scores.is_sorted());
        assert_eq!(rating(ms(10_000), 1.0), 0.0);
    }
}
