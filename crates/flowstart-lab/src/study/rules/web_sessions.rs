//! Experiments that can have web sessions.

use crate::spec::InputError;
use crate::spec::arrival::TOGETHER;
use crate::spec::competitor::Competitor;
use crate::study::plan::Plan;

/// Web sessions set the start of each connection themselves, and share the link with nobody.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    let Some(size) = plan.sizes.iter().find(|size| size.value.sessions().is_some()) else { return Ok(()) };
    let beside = |field: &str, text: &str, allowed: &str| {
        Err(InputError::new(field, text, format!("with {} allowed is {allowed}", size.text)))
    };
    if let Some(real) = plan.transports.iter().find(|transport| transport.stack.is_some()) {
        return beside("transport", &real.text, "model-tcp or model-quic");
    }
    let payload = plan.transports[0].profile.payload;
    if let Some(other) = plan.transports.iter().find(|transport| transport.profile.payload != payload) {
        // Sizes are whole packets.
        return beside("transport", &other.text, "transports with the same payload");
    }
    if let Some(other) = plan.sizes.iter().find(|size| size.value.sessions().is_none()) {
        return beside("application", &other.text, "web alone");
    }
    if let Some(other) = plan.competitors.iter().find(|one| *one.first() != Competitor::None) {
        return beside("competitor", &other.text, "none");
    }
    if let Some(arrival) = plan.arrivals.iter().find(|arrival| arrival.text != TOGETHER) {
        return beside("arrival", &arrival.text, TOGETHER);
    }
    if plan.flows != 1 {
        return beside("flows", &plan.flows.to_string(), "1");
    }
    if let Some(link) =
        plan.links.iter().find(|link| link.trace.is_some() || link.up_trace.is_some() || link.varies.rate.is_some())
    {
        return beside("link", &link.text, "a link with a rate");
    }
    Ok(())
}
