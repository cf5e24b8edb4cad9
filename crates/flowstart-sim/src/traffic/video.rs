//! Adaptive video: a player that decides which of the offered rates the next chunk has, and plays from a buffer.
//!
//! References:
//! - Huang, Johari, `McKeown`, Trunnell and Watson, "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014,
//!   Algorithm 1 (BBA-0): the lowest rate below a reservoir of buffered video, the highest above reservoir and cushion,
//!   and a line between them; the rate stays until the line has passed the next higher or lower one.
//! - dash.js 4, `ThroughputRule` and `ThroughputHistory` with the sliding window: the highest rate that is at most 0.9
//!   times (`bandwidthSafetyFactor`) the mean throughput of the last four chunks.
//!
//! A player requests one chunk after the other over one connection, and pauses while its buffer has no room for
//! another. It begins to play, and continues after a stall, when enough is buffered or nothing more comes.
//!
//! Differences: a chunk has exactly its rate's bytes. The paper's buffer of 240 s has a reservoir of 90 s and its
//! highest rate from 216 s on; other buffers have the same parts, but reach the highest rate where they have just room
//! for a chunk at the latest. Throughput is measured from the request to the last byte; dash.js leaves out the time to
//! the first byte, lowers the rate by that time's part of a chunk instead (`useDeadTimeLatency`), and averages over
//! more chunks if throughputs differ by more than 1.3 times. Its rule is silent while the buffer is empty, here it
//! always decides. By default dash.js switches between this rule and another one, BOLA; here it is alone. The player
//! knows what is offered before the connection opens, and never gives a chunk up.
//!
//! Status: worked examples below and in `tests/video.rs`; not compared with another player.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use serde::{Serialize, Serializer};

/// Most rates of a ladder.
pub const MOST_RATES: usize = 16;
/// Chunks whose throughput is averaged (`averageThroughputSampleAmount.vod` of dash.js).
const SAMPLES: usize = 4;
/// Part of the throughput that a rate may have (`bandwidthSafetyFactor` of dash.js).
const SAFETY: f64 = 0.9;

/// The offered rates, ascending; at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ladder {
    rates: [Rate; MOST_RATES],
    count: usize,
}

impl Ladder {
    /// A ladder; `None` unless it has 1 to [`MOST_RATES`] rates, each above the one before and not zero.
    pub fn new(rates: &[Rate]) -> Option<Self> {
        let ascends = rates.windows(2).all(|pair| pair[0] < pair[1]);
        let first = *rates.first()?;
        if rates.len() > MOST_RATES || !ascends || first == Rate::ZERO {
            return None;
        }
        let mut all = [first; MOST_RATES];
        all[..rates.len()].copy_from_slice(rates);
        Some(Self { rates: all, count: rates.len() })
    }

    /// The rates.
    pub fn rates(&self) -> &[Rate] {
        &self.rates[..self.count]
    }

    /// The highest rate.
    pub fn highest(&self) -> Rate {
        self.rates[self.count - 1]
    }

    /// The place of the highest rate that is at most, or with `below` less than, this one; else the lowest.
    fn at_most(&self, rate: f64, below: bool) -> usize {
        let fits = |one: &&Rate| {
            let one = one.bits_per_sec() as f64;
            if below { one < rate } else { one <= rate }
        };
        self.rates().iter().filter(fits).count().saturating_sub(1)
    }

    /// The place of the lowest rate above this one; else the highest.
    fn above(&self, rate: f64) -> usize {
        let place = self.rates().iter().position(|one| one.bits_per_sec() as f64 > rate);
        place.unwrap_or(self.count - 1)
    }
}

impl Serialize for Ladder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rates().serialize(serializer)
    }
}

/// The rule for the rate of the next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// BBA-0.
    Buffer {
        /// Buffered video below which the lowest rate is requested.
        reservoir: Duration,
        /// Buffered video from which the highest rate is requested. It leaves room for a chunk: no request finds more.
        upper: Duration,
    },
    /// The sliding window of dash.js.
    Throughput,
}

/// A video and its player.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Video {
    /// The offered rates.
    pub ladder: Ladder,
    /// Playing time of a chunk.
    pub chunk: Duration,
    /// Number of chunks.
    pub count: u32,
    /// Most video that the player buffers.
    pub buffer: Duration,
    /// Buffered video at which it begins to play, and continues after a stall. It leaves room for a chunk in the
    /// buffer, so that the player pauses only while it plays.
    pub start: Duration,
    /// Its rule.
    pub rule: Rule,
}

impl Video {
    /// Bytes of a chunk of this rate.
    pub fn chunk_size(&self, rate: Rate) -> Bytes {
        Bytes::new(rate.amount_in(self.chunk).get().max(1))
    }

    /// Most bytes that it can have.
    pub fn most_bytes(&self) -> Bytes {
        self.chunk_size(self.ladder.highest()) * u64::from(self.count)
    }
}

