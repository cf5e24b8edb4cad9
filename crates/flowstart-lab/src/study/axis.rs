//! Axes: what varies between the cells of an experiment, each declared once.
//!
//! From a declaration in `axes!` below follow its key in scenario files, its options of `compare`, `trace` and
//! `explain`, its list in `Plan`, its place in `Cell`, the nesting of cells, the number of runs, the names of cells,
//! its part of an experiment's identity, its field in `summary.json`, its column on the terminal, and its place in the
//! sentences of answers. Rows name it in `cell`; their other columns of identity are declared in `results/row.rs`. To
//! add an axis:
//!
//! 1. write what users may write in a file of `spec`;
//! 2. declare it below;
//! 3. read it in `Scenario::plan`, where the compiler misses it;
//! 4. use `plan.list[cell.place]` where a run meets it, in `run`.
//!
//! The order of declarations is the nesting of cells and of results, the outermost first.

/// The part of a run that an axis belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The world in which newcomers meet others. Cells with the same world share a warm-up.
    World,
    /// The newcomers.
    Newcomers,
}

/// The appearance of an axis in the names of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Always shown, in this place.
    At(usize),
    /// Behind all others with this prefix, unless it is the default.
    Otherwise(&'static str),
    /// Behind all others with this prefix, if there are several.
    Several(&'static str),
}

impl Shown {
    /// Its place among the axes in a name.
    pub fn order(self) -> usize {
        if let Self::At(place) = self { place } else { usize::MAX }
    }

    /// The prefix of its text.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::At(_) => "",
            Self::Otherwise(prefix) | Self::Several(prefix) => prefix,
        }
    }
}

/// A key of scenario files, and the option of that name.
#[derive(Debug)]
pub struct Key {
    /// The user's text.
    pub name: &'static str,
    /// The name of its values in help.
    pub takes: &'static str,
    /// When it must be given.
    pub need: Need,
    /// The default, if there is one.
    pub default: Option<&'static str>,
    /// Help for commands that take several values. Its first sentence is the short help.
    pub several: &'static str,
    /// Help for commands that take one value. Commands that run one cell have their own text for schemes.
    pub one: Option<&'static str>,
}

/// When a key must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Always.
    Always,
    /// If another key is absent.
    Without(&'static str),
    /// Never.
    Never,
}

