//! What a scheme would have decided on a recorded connection: `flowstart replay qlog`.
//!
//! A qlog file says what a sender sent, and what was acknowledged and lost. [`replay`] tells a controller the same and
//! writes down its window, its rate and its decisions, beside those of the recorded sender.
//!
//! **A replay has a limit.** The acknowledgements answer what the recorded sender sent. As long as the controller would
//! have sent the same, its decisions are those that it would have taken. From the first [`Difference`] on they are its
//! answers to acknowledgements that it would not have got like this. Only the bytes in flight are compared with the
//! window; that packets would have left a little earlier or later, because they are paced otherwise, is not seen.
//!
//! | Looking for | Where |
//! |---|---|
//! | the file, as events | `crate::recording` |
//! | what is known before the first event: sizes, where data begins and ends | `survey` |
//! | the congestion avoidance that a server has written | `recorded_avoidance` |
//! | packets in flight | `flight` |
//! | what belongs to one acknowledgement, and what the recorded sender says of itself | `recorded_sender` |
//! | what the controller is told | `host` |

mod flight;
mod host;
mod recorded_avoidance;
mod recorded_sender;
mod survey;

use std::io;
use std::path::Path;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::{Controller, ControllerConfig};
use flowstart_core::needs::Needs;
use flowstart_core::path::{Hint, PathKnowledge, SavedPath};
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::factory::Host as QuicHost;
use flowstart_quic::{Factory, Unsupported};
use serde::Serialize;

use self::host::{Host, Watch};
pub use self::recorded_avoidance::avoidance_of;
use self::survey::{Survey, survey};
use crate::recording::event::What;
use crate::recording::{self, Recording};
pub use crate::recording::{Cut, Place, RecordingError};

/// Most rounds that are kept.
const MOST_ROUNDS: usize = 1000;
/// Most losses that are kept.
const MOST_LOSSES: usize = 100;

/// What a scheme would be given on the recorded connection.
#[derive(Clone, Debug)]
pub struct Question {
    /// Startup scheme.
    pub startup: StartupConfig,
    /// Congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// The client's hint.
    pub hint: Option<Hint>,
    /// What an earlier connection saved.
    pub saved: Option<SavedPath>,
    /// What a capacity oracle answers.
    pub oracle: Option<Rate>,
}

/// Why a file cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be used.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The scheme cannot be replayed.
    #[error(transparent)]
    Scheme(#[from] Unsupported),
}

/// A recorded connection as the host of a scheme.
struct Recorded;

impl QuicHost for Recorded {
    const NAME: &'static str = "a recorded connection";
    const GIVES: Needs = Needs::OWN_RATE.and(Needs::RATE_SAMPLES).and(Needs::MARK_COUNTS).and(Needs::BURST);
}

/// What both senders have at one time. Sizes are bytes, rates bits per second, times milliseconds from the first event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// When.
    pub time_ms: f64,
    /// What happened: `launch`, `ack` or `loss`.
    pub event: &'static str,
    /// Bytes that it newly acknowledged.
    pub delivered_bytes: u64,
    /// Bytes that were declared lost with it.
    pub lost_bytes: u64,
    /// Bytes in flight after it.
    pub in_flight_bytes: u64,
    /// The scheme's window.
    pub cwnd_bytes: u64,
    /// Its slow-start threshold; `None` before the first reduction.
    pub ssthresh_bytes: Option<u64>,
    /// Its pacing rate; `None`: as the window allows.
    pub pacing_rate_bps: Option<u64>,
    /// Whether it is in startup.
    pub in_startup: bool,
    /// Whether it would have sent the same so far. Behind the first difference its window and rate are answers to
    /// acknowledgements that it would not have got.
    pub certain: bool,
    /// The recorded window; `None`: the file does not say. Some programs write it after the event.
    pub recorded_cwnd_bytes: Option<u64>,
    /// The recorded threshold.
    pub recorded_ssthresh_bytes: Option<u64>,
    /// The recorded pacing rate.
    pub recorded_pacing_rate_bps: Option<u64>,
    /// Places of the newest acknowledged and the last sent packet.
    #[serde(skip)]
    places: (u64, u64),
}

/// The launch of the scheme.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Launch {
    /// When.
    pub time_ms: f64,
    /// The packet that is the first behind it; `None`: congestion came first, or the file has the launch itself.
    pub packet_number: Option<u64>,
    /// Window in bytes.
    pub cwnd_bytes: u64,
    /// Pacing rate, `None`: as the window allows.
    pub pacing_rate_bps: Option<u64>,
    /// Bytes that may leave at once.
    pub burst_bytes: u64,
    /// RTT of the handshake; `None`: there was no sample.
    pub handshake_rtt_ms: Option<f64>,
    /// What the launch depends on.
    pub depends_on: Vec<&'static str>,
    /// The recorded window at that time.
    pub recorded_cwnd_bytes: Option<u64>,
    /// The recorded pacing rate at that time.
    pub recorded_pacing_rate_bps: Option<u64>,
}

