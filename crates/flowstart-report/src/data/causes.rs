//! A transfer takes longer than the physical limit for these causes.

use serde::{Deserialize, Serialize};

/// A part of the time beyond the physical limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The handshake beyond the limit's: queues and repetitions.
    Handshake,
    /// The link was free for the flow, and it sent nothing.
    UnusedCapacity,
    /// The same while only the receiver's window stopped the sender.
    FlowControl,
    /// The link carried packets of the flow that brought nothing new.
    OwnQueue,
    /// The link carried others' packets while the flow's waited.
    OthersQueue,
    /// Nothing to carry while lost bytes were missing.
    Recovery,
    /// The same after all data had been sent once.
    Tail,
    /// The application had nothing to send for longer than at the limit; negative: that made up for delays.
    IdleTime,
    /// What the limit does not count.
    Other,
}

/// How many causes there are.
pub const CAUSES: usize = Cause::ALL.len();

impl Cause {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Handshake,
        Self::UnusedCapacity,
        Self::FlowControl,
        Self::OwnQueue,
        Self::OthersQueue,
        Self::Recovery,
        Self::Tail,
        Self::IdleTime,
        Self::Other,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::UnusedCapacity => "unused capacity",
            Self::FlowControl => "flow control",
            Self::OwnQueue => "own queue",
            Self::OthersQueue => "others' queue",
            Self::Recovery => "recovery",
            Self::Tail => "tail",
            Self::IdleTime => "idle time",
            Self::Other => "other",
        }
    }

    /// Its name for programs.
    pub fn key(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::UnusedCapacity => "unused_capacity",
            Self::FlowControl => "flow_control",
            Self::OwnQueue => "own_queue",
            Self::OthersQueue => "others_queue",
            Self::Recovery => "recovery",
            Self::Tail => "tail",
            Self::IdleTime => "idle_time",
            Self::Other => "other",
        }
    }

    /// What it means, as the end of a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Handshake => "the handshake took longer than on an idle link",
            Self::UnusedCapacity => "the link was free for the flow, and its window or its pacing held data back",
            Self::FlowControl => "the link was free for the flow, and only the receiver's window held data back",
            Self::OwnQueue => "the link carried packets of the flow that brought nothing new or got lost later",
            Self::OthersQueue => "the link carried others' packets while the flow's waited",
            Self::Recovery => "nothing to carry while lost bytes were missing, before all data had been sent",
            Self::Tail => "nothing to carry while lost bytes were missing, after all data had been sent",
            Self::IdleTime => {
                "the application had nothing to send for longer than at the limit; negative: it made up for delays"
            }
            Self::Other => "what the limit does not count: noise of hosts, further queues, bursts and recorded traces",
        }
    }
}

/// Where the time of one run went: its FCT is the physical limit and the causes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Causes {
    /// FCT of the run.
    pub fct_ms: f64,
    /// The physical limit.
    pub ideal_fct_ms: f64,
    /// Milliseconds of each cause, in the order of [`Cause::ALL`].
    pub causes_ms: [f64; CAUSES],
}

impl Causes {
    /// Milliseconds of delay: all causes together, without what made up for delays.
    pub fn delay_ms(&self) -> f64 {
        self.causes_ms.iter().map(|ms| ms.max(0.0)).sum()
    }

    /// A cause's part of the delay, in percent; `None` when next to nothing was delayed, and of what made up for
    /// delays.
    pub fn percent(&self, cause: Cause) -> Option<f64> {
        let (delay, ms) = (self.delay_ms(), self.causes_ms[cause as usize]);
        // Some microseconds are the receiver's own link, and parts of them say nothing.
        let is_part = delay >= 0.05 && ms > -0.005 * delay;
        is_part.then(|| ms / delay * 100.0)
    }
}
