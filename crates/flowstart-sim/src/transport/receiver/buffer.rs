//! The receive window of Linux: the free room of a buffer that grows with the application's reading.
//!
//! Reference: Linux 6.18, `tcp_input.c` and `tcp_output.c`.
//! - A packet takes more of the buffer than its payload, so the window is a share of the buffer: at first a half, then
//!   the ratio of the first full packet (`scaling_ratio`). The window is at most `window_clamp`.
//! - Every packet that arrives in a good ratio raises the announced window, `rcv_ssthresh`, by two segments up to that
//!   limit (`tcp_grow_window`), which does not delay a sender in slow start. The packet requests an immediate
//!   acknowledgement.
//! - Once an RTT the buffer grows to twice the bytes that the application read in it, scaled up by the sender's
//!   speed-up over the RTT before (`tcp_rcvbuf_grow`, Dynamic Right-Sizing).
//! - An announced window is never withdrawn.
//!
//! Differences: the application reads at once. The receiver measures the RTT without timestamps, from the handshake and
//! from the delay of packets beyond the earliest. Memory pressure and buffers set by the application are not modelled.
//!
//! Status: worked examples below; `linux-startup`.

use flowstart_core::time::{Duration, Timestamp};

use crate::transport::policy::ReceiveBuffer;
use crate::transport::profile::Profile;

/// Bytes of options in every segment: timestamps.
const TIMESTAMPS: u64 = 12;
/// Segments of the first measure of the bytes read in an RTT (`TCP_INIT_CWND`).
const FIRST_SPACE: u64 = 10;
/// Packets with less payload do not let the window grow.
const SMALLEST: u64 = 128;
/// Timestamps tick in milliseconds, which limits the rate of RTT measurements.
const TICK_NANOS: u64 = 1_000_000;

/// State of a receive buffer. Names as in the reference.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    policy: ReceiveBuffer,
    /// The largest payload of a packet, without and with timestamps.
    payload: u64,
    advmss: u64,
    sk_rcvbuf: u64,
    scaling_ratio: u64,
    /// Whether a full packet has shown the ratio.
    scaled: bool,
    window_clamp: u64,
    rcv_ssthresh: u64,
    /// Windows are announced in multiples of this.
    unit: u64,
    /// The window that was announced last.
    rcv_wnd: u64,
    /// First byte that flow control forbids, as announced last.
    edge: u64,
    /// Bytes that the application reads in an RTT (`rcvq_space`): the most so far, the bytes read before this RTT, and
    /// the beginning of this RTT.
    space: u64,
    seq: u64,
    time: Option<Timestamp>,
    /// Eight times the smoothed RTT in nanoseconds.
    rtt: u64,
    /// The handshake's RTT, and the shortest one-way delay of a packet.
    base_rtt: Duration,
    shortest: Duration,
    /// The tick of the timestamp that gave the last sample.
    last_tick: Option<u64>,
}

/// An arrived packet, and the receiver's state with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// Payload bytes.
    pub(super) len: u64,
    /// When it was sent.
    pub(super) sent_at: Timestamp,
    /// End of what was received without gap.
    pub(super) contiguous: u64,
    /// Bytes beyond the first gap, and the end of the last of them.
    pub(super) beyond: (u64, u64),
    /// Whether nothing is missing before it.
    pub(super) in_order: bool,
}

impl Buffer {
    /// The buffer of a profile that has one, after the handshake.
    pub(super) fn new(profile: &Profile) -> Option<Self> {
        let policy = profile.receive_buffer?;
        let payload = u64::from(profile.payload);
        let advmss = payload + TIMESTAMPS;
        let window_clamp = (2 * advmss).max(policy.first_room().saturating_sub(advmss));
        let rcv_ssthresh = policy.first_offer(payload).min(window_clamp);
        let rcv_wnd = policy.first_window(payload);
        Some(Self {
            policy,
            payload,
            advmss,
            sk_rcvbuf: policy.initial.get(),
            scaling_ratio: ReceiveBuffer::FIRST_RATIO,
            scaled: false,
            window_clamp,
            rcv_ssthresh,
            unit: policy.window_unit(payload),
            rcv_wnd,
            edge: rcv_wnd,
            space: rcv_ssthresh.min(rcv_wnd).min(FIRST_SPACE * advmss).max(1),
            seq: 0,
            time: None,
            rtt: 0,
            base_rtt: Duration::ZERO,
            shortest: Duration::MAX,
            last_tick: None,
        })
    }

    /// The handshake is over and has measured the RTT.
    pub(super) fn take_rtt(&mut self, now: Timestamp, sample: Duration) {
        self.base_rtt = sample;
        self.time = Some(now);
    }

    /// A packet arrived. Returns whether it let the window grow, which requires an immediate acknowledgement.
    pub(super) fn on_data(&mut self, now: Timestamp, packet: &Arrived) -> bool {
        self.measure_rtt(now, packet);
        if packet.in_order && !self.scaled && packet.len >= self.payload {
            self.scale(packet.len);
        }
        let grows = packet.len >= SMALLEST && self.grow_window(packet);
        if !packet.in_order {
            // Data beyond a gap cannot be read, and needs room in addition to the data that can.
            self.grow_buffer(self.space, packet);
        }
        grows
    }