/// What a viewer saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Playback {
    /// When the first picture was shown.
    pub began: Option<Timestamp>,
    /// Number of times that the player ran out of video.
    pub stalls: u32,
    /// How long it waited then.
    pub stalled: Duration,
    /// The rates of the chunks requested so far, as places in the ladder.
    pub rates: Vec<u8>,
}

impl Playback {
    /// Number of times that the rate changed from one chunk to the next.
    pub fn switches(&self) -> u32 {
        self.rates.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32
    }

    /// The mean rate of the chunks.
    pub fn mean_rate(&self, ladder: &Ladder) -> Option<Rate> {
        let rates = self.rates.iter().filter_map(|place| ladder.rates().get(usize::from(*place)));
        let sum: u64 = rates.map(|rate| rate.bits_per_sec()).sum();
        Some(Rate::from_bits_per_sec(sum.checked_div(self.rates.len() as u64)?))
    }
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    video: Video,
    /// Buffered video at `known`.
    level: Duration,
    known: Timestamp,
    is_playing: bool,
    /// When it ran out of video.
    stalled_at: Option<Timestamp>,
    arrived: u32,
    /// When the chunk on its way was requested, and its bytes.
    requested: (Timestamp, Bytes),
    /// Throughputs of the last chunks in bits per second, the latest first.
    throughputs: [f64; SAMPLES],
    /// What the viewer saw so far.
    pub playback: Playback,
}

impl Player {
    /// A player that has requested nothing.
    pub fn new(video: Video) -> Self {
        Self {
            video,
            level: Duration::ZERO,
            known: Timestamp::ZERO,
            is_playing: false,
            stalled_at: None,
            arrived: 0,
            requested: (Timestamp::ZERO, Bytes::ZERO),
            throughputs: [0.0; SAMPLES],
            playback: Playback::default(),
        }
    }

    /// Requests the next chunk now and returns its size.
    pub fn request(&mut self, now: Timestamp) -> Bytes {
        self.play_until(now);
        let place = self.choose();
        self.playback.rates.push(place as u8);
        let size = self.video.chunk_size(self.video.ladder.rates()[place]);
        self.requested = (now, size);
        size
    }

    /// The first request left at this time, later than it was decided on.
    pub fn first_request_left(&mut self, at: Timestamp) {
        if self.arrived == 0 {
            self.requested.0 = at;
        }
    }

    /// The chunk on its way has arrived. Returns when the next one is to be requested; `None` if it was the last.
    pub fn on_chunk(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.play_until(now);
        let (requested, size) = self.requested;
        let time = now.since(requested).as_secs().max(1e-9);
        self.throughputs.rotate_right(1);
        self.throughputs[0] = size.get() as f64 * 8.0 / time;
        self.level += self.video.chunk;
        self.arrived += 1;
        let is_last = self.arrived >= self.video.count;
        if !self.is_playing && (is_last || self.level >= self.video.start) {
            self.is_playing = true;
            self.playback.began.get_or_insert(now);
            if let Some(since) = self.stalled_at.take() {
                self.playback.stalls += 1;
                self.playback.stalled += now.since(since);
            }
        }
        let room = self.video.buffer.saturating_sub(self.video.chunk);
        (!is_last).then(|| now + self.level.saturating_sub(room))
    }

    /// Video has been played until now, unless it ran out.
    fn play_until(&mut self, now: Timestamp) {
        if self.is_playing {
            if self.known + self.level < now {
                self.stalled_at = Some(self.known + self.level);
                self.is_playing = false;
            }
            self.level = self.level.saturating_sub(now.since(self.known));
        }
        self.known = now;
    }

    /// The place of the next chunk's rate.
    fn choose(&self) -> usize {
        let ladder = &self.video.ladder;
        let Some(&before) = self.playback.rates.last() else { return 0 };
        match self.video.rule {
            Rule::Buffer { reservoir, upper } => self.choose_by_buffer(usize::from(before), reservoir, upper),
            Rule::Throughput => {
                let known = &self.throughputs[..SAMPLES.min(self.arrived as usize)];
                let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
                ladder.at_most(mean * SAFETY, false)
            }
        }
    }

