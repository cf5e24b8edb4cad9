//! How many bytes may leave at once for an access technology: the amount that its link layer moves at once.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3: cable over DOCSIS "is known to transmit
//! packets in bursts" (Bauer, Clark, Lehr, "PowerBoost", `HomeNets` 2011), "which can help to configure packet pacing".
//! A link layer that works in intervals gathers the packets of an interval and passes them on together, so finer pacing
//! gains nothing. The burst is the estimated rate times the interval, and at least the sender's own.
//!
//! Differences from the reference: it gives no numbers. The intervals are those of the link layers: DOCSIS 3.0
//! (MULPI, section 7.2.1) maps of 2 ms, IEEE 802.11 PPDUs of up to 5.484 ms (`aPPDUMaxTime`), LTE subframes of 1 ms (TS
//! 36.211, section 4), HSDPA subframes of 2 ms (TS 25.211, section 5.3.3). DSL, Ethernet and fibre send bit by bit.
//!
//! Status: worked examples; its benefit is not measured.

use flowstart_core::path::{AccessTechnology, Hint};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;

/// The interval in which the technology gathers packets; zero when it does not gather, or is unknown.
pub const fn interval(technology: AccessTechnology) -> Duration {
    match technology {
        AccessTechnology::Docsis | AccessTechnology::ThirdGeneration => Duration::from_millis(2),
        AccessTechnology::Wifi => Duration::from_micros(5484),
        AccessTechnology::Lte => Duration::from_millis(1),
        AccessTechnology::Ethernet | AccessTechnology::Dsl | AccessTechnology::Fibre | AccessTechnology::Unknown => {
            Duration::ZERO
        }
    }
}

/// The burst for a client's hint: what its link moves in an interval, between `least` and `most`.
pub fn burst(hint: &Hint, least: Bytes, most: Bytes) -> Bytes {
    hint.bandwidth.amount_in(interval(hint.technology)).min(most).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    use flowstart_core::units::Rate;

    fn of(technology: AccessTechnology, mbit: u64) -> u64 {
        let hint = Hint { bandwidth: Rate::from_mbit(mbit), technology };
        burst(&hint, Bytes::new(2920), Bytes::new(64_000)).get()
    }

    #[test]
    fn a_burst_is_what_the_link_moves_in_its_interval() {
        // 100 Mbit/s for 2 ms are 25,000 bytes; 32 Mbit/s for 1 ms are 4000.
        assert_eq!(of(AccessTechnology::Docsis, 100), 25_000);
        assert_eq!(of(AccessTechnology::Lte, 32), 4000);
    }

    #[test]
    fn a_burst_stays_within_its_bounds() {
        // 8 Mbit/s for 2 ms are 2000 bytes; 866 Mbit/s for 5.484 ms are 593,643.
        assert_eq!(of(AccessTechnology::ThirdGeneration, 8), 2920);
        assert_eq!(of(AccessTechnology::Wifi, 866), 64_000);
        assert_eq!(of(AccessTechnology::Dsl, 50), 2920);
        assert_eq!(of(AccessTechnology::Unknown, 1000), 2920);
    }
}
