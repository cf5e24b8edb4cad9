//! Delivery rate samples: how fast the path delivers, measured with every acknowledgement.
//!
//! Reference: draft-ietf-ccwg-bbr, section "Delivery Rate Samples" (before:
//! draft-cheng-iccrg-delivery-rate-estimation). Every packet keeps a [`Snapshot`] of what was delivered when it was
//! sent. Its acknowledgement compares this with what is delivered now, over the longer of two times: the time in which
//! the difference was sent, and the time in which it was acknowledged. A sample says whether the sender lacked data.
//!
//! Differences from the reference: the host calls [`DeliveryRate::mark_app_limited`] when it runs out of data, not when
//! it goes on; the marked position is the same. The RTT of a sample is that of [`Ack::rtt`](crate::event::Ack::rtt). A
//! packet that is acknowledged after it was declared lost does not count as delivered.
//!
//! Status: worked examples; `bbr` in the simulator's tests relies on it.

use crate::event::{LostPacket, Position, RateSample};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// The state that a packet keeps from its sending. Names are those of the draft's per-packet state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// `P.send_time`.
    pub send_time: Timestamp,
    /// `P.first_send_time`: start of the send interval.
    pub first_send_time: Timestamp,
    /// `P.delivered_time`: start of the acknowledgement interval.
    pub delivered_time: Timestamp,
    /// `P.delivered`: what was delivered.
    pub delivered: Bytes,
    /// `P.lost`: what was declared lost.
    pub lost: Bytes,
    /// `P.tx_in_flight`: bytes in flight with the packet.
    pub tx_in_flight: Bytes,
    /// `P.is_app_limited`: the sender had run out of data.
    pub app_limited: bool,
}

/// The newest packet that the current acknowledgement delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Newest {
    snapshot: Snapshot,
    position: Position,
}

/// The estimator of one connection. Names are those of the draft's per-connection state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryRate {
    delivered: Bytes,
    delivered_time: Timestamp,
    first_send_time: Timestamp,
    lost: Bytes,
    /// Samples are limited by the application until more than this is delivered.
    app_limited: Option<Bytes>,
    newest: Option<Newest>,
    newly_acked: Bytes,
    newly_lost: Bytes,
}

impl DeliveryRate {
    /// A packet of `bytes` was sent and makes `in_flight`; the host keeps the snapshot with the packet.
    pub fn on_sent(&mut self, now: Timestamp, bytes: Bytes, in_flight: Bytes) -> Snapshot {
        if in_flight <= bytes {
            self.first_send_time = now;
            self.delivered_time = now;
        }
        Snapshot {
            send_time: now,
            first_send_time: self.first_send_time,
            delivered_time: self.delivered_time,
            delivered: self.delivered,
            lost: self.lost,
            tx_in_flight: in_flight,
            app_limited: self.app_limited.is_some(),
        }
    }

    /// A packet of `bytes` was delivered; `position` orders packets that were sent at the same time.
    pub fn on_delivered(&mut self, now: Timestamp, snapshot: &Snapshot, position: Position, bytes: Bytes) {
        self.delivered += bytes;
        self.delivered_time = now;
        self.newly_acked += bytes;
        let is_newest = self
            .newest
            .is_none_or(|newest| (snapshot.send_time, position) > (newest.snapshot.send_time, newest.position));
        if is_newest {
            self.newest = Some(Newest { snapshot: *snapshot, position });
            self.first_send_time = snapshot.send_time;
        }
    }

    /// The packet with the places `start..end` in the order of transmission was declared lost.
    pub fn on_lost(
        &mut self,
        now: Timestamp,
        snapshot: &Snapshot,
        (start, end): (Position, Position),
        bytes: Bytes,
    ) -> LostPacket {
        self.lost += bytes;
        self.newly_lost += bytes;
        LostPacket {
            now,
            bytes,
            start,
            end,
            tx_in_flight: snapshot.tx_in_flight,
            lost: self.lost - snapshot.lost,
            delivered: self.delivered,
            app_limited: snapshot.app_limited,
        }
    }