    /// The application reads everything before the first gap. Called after the acknowledgement.
    pub(super) fn read(&mut self, now: Timestamp, packet: &Arrived) {
        let began = *self.time.get_or_insert(now);
        if self.rtt == 0 || now.since(began).as_nanos() < self.rtt / 8 {
            return;
        }
        let copied = packet.contiguous - self.seq;
        if copied > self.space {
            self.grow_buffer(copied, packet);
        }
        self.seq = packet.contiguous;
        self.time = Some(now);
    }

    /// First byte that flow control forbids, in an acknowledgement that leaves now.
    pub(super) fn announce(&mut self, contiguous: u64, beyond: u64) -> u64 {
        let window = self.free(beyond).min(self.rcv_ssthresh).next_multiple_of(self.unit);
        self.edge = self.edge.max(contiguous + window);
        self.rcv_wnd = self.edge - contiguous;
        self.edge
    }

    /// The window of this much buffer, and the reverse.
    fn window(&self, space: u64) -> u64 {
        space * self.scaling_ratio / ReceiveBuffer::WHOLE
    }

    fn space(&self, window: u64) -> u64 {
        window * ReceiveBuffer::WHOLE / self.scaling_ratio
    }

    /// The window for which the buffer has room beside this many bytes.
    fn free(&self, taken: u64) -> u64 {
        let taken = taken.div_ceil(self.payload) * u64::from(self.policy.packet);
        self.window(self.sk_rcvbuf.saturating_sub(taken))
    }

    /// A full packet shows payload's share of the buffer (`tcp_measure_rcv_mss`).
    fn scale(&mut self, len: u64) {
        self.scaled = true;
        self.scaling_ratio =
            (len * ReceiveBuffer::WHOLE / u64::from(self.policy.packet)).clamp(1, ReceiveBuffer::WHOLE - 1);
        let before = self.window_clamp;
        self.window_clamp = self.window(self.sk_rcvbuf);
        if self.window_clamp < before {
            self.rcv_ssthresh = self.rcv_ssthresh.min(self.window_clamp);
        } else {
            self.rcv_ssthresh = self.rcv_ssthresh.max(self.rcv_wnd.min(self.window_clamp));
        }
        self.space = self.space.min(self.window_clamp);
    }

    /// `tcp_grow_window`.
    fn grow_window(&mut self, packet: &Arrived) -> bool {
        // The packet itself takes room as well.
        let free = self.free(packet.beyond.0 + if packet.in_order { packet.len } else { 0 });
        let room = self.window_clamp.min(free).saturating_sub(self.rcv_ssthresh);
        let step = if self.window(u64::from(self.policy.packet)) <= packet.len {
            2 * self.advmss
        } else {
            self.step_of_small(packet.len)
        };
        if room == 0 || step == 0 {
            return false;
        }
        self.rcv_ssthresh += step.max(2 * packet.len).min(room);
        true
    }

    /// A packet in a bad ratio lets the window grow while that is small beside the largest (`__tcp_grow_window`).
    fn step_of_small(&self, len: u64) -> u64 {
        let mut taken = self.window(u64::from(self.policy.packet)) / 2;
        let mut window = self.window(self.policy.largest.get()) / 2;
        while self.rcv_ssthresh <= window {
            if taken <= len {
                return 2 * self.payload;
            }
            (taken, window) = (taken / 2, window / 2);
        }
        0
    }

    /// `tcp_rcvbuf_grow`: the application read this much in an RTT.
    fn grow_buffer(&mut self, read: u64, packet: &Arrived) {
        let before = std::mem::replace(&mut self.space, read);
        // Twice for the RTT that the answer takes, and more for a sender that keeps accelerating.
        let mut window = u128::from(read) * 2;
        window += 2 * window * u128::from(read - before) / u128::from(before.max(1));
        if packet.beyond.0 > 0 {
            window += u128::from(packet.beyond.1 - packet.contiguous);
        }
        let largest = self.policy.largest.get();
        let size = self.space(window.min(u128::from(largest)) as u64).min(largest);
        if size > self.sk_rcvbuf {
            self.sk_rcvbuf = size;
            self.window_clamp = self.window(size);
        }
    }

