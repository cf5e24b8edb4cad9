//! Circumstances in which a transient is harder to see than the plain experiment has it.

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_sim::traffic::unresponsive::{Lengths, Shape, Unresponsive};

use super::PACKET;

/// Mean time on and off of a source; ns-2's on/off sources have the same.
const ON_OFF: Duration = Duration::from_millis(500);

/// What is different from the plain experiment; one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Condition {
    /// Nothing.
    #[default]
    Plain,
    /// The server thinks before it answers: the handshake is not one RTT before the data.
    Thinking {
        /// How long.
        time: Duration,
        /// Whether it acknowledges the request at once, with a small packet an RTT after the first one.
        acknowledged: bool,
    },
    /// The queue discipline sees no handshake: another path, or a connection that was opened long ago.
    NoHandshake,
    /// The queue discipline sees all packets as one flow.
    Tunnel,
    /// Predict tells only so many flows apart.
    Places(u32),
    /// The constant-rate background starts with each transient and ends with it. It has no handshake.
    BackgroundStarts,
    /// The background is four sources that are on and off.
    OnOff(Lengths),
    /// The background is a video, a burst of packets per frame.
    Frames(Duration),
    /// A long CUBIC flow in the other direction: acknowledgements wait in its queue, a drop-tail one of a
    /// bandwidth-delay product and at least twenty packets, and its own acknowledgements cross the queue that is
    /// measured.
    Reverse,
    /// Senders and receivers as in Linux ([`flowstart_sim::transport::profile::Profile::tcp_linux`]): a timer of at
    /// least the RTT and 200 ms, PRR, acknowledgements one by one at the start. Without `HyStart`, which would end slow
    /// start by itself.
    Linux,
    /// Transients follow each other after so little idle time, from the last byte to the next first one, on flows that
    /// the queue discipline has seen before, without another handshake. Senders begin with the initial window and no
    /// ssthresh.
    Restart(Duration),
}

impl Condition {
    /// Its name, for tables.
    pub fn name(self) -> String {
        match self {
            Self::Plain => "plain".to_owned(),
            Self::Thinking { time, acknowledged } => {
                format!("think-{}ms{}", time.as_millis_f64(), if acknowledged { "-ack" } else { "" })
            }
            Self::NoHandshake => "no-handshake".to_owned(),
            Self::Tunnel => "tunnel".to_owned(),
            Self::Places(places) => format!("places-{places}"),
            Self::BackgroundStarts => "background-starts".to_owned(),
            Self::OnOff(Lengths::Exponential) => "on-off-exponential".to_owned(),
            Self::OnOff(Lengths::Pareto { .. }) => "on-off-pareto".to_owned(),
            Self::Frames(interval) => format!("frames-{}ms", interval.as_millis_f64()),
            Self::Reverse => "reverse".to_owned(),
            Self::Linux => "linux".to_owned(),
            Self::Restart(idle) => format!("restart-{}ms", idle.as_millis_f64()),
        }
    }

    /// The sources of an irregular background of this mean rate; none if it is regular.
    pub fn sources(self, rate: Rate) -> Vec<Unresponsive> {
        let packet = PACKET.get() as u32;
        match self {
            Self::OnOff(lengths) => {
                let shape = Shape::OnOff { mean_on: ON_OFF, mean_off: ON_OFF, lengths };
                vec![Unresponsive { rate: rate.scale(0.25), packet, shape }; 4]
            }
            Self::Frames(interval) => vec![Unresponsive { rate, packet, shape: Shape::Frames { interval } }],
            _ => Vec::new(),
        }
    }
}