    /// Algorithm 1 of the paper.
    fn choose_by_buffer(&self, before: usize, reservoir: Duration, upper: Duration) -> usize {
        let ladder = &self.video.ladder;
        let last = ladder.rates().len() - 1;
        if self.level <= reservoir {
            return 0;
        }
        if self.level >= upper {
            return last;
        }
        let rate = |place: usize| ladder.rates()[place].bits_per_sec() as f64;
        let part = (self.level.as_secs() - reservoir.as_secs()) / (upper.as_secs() - reservoir.as_secs());
        let line = rate(0) + part * (rate(last) - rate(0));
        if line >= rate((before + 1).min(last)) && before < last {
            ladder.at_most(line, true)
        } else if line <= rate(before.saturating_sub(1)) && before > 0 {
            ladder.above(line)
        } else {
            before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbit(rates: &[u64]) -> Vec<Rate> {
        rates.iter().map(|rate| Rate::from_bits_per_sec(rate * 1000)).collect()
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Chunks of 2 s at 1, 2, 3 and 5 Mbit/s with a buffer of 20 s; reservoir 5 s, highest rate from 15 s on.
    fn player(rule: Rule) -> Player {
        let ladder = Ladder::new(&kbit(&[1000, 2000, 3000, 5000])).unwrap();
        Player::new(Video { ladder, chunk: ms(2000), count: 50, buffer: ms(20_000), start: ms(4000), rule })
    }

    const BBA: Rule = Rule::Buffer { reservoir: Duration::from_millis(5000), upper: Duration::from_millis(15_000) };

    #[test]
    fn a_ladder_ascends_from_above_zero() {
        for wrong in [&[][..], &[0, 100], &[200, 100], &[100, 100], &[1; 17]] {
            assert_eq!(Ladder::new(&kbit(wrong)), None, "{wrong:?}");
        }
        let most: Vec<u64> = (1..=16).collect();
        assert_eq!(Ladder::new(&kbit(&most)).unwrap().rates(), kbit(&most));
    }

    #[test]
    fn bba_0_keeps_a_rate_until_the_line_has_passed_the_next() {
        let choose = |level: u64, before: usize| {
            let mut player = player(BBA);
            player.level = ms(level);
            player.playback.rates.push(before as u8);
            player.choose()
        };
        // The line rises from 1 to 5 Mbit/s between 5 and 15 s: 0.4 Mbit/s a second.
        assert_eq!([choose(5000, 3), choose(15_000, 0)], [0, 3]);
        // 1.96 Mbit/s at 7.4 s, 2 at 7.5 s: of those below the line the highest is still the lowest.
        assert_eq!([choose(7400, 0), choose(7500, 0), choose(7600, 0)], [0, 0, 1]);
        // 3.4 Mbit/s at 11 s: up from the second to the third, and the fourth stays until the line is down at 3.
        assert_eq!([choose(11_000, 1), choose(11_000, 3), choose(9900, 3), choose(7000, 3)], [2, 3, 2, 1]);
    }

    #[test]
    fn the_throughput_rule_takes_nine_tenths_of_the_mean_of_four() {
        let mut player = player(Rule::Throughput);
        // The first chunk has the lowest rate: 250 KB.
        assert_eq!(player.request(at(0)), Bytes::new(250_000));
        // In 500 ms: 4 Mbit/s, of which nine tenths are 3.6.
        player.on_chunk(at(500));
        assert_eq!(player.request(at(500)), Bytes::new(750_000));
        // 750 KB in 4 s are 1.5 Mbit/s; the mean is 2.75 and nine tenths are 2.475.
        player.on_chunk(at(4500));
        assert_eq!(player.request(at(4500)), Bytes::new(500_000));
    }

    #[test]
    fn it_plays_from_the_second_chunk_on_and_stalls_when_the_buffer_is_empty() {
        let mut player = player(BBA);
        let mut chunk = |requested: u64, arrived: u64| {
            player.request(at(requested));
            (player.on_chunk(at(arrived)), player.playback.clone())
        };
        let (_, first) = chunk(0, 1000);
        assert_eq!(first.began, None, "4 s are needed");
        let (next, second) = chunk(1000, 2000);
        assert_eq!((next, second.began), (Some(at(2000)), Some(at(2000))));
        // 4 s from 2 s on last until 6 s. One chunk at 9 s is not enough, the one at 10 s is.
        assert_eq!(chunk(2000, 9000).1.stalls, 0);
        let (_, stalled) = chunk(9000, 10_000);
        assert_eq!((stalled.stalls, stalled.stalled), (1, ms(4000)));
    }

    #[test]
    fn a_full_buffer_pauses_and_the_last_chunk_ends_the_wait() {
        let mut player = player(BBA);
        for _ in 0..9 {
            player.request(at(0));
            player.on_chunk(at(0));
        }
        player.request(at(0));
        // 20 s are there: 18 s and a chunk fit from 2 s on.
        assert_eq!(player.on_chunk(at(0)), Some(at(2000)));
        player.video.count = 11;
        player.request(at(2000));
        assert_eq!(player.on_chunk(at(2100)), None);
        let one = Video { count: 1, ..player.video };
        let mut short = Player::new(one);
        short.request(at(0));
        assert_eq!((short.on_chunk(at(700)), short.playback.began), (None, Some(at(700))));
    }

    #[test]
    fn switches_and_the_mean_rate_are_those_of_the_chunks() {
        let playback = Playback { rates: vec![0, 0, 1, 3, 1], ..Playback::default() };
        let ladder = player(BBA).video.ladder;
        assert_eq!((playback.switches(), playback.mean_rate(&ladder)), (3, Some(kbit(&[2200])[0])));
        assert_eq!(Playback::default().mean_rate(&ladder), None);
    }
}
