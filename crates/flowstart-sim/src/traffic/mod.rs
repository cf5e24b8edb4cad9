//! The data of applications, and its times.

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use serde::Serialize;

use call::Call;
use media::Media;
use unresponsive::Unresponsive;
use video::Video;

pub mod arrivals;
pub mod call;
pub mod media;
pub mod unresponsive;
pub mod video;
pub mod web;

/// The data that an application writes into its flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One transfer, all at once.
    Transfer(Bytes),
    /// Always something to send.
    Bulk,
    /// Periods of writing at a rate and of silence, of exponentially distributed length.
    OnOff {
        /// Rate while on.
        rate: Rate,
        /// Mean length of an on period.
        mean_on: Duration,
        /// Mean length of an off period.
        mean_off: Duration,
    },
    /// A chunk at fixed intervals, as a video player requests them.
    Chunks {
        /// Bytes of a chunk.
        size: Bytes,
        /// Time between two chunks.
        interval: Duration,
        /// Number of chunks.
        count: u32,
    },
    /// A web page over one connection: waves of objects that are sent in the order of their requests (RFC 9218, section
    /// 10: among non-incremental responses the earlier request comes first). The receiver requests the next wave when
    /// the first object of the wave before has arrived, which names the next objects. This model is this project's own.
    Page {
        /// Objects of a wave.
        objects: u32,
        /// Bytes of an object.
        size: Bytes,
        /// Number of waves; the connection's request is for the first.
        waves: u32,
    },
    /// Objects that the receiver requests one after the other, as over a persistent connection of HTTP/1.1. The
    /// connection's request is for the first, and there is no end.
    Requests {
        /// Bytes of an object.
        size: Bytes,
    },
    /// Adaptive video: the receiver requests one chunk after the other and decides how large each is.
    Video(Box<Video>),
    /// Packets at a constant rate, without congestion control.
    ConstantRate {
        /// Rate on the wire.
        rate: Rate,
        /// Bytes of a packet on the wire.
        packet: u32,
    },
    /// Interactive media: packets at a fixed interval, without congestion control, whose times are kept.
    Media(Media),
    /// A video call: frames as packets, without congestion control, whose times are kept.
    Call(Call),
    /// Packets at irregular times, without congestion control.
    Unresponsive(Unresponsive),
}

impl Pattern {
    /// Packets per second, in the mean, that leave whatever the network does with them; 0 with congestion control.
    pub fn unresponsive_packets_per_s(&self) -> f64 {
        let of = |rate: Rate, packet: u32| rate.bits_per_sec() as f64 / 8.0 / f64::from(packet.max(1));
        match self {
            Self::ConstantRate { rate, packet } => of(*rate, *packet),
            Self::Media(media) => 1.0 / media.interval.as_secs().max(1e-9),
            // A frame has a packet that is not full.
            Self::Call(call) => of(call.rate, FULL) + f64::from(call.fps),
            Self::Unresponsive(source) => of(source.rate, source.packet),
            Self::Transfer(_)
            | Self::Bulk
            | Self::OnOff { .. }
            | Self::Chunks { .. }
            | Self::Page { .. }
            | Self::Requests { .. }
            | Self::Video(_) => 0.0,
        }
    }
}

/// Payload of a full packet of media, about.
const FULL: u32 = 1200;
/// Granularity in which an on-off source writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(1);

/// An application: its written bytes, and the time of its next write.
#[derive(Clone, Debug)]
pub struct Source {
    pattern: Pattern,
    written: u64,
    next_write: Timestamp,
    /// On-off: the end of the current on period.
    on_until: Timestamp,
    /// Time since the start of the period that has been turned into bytes.
    credited: Timestamp,
    chunks_left: u32,
    /// Ends in the stream of the objects whose sizes the receiver decided on.
    asked: Vec<u64>,
    /// Bytes that have come from another connection, for data that a proxy passes on.
    relayed: Option<u64>,
    rng: Substream,
}

impl Source {
    /// An application that has not started. `index` separates its random numbers from those of others.
    pub fn new(pattern: Pattern, seed: u64, index: u64) -> Self {
        Self {
            pattern,
            written: 0,
            next_write: Timestamp::NEVER,
            on_until: Timestamp::ZERO,
            credited: Timestamp::ZERO,
            chunks_left: 0,
            asked: Vec::new(),
            relayed: None,
            rng: Substream::new(seed, "application", index),
        }
    }

