//! Quick-Start of a real connection, in its hosts' IP layers and applications, without the stack.
//!
//! The server sends the data, so it requests the rate. The first datagram of its connection, which answers the client's
//! first, carries the request as an option of IP. A repetition of that flight carries none, and neither does a Retry
//! packet, which belongs to no connection. RFC 4782 defines the answer only for TCP. The client's transport parameters
//! leave before the answer is known. The answer, the eight bytes of TCP's option, therefore travels in a DATAGRAM frame
//! (RFC 9221) ahead of the request, and is as unreliable as that option. The server's controller gets the approved rate
//! before it launches on the request; a later answer has no effect. The report is an option of the server's next
//! datagram. The stack fills its packets as always, so those with an option are eight bytes longer. With 0-RTT there is
//! no rate request.

use bytes::Bytes as Buffer;
use flowstart_core::path::PathKnowledge;
use flowstart_core::quick_start::host::Known;
use flowstart_core::rng::Substream;
use flowstart_core::sources::{Statement, name};
use flowstart_core::startup::StartupConfig;
use flowstart_core::units::Bytes;
use flowstart_sim::network::Network;
use flowstart_sim::packet::{Direction, NO_OPTION, QuickStartOption};
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::transport::quick_start::QuickStart;

use super::Transfer;
use crate::ends::quic::end::{CLIENT, SERVER};

/// Quick-Start at both ends of a transfer of `size` bytes, if its scheme uses it.
pub(super) fn both_ends(
    profile: &Profile,
    startup: &StartupConfig,
    knowledge: &PathKnowledge,
    size: Bytes,
    seed: u64,
) -> Option<Box<QuickStart>> {
    let config = startup.request()?;
    if profile.opening == Opening::ZeroRtt {
        return None;
    }
    let known = Known { rtt: knowledge.min_rtt(), object: Some(size), ..Known::default() };
    let segment = Bytes::new(u64::from(profile.segment));
    let initial_window = segment * config.iw.map_or(profile.initial_window, u64::from);
    let rng = Substream::new(seed, "quick-start", 0);
    Some(Box::new(QuickStart::new(config, known, segment, initial_window, rng)))
}

impl Transfer {
    /// The IP option of a connection's next datagram: the server's first datagram carries the request, and the next one
    /// after an answer carries the report.
    pub(super) fn option_of_next(&mut self, side: usize) -> QuickStartOption {
        match &mut self.quick_start {
            Some(quick_start) if side == SERVER => match quick_start.option_for(Direction::Forward, true) {
                NO_OPTION => quick_start.take_report(),
                request => request,
            },
            _ => NO_OPTION,
        }
    }

    /// A datagram arrived with this option after crossing this many links.
    pub(in crate::ends::quic) fn hear_option(&mut self, direction: Direction, option: &QuickStartOption, links: u16) {
        if let (Some(quick_start), Direction::Forward) = (&mut self.quick_start, direction)
            && *option != NO_OPTION
        {
            quick_start.on_option(direction, option, links);
        }
    }

    /// The client answers as soon as it can: with its request.
    pub(super) fn send_answer(&mut self) {
        let (Some(quick_start), Some((_, connection))) = (&mut self.quick_start, &mut self.ends[CLIENT].connection)
        else {
            return;
        };
        let answer = quick_start.option_for(Direction::Return, true);
        if answer != NO_OPTION {
            // A peer that accepts no datagrams gets no answer, which is a refusal.
            let _ = connection.datagrams().send(Buffer::copy_from_slice(&answer), true);
        }
    }

    /// The server receives the answer.
    pub(super) fn hear_answer(&mut self) {
        let (Some(quick_start), Some((_, connection))) = (&mut self.quick_start, &mut self.ends[SERVER].connection)
        else {
            return;
        };
        while let Some(datagram) = connection.datagrams().recv() {
            let Some(answer) = datagram.first_chunk().filter(|_| self.request.is_empty()) else { continue };
            quick_start.on_option(Direction::Return, answer, 0);
            if let Some(approved) = quick_start.approved() {
                self.flow.hear(|sources| sources.believe(name::QUICK_START, Statement::Approved(approved)));
            }
        }
    }

    /// The scheme launches with the rate approved so far.
    pub(super) fn note_quick_start(&self, network: &mut Network) {
        if let Some(quick_start) = &self.quick_start {
            let record = network.record(self.number);
            (record.requested_rate, record.approved_rate) = (quick_start.requested(), quick_start.approved());
        }
    }
}