    /// `tcp_rcv_rtt_measure_ts`: full packets measure the RTT, once for every timestamp.
    fn measure_rtt(&mut self, now: Timestamp, packet: &Arrived) {
        let way = now.since(packet.sent_at);
        self.shortest = self.shortest.min(way);
        let tick = packet.sent_at.as_nanos() / TICK_NANOS;
        if packet.len < self.payload || self.last_tick.replace(tick) == Some(tick) {
            return;
        }
        let sample = (self.base_rtt + way.saturating_sub(self.shortest)).as_nanos();
        self.rtt = if self.rtt == 0 || sample * 8 < self.rtt { sample * 8 } else { self.rtt - self.rtt / 8 + sample };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn buffer(policy: ReceiveBuffer) -> Buffer {
        let mut buffer = Buffer::new(&Profile { receive_buffer: Some(policy), ..Profile::tcp_linux() }).unwrap();
        buffer.take_rtt(at(0), Duration::from_millis(50));
        buffer
    }

    fn in_order(sent: u64, contiguous: u64) -> Arrived {
        Arrived { len: 1448, sent_at: at(sent), contiguous, beyond: (0, contiguous), in_order: true }
    }

    #[test]
    fn it_begins_with_half_of_itself_in_whole_segments() {
        // 131,072 / 2 = 65,536 has 45 segments, 65,160; in units of 2^(22 - 15) = 128 bytes that is 65,280.
        assert_eq!(buffer(ReceiveBuffer::AUTO).edge, 65_280);
        // 8,388,608 has 5793 segments, 8,388,264; units of 2^(26 - 15) = 2048.
        assert_eq!(buffer(ReceiveBuffer::OPEN).edge, 4096 * 2048);
    }

    #[test]
    fn packets_let_it_grow_to_the_share_that_payload_has() {
        let mut buffer = buffer(ReceiveBuffer::AUTO);
        // 1448 of 2304 are 160 / 256: 131,072 * 160 / 256 = 81,920, less the packet that is there, 1440: 80,480. From
        // 65,160 that takes 15,320, of which five packets add 2920 each and the sixth the rest.
        let grown: Vec<bool> = (1..=7).map(|n| buffer.on_data(at(51), &in_order(26, n * 1448))).collect();
        assert_eq!(grown, [true, true, true, true, true, true, false]);
        assert_eq!((buffer.window_clamp, buffer.rcv_ssthresh), (81_920, 80_480));
        // The next unit of 128.
        assert_eq!(buffer.announce(7 * 1448, 0) - 7 * 1448, 80_512);
    }

    #[test]
    fn it_grows_once_an_rtt_by_what_was_read_and_what_that_was_more() {
        let mut buffer = buffer(ReceiveBuffer::AUTO);
        let mut read = |ms, packets: u64| {
            let arrived = in_order(ms - 25, packets * 1448);
            buffer.on_data(at(ms), &arrived);
            buffer.read(at(ms), &arrived);
            (buffer.space, buffer.window_clamp)
        };
        assert_eq!(read(51, 1), (14_600, 81_920));
        assert_eq!(read(101, 11), (14_600, 81_920), "10 packets, 14,480, are not more than 10 of 1460");
        assert_eq!(read(130, 21), (14_600, 81_920), "not before an RTT has passed");
        // 20 packets are 28,960: 57,920, and 2 * 57,920 * (28,960 - 14,600) / 14,600 = 113,936: 171,856. The buffer is
        // 171,856 * 256 / 160 = 274,969, of which 160 / 256 are 171,855.
        assert_eq!(read(151, 31), (28_960, 171_855));
    }

    #[test]
    fn what_lies_beyond_a_gap_takes_room_but_takes_nothing_back() {
        let mut buffer = buffer(ReceiveBuffer::AUTO);
        buffer.on_data(at(51), &in_order(26, 1448));
        let before = buffer.announce(1448, 0);
        // 40 packets beyond a gap of one take 40 * 2304 of 131,072: 38,912 are left, 24,320 of payload.
        let packet = Arrived { beyond: (40 * 1448, 42 * 1448), in_order: false, ..in_order(27, 1448) };
        assert_eq!(buffer.free(40 * 1448), 24_320);
        buffer.on_data(at(52), &packet);
        assert_eq!(buffer.announce(1448, 40 * 1448), before);
    }

    #[test]
    fn packets_in_a_bad_ratio_let_it_grow_only_while_it_is_small() {
        // A page for each packet: 1448 * 256 / 4096 = 90, so that 131,072 * 90 / 256 = 46,080 is all there is.
        let mut buffer = buffer(ReceiveBuffer { packet: 4096, ..ReceiveBuffer::AUTO });
        assert!(!buffer.on_data(at(51), &in_order(26, 1448)));
        assert_eq!(buffer.rcv_ssthresh, 46_080);
        // 4096 * 90 / 256 = 1440. Packets of 200 bytes: 720, 360 and then 180 <= 200, while 1,105,920 has become
        // 276,480.
        assert_eq!(buffer.step_of_small(200), 2896);
        assert_eq!(buffer.step_of_small(10), 0);
    }

    #[test]
    fn queueing_delay_is_part_of_the_rtt() {
        let mut buffer = buffer(ReceiveBuffer::AUTO);
        buffer.on_data(at(50), &in_order(25, 1448));
        assert_eq!(buffer.rtt, 8 * 50_000_000);
        // 8 ms later than the earliest: an eighth of the way from 50 to 58 ms. A second one of the same tick tells
        // nothing.
        buffer.on_data(at(60), &in_order(27, 2896));
        buffer.on_data(at(60), &in_order(27, 4344));
        assert_eq!(buffer.rtt, 8 * 51_000_000);
    }
}