    /// The application starts.
    pub fn start(&mut self, now: Timestamp) {
        match self.pattern {
            Pattern::Transfer(size) => self.written = size.get(),
            Pattern::Bulk => self.written = u64::MAX,
            Pattern::Page { .. } | Pattern::Requests { .. } | Pattern::Video(_) => self.request(1),
            Pattern::ConstantRate { .. } | Pattern::Media(_) | Pattern::Call(_) | Pattern::Unresponsive(_) => {}
            Pattern::Chunks { count, .. } => {
                self.chunks_left = count;
                self.next_write = now;
            }
            Pattern::OnOff { mean_on, .. } => {
                self.on_until = now + Duration::from_secs(self.rng.exponential(mean_on.as_secs()));
                self.credited = now;
                self.next_write = now;
            }
        }
    }

    /// The application's pattern.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The time of the application's next write.
    pub fn next_write(&self) -> Timestamp {
        self.next_write
    }

    /// The application writes the due data.
    pub fn write(&mut self, now: Timestamp) {
        if now < self.next_write {
            return;
        }
        match self.pattern {
            Pattern::Transfer(_)
            | Pattern::Bulk
            | Pattern::Page { .. }
            | Pattern::Requests { .. }
            | Pattern::Video(_)
            | Pattern::ConstantRate { .. }
            | Pattern::Media(_)
            | Pattern::Call(_)
            | Pattern::Unresponsive(_) => {
                self.next_write = Timestamp::NEVER;
            }
            Pattern::Chunks { size, interval, .. } => {
                self.written += size.get();
                self.chunks_left = self.chunks_left.saturating_sub(1);
                self.next_write = if self.chunks_left == 0 { Timestamp::NEVER } else { now + interval };
            }
            Pattern::OnOff { rate, mean_on, mean_off } => {
                let until = now.min(self.on_until);
                self.written += rate.amount_in(until.since(self.credited)).get();
                self.credited = until;
                self.next_write = (now + WRITE_INTERVAL).min(self.on_until);
                if now >= self.on_until {
                    let resume = now + Duration::from_secs(self.rng.exponential(mean_off.as_secs()));
                    self.on_until = resume + Duration::from_secs(self.rng.exponential(mean_on.as_secs()));
                    self.credited = resume;
                    self.next_write = resume + WRITE_INTERVAL;
                }
            }
        }
    }

    /// The receiver has requested this many waves of a page, or this many objects, whose data is written now.
    pub fn request(&mut self, requested: u32) {
        let end = match self.pattern {
            Pattern::Page { objects, size, waves } => size.get() * u64::from(objects) * u64::from(requested.min(waves)),
            Pattern::Requests { size } => size.get() * u64::from(requested),
            Pattern::Video(_) => {
                let known = self.asked.len().min(requested as usize);
                known.checked_sub(1).map_or(0, |last| self.asked[last])
            }
            _ => return,
        };
        self.written = self.written.max(end);
    }

    /// Whether the receiver requests one object after the other.
    #[inline]
    pub fn is_requested(&self) -> bool {
        matches!(self.pattern, Pattern::Requests { .. } | Pattern::Video(_))
    }

    /// The receiver decides that its next request is for this much.
    pub fn ask(&mut self, size: Bytes) {
        self.asked.push(self.asked_end() + size.get());
    }

    /// End in the stream of what the receiver has decided on.
    #[inline]
    pub fn asked_end(&self) -> u64 {
        self.asked.last().copied().unwrap_or_default()
    }

    /// Whether the application knows the size of what it writes next: that of the whole stream, or of one object.
    pub fn knows_size(&self) -> bool {
        self.is_requested() || self.total().is_some()
    }

    /// Size and number of the objects, for streams whose objects have their own times: chunks and pages.
    #[inline]
    pub fn objects(&self) -> Option<(u64, u32)> {
        match self.pattern {
            Pattern::Chunks { size, count, .. } => Some((size.get(), count)),
            Pattern::Page { objects, size, waves } => Some((size.get(), objects * waves)),
            Pattern::Transfer(_)
            | Pattern::Bulk
            | Pattern::Requests { .. }
            | Pattern::Video(_)
            | Pattern::OnOff { .. }
            | Pattern::ConstantRate { .. }
            | Pattern::Media(_)
            | Pattern::Call(_)
            | Pattern::Unresponsive(_) => None,
        }
    }

