//! What a host in C knows of a path, checked.

use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};

use crate::layout::{Path, Technology};
use crate::quantity::{LARGEST, flag, some_amount, some_rate, some_span, span};
use crate::refusal::Refusal;

/// What Sensing may use, and how far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// What Sensing may use.
    pub(crate) path: PathKnowledge,
    /// The RTT of the handshake counts only as far as later samples bear it out.
    pub(crate) doubts_handshake: bool,
}

impl Knowledge {
    /// What a struct of C says.
    pub(crate) fn read(told: &Path) -> Result<Self, Refusal> {
        let technology = technology(told.hint_technology)?;
        let saved_rtt = some_span("saved_rtt", told.saved_rtt)?;
        let age = span("saved_age", told.saved_age)?;
        let saved = match (some_amount("saved_cwnd", told.saved_cwnd)?, saved_rtt) {
            (Some(cwnd), Some(rtt)) => Some(SavedPath { rtt, cwnd, age }),
            (Some(_), None) => {
                let message = format_args!("saved_rtt is 0; with saved_cwnd allowed is 1 to {LARGEST}");
                return Err(Refusal::value(message));
            }
            (None, _) => None,
        };
        let path = PathKnowledge {
            handshake_rtt: some_span("handshake_rtt", told.handshake_rtt)?,
            saved,
            receive_window: some_amount("receive_window", told.receive_window)?,
            bytes_waiting: some_amount("bytes_waiting", told.bytes_waiting)?,
            hint: some_rate("hint_rate", told.hint_rate)?.map(|bandwidth| Hint { bandwidth, technology }),
            requested_rate: some_rate("requested_rate", told.requested_rate)?,
            interface_rate: some_rate("interface_rate", told.interface_rate)?,
            approved_rate: some_rate("approved_rate", told.approved_rate)?,
            advised_rate: some_rate("advised_rate", told.advised_rate)?,
            oracle_rate: some_rate("oracle_rate", told.oracle_rate)?,
            train_rate: some_rate("train_rate", told.train_rate)?,
            // The host keeps no ensemble; schemes that need one are refused.
            concurrent: None,
        };
        Ok(Self { path, doubts_handshake: flag("doubt_handshake", told.doubt_handshake)? })
    }
}

fn technology(number: u32) -> Result<AccessTechnology, Refusal> {
    const ALL: [(Technology, AccessTechnology); 8] = [
        (Technology::Unknown, AccessTechnology::Unknown),
        (Technology::Ethernet, AccessTechnology::Ethernet),
        (Technology::Dsl, AccessTechnology::Dsl),
        (Technology::Docsis, AccessTechnology::Docsis),
        (Technology::Wifi, AccessTechnology::Wifi),
        (Technology::ThirdGeneration, AccessTechnology::ThirdGeneration),
        (Technology::Lte, AccessTechnology::Lte),
        (Technology::Fibre, AccessTechnology::Fibre),
    ];
    Refusal::unless_in("hint_technology", number.into(), 0..=ALL.len() as u64 - 1)?;
    Ok(ALL.into_iter().find(|(one, _)| *one as u32 == number).map(|(_, technology)| technology).unwrap_or_default())
}
