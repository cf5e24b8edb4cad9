//! How a connection starts: what its client hints, how much there is to send, and what became of the launch.

use std::sync::atomic::Ordering;
use std::time::Instant;

use flowstart_core::path::AccessTechnology;
use flowstart_core::sources::{Known, Statement, Verdict};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_quic::hint::BandwidthHint;
use flowstart_quic::hint::policy::{self, Reason};
use http::Request;
use noq::PathId;

use super::Client;
use crate::handshake_train;
use crate::metrics::{Exit, Hinted, OfScheme, OfSource};
use crate::path_shown::{PathShown, knows_path};
use crate::server::policy::GivenUp;
use crate::server::shared::locked;
use crate::server::{hints, sources};

/// Packets of the initial window (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 10;
/// UDP payload of a packet before the path MTU is known (RFC 9000, section 14).
const SMALLEST_PACKET: u16 = 1200;
/// The name for a startup that did not end.
const NO_EXIT: &str = "transfer-ended";

impl Client {
    /// A browser's hint counts if no other hint came before.
    pub(super) fn take_client_hints(&self, request: &Request<()>) {
        if locked(&self.word).has_hinted {
            return;
        }
        let (hint, errors) = hints::of_browser(request.headers());
        for error in errors {
            self.server.log.tell(&format!("{}: {error}", self.address));
        }
        if let Some(hint) = hint {
            self.judge(&hint, sources::name::CLIENT_HINTS);
        }
    }

    /// Takes what a request reports of the handshake's train, as far as the policy for hints goes: it is the client's
    /// word, too.
    pub(super) fn take_train(&self, request: &Request<()>) {
        let source = sources::name::HANDSHAKE_TRAIN;
        let mut word = locked(&self.word);
        let rate = match handshake_train::reported(request.headers()) {
            // The first report counts.
            Some(_) if self.flow.findings().iter().any(|one| one.source == source) => return,
            None => return,
            Some(Ok(rate)) => rate,
            Some(Err(error)) => {
                self.server.log.tell(&format!("{}: {error}", self.address));
                let why = "the field is malformed";
                return self.flow.hear(|all| all.lack(source, Verdict::Failed, why));
            }
        };
        let stated = Statement::Train(rate);
        if let Some(why) = self.is_useless(Known::Train) {
            return self.flow.hear(|all| all.state(source, stated, None, None, why));
        }
        let claim = BandwidthHint { rate, technology: AccessTechnology::Unknown, age: Duration::ZERO };
        let verdict = self.server.hints.admit(self.address, &claim, &self.evidence, &mut word.grant);
        drop(word);
        verdict.cap.into_iter().for_each(|cap| self.flow.cap_launch(cap));
        let believed = verdict.rate.map(Statement::Train);
        let reason = if believed == Some(stated) { String::new() } else { verdict.reason.to_string() };
        self.flow.hear(|all| all.state(source, stated, None, believed, &reason));
    }

