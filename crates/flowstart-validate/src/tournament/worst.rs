//! Cells that a search found: where Plumb, and the three schemes that beat it most often, are at their worst.
//!
//! `flowstart break` looked for the largest regret, harm and waste of each beside slow start, and for the regret of
//! Plumb beside its three rivals. They joined the design set once, before Plumb was judged.

use super::knowledge::Kind;

/// A cell: link, RTT in milliseconds, queue discipline, size, who else is there, packets for an acknowledgement, and
/// what is known. All carry the model of QUIC.
pub(super) type Found = (&'static str, f64, &'static str, &'static str, &'static str, u32, Kind);

/// Of what is known nothing is left out, so all of it is true where no key of the link says something else.
pub(super) const FOUND: [Found; 12] = [
    // Plumb: regret beside its rivals and beside slow start, harm, waste.
    (
        "rate=80mbit,rtt=100ms,buffer=1bdp,policer=30KB,saved=24mbit/100ms/60s,oracle=24mbit",
        100.0,
        "taildrop",
        "1200KB",
        "cubic",
        10,
        Kind::Contradictory,
    ),
    ("rate=3mbit,rtt=70ms,buffer=1bdp", 70.0, "codel", "1000KB", "none", 2, Kind::HintAndSaved),
    ("rate=32mbit,rtt=180ms,buffer=1bdp", 180.0, "red", "300KB", "reno", 2, Kind::HintAndSaved),
    (
        "rate=70mbit,rtt=40ms,buffer=1bdp,policer=30KB,hint=6.3gbit,saved=6.3gbit/40ms/60s",
        40.0,
        "taildrop",
        "200KB",
        "none",
        2,
        Kind::Contradictory,
    ),
    // Initial-Start, Jump-Start and More-Start: regret, harm, waste, but More-Start's waste.
    ("rate=9mbit,rtt=300ms,buffer=1bdp,policer=30KB", 300.0, "taildrop", "3000KB", "none", 2, Kind::HintAndSaved),
    ("rate=80mbit,rtt=100ms,buffer=1bdp", 100.0, "red", "90KB", "cubic", 2, Kind::HintAndSaved),
    ("rate=1mbit,rtt=30ms,buffer=10pkt", 30.0, "taildrop", "70KB", "cubic", 2, Kind::HintAndSaved),
    ("rate=10mbit,rtt=50ms,buffer=1bdp", 50.0, "fq-codel", "600KB", "none", 2, Kind::HintAndSaved),
    ("rate=7mbit,rtt=200ms,buffer=1bdp,policer=30KB", 200.0, "taildrop", "200KB", "cubic", 2, Kind::HintAndSaved),
    ("rate=6mbit,rtt=10ms,buffer=10pkt", 10.0, "fq-codel", "2000KB", "none", 2, Kind::HintAndSaved),
    ("rate=10mbit,rtt=50ms,buffer=1bdp,hint=1gbit", 50.0, "taildrop", "600KB", "none", 2, Kind::Contradictory),
    ("rate=40mbit,rtt=80ms,buffer=0.2bdp", 80.0, "taildrop", "1000KB", "cubic:count=4", 10, Kind::HintAndSaved),
];