/// The end of startup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exit {
    /// When.
    pub time_ms: f64,
    /// Why.
    pub reason: String,
    /// The window that it left.
    pub cwnd_bytes: Option<u64>,
    /// The slow-start threshold that it left; `None`: none.
    pub ssthresh_bytes: Option<u64>,
}

/// How the scheme would have sent otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It would have sent more: the recorded window was full, and the scheme's was not.
    More,
    /// It would have sent less: the recorded sender had more in flight than the scheme's window.
    Less,
}

/// The first event at which the scheme would have sent otherwise, by more than a packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its number in the file; the first event is 1.
    pub event: u64,
    /// Line of the file.
    pub line: u64,
    /// When.
    pub time_ms: f64,
    /// The packet that left: the last that the recorded window allowed, or the first that the scheme's would not have.
    pub packet_number: u64,
    /// How.
    pub how: How,
    /// Recorded bytes in flight.
    pub in_flight_bytes: u64,
    /// The scheme's window.
    pub cwnd_bytes: u64,
}

/// Losses or marks that one acknowledgement, or one timer, revealed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossEvent {
    /// When.
    pub time_ms: f64,
    /// Packets lost.
    pub packets: u64,
    /// Packets newly reported as CE marked.
    pub marks: u64,
    /// They establish persistent congestion (RFC 9002, section 7.6).
    pub persistent_congestion: bool,
    /// The scheme's window before.
    pub cwnd_before_bytes: u64,
    /// And after.
    pub cwnd_after_bytes: u64,
}

/// A round trip: it ends when a packet is acknowledged that left after its beginning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Its number; the first begins with the launch.
    pub round: u64,
    /// Acknowledgements in it.
    pub acks: u64,
    /// The state at its end; what was delivered and lost is that of the round.
    #[serde(flatten)]
    pub end: Row,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets sent that count towards the bytes in flight.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets acknowledged.
    pub acknowledged: u64,
    /// Their bytes.
    pub acknowledged_bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Packets that arrived after they had been declared lost.
    pub spurious: u64,
    /// Packets reported as CE marked.
    pub marked: u64,
    /// Packets of which the file says no more than that they left.
    pub unresolved: u64,
    /// Packets without a number or a type, which cannot be followed.
    pub unfollowed: u64,
}

/// What the scheme was given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Given {
    /// Size of a full packet at the launch: the most frequent one of the first flight. It grows when a probe for a
    /// larger size has arrived.
    pub segment_bytes: u64,
    /// Bytes that wait at the launch: all that the connection sent for its application, with the overhead of packets.
    /// Of a file without streams it is what the connection sent and did not lose.
    pub bytes_waiting: u64,
    /// The peer's receive window, if the file has its parameters.
    pub receive_window_bytes: Option<u64>,
    /// The client's hint.
    pub hint_bps: Option<u64>,
    /// The rate that an earlier connection saved.
    pub saved_bps: Option<u64>,
    /// An oracle's answer.
    pub oracle_bps: Option<u64>,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// Version of this structure.
    pub schema: u32,
    /// Events of the file.
    pub events: u64,
    /// Length of the recording.
    pub duration_ms: f64,
    /// Which end wrote the file, if it says so.
    pub end: Option<String>,
    /// Startup scheme of the recorded connection, if this program wrote the file.
    pub recorded_scheme: Option<String>,
    /// What the scheme was given.
    pub given: Given,
    /// The launch; `None`: the file has no RTT and no congestion, or no packet of the application.
    pub launch: Option<Launch>,
    /// The end of the scheme's startup; `None`: it lasts.
    pub exit: Option<Exit>,
    /// The end of the recorded startup, if the file says it.
    pub recorded_exit: Option<Exit>,
    /// Where the scheme would first have sent otherwise; `None`: nowhere that the file can show.
    pub differs: Option<Difference>,
    /// Whether the file says what the recorded window was. Otherwise it does not show where the scheme would have sent
    /// more.
    pub has_recorded_window: bool,
    /// Losses and marks, up to 100.
    pub losses: Vec<LossEvent>,
    /// Further ones.
    pub losses_left_out: u64,
    /// Rounds, up to 1000.
    pub rounds: Vec<Round>,
    /// Further ones.
    pub rounds_left_out: u64,
    /// What was counted.
    pub totals: Totals,
    /// Where the file is cut, up to 16 places.
    pub cuts: Vec<Cut>,
}

/// What the scheme would have decided on the connection that the file at `path` records. `each` gets a row for the
/// launch and for every acknowledgement.
///
/// # Errors
///
/// [`ReplayError`] with the file, the place and the field.
pub fn replay(path: &Path, question: &Question, each: &mut dyn FnMut(&Row)) -> Result<Replayed, ReplayError> {
    let file = recording::open(path)?;
    replay_from(file, path, question, each)
}

