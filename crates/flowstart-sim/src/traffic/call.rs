//! A video call: frames at a fixed pace, sent as packets, and a receiver that shows a frame in time, late or never.
//!
//! The sender is an encoder at a constant mean rate over RTP (RFC 3550) and UDP. It has no congestion control, does not
//! adapt and repeats nothing, so what happens to the call is what the network does to it.
//!
//! References: RFC 8593, "Video Traffic Models for RTP Congestion Control Evaluations" (frames every 33 ms whose
//! sizes vary with a Laplace distribution; the scale of 0.15 is that of its authors' program `syncodecs`). WebRTC
//! paces the packets of a frame at 2.5 times the rate (`kDefaultPaceMultiplier`), in packets of 1200 bytes; present
//! versions do so only until the receiver's feedback comes, and then pace at 1.1 times
//! (`kDefaultPaceMultiplierWithSendSideBwe`), of the estimated rate where this model has the encoder's. ITU-T
//! G.114: a one-way delay of up to 150 ms does not disturb a conversation. W3C, "Identifiers for WebRTC's
//! Statistics API" (`freezeCount`): the picture is frozen if the next frame comes after more than three frames'
//! time, and at least 150 ms after its own time.
//!
//! Assumptions: frames keep their pace, where RFC 8593's source also varies the intervals between them. A key frame is
//! four times as large as the others and comes every second. Calls send key frames on demand, after losses; here
//! nothing comes back from the receiver, and a loss freezes the picture for half a second in the mean. There are no
//! retransmissions and no redundancy, and the receiver knows the sender's clock. Encoding and decoding take no time. A
//! frame's time, which freezes are counted in, is the encoder's; W3C's is the mean of the last 30 frames that were
//! shown, which grows while frames are missing, so it counts fewer freezes then.

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use serde::Serialize;

/// Largest payload of a packet.
pub const PAYLOAD: u32 = 1200;
/// The usual [`Call::pace`] (WebRTC without feedback).
pub const PACE: f64 = 2.5;

/// Size of a key frame over the mean of the others; an assumption.
const KEY_FRAME: f64 = 4.0;
/// Scale of the Laplace distribution of sizes over their mean (`syncodecs`).
const SCALE: f64 = 0.15;
/// Smallest frame over the mean: chosen, and reached by one frame in a thousand.
const SMALLEST: f64 = 0.1;
/// A picture that stays for this many frames' time is frozen, ...
const FROZEN_FRAMES: u64 = 3;
/// ... if that is this much longer than a frame (W3C).
const FROZEN_LONGER: Duration = Duration::from_millis(150);

/// A video call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Mean rate of the encoder: payload only.
    pub rate: Rate,
    /// Frames per second.
    pub fps: u32,
    /// Time from one key frame to the next.
    pub key: Duration,
    /// A frame is shown if it can be within this time after it was encoded.
    pub deadline: Duration,
    /// Packets of a frame leave at this multiple of the rate.
    pub pace: f64,
}

impl Call {
    /// Time between two frames.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / u64::from(self.fps.max(1)))
    }

    /// Frames from one key frame to the next.
    pub fn group(&self) -> u64 {
        (self.key.as_nanos() / self.interval().as_nanos().max(1)).max(1)
    }

    /// Mean size of the frames that are not key frames.
    pub fn mean_frame(&self) -> f64 {
        let group = self.group() as f64;
        self.rate.amount_in(self.interval()).get() as f64 * group / (group - 1.0 + KEY_FRAME)
    }

    /// The rate at which packets leave while a frame is sent.
    pub fn pacing_rate(&self) -> Rate {
        self.rate.scale(self.pace)
    }

    /// A picture that stays for so long is frozen.
    pub fn freeze(&self) -> Duration {
        (self.interval() * FROZEN_FRAMES).max(self.interval() + FROZEN_LONGER)
    }
}

/// The encoder: the sizes of frames.
#[derive(Clone, Debug)]
pub struct Encoder {
    call: Call,
    frames: u64,
    rng: Substream,
}

