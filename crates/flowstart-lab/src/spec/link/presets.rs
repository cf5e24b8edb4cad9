//! Links with names: `lte`, or `lte,buffer=1bdp`, where further keys override the preset's.

/// A preset: name, spec, source.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name as users write it.
    pub name: &'static str,
    /// The keys that it stands for.
    pub spec: &'static str,
    /// The source of its numbers.
    pub source: &'static str,
}

/// The presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "dsl-slow",
        spec: "rate=25mbit,rtt=50ms,buffer=104pkt,technology=dsl",
        source: "Blitzstart; the packet count binds",
    },
    Preset { name: "dsl-fast", spec: "rate=50mbit,rtt=50ms,buffer=208pkt,technology=dsl", source: "Blitzstart" },
    Preset { name: "3g", spec: "rate=8mbit,rtt=90ms,buffer=140pkt,technology=3g", source: "Blitzstart" },
    Preset {
        name: "hspa",
        spec: "rate=3.6mbit,rtt=100ms,buffer=300pkt,technology=3g",
        source: "HSDPA category 6 (3.6 Mbit/s); RTT and buffer of 1 s assumed",
    },
    Preset { name: "lte", spec: "rate=32mbit,rtt=70ms,buffer=560pkt,technology=lte", source: "Blitzstart" },
    Preset {
        name: "geo",
        spec: "rate=144mbit,rtt=600ms,buffer=7.2MB,access_rate=150mbit",
        source: "SEARCH; buffer derived from the slides' 1000+ ms and 18+ MB",
    },
    Preset {
        name: "leo",
        spec: "rate=100mbit,rtt=20ms,buffer=100ms,up_rate=15mbit,rate_steps=50%/15s,rtt_steps=20ms/15s",
        source: "Starlink: 50 to 150 Mbit/s and 20 to 40 ms (SpaceX to its first users, 2020), new every 15 s (Mohan et \
                 al., WWW 2024); that all of the range is drawn, uplink and buffer are assumed; no loss at the change",
    },
    Preset {
        name: "5g",
        spec: "rate=900mbit,rtt=25ms,buffer=50ms,up_rate=100mbit,rate_varies=40%/1s",
        source: "mid-band, 3.5 GHz: approaches 1 Gbit/s (Xu et al., SIGCOMM 2020); RTT, uplink, buffer and variation are \
                 assumed, and with it the rate exceeds 1 Gbit/s a third of the time",
    },
    Preset { name: "scharf", spec: "rate=10mbit,rtt=200ms,buffer=1bdp", source: "fast-startup slides; buffer assumed" },
    Preset { name: "qs-chain", spec: "rate=10mbit,rtt=80ms,buffer=150pkt,hops=2", source: "Quick-Start" },
    Preset {
        name: "gprs",
        spec: "rate=384kbit,rtt=1s,buffer=unlimited",
        source: "Quick-Start, figure 1A; buffer assumed",
    },
    Preset {
        name: "10g",
        spec: "rate=10gbit,rtt=160ms,buffer=unlimited,access_rate=100gbit",
        source: "Quick-Start, figure 1B; buffer assumed",
    },
    Preset { name: "ethernet-100m", spec: "rate=100mbit,rtt=50ms,buffer=1bdp", source: "common" },
];