/// Calls a macro with all axes.
// The formatter moves lines of continued strings in macros.
#[rustfmt::skip]
macro_rules! axes {
    ($define:ident) => {
        $define! {
            World {
                {
                    /// Links.
                    links: Vec<Link>, place: link, shown: Shown::At(0), carried: false,
                    plural: "links",
                    meaning: |plan| format!("{:?}", plan.links.iter().map(without_files).collect::<Vec<_>>()),
                    keys: {
                        link = "link" {
                            takes: "LINK", need: Need::Always, default: None,
                            several: "Links. A preset, such as lte, also with keys that change it, lte,buffer=1bdp; \
                                      or a link of your own, rate=25mbit,rtt=50ms,buffer=50ms, also with a name for \
                                      results, cable=rate=25mbit,rtt=50ms. See `flowstart list links` and `flowstart \
                                      list link-options`",
                            one: Some("The link. A preset, such as lte, also with keys that change it, \
                                      lte,buffer=1bdp; or a link of your own, rate=25mbit,rtt=50ms,buffer=50ms, also \
                                      with a name for results, cable=rate=25mbit,rtt=50ms. See `flowstart list \
                                      links` and `flowstart list link-options`. Not with --cell"),
                        }
                    }
                }
                {
                    /// Queue disciplines.
                    aqms: Vec<Written<Aqm>>, place: aqm, shown: Shown::At(1), carried: false,
                    plural: "AQMs",
                    meaning: |plan| format!("{:?}", plan.aqms),
                    keys: {
                        #[serde(default = "default_aqm", deserialize_with = "some")]
                        #[serde(skip_serializing_if = "Vec::is_empty")]
                        aqm = "aqm" {
                            takes: "AQM", need: Need::Never, default: Some("taildrop"),
                            several: "Queue disciplines of the link. With parameters, codel:target=5ms. See \
                                      `flowstart list aqms`",
                            one: Some("Queue discipline of the link. With parameters, codel:target=5ms. See \
                                      `flowstart list aqms`"),
                        }
                    }
                }
                {
                    /// The other users of the link.
                    competitors: Vec<PerTransport<Competitor>>, place: competitor, shown: Shown::At(4), carried: false,
                    plural: "competitors",
                    meaning: |plan| plan.on_each(|transport| format!("{:?}", written(&plan.competitors, transport))),
                    keys: {
                        #[serde(default = "default_competitor", deserialize_with = "some")]
                        #[serde(skip_serializing_if = "Vec::is_empty")]
                        competitor = "competitor" {
                            takes: "KIND", need: Need::Never, default: Some("none"),
                            several: "Other users of the link. Such as none, cubic, bulk:cubic,count=2, \
                                      cbr:rate=5mbit or web:load=5mbit. See `flowstart list competitors`",
                            one: Some("Other users of the link. Such as none, cubic, bulk:cubic,count=2, \
                                      cbr:rate=5mbit or web:load=5mbit. See `flowstart list competitors`"),
                        }
                    }
                }
                {
                    /// The transports of all flows, at least one.
                    transports: Vec<Transport>, place: transport, shown: Shown::Several(""), carried: false,
                    plural: "transports",
                    meaning: |plan| plan.on_each(|transport| format!("{:?}", plan.transports[transport])),
                    keys: {
                        #[serde(default = "default_transport", with = "one_or_several")]
                        #[serde(skip_serializing_if = "Vec::is_empty")]
                        transport = "transport" {
                            takes: "NAME", need: Need::Never, default: Some(DEFAULT_TRANSPORT),
                            several: "Transports of all flows. model-quic or model-tcp, with `:profile=NAME` and \
                                      policies; quic: the measured flows are the real QUIC stack noq; both: \
                                      model-quic and quic. See `flowstart list transports`",
                            one: Some("Transport of all flows. model-quic or model-tcp, with `:profile=NAME` and \
                                      policies; or quic: the measured flows are the real QUIC stack noq. See \
                                      `flowstart list transports`"),
                        }
                    }
                }
                {
                    /// Where runs happen, at least one.
                    worlds: Vec<World>, place: world, shown: Shown::Otherwise("world="), carried: false,
                    plural: "worlds",
                    meaning: |plan| format!("{:?}", plan.worlds),
                    keys: {
                        #[serde(default, with = "one_or_several", skip_serializing_if = "Vec::is_empty")]
                        world = "world" {
                            takes: "WORLD", need: Need::Never, default: Some(SIMULATOR),
                            several: "Where runs happen. simulator, or sockets: real QUIC (--transport quic) or the \
                                      kernel's TCP (--transport model-tcp) between two network namespaces of this \
                                      machine, over the link in real time (Linux, root)",
                            one: None,
                        }
                    }
                }
            }
            Newcomers {
                {
                    /// The traffic of the measured flows.
                    sizes: Vec<Written<Workload>>, place: size, shown: Shown::At(2), carried: true,
                    plural: "sizes",
                    meaning: |plan| format!("{:?}", plan.sizes),
                    keys: {
                        #[serde(default, skip_serializing_if = "Vec::is_empty")]
                        size = "size" {
                            takes: "SIZE", need: Need::Without("application"), default: None,
                            several: "Transfer sizes, such as 70KB or 2MB. KB is 1000 bytes, KiB is 1024. A \
                                      distribution is pareto:mean=100KB,shape=1.2, with smallest in place of mean, \
                                      and largest",
                            one: Some("The transfer's size, such as 70KB or 2MB. KB is 1000 bytes, KiB is 1024. Not \
                                      with --cell"),
                        }
                        #[serde(default, skip_serializing_if = "Vec::is_empty")]
                        application = "application" {
                            takes: "KIND", need: Need::Never, default: Some(TRANSFER),
                            several: "What flows carry. Such as transfer, which needs --size, \
                                      chunks:size=1MB,interval=2s,count=30, page:objects=6,size=50KB,waves=3 or \
                                      video:count=30, which take no --size. See `flowstart list applications`",
                            one: Some("What the flow carries. Such as transfer, which needs --size, \
                                      chunks:size=1MB,interval=2s,count=30, page:objects=6,size=50KB,waves=3 or \
                                      video:count=30, which take no --size. See `flowstart list applications`"),
                        }
                    }
                }
                {
                    /// The starts of the measured flows.
                    arrivals: Vec<Written<Arrival>>, place: arrival, shown: Shown::Otherwise(""), carried: false,
                    plural: "arrivals",
                    meaning: |plan| format!("{:?}", plan.arrivals),
                    keys: {
                        #[serde(default, skip_serializing_if = "Vec::is_empty")]
                        arrival = "arrival" {
                            takes: "WHEN", need: Need::Never, default: Some(TOGETHER),
                            several: "When measured flows start. together, every=100ms, within=10ms or \
                                      poisson:load=5mbit, each with flows=N, and with rtts=20ms/80ms/200ms, of which \
                                      each flow draws one in place of the link's",
                            one: Some("When measured flows start. together, every=100ms, within=10ms or \
                                      poisson:load=5mbit, each with flows=N, and with rtts=20ms/80ms/200ms, of which \
                                      each flow draws one in place of the link's"),
                        }
                    }
                }
                {
                    /// The effect of idle time on the windows of the measured flows; empty: the transport's.
                    idle: Vec<WindowValidation>, place: idle, shown: Shown::Otherwise("idle="), carried: true,
                    plural: "idle policies",
                    meaning: |plan| format!("{:?}", plan.idle),
                    keys: {
                        #[serde(default, skip_serializing_if = "Vec::is_empty")]
                        idle = "idle" {
                            takes: "POLICY", need: Need::Never, default: None,
                            several: "What idle time does to windows. keep, rfc5681, rfc2861, linux, rfc7661 or \
                                      startup (the scheme runs again); without it what the transport says, for all \
                                      flows",
                            one: Some("What idle time does to windows. keep, rfc5681, rfc2861, linux, rfc7661 or \
                                      startup (the scheme runs again); without it what the transport says, for all \
                                      flows"),
                        }
                    }
                }
                {
                    /// Changes of the measured flows' path.
                    moves: Vec<Written<Option<Move>>>, place: mobility, shown: Shown::Otherwise("move:"), carried: true,
                    plural: "mobilities",
                    meaning: |plan| {
                        let link = |to: &mobility::Move| (to.at, without_files(&to.link));
                        let moves = plan.moves.iter().map(|one| (&one.text, one.value.as_ref().map(link)));
                        format!("{:?}", moves.collect::<Vec<_>>())
                    },
                    keys: {
                        #[serde(default, skip_serializing_if = "Vec::is_empty")]
                        mobility = "move" {
                            takes: "MOVE", need: Need::Never, default: Some(mobility::NONE),
                            several: "Change of the flows' path. none, or the new link with `at`, the time from a \
                                      flow's start: at=2s,rate=5mbit,rtt=80ms or lte,at=2s. The measured flows have \
                                      the new path for themselves, and nothing is known of it. See `flowstart list \
                                      link-options`",
                            one: Some("Change of the flow's path. none, or the new link with `at`, the time from a \
                                      flow's start: at=2s,rate=5mbit,rtt=80ms or lte,at=2s. The measured flows have \
                                      the new path for themselves, and nothing is known of it. See `flowstart list \
                                      link-options`"),
                        }
                    }
                }
                {
                    /// Congestion avoidance of the measured flows whose scheme names none; empty: the transport's.
                    avoidances: Vec<PerTransport<AvoidanceConfig>>, place: avoidance,
                    shown: Shown::Several("avoidance="), carried: false,
                    plural: "congestion avoidances",
                    meaning: |plan| plan.on_each(|transport| match &*plan.avoidances {
                        [] => format!("{:?}", plan.transports[transport].own_avoidance()),
                        [one] => format!("{:?}", one.written(transport)),
                        several => format!("{:?}", written(several, transport)),
                    }),
                    keys: {
                        #[serde(default, with = "one_or_several", skip_serializing_if = "Vec::is_empty")]
                        avoidance = "avoidance" {
                            takes: "NAME", need: Need::Never, default: None,
                            several: "Congestion avoidance of measured flows. With parameters, cubic:beta_ecn=0.85. \
                                      Default: the transport profile's. See `flowstart list avoidance`",
                            one: Some("Congestion avoidance of measured flows. With parameters, \
                                      cubic:beta_ecn=0.85. Default: the transport profile's. See `flowstart list \
                                      avoidance`"),
                        }
                    }
                }
                {
                    /// Startup schemes; the first is the baseline.
                    schemes: Vec<PerTransport<StartupConfig>>, place: scheme, shown: Shown::At(3), carried: false,
                    plural: "schemes",
                    meaning: |plan| {
                        let several = plan.scheme_connections.iter().any(|count| *count > 1);
                        let connections = if several { format!("{:?}", plan.scheme_connections) } else { String::new() };
                        plan.on_each(|transport| {
                            format!("{:?}", (written(&plan.schemes, transport), &plan.scheme_avoidances[transport]))
                        }) + &connections
                    },
                    keys: {
                        scheme = "scheme" {
                            takes: "SCHEME", need: Need::Always, default: None,
                            several: "Startup schemes (the first is the baseline). With parameters, \
                                      blitzstart:estimate=1.5, with a congestion avoidance of its own, \
                                      slow-start:avoidance=bbr, and with several connections for a transfer, \
                                      slow-start:connections=6. See `flowstart list schemes`",
                            one: None,
                        }
                    }
                }
            }
        }
    };
}
pub(in crate::study) use axes;
