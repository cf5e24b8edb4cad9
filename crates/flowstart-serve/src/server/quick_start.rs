//! The routers' approval (Quick-Start): what connections ask for, and what their clients respond.
//!
//! Only the scheme of a connection knows what to ask for, and only a client that says that it answers is asked about.
//! The first response of a connection counts, if nothing has launched. Whatever else comes is counted and ignored.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use flowstart_core::quick_start::host::Known;
use flowstart_core::quick_start::rate::RateEncoding;
use flowstart_core::rng::Substream;
use flowstart_core::sources::{Statement, Verdict};
use flowstart_core::startup::quick_start::Config as Request;
use flowstart_core::time::Duration as CoreDuration;
use flowstart_quic::Flow;
use flowstart_quic::quick_start::{Asked, try_asking};
use flowstart_quic::transport_parameters::PeerParameters;
use http::HeaderMap;

use super::shared::{Shared, locked};
use super::{Config, ServerError, sources};
use crate::metrics::Responded;
use crate::quick_start::responded;

/// How long an approval counts beyond an RTT. Routers reserve what they approve for a few hundred milliseconds (Target:
/// the running interval of 150 ms and the one before); a busy host may need a little longer.
const VALID: Duration = Duration::from_secs(1);

/// A connection that asks, and how far it has come.
#[derive(Debug)]
pub(super) struct Asking {
    asked: Asked,
    /// When the request left, or a little earlier.
    since: Instant,
    heard: Mutex<Heard>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// No request so far.
    Nothing,
    /// Requests without a response.
    NoResponse,
    /// A response, which was judged.
    Response,
}

/// Refuses what a server cannot do that is to ask.
pub(super) fn check(config: &Config) -> Result<(), ServerError> {
    if !config.quick_start {
        return Ok(());
    }
    try_asking(config.listen.ip())?;
    for scheme in config.schemes.all() {
        let Some(request) = scheme.request() else { continue };
        let refused = |problem| ServerError::Request { scheme: scheme.name().to_owned(), problem };
        if request.passes != 1 {
            return Err(refused("there is no second pass on sockets; passes is 1"));
        }
        if request.encoding != RateEncoding::Exponential {
            return Err(refused("RFC 4782 has one encoding; encoding is exponential"));
        }
    }
    Ok(())
}

impl Shared {
    /// The connection asks, if its scheme has a request and its client answers.
    pub(super) fn ask(
        &self,
        request: Option<&Request>,
        remote: SocketAddr,
        parameters: &PeerParameters,
    ) -> Option<Asking> {
        let clients = self.quick_start.as_ref()?;
        let id = parameters.initial_source.as_deref().filter(|_| parameters.quick_start == Ok(true))?;
        let known = Known {
            send_buffer: Some(self.limits.connection_memory),
            receive_window: parameters.windows.ok().map(|windows| windows.largest()),
            ..Known::default()
        };
        let mut rng = Substream::new(rand::random(), "quick-start", 0);
        let asked = clients.ask(remote, id, request?, known, &mut rng)?;
        Some(Asking { asked, since: Instant::now(), heard: Mutex::new(Heard::Nothing) })
    }

    /// Takes the response of a request. `asking` is there if its connection asks; `rtt` is that of its path.
    pub(super) fn take_response(
        &self,
        fields: &HeaderMap,
        asking: Option<&Asking>,
        flow: &Flow,
        client: IpAddr,
        rtt: Duration,
    ) {
        let result = match (responded(fields), asking) {
            (None, None) => return,
            (Some(_), None) => "unasked",
            (response, Some(asking)) => {
                let before = asking.hear(response.is_some());
                match response {
                    None if before == Heard::Nothing => {
                        let why = "the client does not respond";
                        flow.hear(|all| all.lack(sources::name::QUICK_START, Verdict::Missing, why));
                        "none"
                    }
                    None => return,
                    Some(_) if before == Heard::Response => "repeated",
                    Some(_) if flow.status().launch.is_some() => "late",
                    Some(Err(error)) => {
                        self.log.tell(&format!("{client}: {error}"));
                        let why = error.to_string();
                        flow.hear(|all| all.lack(sources::name::QUICK_START, Verdict::Failed, &why));
                        "malformed"
                    }
                    Some(Ok(response)) => {
                        let (stated, age) = (Statement::Approved(response.rate.rate()), asking.since.elapsed());
                        let judged = (age <= rtt + VALID).then(|| asking.asked.verify(&response));
                        let (believed, why, result) = match judged {
                            None => (None, "it is too old".to_owned(), "old"),
                            Some(Ok(rate)) => (Some(Statement::Approved(rate)), String::new(), "approved"),
                            Some(Err(refusal)) => (None, refusal.to_string(), refusal.name()),
                        };
                        let age = CoreDuration::from_nanos(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
                        flow.hear(|all| all.state(sources::name::QUICK_START, stated, Some(age), believed, &why));
                        result
                    }
                }
            }
        };
        self.metrics.quick_start_responses.get_or_create(&Responded { result }).inc();
    }
}

impl Asking {
    /// A request comes, with a response or without; what came before.
    fn hear(&self, has_response: bool) -> Heard {
        let mut heard = locked(&self.heard);
        let before = *heard;
        *heard = match before {
            Heard::Response => Heard::Response,
            _ if has_response => Heard::Response,
            _ => Heard::NoResponse,
        };
        before
    }
}
