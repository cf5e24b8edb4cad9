//! Experiments between real sockets.

use std::ops::RangeInclusive;

use flowstart_core::spec::names;
use flowstart_core::units::Bytes;
use flowstart_sim::transport::profile::Profile;

use crate::spec::InputError;
use crate::spec::aqm::Aqm;
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::spec::transport::Transport;
use crate::spec::transport::stack::StackOptions;
use crate::study::per_transport::PerTransport;
use crate::study::plan::{AXES, Axis, Plan};
use crate::study::world::World;

/// The real stack of QUIC, as it is called.
const QUIC: &str = "quic";
/// The axes that sockets have more than the default of.
const CHOSEN: [&Axis; 8] = [
    Axis::link(),
    Axis::aqm(),
    Axis::competitor(),
    Axis::size(),
    Axis::scheme(),
    Axis::avoidance(),
    Axis::transport(),
    Axis::world(),
];

/// Most flows of others: each takes two threads, and up to 16 MB of the kernel's memory for what waits to be sent.
const MOST_OTHERS: u32 = 32;

/// Receive windows that a kernel can be held to.
const WINDOWS: RangeInclusive<Bytes> = Bytes::new(16_000)..=Bytes::new(1_000_000_000);

/// Whether sockets can do all that a transport wants.
fn is_of_sockets(transport: &Transport) -> bool {
    let Profile { initial_receive_window, receive_buffer, .. } = &*transport.profile;
    if transport.is_of_linux() {
        return initial_receive_window.is_none() || receive_buffer.is_some();
    }
    let Ok(plain) = Transport::parse("transport", QUIC) else { return false };
    let Profile { receive_window, pacing, .. } = *transport.profile;
    let profile = Profile { receive_window, pacing, ..Profile::clone(&plain.profile) };
    *transport.profile == profile && transport.stack.as_ref().is_some_and(StackOptions::is_of_sockets)
}

/// Whether others can be flows of the kernel's TCP: established ones, of which all but the number is the kernel's.
fn is_of_kernel(competitor: &PerTransport<Competitor>) -> bool {
    let mut keys = competitor.text.split([':', ',']).filter_map(|part| part.split_once('='));
    match competitor.first() {
        Competitor::None => true,
        Competitor::Bulk { count, .. } => {
            *count <= MOST_OTHERS && keys.all(|(key, _)| names::is_same(key.trim(), "count"))
        }
        _ => false,
    }
}

/// One transfer after the other over real QUIC or the kernel's TCP, alone or beside established
/// flows of the kernel's TCP, on a link that routers can be.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    if !plan.worlds.contains(&World::Sockets) {
        return Ok(());
    }
    let refused = |field: &str, text: &str, allowed: &str| {
        Err(InputError::new(field, text, format!("with world sockets allowed is {allowed}")))
    };
    if let Some(transport) = plan.transports.iter().find(|transport| !is_of_sockets(transport)) {
        let allowed = "quic, the real stack, with receive_window, pacing, hint_policy and mtu_discovery, or model-tcp \
                       with profile tcp-linux and receive_window, which is the kernel's TCP there";
        return refused("transport", &transport.text, allowed);
    }
    if plan.transports.iter().any(Transport::is_of_linux) {
        if let Some(avoidance) = plan.avoidances.first() {
            return refused("avoidance", &avoidance.text, "none beside the kernel's TCP, whose schemes have their own");
        }
        let has_keys = |text: &&str| text.contains(':');
        if let Some(scheme) = plan.schemes.iter().map(|scheme| &*scheme.text).find(has_keys) {
            return refused("scheme", scheme, "a name beside the kernel's TCP; keys are given to flowstart tcp load");
        }
        let key = |link: &Link| {
            let keys = [("quick_start", link.routers.is_some()), ("hint", link.hint.is_some())];
            let keys = keys.into_iter().chain([("hint_steps", link.hint_grid.is_some())]);
            keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
        };
        if let Some((link, key)) = plan.links.iter().find_map(|link| Some((link, key(link)?))) {
            let allowed = format!("no {key} beside the kernel's TCP; flowstart tcp load has its hints");
            return refused("link", &link.text, &allowed);
        }
    }
    if let Some(competitor) = plan.competitors.iter().find(|competitor| !is_of_kernel(competitor)) {
        let allowed = format!(
            "none, or established flows of the kernel's TCP such as cubic or bulk:reno,count=2, whose only key is a \
             count of 1 to {MOST_OTHERS}"
        );
        return refused("competitor", &competitor.text, &allowed);
    }
    // Others have the receive window of the transport, too.
    let has_others = plan.competitors.iter().any(|competitor| *competitor.first() != Competitor::None);
    let window = |transport: &&Transport| {
        let Profile { receive_window, receive_buffer, .. } = &*transport.profile;
        (has_others || transport.is_of_linux()) && receive_buffer.is_none() && !WINDOWS.contains(receive_window)
    };
    if let Some(transport) = plan.transports.iter().find(window) {
        let allowed = format!("a receive_window of {} to {}, auto or open", WINDOWS.start(), WINDOWS.end());
        return refused("transport", &transport.text, &allowed);
    }
    for link in &plan.links {
        if let Some(key) = link.key_without_sockets().or(link.advising.map(|_| "scone")) {
            return refused("link", &link.text, &format!("no {key}"));
        }
    }
    if let Some(aqm) = plan.aqms.iter().find(|aqm| aqm.value == Aqm::Oracle) {
        return refused("aqm", &aqm.text, "one that does not look into senders");
    }
    if let Some(size) =
        plan.sizes.iter().find(|size| size.value.smallest().is_none() || size.value.fixed_size().is_none())
    {
        return refused("size", &size.text, "a size");
    }
    if let Some(place) = plan.scheme_connections.iter().position(|connections| *connections > 1) {
        return refused("scheme", &plan.schemes[place].text, "one connection");
    }
    if plan.flows > 1 {
        return refused("flows", &plan.flows.to_string(), "1");
    }
    for axis in AXES.iter().filter(|axis| !CHOSEN.contains(axis)) {
        let default = axis.keys[0].default;
        if let Some(text) = axis.texts(plan).into_iter().find(|text| Some(*text) != default) {
            return refused(axis.name(), text, default.unwrap_or("none"));
        }
    }
    Ok(())
}

