//! HRED-style RED: aggressive RED for a known RTT.
//!
//! Reference: the idea of HRED (10.1109/AINA.2012.103), without its parameters and pseudo-code. This RED reacts within
//! one RTT of slow start, so neither the limit of the queue nor RED's own upper threshold drops packets in bulk. The
//! thresholds are a quarter and a half of what the link carries in the tuning RTT, and the average follows the queue
//! closely. At another RTT it reacts too early or too late.
//!
//! Differences from the reference: unknown. The thresholds are inferred: unpaced slow start with a load of L = W / BDP
//! arrives at twice the link's rate and queues L BDP / 2. To act a round trip early means to act at L = 1/2, when a
//! quarter of the BDP waits. Weight and probability are chosen, not inferred.
//!
//! Status: experimental; in the style of HRED, not a reproduction.

use super::red::{self, Red, Unit};
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "HRED-style: aggressive RED for a known RTT (inferred, not a reproduction)";
/// The document that defines it.
pub const REFERENCE: &str = "after the idea of HRED, AINA 2012";

/// Parameters of HRED-style RED.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// The tuning RTT, 100 us to 100 s. Default: 100 ms, as in ns-2 for RED.
    pub rtt: Duration,
    /// Weight of a new sample in the average, 0.0001 to 1. Default: 0.5 (chosen: near 1, so the average's time constant
    /// is far below an RTT).
    pub w_q: f64,
    /// Probability at the upper threshold, 0 to 1. Default: 0.5 (chosen: well above RED's 0.1).
    pub max_p: f64,
    /// Packet size that converts idle time; thresholds are at least one and two packets. 1 to 1,000,000 bytes. Default:
    /// 1500, a full packet.
    pub mean_packet: Bytes,
    /// Mark packets of transports that react to marks. Default: on.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { rtt: Duration::from_millis(100), w_q: 0.5, max_p: 0.5, mean_packet: Bytes::new(1500), ecn: true }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("rtt", self.rtt, Duration::from_micros(100)..=Duration::from_millis(100_000))?;
        ConfigError::unless_in("w_q", self.w_q, 0.0001..=1.0)?;
        ConfigError::unless_in("max_p", self.max_p, 0.0..=1.0)?;
        ConfigError::unless_in("mean_packet", self.mean_packet, Bytes::new(1)..=Bytes::new(1_000_000))
    }

    /// C R / 4 and C R / 2 in packets, at least one and two; without a rate RED's own.
    fn thresholds(&self, rate: Option<Rate>) -> (f64, f64) {
        let Some(known) = rate else { return (5.0, 15.0) };
        let bdp = known.amount_in(self.rtt).get() as f64 / self.mean_packet.get() as f64;
        ((bdp / 4.0).max(1.0), (bdp / 2.0).max(2.0))
    }
}

/// A RED queue with thresholds for an RTT.
#[derive(Clone, Debug)]
pub struct Hred {
    config: Config,
    red: Red,
}

impl Hred {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        let (min_th, max_th) = config.thresholds(link.rate);
        let red = red::Config {
            min_th,
            max_th,
            w_q: config.w_q,
            max_p: config.max_p,
            unit: Unit::Bytes,
            mean_packet: config.mean_packet,
            ecn: config.ecn,
            ..red::Config::default()
        };
        Self { red: Red::new(red, link), config }
    }

    /// The law of RED.
    pub fn law(&self) -> &red::Law {
        self.red.law()
    }
}

impl QueueDiscipline for Hred {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        self.red.follow_rate(|rate| self.config.thresholds(rate));
        self.red.enqueue(packet, context);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.red.dequeue(context)
    }

    fn stats(&self) -> QueueStats {
        self.red.stats()
    }

    fn may_have_timer(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.red.len()
    }

    fn bytes(&self) -> Bytes {
        self.red.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds(rtt: Duration, rate: Option<Rate>) -> (f64, f64) {
        Hred::new(Config { rtt, ..Config::default() }, OutgoingLink { rate, ..OutgoingLink::default() })
            .law()
            .thresholds()
    }

    #[test]
    fn thresholds_are_a_quarter_and_a_half_of_the_tuning_bdp() {
        // 10 Mbit/s x 100 ms are 125,000 bytes.
        let (min_th, max_th) = thresholds(Duration::from_millis(100), Some(Rate::from_mbit(10)));
        assert!((min_th - 31_250.0).abs() < 1e-6 && (max_th - 62_500.0).abs() < 1e-6, "{min_th} {max_th}");
        // At 1 Mbit/s and 10 ms they are 1250 bytes, less than a packet.
        assert_eq!(thresholds(Duration::from_millis(10), Some(Rate::from_mbit(1))), (1500.0, 3000.0));
        assert_eq!(thresholds(Duration::from_millis(10), None), (7500.0, 22_500.0));
    }
}