    /// Why a statement of this kind changes nothing; it is given nothing of its prefix's total.
    fn is_useless(&self, known: Known) -> Option<&'static str> {
        match self.flow.status().launch {
            Some(_) => Some("the launch came before"),
            None => (!self.senses.contains(&known)).then_some("the scheme does not use it"),
        }
    }

    /// Takes a hint of the first message: at once from an address that is proven, else when the handshake is complete.
    pub(in crate::server) fn hear_hint(&self, hint: BandwidthHint) {
        locked(&self.word).unproven = Some(hint);
        if self.is_validated || self.is_complete() {
            return self.judge_unproven();
        }
        self.flow.hear_hint(sources::name::HINT, &hint, &policy::Verdict::refused(Reason::NotProven));
    }

    /// The address is proven, and so is the hint that came with the first message.
    pub(super) fn judge_unproven(&self) {
        let hint = locked(&self.word).unproven.take();
        if let Some(hint) = hint {
            self.judge(&hint, sources::name::HINT);
        }
    }

    /// Uses as much of a hint as the policy allows. The first counts.
    fn judge(&self, hint: &BandwidthHint, source: &'static str) {
        let mut word = locked(&self.word);
        if std::mem::replace(&mut word.has_hinted, true) {
            return;
        }
        let mut nothing = None;
        let held = if self.is_useless(Known::Hint).is_some() { &mut nothing } else { &mut word.grant };
        let verdict = self.server.hints.admit(self.address, hint, &self.evidence, held);
        drop(word);
        self.server.metrics.hints.get_or_create(&Hinted { verdict: verdict.reason.to_string() }).inc();
        self.flow.hear_hint(source, hint, &verdict);
    }

    /// Tells the controller how much there is to send. An answer that fits into the initial window needs no launch, and
    /// a launch for it would not be available for later answers.
    /// Only the size of an object of the server's own is a statement of the application.
    pub(super) fn expect(&self, size: Bytes, is_ours: bool, can_wait: bool) {
        let waiting = self.waiting.fetch_add(size.get(), Ordering::Relaxed) + size.get();
        let answered = self.answered.fetch_add(size.get(), Ordering::Relaxed) + size.get();
        let packet = self.connection.path_stats(PathId::ZERO).map_or(SMALLEST_PACKET, |stats| stats.current_mtu);
        let window = u64::from(packet) * INITIAL_WINDOW;
        if answered > window {
            if is_ours {
                self.server.sources.request(&self.flow, Bytes::new(waiting), can_wait);
            }
            self.flow.expect(Bytes::new(waiting), Bytes::new(packet.into()));
        }
    }

    /// Records how the connection started.
    pub(super) fn account(&self) {
        // Who has not proved its address may be anybody.
        if !self.notes.is_proven() {
            return;
        }
        let (status, metrics) = (self.flow.status(), &self.server.metrics);
        if let Some(saver) = self.server.sources.saver() {
            saver.save(self.address, status);
        }
        let path = self.connection.path_stats(PathId::ZERO);
        let (sent, lost) = path.as_ref().map_or((0, 0), |path| (path.sent_packets, path.lost_packets));
        let lost_share = if sent > 0 { lost as f64 / sent as f64 } else { 0.0 };
        let reason = status.exit.map_or(NO_EXIT, |(_, reason, _)| reason.name());
        metrics.connections.count(&self.scheme, &locked(&self.answers), lost_share.min(1.0), reason);
        let findings = self.flow.findings();
        let payload = self.arrived.load(Ordering::Relaxed);
        let packet = path.as_ref().map_or(SMALLEST_PACKET, |path| path.current_mtu);
        let rtt = path.map(|path| Duration::from_secs(path.rtt.as_secs_f64()));
        if let Some(shown) = PathShown::of(&status, rtt).filter(|_| payload > 0) {
            let is_known = findings.iter().any(|finding| knows_path(finding.source, finding.verdict.name()));
            metrics.paths.count(&shown, payload, is_known);
        }
        let is_used = findings.iter().any(|finding| finding.verdict == Verdict::Used);
        for finding in findings {
            let label = OfSource { source: finding.source, verdict: finding.verdict.name() };
            metrics.sources.get_or_create(&label).inc();
        }
        // Of a launch that nobody acknowledged, nobody knows what was lost.
        if status.launch.is_none() || status.delivered == Bytes::ZERO {
            return;
        }
        let of_scheme = OfScheme { scheme: self.scheme.clone() };
        metrics.launches.get_or_create(&of_scheme).inc();
        if self.flow.capped_by().is_some() {
            metrics.advice_capped.get_or_create(&of_scheme).inc();
        }
        metrics.startup_sent.get_or_create(&of_scheme).inc_by(status.startup_sent.get());
        metrics.startup_lost.get_or_create(&of_scheme).inc_by(status.startup_lost.get());
        if let Some((_, reason, _)) = status.exit {
            metrics.exits.get_or_create(&Exit { scheme: self.scheme.clone(), reason: reason.name() }).inc();
        }
        // A scheme that starts from what it knows, and knows nothing, starts as the alternative does.
        let initial = Bytes::new(packet.into()) * INITIAL_WINDOW;
        let window = status.launch.map(|(_, window, _)| window).unwrap_or_default();
        if !self.senses.is_empty() && !is_used && window <= initial {
            return;
        }
        let (sent, lost) = (status.startup_sent, status.startup_lost);
        match self.server.policy.record(self.address, &self.scheme, sent, lost, Instant::now()) {
            None => {}
            Some(GivenUp::ForAll) => {
                let warning = "launches lose too much; connections start with plain slow start for a while";
                self.server.warnings.tell(warning);
            }
            Some(GivenUp::For(prefix)) => self.server.warnings.tell(format!(
                "launches to {prefix} lose too much; its connections start with plain slow start for a while"
            )),
        }
    }
}