    /// Objects of a wave and the number of waves, for a page.
    pub fn waves(&self) -> Option<(u32, u32)> {
        match self.pattern {
            Pattern::Page { objects, waves, .. } => Some((objects, waves)),
            _ => None,
        }
    }

    /// The data comes from another connection, and this much of it has arrived.
    pub fn relay(&mut self, arrived: u64) {
        self.relayed = Some(arrived);
    }

    /// Bytes that have come from another connection; `None` if the data does not come from there.
    pub fn relayed(&self) -> Option<u64> {
        self.relayed
    }

    /// Bytes written so far: the current end of the stream.
    #[inline]
    pub fn written(&self) -> u64 {
        self.relayed.map_or(self.written, |arrived| arrived.min(self.written))
    }

    /// Bytes of the whole stream, if it has an end.
    pub fn total(&self) -> Option<u64> {
        match self.pattern {
            Pattern::Transfer(size) => Some(size.get()),
            Pattern::Chunks { size, count, .. } => Some(size.get() * u64::from(count)),
            Pattern::Page { objects, size, waves } => Some(size.get() * u64::from(objects) * u64::from(waves)),
            Pattern::Bulk
            | Pattern::Requests { .. }
            | Pattern::Video(_)
            | Pattern::OnOff { .. }
            | Pattern::ConstantRate { .. }
            | Pattern::Media(_)
            | Pattern::Call(_)
            | Pattern::Unresponsive(_) => None,
        }
    }

    /// The data that a connection is opened for, if its size is known: the whole stream, or its first object if the
    /// receiver decides on the rest later.
    pub fn first_object(&self) -> Option<Bytes> {
        match self.pattern {
            Pattern::Requests { size } => Some(size),
            Pattern::Video(_) => self.asked.first().copied().map(Bytes::new),
            _ => self.total().map(Bytes::new),
        }
    }

    /// Time between two packets, the mean if they are irregular, and their size, for a source without congestion
    /// control.
    pub fn constant(&self) -> Option<(Duration, u32)> {
        match self.pattern {
            Pattern::ConstantRate { rate, packet } => Some((rate.time_for(Bytes::new(u64::from(packet))), packet)),
            Pattern::Media(media) => Some((media.interval, media.packet())),
            Pattern::Unresponsive(Unresponsive { rate, packet, .. }) => {
                Some((rate.time_for(Bytes::new(u64::from(packet))), packet))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(t: f64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(t)
    }

    #[test]
    fn chunks_come_at_their_intervals() {
        let size = Bytes::new(1000);
        let mut source = Source::new(Pattern::Chunks { size, interval: Duration::from_secs(2.0), count: 3 }, 1, 0);
        source.start(secs(1.0));
        let mut written = Vec::new();
        while source.next_write() != Timestamp::NEVER {
            let now = source.next_write();
            source.write(now);
            written.push((now.as_secs(), source.written()));
        }
        assert_eq!(written, [(1.0, 1000), (3.0, 2000), (5.0, 3000)]);
        assert_eq!(source.total(), Some(3000));
    }

    #[test]
    fn a_page_holds_what_was_requested_and_no_more_than_there_is() {
        let mut source = Source::new(Pattern::Page { objects: 3, size: Bytes::new(1000), waves: 2 }, 1, 0);
        source.start(secs(1.0));
        assert_eq!((source.written(), source.next_write()), (3000, Timestamp::NEVER));
        for (requested, written) in [(2, 6000), (1, 6000), (9, 6000)] {
            source.request(requested);
            assert_eq!(source.written(), written);
        }
        assert_eq!((source.total(), source.objects()), (Some(6000), Some((1000, 6))));
    }

    #[test]
    fn an_on_off_source_has_its_mean_rate() {
        let pattern = Pattern::OnOff {
            rate: Rate::from_mbit(8),
            mean_on: Duration::from_secs(0.5),
            mean_off: Duration::from_secs(1.5),
        };
        let mut source = Source::new(pattern, 1, 0);
        source.start(secs(0.0));
        while source.next_write() < secs(4000.0) {
            source.write(source.next_write());
        }
        // On a quarter of the time: 8 Mbit/s / 4 = 250 kB/s.
        let rate = source.written() as f64 / 4000.0;
        assert!((rate / 250_000.0 - 1.0).abs() < 0.08, "{rate}");
    }
}
