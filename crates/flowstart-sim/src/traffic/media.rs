//! An interactive media flow: a packet at fixed intervals regardless of the network, and a receiver with a playout time
//! for each packet.
//!
//! The sender is a codec such as Opus at a constant rate over RTP (RFC 3550) and UDP. It has no congestion control,
//! does not pause and repeats nothing. A packet that arrives after its playout time is as good as lost.
//!
//! References: RFC 3550, section 5.1 (the RTP header), and RFC 7587 (Opus over RTP: 20 ms in a packet by default). The
//! adaptive buffer is algorithm 1 of R. Ramjee, J. Kurose, D. Towsley and H. Schulzrinne, "Adaptive playout mechanisms
//! for packetized audio applications in wide-area networks", INFOCOM 1994.
//!
//! Differences: there are no silences, so a talkspurt of the paper is a stretch of fixed length. The receiver knows the
//! sender's clock.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use serde::Serialize;

/// Headers of RTP (12 bytes), UDP (8) and IPv4 (20).
pub const HEADERS: u32 = 40;

/// Weight of the past in the averages of the adaptive buffer (Ramjee et al.).
const ALPHA: f64 = 0.998_002;
/// Mean deviations that are added to the mean delay (Ramjee et al.).
const DEVIATIONS: f64 = 4.0;
/// Length of a talkspurt of the adaptive buffer; an assumption.
const TALKSPURT: Duration = Duration::from_millis(1000);

/// A media flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Media {
    /// Rate of the codec: payload only.
    pub rate: Rate,
    /// Time between two packets.
    pub interval: Duration,
    /// The receiver's playout buffer.
    pub playout: Playout,
}

impl Media {
    /// Payload of a packet, without headers.
    pub fn payload(&self) -> Bytes {
        self.rate.amount_in(self.interval)
    }

    /// Bytes of a packet on the wire.
    pub fn packet(&self) -> u32 {
        u32::try_from(self.payload().get()).unwrap_or(u32::MAX).saturating_add(HEADERS)
    }
}

/// A playout buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Playout {
    /// The first packet waits for this long. All others follow it at the sender's interval.
    Fixed(Duration),
    /// The wait follows mean and deviation of the delay, and changes between talkspurts.
    Adaptive,
}

/// The times of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTimes {
    /// When it was sent.
    pub sent: Timestamp,
    /// When it arrived.
    pub arrived: Option<Timestamp>,
}

impl PacketTimes {
    /// One-way delay.
    pub fn delay(&self) -> Option<Duration> {
        Some(self.arrived?.since(self.sent))
    }
}

/// The fate of a packet at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Played, this long after it was sent.
    Played(Duration),
    /// Arrived after its playout time.
    Late,
    /// Did not arrive.
    Lost,
}

impl Playout {
    /// The fates of a flow's packets, in the order of sending.
    pub fn fates(&self, packets: &[PacketTimes]) -> Vec<Fate> {
        let mut spurt = None;
        let mut estimate: Option<(f64, f64)> = None;
        let mut fates = Vec::with_capacity(packets.len());
        for packet in packets {
            let Some(delay) = packet.delay() else {
                fates.push(Fate::Lost);
                continue;
            };
            let seconds = delay.as_secs();
            let (mean, deviation) = estimate.unwrap_or((seconds, 0.0));
            let wait = match (self, spurt) {
                (Self::Fixed(_), Some((_, wait))) => wait,
                (Self::Fixed(buffer), None) => delay + *buffer,
                (Self::Adaptive, Some((start, wait))) if packet.sent < start + TALKSPURT => wait,
                (Self::Adaptive, _) => Duration::from_secs(mean + DEVIATIONS * deviation),
            };
            if spurt.is_none_or(|(start, _)| packet.sent >= start + TALKSPURT) {
                spurt = Some((packet.sent, wait));
            }
            let mean = ALPHA * mean + (1.0 - ALPHA) * seconds;
            estimate = Some((mean, ALPHA * deviation + (1.0 - ALPHA) * (mean - seconds).abs()));
            fates.push(if delay <= wait { Fate::Played(wait) } else { Fate::Late });
        }
        fates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Packets every 20 ms with these delays in milliseconds; 0 is a loss.
    fn packets(delays: &[u64]) -> Vec<PacketTimes> {
        let sent = |place: usize| Timestamp::ZERO + ms(20) * place as u64;
        let packet = |(place, delay): (usize, &u64)| PacketTimes {
            sent: sent(place),
            arrived: (*delay > 0).then(|| sent(place) + ms(*delay)),
        };
        delays.iter().enumerate().map(packet).collect()
    }

    #[test]
    fn a_packet_of_opus_at_32_kbit_is_120_bytes_on_the_wire() {
        let media = Media { rate: Rate::from_bits_per_sec(32_000), interval: ms(20), playout: Playout::Adaptive };
        // 32 kbit/s * 20 ms = 640 bits = 80 bytes, and 40 of headers.
        assert_eq!((media.payload(), media.packet()), (Bytes::new(80), 120));
    }

    #[test]
    fn a_fixed_buffer_plays_every_packet_the_same_time_after_it_was_sent() {
        // The first takes 50 ms and waits for 60: 110 ms for all.
        let fates = Playout::Fixed(ms(60)).fates(&packets(&[50, 110, 111, 0, 40]));
        let played = Fate::Played(ms(110));
        assert_eq!(fates, [played, played, Fate::Late, Fate::Lost, played]);
    }

    #[test]
    fn an_adaptive_buffer_waits_longer_in_the_talkspurt_after_the_delay_rose() {
        // 50 packets of 50 ms are a talkspurt; then 50 of 90 ms are late, because nothing had varied when theirs began.
        let delays: Vec<u64> = [50, 90, 90].into_iter().flat_map(|delay| [delay; 50]).collect();
        let fates = Playout::Adaptive.fates(&packets(&delays));
        assert!(fates[..50].iter().all(|fate| *fate == Fate::Played(ms(50))), "{fates:?}");
        assert!(fates[50..100].iter().all(|fate| *fate == Fate::Late), "{fates:?}");
        // After 50 packets the mean has moved by 1 - 0.998002^50 = 9.5 % of the change, 3.8 ms, and the deviation is
        // 9.3 % of about 38 ms, 3.6 ms: 53.8 + 4 * 3.6 = 68 ms, still too little.
        assert_eq!(fates[100], Fate::Late);
        let settled = Playout::Adaptive.fates(&packets(&[vec![50; 50], vec![90; 400]].concat()));
        assert!(matches!(settled[449], Fate::Played(wait) if wait > ms(90)), "{:?}", settled[449]);
    }
}
