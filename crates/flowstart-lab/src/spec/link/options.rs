//! The keys of links.

use flowstart_core::time::Duration;

use super::super::form::{self, Key};
use super::super::{routers, scone};
use super::{ACCESS_RATE, Link, hint, known, proxy};

/// All keys of links.
pub fn options() -> impl Iterator<Item = Key> {
    let own = of_links().into_iter().flatten().map(Key::told);
    own.chain(scone::KEYS.iter().copied()).chain(routers::KEYS.iter().map(Key::told))
}

/// Those that do not have routers.
const fn of_links() -> [&'static [Key<Link>]; 4] {
    [KEYS, hint::KEYS, known::KEYS, proxy::KEYS]
}

impl Link {
    /// The first of its keys for which there is nothing between two sockets: other hosts' links, further hops, and what
    /// only a simulator can do.
    pub fn key_without_sockets(&self) -> Option<&'static str> {
        let own = of_links().into_iter().find_map(|keys| form::only_simulated(keys, self));
        own.or_else(|| form::only_simulated(routers::KEYS, self.routers.as_ref()?))
    }
}

/// Those that this folder reads.
const KEYS: &[Key<Link>] = &[
    Key::new("rate", "1kbit to 10000gbit", "rate of the bottleneck", "this or trace").such_as("rate=25mbit"),
    Key::new("trace", "a Mahimahi file", "recorded capacity of the bottleneck", "this or rate")
        .such_as("trace=lte.down,rtt=50ms,buffer=100pkt"),
    Key::new("trace_start", "zero or varied", "where repetitions begin in the recording", "zero")
        .such_as("trace=lte.down,trace_start=varied,rtt=50ms")
        .only_simulated(|link| link.trace_start_varies),
    Key::new("rtt", "1us to 100s", "round-trip propagation delay between the routers at both ends", "")
        .such_as("rtt=50ms"),
    Key::new("buffer", "packets, bytes, a time, bdp", "buffer in front of the bottleneck", "1bdp")
        .such_as("buffer=104pkt"),
    Key::new("counts", "waiting or system", "whether the buffer also holds the packet in service", "waiting")
        .such_as("counts=system"),
    Key::new("up_rate", "a rate", "rate of the reverse direction", "rate, or the mean of the trace")
        .such_as("up_rate=5mbit"),
    Key::new("up_trace", "a Mahimahi file", "recorded capacity of the reverse direction", "none")
        .such_as("up_trace=lte.up"),
    Key::new("up_buffer", "as buffer", "buffer of the reverse direction", "unlimited").such_as("up_buffer=100pkt"),
    Key::new("up_aggregation", "1us to 1s", "packets of the reverse direction arrive together, once in this", "none")
        .such_as("up_aggregation=5ms"),
    Key::new("hops", "1 to 64", "bottleneck links in a row, which share the RTT", "1")
        .such_as("hops=2")
        .only_simulated(|link| link.hops > 1),
    Key::new("cross", "all, each, or a hop", "the hops that other users cross", "all").such_as("hops=2,cross=2"),
    Key::new("access_rate", "a rate", "rate of the hosts' own links", "10gbit")
        .such_as("access_rate=1gbit")
        .only_simulated(|link| link.access_rate < ACCESS_RATE),
    Key::new("access_delay", "a time", "one-way delay of the hosts' own links", "0s")
        .such_as("access_delay=5ms")
        .only_simulated(|link| link.access_delay > Duration::ZERO),
    Key::new("access_jitter", "TIME or TIME/STEP", "variable delay of packets from hosts", "none")
        .such_as("access_jitter=1ms/1ms")
        .only_simulated(|link| link.access_jitter.is_some()),
    Key::new(
        "noise",
        "on or off",
        "access_jitter=1ms/1ms and trace_start=varied, unless given",
        "off; of the command line on",
    )
    .such_as("noise=on"),
    Key::new("rate_steps", "PART/TIME", "steps of the rate, drawn around it", "none").such_as("rate_steps=50%/15s"),
    Key::new("rate_varies", "PART/TIME", "fading: deviation of the rate, and its correlation time", "none")
        .such_as("rate_varies=40%/1s"),
    Key::new("rtt_steps", "TIME/TIME", "extra delay in steps, drawn from 0 to the first", "none")
        .such_as("rtt_steps=20ms/15s"),
    Key::new("loss", "0% to 100%, or gilbert/...", "random loss, alone or in bursts", "none")
        .such_as("loss=gilbert/490ms/10ms/0.5"),
    Key::new("jitter", "TIME or TIME/STEP", "variable delay of the bottleneck", "none").such_as("jitter=5ms/20ms"),
    Key::new("reorder", "SHARE/TIME", "share of packets that are late, and by how much", "none")
        .such_as("reorder=1%/5ms"),
    Key::new("burst", "bytes", "bucket of a token bucket", "none").such_as("burst=100KB"),
    Key::new("peak", "a rate", "rate at which a token bucket empties", "access_rate").such_as("burst=100KB,peak=1gbit"),
    Key::new("policer", "bytes", "bucket whose excess is dropped", "none").such_as("policer=100KB"),
    Key::new("technology", "dsl, docsis, wifi, lte, ...", "the client's statement about its access", "unknown")
        .such_as("technology=cable"),
    Key::new("xcp", "on or off", "whether every hop is an XCP router", "off")
        .such_as("xcp=on")
        .only_simulated(|link| link.xcp),
];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_listed_key_is_read_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["lte.down", "lte.up"] {
            fs::write(folder.path().join(file), "1\n2\n3\n").unwrap();
        }
        for Key { name, example, .. } in options() {
            assert!(example.split(',').any(|part| part.starts_with(&format!("{name}="))), "{name}: {example}");
            // A complete link says its RTT.
            let is_complete = example.contains(",rtt=");
            let text = if is_complete { (*example).to_owned() } else { format!("dsl-fast,{example}") };
            Link::parse("--link", &text, folder.path()).unwrap();
        }
        let error = Link::parse("--link", "dsl-fast,nothing=1", folder.path()).unwrap_err();
        assert!(error.problem.ends_with("`flowstart list link-options` shows all"), "{error}");
        let all: Vec<Key> = options().collect();
        assert_eq!(form::declared(&all), crate::spec::link::parser::keys_read());
    }
}
