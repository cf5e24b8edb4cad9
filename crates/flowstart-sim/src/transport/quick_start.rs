//! Quick-Start at both ends of a flow: the request with the sender's first packet, its answer, and the report.
//!
//! The request travels with the sender's part of the handshake, the answer with the receiver's next part. If the sender
//! opens, these are SYN and SYN-ACK. Otherwise they are the answer to a client's request for data, and the packet that
//! completes the handshake. A repeated handshake packet carries no request (RFC 4782, section 4.7): a router may have
//! dropped the first packet because of it. The report of the approved rate follows in a separate packet, as small as an
//! acknowledgement. A second pass and its answer travel in such packets too, and the launch waits for them. With 0-RTT
//! data leaves before any approval is possible, so there is no request.
//!
//! In mid-connection ([`QuickStart::ask`]) the request travels with the next new data, the answer with the
//! acknowledgement that the request triggers immediately, and the report with the next new data after it. Until the
//! answer the sender continues with its window. Retransmissions carry no option, so a lost request is not repeated.
//! Without an answer nothing changes. After a failure there are no more requests on that path (RFC 4782, section 4.6).

use flowstart_core::quick_start::host::{Known, PacketSizes, Request, respond};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, Response};
use flowstart_core::rng::Substream;
use flowstart_core::startup::quick_start::{Config, FAILED, OptionRoom};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};

use crate::packet::{Direction, INITIAL_TTL, NO_OPTION, QuickStartOption, ip_ttl};

/// A receiver's answer to the option of a packet that arrived after this many links; [`NO_OPTION`] if it is not a
/// request.
pub fn answer_to(option: &QuickStartOption, links: u16) -> QuickStartOption {
    let answer = IpOption::parse(IpVersion::V4, option).ok().and_then(|option| respond(option, ip_ttl(links)));
    answer.map_or(NO_OPTION, Response::emit)
}

/// Both ends' state.
#[derive(Clone, Debug)]
pub struct QuickStart {
    /// The requested rate; `None`: no request.
    rate: Option<Rate>,
    config: Config,
    rng: Substream,
    request: Option<Request>,
    /// The rate that the second pass requests again.
    second: Option<Request>,
    /// The receiver's next answer.
    answer: QuickStartOption,
    /// The sender's next report.
    report: QuickStartOption,
    approved: Option<Rate>,
    sizes: PacketSizes,
    /// The next new data carries this.
    pending: QuickStartOption,
    /// Whether some of an approved window was lost.
    failed: bool,
}

impl QuickStart {
    /// A sender that requests a rate according to `config`, with this knowledge of its data.
    pub fn new(config: &Config, known: Known, segment: Bytes, initial_window: Bytes, rng: Substream) -> Self {
        let sizes = PacketSizes { mss: segment, header: config.header };
        Self {
            rate: config.rate_to_ask(known, sizes, initial_window),
            config: *config,
            rng,
            request: None,
            second: None,
            answer: NO_OPTION,
            report: NO_OPTION,
            approved: None,
            sizes,
            pending: NO_OPTION,
            failed: false,
        }
    }

    /// The sender wants to request a rate again, with this knowledge and the window `window`. The next new data carries
    /// the request, if there is anything to request.
    pub fn ask(&mut self, known: Known, window: Bytes) {
        // An answer to an earlier request is now too late.
        (self.request, self.approved) = (None, None);
        (self.pending, self.report) = (NO_OPTION, NO_OPTION);
        if self.failed {
            return;
        }
        self.rate = self.config.rate_to_ask(known, self.sizes, window);
        let Some(rate) = self.rate else { return };
        let Config { rounding, encoding, .. } = self.config;
        self.request = Request::new(rate, rounding, encoding, INITIAL_TTL, &mut self.rng);
        self.pending = self.request.map_or(NO_OPTION, |request| request.option().emit(IpVersion::V4));
    }

    /// Whether new data after this much idle time carries a new request.
    pub fn asks_after(&self, idle: Duration) -> bool {
        self.config.after_idle.is_some_and(|least| idle >= least)
    }

