//! What is known of a recorded connection before its first event: a first reading adds it up.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use flowstart_core::rtt::MAX_ACK_DELAY;
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_quic::Flow;

use crate::recording::event::{Launched, Sent, Space, What};
use crate::recording::{Cut, Recording, RecordingError, Surroundings, Timed};

/// Full packets that say what the size of a packet is.
const SIZES: u32 = 64;
/// Packets from this size on are full ones, unless there are none (RFC 9000, section 14).
const SMALLEST_FULL: u64 = 1200;
/// Streams that are told apart.
const MOST_STREAMS: usize = 1 << 12;

/// What concerns all events.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    pub(super) surroundings: Surroundings,
    pub(super) events: u64,
    /// Startup scheme, if this program wrote the file.
    pub(super) scheme: Option<String>,
    /// The recorded launch, if this program wrote the file.
    pub(super) launched: Option<Launched>,
    /// Size of a full packet when the first ones left.
    pub(super) segment: Bytes,
    /// The event from which on the application has something to send: a launch, or the first full packet.
    pub(super) data_begins: u64,
    /// The event with which the last data left for the first time.
    pub(super) data_ends: u64,
    /// Bytes of the application, with the overhead of their packets.
    pub(super) payload: Bytes,
    pub(super) receive_window: Option<Bytes>,
    pub(super) max_ack_delay: Duration,
    /// The file says what the window was.
    pub(super) has_window: bool,
    pub(super) cuts: Vec<Cut>,
}

/// Reads all of a file for what concerns all events.
pub(super) fn survey<R: Read + Seek>(recording: &mut Recording<R>) -> Result<Survey, RecordingError> {
    let mut surroundings = recording.surroundings()?;
    let mut sums = Sums::default();
    let cuts = recording.events(&surroundings, &mut |event| {
        sums.take(&event);
        Ok(())
    })?;
    if sums.followed == 0 {
        let problem = "no packet_sent event has a packet number and a type; what is needed is a qlog file of QUIC with \
                       packet_sent and packet_received events";
        return Err(recording.unfit(problem.into()));
    }
    if let Some(exponent) = sums.ack_delay_exponent {
        surroundings.dialect.ack_delay_exponent = exponent;
    }
    let segment = sums.segment();
    let payload = match (&sums.answers[..], sums.new_data) {
        // The server waits with one answer, and says how long it is.
        ([only], _) => Flow::with_overhead(*only, segment),
        (_, Some(_)) => {
            let ends = sums.streams.values().fold(0, |sum: u64, end| sum.saturating_add(*end));
            Flow::with_overhead(Bytes::new(ends), segment)
        }
        (_, None) => Bytes::new(sums.sent.saturating_sub(sums.lost)),
    };
    let data_ends = sums.new_data.unwrap_or(sums.last);
    Ok(Survey {
        surroundings,
        events: sums.events,
        segment,
        data_begins: sums.begins.unwrap_or(0),
        data_ends,
        payload,
        receive_window: sums.receive_window,
        max_ack_delay: sums.max_ack_delay.unwrap_or(MAX_ACK_DELAY),
        has_window: sums.has_window,
        scheme: sums.scheme,
        launched: sums.launched,
        cuts,
    })
}

/// What the reading adds up.
#[derive(Debug, Default)]
struct Sums {
    events: u64,
    /// Packets that have a number and a type.
    followed: u64,
    /// Bytes of the application's packets, and of those that were lost.
    sent: u64,
    lost: u64,
    /// Sizes of the full packets of the first flight, and how many there are.
    sizes: BTreeMap<u64, u32>,
    counted: u32,
    /// The first flight was answered.
    answered: bool,
    begins: Option<u64>,
    /// The event of the application's last packet.
    last: u64,
    /// Up to where each stream's data has left, and the event of the last that was new.
    streams: BTreeMap<u64, u64>,
    new_data: Option<u64>,
    /// Payloads of the first two answers, if this program wrote the file.
    answers: Vec<Bytes>,
    receive_window: Option<Bytes>,
    max_ack_delay: Option<Duration>,
    ack_delay_exponent: Option<u64>,
    has_window: bool,
    scheme: Option<String>,
    launched: Option<Launched>,
}

impl Sums {
    fn take(&mut self, event: &Timed) {
        self.events = event.number;
        match &event.what {
            What::Sent(sent @ Sent { space: Some(space), number: Some(_), .. }) => {
                self.followed += 1;
                if let (Space::Application, Some(bytes), true) = (space, sent.bytes, sent.frames.count) {
                    self.take_sent(event.number, sent, bytes);
                }
            }
            What::Received { space: Some(Space::Application), frames } => {
                self.answered |= self.counted > 0 && !frames.is_empty();
            }
            // Its size is known only to who keeps all packets; most are full.
            What::Lost { space: Some(Space::Application), .. } => self.lost += self.segment().get(),
            What::Peer { receive_window, max_ack_delay, ack_delay_exponent } => {
                self.ack_delay_exponent = ack_delay_exponent.or(self.ack_delay_exponent);
                self.receive_window = receive_window.map(Bytes::new).or(self.receive_window);
                self.max_ack_delay = max_ack_delay.or(self.max_ack_delay);
            }
            What::Metrics(metrics) => self.has_window |= metrics.cwnd.is_some(),
            What::Scheme(scheme) => {
                self.scheme.get_or_insert_with(|| scheme.chars().take(200).collect());
            }
            What::Answered { payload } if self.answers.len() < 2 => self.answers.push(Bytes::new(*payload)),
            What::Launched(launched) => {
                self.begins.get_or_insert(event.number);
                self.launched.get_or_insert_with(|| launched.clone());
            }
            _ => {}
        }
    }

    fn take_sent(&mut self, event: u64, sent: &Sent, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
        if sent.probes_size || sent.frames.only_ping {
            return;
        }
        self.last = event;
        for &(stream, end) in &sent.frames.streams {
            let known = self.streams.get(&stream).copied();
            if known.is_some_and(|known| end <= known) {
                continue;
            }
            self.new_data = Some(event);
            // Of more streams than this all data count as new.
            if known.is_some() || self.streams.len() < MOST_STREAMS {
                self.streams.insert(stream, end);
            }
        }
        if bytes < SMALLEST_FULL {
            return;
        }
        self.begins.get_or_insert(event);
        // Packets grow when a probe for their size has arrived, which takes an acknowledgement.
        if !self.answered && self.counted < SIZES {
            *self.sizes.entry(bytes).or_default() += 1;
            self.counted += 1;
        }
    }

    /// The most frequent size of full packets in the first flight.
    fn segment(&self) -> Bytes {
        let frequent = self.sizes.iter().max_by_key(|(size, count)| (**count, **size)).map(|(size, _)| *size);
        Bytes::new(frequent.unwrap_or(SMALLEST_FULL))
    }
}