impl Encoder {
    /// The first frame is a key frame. `index` separates the encoder's random numbers from those of others.
    pub fn new(call: Call, seed: u64, index: u64) -> Self {
        Self { call, frames: 0, rng: Substream::new(seed, "video call", index) }
    }

    /// Size of the next frame, and whether it is a key frame.
    pub fn next_frame(&mut self) -> (Bytes, bool) {
        let is_key = self.frames.is_multiple_of(self.call.group());
        self.frames += 1;
        let mean = self.call.mean_frame() * if is_key { KEY_FRAME } else { 1.0 };
        // The inverse of Laplace's distribution function.
        let centred = self.rng.uniform() - 0.5;
        let deviation = -SCALE * libm::log((1.0 - 2.0 * centred.abs()).max(1e-12));
        let size = mean * (1.0 + deviation.copysign(centred)).max(SMALLEST);
        (Bytes::new((size as u64).max(1)), is_key)
    }
}

/// A frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTimes {
    /// When it was encoded.
    pub sent: Timestamp,
    /// Bytes of all frames before it.
    pub start: u64,
    /// Its size.
    pub size: u32,
    /// Whether it can be decoded without others.
    pub is_key: bool,
    /// Bytes that have arrived.
    pub received: u32,
    /// When the last of them arrived, if all have.
    pub complete: Option<Timestamp>,
}

impl FrameTimes {
    /// Time from its encoding until all of it had arrived.
    pub fn delay(&self) -> Option<Duration> {
        Some(self.complete?.since(self.sent))
    }
}

/// `len` bytes at `offset` of a call's stream have arrived.
pub fn arrived(frames: &mut [FrameTimes], offset: u64, len: u32, now: Timestamp) {
    let place = frames.partition_point(|frame| frame.start <= offset);
    if let Some(frame) = place.checked_sub(1).and_then(|place| frames.get_mut(place)) {
        frame.received = frame.received.saturating_add(len);
        if frame.received >= frame.size && frame.complete.is_none() {
            frame.complete = Some(now);
        }
    }
}

/// The fate of a frame at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Shown, within the deadline.
    Shown,
    /// It, or one that it depends on, was complete only after the deadline.
    Late,
    /// A packet did not arrive.
    Lost,
    /// It arrived, but a frame on which it depends did not.
    Undecodable,
}

impl Call {
    /// The fates of a call's frames, in the order of encoding.
    pub fn fates(&self, frames: &[FrameTimes]) -> Vec<Fate> {
        // When the frame before was decoded, unless it could not be.
        let mut decoded: Option<Timestamp> = None;
        let fate = |frame: &FrameTimes| {
            let before = decoded;
            decoded = None;
            let Some(complete) = frame.complete else { return Fate::Lost };
            let time = match before {
                Some(before) => complete.max(before),
                None if frame.is_key => complete,
                None => return Fate::Undecodable,
            };
            decoded = Some(time);
            if time <= frame.sent + self.deadline { Fate::Shown } else { Fate::Late }
        };
        frames.iter().map(fate).collect()
    }