    /// The sender runs out of data with `in_flight` in flight (`MarkConnectionAppLimited`).
    pub fn mark_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited = Some((self.delivered + in_flight).max(Bytes::new(1)));
    }

    /// The sample of an acknowledgement, after all of its packets were reported; `None` when it delivered nothing
    /// (`GenerateRateSample`). `min_rtt` is the smallest RTT of the connection.
    pub fn take_sample(&mut self, min_rtt: Option<Duration>) -> Option<RateSample> {
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let Newest { snapshot, .. } = self.newest.take()?;
        let send_elapsed = snapshot.send_time.since(snapshot.first_send_time);
        let ack_elapsed = self.delivered_time.since(snapshot.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - snapshot.delivered;
        let reliable = interval > Duration::ZERO && min_rtt.is_none_or(|min_rtt| interval >= min_rtt);
        Some(RateSample {
            total_delivered: self.delivered,
            prior_delivered: snapshot.delivered,
            delivered,
            interval,
            rate: if reliable { Rate::from_transfer(delivered, interval) } else { None },
            app_limited: snapshot.app_limited,
            newly_acked: core::mem::take(&mut self.newly_acked),
            newly_lost: core::mem::take(&mut self.newly_lost),
            lost: self.lost - snapshot.lost,
            tx_in_flight: snapshot.tx_in_flight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1000);

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    /// Sends `count` packets at `times` with everything before them in flight.
    fn send(rate: &mut DeliveryRate, times: &[u64]) -> alloc::vec::Vec<Snapshot> {
        let snapshot = |(index, &time): (usize, &u64)| rate.on_sent(at(time), PACKET, PACKET * (index as u64 + 1));
        times.iter().enumerate().map(snapshot).collect()
    }

    #[test]
    fn a_sample_covers_what_was_delivered_since_its_packet_was_sent() {
        let mut rate = DeliveryRate::default();
        let first = send(&mut rate, &[0, 10]);
        rate.on_delivered(at(100), &first[0], 0, PACKET);
        // Nothing was delivered when packet 0 left: 1000 bytes in 100 ms = 80 kbit/s.
        let sample = rate.take_sample(None).unwrap();
        assert_eq!((sample.delivered, sample.interval), (PACKET, Duration::from_millis(100)));
        assert_eq!(sample.rate, Some(Rate::from_bits_per_sec(80_000)));
        // Packet 2 leaves at 100 ms, when 1000 bytes were delivered; it arrives at 200 ms as the third packet.
        let third = rate.on_sent(at(100), PACKET, PACKET * 2);
        assert_eq!(third.delivered, PACKET);
        rate.on_delivered(at(110), &first[1], 1, PACKET);
        rate.take_sample(None).unwrap();
        rate.on_delivered(at(200), &third, 2, PACKET);
        // 3000 - 1000 = 2000 bytes between the acknowledgements at 100 and 200 ms: 160 kbit/s.
        let sample = rate.take_sample(None).unwrap();
        assert_eq!((sample.delivered, sample.rate), (PACKET * 2, Some(Rate::from_bits_per_sec(160_000))));
        assert_eq!((sample.prior_delivered, sample.total_delivered), (PACKET, PACKET * 3));
    }

    #[test]
    fn acknowledgements_that_were_compressed_do_not_raise_the_rate_above_the_send_rate() {
        let mut rate = DeliveryRate::default();
        let packets = send(&mut rate, &[0, 50, 100]);
        for (position, packet) in packets.iter().enumerate() {
            rate.on_delivered(at(200), packet, position as u64, PACKET);
        }
        // Sent within 100 ms, acknowledged within 200 ms of the start: the longer one counts. 3000 bytes in 200 ms.
        let sample = rate.take_sample(None).unwrap();
        assert_eq!(sample.rate, Some(Rate::from_bits_per_sec(120_000)));
        let next = send(&mut rate, &[200, 260]);
        let last = rate.on_sent(at(300), PACKET, PACKET * 3);
        rate.on_delivered(at(390), &next[0], 3, PACKET);
        rate.take_sample(None).unwrap();
        rate.on_delivered(at(400), &next[1], 4, PACKET);
        rate.on_delivered(at(400), &last, 5, PACKET);
        // The newest was sent at 300 ms; its send interval began at 200, its acknowledgement interval at 200 too.
        assert_eq!(rate.take_sample(None).unwrap().interval, Duration::from_millis(200));
    }

    #[test]
    fn an_interval_below_the_smallest_rtt_gives_no_rate() {
        let mut rate = DeliveryRate::default();
        let packets = send(&mut rate, &[0]);
        rate.on_delivered(at(30), &packets[0], 0, PACKET);
        let sample = rate.take_sample(Some(Duration::from_millis(50))).unwrap();
        assert_eq!((sample.rate, sample.newly_acked), (None, PACKET));
    }

    #[test]
    fn packets_sent_after_the_data_ran_out_are_limited_until_the_bubble_is_acknowledged() {
        let mut rate = DeliveryRate::default();
        let packets = send(&mut rate, &[0, 1]);
        assert!(!packets[1].app_limited);
        // 2000 bytes are in flight: limited until more than 2000 bytes are delivered.
        rate.mark_app_limited(PACKET * 2);
        let late = rate.on_sent(at(2), PACKET, PACKET * 3);
        assert!(late.app_limited);
        for (position, packet) in packets.iter().enumerate() {
            rate.on_delivered(at(100), packet, position as u64, PACKET);
        }
        assert!(!rate.take_sample(None).unwrap().app_limited);
        assert!(rate.on_sent(at(101), PACKET, PACKET * 2).app_limited);
        rate.on_delivered(at(102), &late, 2, PACKET);
        assert!(rate.take_sample(None).unwrap().app_limited);
        assert!(!rate.on_sent(at(103), PACKET, PACKET * 2).app_limited);
    }

    #[test]
    fn losses_are_counted_since_a_packet_was_sent() {
        let mut rate = DeliveryRate::default();
        let packets = send(&mut rate, &[0, 1, 2]);
        let lost = rate.on_lost(at(100), &packets[0], (0, 1), PACKET);
        assert_eq!((lost.lost, lost.tx_in_flight), (PACKET, PACKET));
        let after = rate.on_sent(at(101), PACKET, PACKET * 3);
        rate.on_delivered(at(102), &packets[1], 1, PACKET);
        let sample = rate.take_sample(None).unwrap();
        assert_eq!((sample.newly_lost, sample.lost), (PACKET, PACKET));
        // The packet that left after the loss was declared saw none.
        rate.on_delivered(at(200), &after, 3, PACKET);
        assert_eq!(rate.take_sample(None).unwrap().lost, Bytes::ZERO);
    }
}