#[cfg(feature = "quic")]
#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    fn refusal(text: &str) -> String {
        let plan = Scenario::from_text(text).unwrap().plan(Path::new("."));
        plan.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn sockets_run_transfers_of_real_quic_alone() {
        let with = |more: &str| {
            let has = |key: &str| more.contains(&format!("{key} ="));
            let default = |key: &str, value: &str| if has(key) { String::new() } else { format!("{key} = {value}\n") };
            let base = [
                ("link", "['lte', 'lte,hint=20mbit,loss=0.01', 'rate=5mbit,rtt=40ms,buffer=1bdp,quick_start=target']"),
                ("scheme", "['slow-start', 'blitzstart:estimate=0.5', 'careful-resume']"),
                ("size", "['70KB', '2MB']"),
                ("transport", "'quic:receive_window=15MB,hint_policy=cap:rate=20mbit'"),
                ("world", "['simulator', 'sockets']"),
            ];
            let text: String = base.iter().map(|(key, value)| default(key, value)).collect();
            refusal(&format!("{text}{more}"))
        };
        assert_eq!(with(""), "");
        assert_eq!(with("transport = 'model-tcp:receive_window=auto'\nscheme = ['stack', 'suss']\nlink = ['lte']"), "");
        assert_eq!(with("transport = 'quic:mtu_discovery=true'"), "");
        assert_eq!(with("competitor = ['none', 'bbr', 'bulk:cubic,count=32', 'bulk']"), "");
        assert_eq!(with("aqm = ['taildrop', 'codel']\navoidance = ['cubic', 'reno']\nworld = 'sockets'"), "");
        for (more, expected) in [
            ("transport = 'model-quic'", "quic, the real stack"),
            ("transport = 'model-tcp:profile=ns3'", "quic, the real stack"),
            ("transport = 'model-tcp:initial_receive_window=64KB'", "quic, the real stack"),
            ("transport = 'model-tcp'", "a name beside the kernel's TCP"),
            ("transport = 'model-tcp'\nscheme = ['stack']", "no hint"),
            ("transport = 'model-tcp'\nscheme = ['stack']\nlink = ['lte,quick_start=target']", "no quick_start"),
            ("transport = 'model-tcp:receive_window=3GB'\nscheme = ['stack']\nlink = ['lte']", "16KB to 1GB"),
            ("transport = 'model-tcp'\nscheme = ['suss']\navoidance = ['reno']", "whose schemes have their own"),
            ("transport = 'quic:retry=true'", "quic, the real stack"),
            ("transport = 'quic:packet_threshold=5'", "quic, the real stack"),
            ("link = ['lte,access_rate=50mbit']", "no access_rate"),
            ("link = ['lte,hops=2']", "no hops"),
            ("link = ['lte,scone=10mbit']", "no scone"),
            ("link = ['lte,quick_start=target,qs_delay=1ms']", "no qs_delay"),
            ("aqm = ['oracle']", "allowed is model-tcp"),
            ("competitor = ['cbr:rate=5mbit']", "none, or established flows"),
            ("competitor = ['bulk:cubic,iw=10']", "whose only key is a count of 1 to 32"),
            ("competitor = ['bbr:version=3']", "whose only key is a count"),
            ("competitor = ['bulk:reno,startup=slow-start:iw=4']", "whose only key is a count"),
            ("competitor = ['bulk:cubic,count=33']", "a count of 1 to 32"),
            ("competitor = ['cubic']\ntransport = 'quic:receive_window=3GB'", "16KB to 1GB"),
            ("size = ['pareto:mean=100KB,shape=1.2']", "a size"),
            ("scheme = ['slow-start:connections=2']", "one connection"),
            ("flows = 2", "1"),
            ("arrival = ['every=100ms']", "together"),
            ("idle = ['keep']", "none"),
            ("world = 'real'", "simulator, sockets"),
        ] {
            let refusal = with(more);
            assert!(refusal.contains(expected), "{more}: {refusal}");
        }
    }
}
