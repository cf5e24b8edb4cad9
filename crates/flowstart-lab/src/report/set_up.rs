//! What runs are made of, in words: schemes, AQMs, links and windows that limit.

use flowstart_core::path::AccessTechnology;
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_report as report;
use flowstart_sim::transport::policy::ReceiveBuffer;

use super::cell::measured_flows;
use crate::spec::STACK;
use crate::spec::link::{ACCESS_RATE, Buffer, Link};
use crate::spec::transport::Transport;
use crate::study::plan::Plan;

/// Descriptions of the schemes, one for each kind. [`STACK`] is a separate kind, which describes the transport's own
/// behaviour.
pub(super) fn schemes(plan: &Plan) -> Vec<(String, String)> {
    let mut schemes: Vec<(String, String)> = Vec::new();
    for scheme in &plan.schemes {
        let (name, summary) = match &*scheme.text {
            STACK => {
                let does = |(place, transport): (usize, &Transport)| {
                    let (startup, avoidance) = (scheme.on(place), transport.profile.avoidance.name());
                    let (name, summary) = (startup.name(), startup.summary());
                    format!("what {} does: {name} with {avoidance}: {summary}", transport.text)
                };
                (STACK, plan.transports.iter().enumerate().map(does).collect::<Vec<_>>().join("; "))
            }
            _ => (scheme.first().name(), scheme.first().summary().to_owned()),
        };
        if !schemes.iter().any(|(known, _)| known == name) {
            schemes.push((name.to_owned(), summary));
        }
    }
    schemes
}

/// Descriptions of the AQMs, one for each kind, if there is a choice.
pub(super) fn aqms(plan: &Plan) -> Vec<(String, String)> {
    let mut aqms: Vec<(String, String)> = Vec::new();
    for aqm in plan.aqms.iter().filter(|_| plan.aqms.len() > 1) {
        let (name, summary) = (aqm.value.name(), aqm.value.summary());
        if !aqms.iter().any(|(known, _)| known == name) {
            aqms.push((name.to_owned(), summary.to_owned()));
        }
    }
    aqms
}

/// A link in the report's form.
pub fn link_input(plan: &Plan, link: &Link) -> report::Link {
    let mut extra = properties(link);
    extra.extend(windows(plan));
    if let Some(routers) = &link.routers {
        extra.push(("Quick-Start routers".to_owned(), routers.to_string()));
    }
    if let Some(element) = &link.advising {
        extra.push(("advises".to_owned(), format!("{} (SCONE)", element.rate)));
    }
    if link.xcp {
        extra.push(("routers with".to_owned(), "XCP".to_owned()));
    }
    if let Some(proxy) = &link.proxy {
        extra.push(("proxy that splits connections".to_owned(), proxy.to_string()));
    }
    report::Link {
        name: link.text.clone(),
        rate_mbit: Some(link.rate.as_mbit()),
        rate_is_mean: link.trace.is_some() || link.varies.rate.is_some(),
        rtt_ms: Some(link.rtt.as_millis_f64()),
        buffer: match link.buffer {
            Buffer::Packets(packets) => format!("{packets} packets"),
            Buffer::Bdp(factor) => format!("{factor} × BDP"),
            other => other.to_string(),
        },
        aqms: plan.aqms.iter().map(|aqm| aqm.text.clone()).collect(),
        competitors: plan.competitors.iter().map(|competitor| competitor.text.clone()).collect(),
        measured_flows: plan.cells().iter().map(|cell| measured_flows(plan, cell)).max().unwrap_or(1),
        extra,
    }
}

/// What is not the default about a link, in words.
fn properties(link: &Link) -> Vec<(String, String)> {
    let all = link.resolved();
    let starts = if link.trace_start_varies { "repetitions begin at different places of it" } else { "from its start" };
    let recording = |file: &std::path::PathBuf| format!("{}, {starts}", file.display());
    let jitter = |jitter: flowstart_sim::link::wire::Jitter| format!("up to {}", jitter.amplitude);
    let other = |is_other: bool, value: String| is_other.then_some(value);
    // Beside a recording it is constant, by default at its mean.
    let is_rate_back = (link.up_rate != link.rate || link.trace_file.is_some()) && link.up_trace.is_none();
    let properties = [
        ("recording", link.trace_file.as_ref().map(recording)),
        ("rate in steps", all.rate_steps),
        ("rate varies", all.rate_varies),
        ("delay in steps", all.rtt_steps),
        ("rate back", other(is_rate_back, link.up_rate.to_string())),
        ("recording of the way back", all.up_trace),
        ("buffer of the way back", other(link.up_buffer != Buffer::Unlimited, all.up_buffer)),
        ("the way back delivers packets together, once in", all.up_aggregation),
        ("bottleneck links in a row", other(link.hops > 1, link.hops.to_string())),
        ("others cross hop", all.cross),
        (
            "rate of the hosts' links, whose queues are no queueing delay here",
            other(link.access_rate != ACCESS_RATE, all.access_rate),
        ),
        ("delay of the hosts' links", other(link.access_delay > Duration::ZERO, all.access_delay)),
        ("scheduling noise of hosts", link.access_jitter.map(jitter)),
        ("jitter", link.jitter.map(jitter)),
        ("random loss", all.loss),
        ("reordering", all.reorder),
        ("token bucket", all.burst),
        ("policer with a bucket of", all.policer),
        ("the buffer", other(link.counts_in_service, "holds the packet in service, too".to_owned())),
        ("access technology", other(link.technology != AccessTechnology::Unknown, link.technology.to_string())),
        ("hinted rate", all.hint),
        ("steps of hints per factor of ten", all.hint_steps.map(|steps| steps.to_string())),
        ("saved rate, RTT and age", all.saved),
        ("rate of the oracle", all.oracle),
        ("reported train of the handshake", all.handshake_train),
    ];
    properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The receivers' windows that are smaller than a transfer, and so may limit it.
fn windows(plan: &Plan) -> Vec<(String, String)> {
    let largest = plan.sizes.iter().map(|size| size.value.mean_bytes()).max().unwrap_or(Bytes::ZERO);
    let mut windows: Vec<(String, String)> = Vec::new();
    for transport in &plan.transports {
        // Of a buffer half is for payload at first.
        let (smallest, window) = match transport.profile.receive_buffer {
            Some(ReceiveBuffer { initial, largest, .. }) => (
                Bytes::new(initial.get() / 2),
                format!("half of a buffer of {initial} at first, which grows up to {largest}"),
            ),
            None => (transport.profile.receive_window, transport.profile.receive_window.to_string()),
        };
        if smallest >= largest {
            continue;
        }
        let of = if plan.transports.len() > 1 {
            format!("receive window of {}", transport.text)
        } else {
            "receive window".to_owned()
        };
        windows.push((of, window));
    }
    windows
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    #[test]
    fn the_stack_is_described_by_what_it_runs_beside_the_scheme_of_that_name() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"stack\", \"hystart\", \"slow-start:iw=3\", \"slow-start:iw=4\"]\n\
                    transport = \"model-tcp:profile=tcp-linux\"";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let schemes = schemes(&plan);
        let names: Vec<&str> = schemes.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["stack", "hystart", "slow-start"]);
        assert!(
            schemes[0].1.starts_with("what model-tcp:profile=tcp-linux does: hystart with cubic: "),
            "{}",
            schemes[0].1
        );
    }
}