    /// The times for which the picture was frozen, of frames with these fates from the first to the last. Shown frames
    /// keep the pace at which they were encoded.
    pub fn freezes(&self, fates: &[Fate]) -> Vec<Duration> {
        let shown =
            fates.iter().enumerate().filter(|(_, fate)| **fate == Fate::Shown).map(|(place, _)| place as u64 + 1);
        // The picture before the first frame and the one after the last are not known, so they count as shown.
        let ends: Vec<u64> = std::iter::once(0).chain(shown).chain([fates.len() as u64 + 1]).collect();
        let stays = ends.windows(2).map(|pair| self.interval() * (pair[1] - pair[0]));
        stays.filter(|stay| *stay >= self.freeze()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        rate: Rate::from_bits_per_sec(2_500_000),
        fps: 30,
        key: Duration::from_millis(1000),
        deadline: Duration::from_millis(150),
        pace: 2.5,
    };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Frames every 33.3 ms that are complete after these times in ms, or never (0). The first is a key frame, and so
    /// is every `group`-th.
    fn frames(delays: &[u64], group: usize) -> Vec<FrameTimes> {
        let frame = |(place, delay): (usize, &u64)| {
            let sent = Timestamp::ZERO + CALL.interval() * place as u64;
            let complete = (*delay > 0).then(|| sent + ms(*delay));
            FrameTimes { sent, start: place as u64 * 10, size: 10, is_key: place % group == 0, received: 0, complete }
        };
        delays.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn a_call_has_its_mean_rate_and_larger_key_frames() {
        // 2.5 Mbit/s in 1/30 s are 10,416 B; of 30 frames one is 4 times as large: 10416 * 30 / 33 = 9469 B.
        assert!((CALL.mean_frame() - 9469.0).abs() < 1.0, "{}", CALL.mean_frame());
        let mut encoder = Encoder::new(CALL, 5, 0);
        let sizes: Vec<(Bytes, bool)> = (0..30_000).map(|_| encoder.next_frame()).collect();
        let total: u64 = sizes.iter().map(|(size, _)| size.get()).sum();
        let rate = total as f64 * 8.0 / 1000.0;
        assert!((rate / 2.5e6 - 1.0).abs() < 0.01, "{rate}");
        let keys: Vec<usize> = (0..90).filter(|place| sizes[*place].1).collect();
        assert_eq!(keys, [0, 30, 60]);
        // The mean deviation of a Laplace distribution is its scale.
        let others: Vec<f64> = sizes.iter().filter(|(_, key)| !key).map(|(size, _)| size.get() as f64).collect();
        let deviation = others.iter().map(|size| (size / CALL.mean_frame() - 1.0).abs()).sum::<f64>();
        assert!((deviation / others.len() as f64 - SCALE).abs() < 0.005, "{deviation}");
    }

    #[test]
    fn a_frame_is_complete_when_all_of_its_packets_are_there() {
        let mut frames = frames(&[0, 0], 30);
        let at = |millis| Timestamp::ZERO + ms(millis);
        arrived(&mut frames, 10, 10, at(50));
        arrived(&mut frames, 4, 6, at(60));
        assert_eq!(frames.iter().map(|frame| frame.complete).collect::<Vec<_>>(), [None, Some(at(50))]);
        arrived(&mut frames, 0, 4, at(70));
        assert_eq!(frames[0].delay(), Some(ms(70)));
    }

    #[test]
    fn a_late_frame_delays_those_that_need_it_and_a_lost_one_ends_them_until_a_key_frame() {
        // The second is complete at 33 + 200 ms. The third waits for it and is late too (200 - 33 = 167 ms); the fourth
        // is shown after 133 ms.
        let late = CALL.fates(&frames(&[30, 200, 30, 30], 30));
        assert_eq!(late, [Fate::Shown, Fate::Late, Fate::Late, Fate::Shown]);
        let lost = CALL.fates(&frames(&[30, 0, 30, 30, 30], 4));
        assert_eq!(lost, [Fate::Shown, Fate::Lost, Fate::Undecodable, Fate::Undecodable, Fate::Shown]);
    }

    #[test]
    fn the_picture_freezes_for_as_long_as_no_frame_is_shown() {
        // Frozen is longer than 33.3 + 150 = 183.3 ms: six frames' time is 200 ms, five are not enough.
        assert_eq!(CALL.freeze(), CALL.interval() + ms(150));
        let fates = |missing: usize| {
            let gap = std::iter::repeat_n(Fate::Lost, missing);
            std::iter::repeat_n(Fate::Shown, 10).chain(gap).chain([Fate::Shown]).collect::<Vec<_>>()
        };
        assert_eq!(CALL.freezes(&fates(4)), []);
        assert_eq!(CALL.freezes(&fates(5)), [CALL.interval() * 6]);
        // Nothing is shown at all: from before the first to after the last.
        assert_eq!(CALL.freezes(&[Fate::Lost; 30]), [CALL.interval() * 31]);
    }
}