    /// Packets take another path, for which failures on the old one have no meaning. Returns whether its first data
    /// carries a request.
    pub fn change_path(&mut self) -> bool {
        self.failed = false;
        (self.request, self.pending, self.report) = (None, NO_OPTION, NO_OPTION);
        self.config.after_move
    }

    /// The scheme has entered this phase, which may show that some of an approved window was lost.
    pub fn on_phase(&mut self, phase: &str) {
        self.failed |= phase == FAILED;
    }

    /// Whether the next new data carries an option that takes its bytes from the payload.
    #[inline]
    pub fn takes_payload(&self) -> bool {
        self.pending != NO_OPTION && self.config.room == OptionRoom::Packet
    }

    /// The option of new data.
    pub fn take_pending(&mut self) -> QuickStartOption {
        std::mem::replace(&mut self.pending, NO_OPTION)
    }

    /// A receiver's answer arrived with an acknowledgement. Returns the rate that all routers approved, which the next
    /// new data reports.
    pub fn on_answer(&mut self, answer: &QuickStartOption) -> Option<Rate> {
        self.on_option(Direction::Return, answer, 0);
        self.request = None;
        self.pending = self.take_report();
        self.approved
    }

    /// The option of a handshake packet; `first`: the packet is not a repetition.
    pub fn option_for(&mut self, direction: Direction, first: bool) -> QuickStartOption {
        match direction {
            Direction::Return => std::mem::replace(&mut self.answer, NO_OPTION),
            Direction::Forward if first && self.request.is_none() => {
                let Some(rate) = self.rate else { return NO_OPTION };
                let Config { rounding, encoding, .. } = self.config;
                let request = Request::new(rate, rounding, encoding, INITIAL_TTL, &mut self.rng);
                self.request = request.map(|request| request.comparing(self.config.nonce_bits));
                // Until an answer arrives nothing is approved.
                self.set_report();
                self.request.map_or(NO_OPTION, |request| request.option().emit(IpVersion::V4))
            }
            Direction::Forward => NO_OPTION,
        }
    }

    /// A packet of the handshake arrived with this option after this many links.
    pub fn on_option(&mut self, direction: Direction, option: &QuickStartOption, links: u16) {
        match direction {
            Direction::Forward => {
                self.answer = answer_to(option, links);
            }
            Direction::Return => {
                let request = self.second.as_ref().or(self.request.as_ref());
                let (Some(request), Ok(response)) = (request, Response::parse(option)) else { return };
                self.approved = request.verify(&response).ok();
                self.set_report();
            }
        }
    }

    fn set_report(&mut self) {
        let Some(request) = &self.request else { return };
        let reported = self.config.reports.rate(self.approved);
        self.report = reported.map_or(NO_OPTION, |rate| request.report(rate).emit(IpVersion::V4));
    }

    /// Begins the second pass, if there is one and something to confirm, and returns its option. Until the answer
    /// arrives nothing is approved.
    pub fn second_pass(&mut self) -> Option<QuickStartOption> {
        let (request, approved) = (self.request?, self.approved.filter(|_| self.config.passes > 1)?);
        let second = request.second_pass(approved, INITIAL_TTL, &mut self.rng)?;
        (self.second, self.approved) = (Some(second), None);
        self.set_report();
        Some(second.option().emit(IpVersion::V4))
    }

    /// Whether a report waits.
    pub fn has_report(&self) -> bool {
        self.report != NO_OPTION
    }

    /// The configuration of the sender's host.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The rate that all routers have approved.
    pub fn approved(&self) -> Option<Rate> {
        self.approved
    }

    /// The requested rate, after rounding.
    pub fn requested(&self) -> Option<Rate> {
        self.request.map(|request| request.rate())
    }

    /// The report, once.
    pub fn take_report(&mut self) -> QuickStartOption {
        std::mem::replace(&mut self.report, NO_OPTION)
    }
}
