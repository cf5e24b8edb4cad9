//! What the path to a client advises (SCONE), as the client reports it.
//!
//! Only the client of a connection that carries SCONE packets can know it. Reports of others are counted and ignored.
//! The lowest advice of a monitoring period counts, which is looked up with each request: later nothing launches.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Instant;

use flowstart_core::scone::endpoint::Advice;
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::time::Timestamp;
use flowstart_quic::Flow;
use flowstart_quic::scone::Reader;
use http::HeaderMap;

use super::shared::{Shared, locked};
use crate::metrics::Reported;
use crate::scone::reported;

/// A connection that carries SCONE packets.
#[derive(Debug)]
pub(super) struct Advised {
    _reader: Reader,
    advice: Mutex<Advice>,
    began: Instant,
}

impl Advised {
    /// Without advice so far.
    pub(super) fn new(reader: Reader) -> Self {
        Self { _reader: reader, advice: Mutex::default(), began: Instant::now() }
    }

    /// The flow follows the advice that counts now, after this report.
    fn tell(&self, flow: &Flow, signal: RateSignal) {
        let now = Timestamp::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let mut advice = locked(&self.advice);
        advice.on_signal(now, signal);
        flow.advise(advice.rate(now));
    }
}

impl Shared {
    /// Takes the report of a request. `advised` is there if its connection carries SCONE packets.
    pub(super) fn take_advice(&self, fields: &HeaderMap, advised: Option<&Advised>, flow: &Flow, client: IpAddr) {
        let result = match (reported(fields), advised) {
            (None, None) => return,
            (Some(_), None) => "unasked",
            (None | Some(Ok(RateSignal::UNKNOWN)), Some(advised)) => {
                advised.tell(flow, RateSignal::UNKNOWN);
                "no-advice"
            }
            (Some(Ok(signal)), Some(advised)) => {
                advised.tell(flow, signal);
                "taken"
            }
            (Some(Err(error)), Some(advised)) => {
                self.log.tell(&format!("{client}: {error}"));
                advised.tell(flow, RateSignal::UNKNOWN);
                "malformed"
            }
        };
        self.metrics.scone_reports.get_or_create(&Reported { result }).inc();
    }
}