/// [`replay`] of what is no file; `path` is for messages.
///
/// # Errors
///
/// As [`replay`].
pub fn replay_from<R: io::Read + io::Seek>(
    input: R,
    path: &Path,
    question: &Question,
    each: &mut dyn FnMut(&Row),
) -> Result<Replayed, ReplayError> {
    let factory = Factory::<Recorded>::new(question.startup.clone(), question.avoidance.clone())?;
    let mut recording = Recording::new(input, path);
    let survey = survey(&mut recording)?;
    let config = ControllerConfig { segment: survey.segment, ..factory.config().clone() };
    let controller = Controller::new(config).map_err(Unsupported::from)?;
    let known = PathKnowledge {
        saved: question.saved,
        receive_window: survey.receive_window,
        bytes_waiting: Some(survey.payload),
        hint: question.hint,
        oracle_rate: question.oracle,
        ..PathKnowledge::default()
    };
    let mut kept = Kept { each, replayed: begun(&survey, question), round: RoundUnderWay::default() };
    let mut host = Host::new(controller, known, &survey, &mut kept);
    let (mut end, mut recorded_exit) = (Timestamp::ZERO, None);
    recording.events(&survey.surroundings, &mut |event| {
        end = event.time;
        if let What::Exit { reason, cwnd, ssthresh } = &event.what {
            recorded_exit.get_or_insert_with(|| Exit {
                time_ms: millis(event.time),
                reason: reason.clone(),
                cwnd_bytes: *cwnd,
                ssthresh_bytes: *ssthresh,
            });
        }
        host.take(&event)
    })?;
    host.end();
    let totals = host.totals;
    let mut replayed = kept.replayed;
    (replayed.totals, replayed.duration_ms, replayed.recorded_exit) = (totals, millis(end), recorded_exit);
    Ok(replayed)
}

fn millis(time: Timestamp) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn begun(survey: &Survey, question: &Question) -> Replayed {
    let bits = |rate: Option<Rate>| rate.map(Rate::bits_per_sec);
    Replayed {
        schema: 1,
        events: survey.events,
        duration_ms: 0.0,
        end: survey.surroundings.end.clone(),
        recorded_scheme: survey.scheme.clone(),
        given: Given {
            segment_bytes: survey.segment.get(),
            bytes_waiting: survey.payload.get(),
            receive_window_bytes: survey.receive_window.map(Bytes::get),
            hint_bps: bits(question.hint.map(|hint| hint.bandwidth)),
            saved_bps: bits(question.saved.and_then(|saved| saved.rate())),
            oracle_bps: bits(question.oracle),
        },
        launch: None,
        exit: None,
        recorded_exit: None,
        differs: None,
        has_recorded_window: survey.has_window,
        losses: Vec::new(),
        losses_left_out: 0,
        rounds: Vec::new(),
        rounds_left_out: 0,
        totals: Totals::default(),
        cuts: survey.cuts.clone(),
    }
}

/// Keeps what a replay hands out, within bounds.
struct Kept<'a> {
    each: &'a mut dyn FnMut(&Row),
    replayed: Replayed,
    round: RoundUnderWay,
}

/// The round that is not over yet.
#[derive(Debug, Default)]
struct RoundUnderWay {
    number: u64,
    acks: u64,
    delivered: u64,
    lost: u64,
    /// It ends when a packet behind this one is acknowledged.
    until: u64,
}

impl Watch for Kept<'_> {
    fn row(&mut self, row: &Row) {
        (self.each)(row);
        let round = &mut self.round;
        let (acknowledged, sent) = row.places;
        if row.event == "launch" {
            *round = RoundUnderWay { number: 1, until: sent, ..RoundUnderWay::default() };
            return;
        }
        round.acks += 1;
        (round.delivered, round.lost) = (round.delivered + row.delivered_bytes, round.lost + row.lost_bytes);
        if acknowledged <= round.until {
            return;
        }
        let end = Row { delivered_bytes: round.delivered, lost_bytes: round.lost, ..row.clone() };
        let ended = Round { round: round.number, acks: round.acks, end };
        *round = RoundUnderWay { number: round.number + 1, until: sent, ..RoundUnderWay::default() };
        if self.replayed.rounds.len() < MOST_ROUNDS {
            self.replayed.rounds.push(ended);
        } else {
            self.replayed.rounds_left_out += 1;
        }
    }

    fn launched(&mut self, launch: Launch) {
        self.replayed.launch.get_or_insert(launch);
    }

    fn left_startup(&mut self, exit: Exit) {
        self.replayed.exit.get_or_insert(exit);
    }

    fn differs(&mut self, difference: Difference) {
        self.replayed.differs.get_or_insert(difference);
    }

    fn lost(&mut self, loss: LossEvent) {
        if self.replayed.losses.len() < MOST_LOSSES {
            self.replayed.losses.push(loss);
        } else {
            self.replayed.losses_left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests;
