//! Competitors, the other users of the link: `none`, `bulk:cubic,count=2`, `reno`, `cbr:rate=5mbit`, `web:load=5mbit`.
//! [`FORMS`] has their keys and the defaults.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::needs::Needs;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::arrivals::Sizes;
use flowstart_sim::traffic::call::{self, Call, PACE};
use flowstart_sim::traffic::media::{Media, Playout};
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::requests::Requests;

use super::algorithm::{avoidance_of_host, host_scheme, startup};
use super::arrival::LONGEST_GAP;
use super::form::{self, Form, Key};
use super::size::{TransferSize, distributed};
use super::{InputError, RATES, Spec, Written, host_avoidance};

/// The other users of the link.
#[derive(Clone, Debug, PartialEq)]
pub enum Competitor {
    /// Nothing.
    None,
    /// Established bulk flows.
    Bulk {
        /// Their number.
        count: u32,
        /// Their startup scheme.
        startup: StartupConfig,
        /// Their congestion avoidance.
        avoidance: AvoidanceConfig,
    },
    /// Traffic without congestion control, or an application that limits its own rate.
    Pattern {
        /// Number of flows.
        count: u32,
        /// The traffic of each.
        pattern: Pattern,
    },
    /// Ordinary transfers that start within an RTT of the first measured flow, or one after another from its start on.
    Short {
        /// Their number.
        count: u32,
        /// Payload of each.
        size: Bytes,
        /// Time between two consecutive starts; absent: all within an RTT.
        every: Option<Duration>,
        /// Their startup scheme.
        startup: StartupConfig,
        /// Their congestion avoidance.
        avoidance: AvoidanceConfig,
    },
    /// Short flows that come and go.
    Web {
        /// Offered load.
        load: Rate,
        /// Their sizes.
        sizes: Sizes,
        /// Their startup scheme; `None`: the transport's.
        startup: Option<StartupConfig>,
        /// Rate of their receivers' own link; `None`: the rate of all hosts.
        receiver_rate: Option<Rate>,
    },
    /// Requests of Quick-Start without connections.
    Requests(Requests),
}

/// Most requests of an attacker.
const MOST_REQUESTS: u64 = 1_000_000_000;
/// Most packets of competitors with a rate, per second: 12 Gbit/s of full packets.
const MOST_PACKETS: f64 = 1e6;

/// What users may write. A bare congestion avoidance is one bulk flow of it.
pub const FORMS: &[Form] = &[
    Form { name: "none", summary: "nobody else uses the link", example: "none", keys: &[] },
    Form {
        name: "bulk",
        summary: "established long transfers; bulk:AVOIDANCE chooses their congestion avoidance",
        example: "bulk:cubic,count=2",
        keys: BULK,
    },
    Form {
        name: AVOIDANCE,
        summary: "the same as bulk:AVOIDANCE; further keys are those of the congestion avoidance",
        example: "cubic",
        keys: BULK,
    },
    Form {
        name: "cbr",
        summary: "constant rate without congestion control",
        example: "cbr:rate=5mbit",
        keys: &[
            Key::new("rate", "a rate", "rate of each flow", ""),
            Key::new("packet", "100B to 65KB", "size of a packet", "1500B"),
            Key::new("count", "1 to 10000", "number of flows", "1"),
        ],
    },
    Form {
        name: "onoff",
        summary: "constant rate that comes and goes at random",
        example: "onoff:rate=5mbit,on=200ms,off=1s",
        keys: &[
            Key::new("rate", "a rate", "rate while it is on", ""),
            Key::new("on", "a time", "mean time on", "500ms"),
            Key::new("off", "a time", "mean time off", "500ms"),
            Key::new("count", "1 to 10000", "number of flows", "1"),
        ],
    },
    Form {
        name: "media",
        summary: "interactive audio, with the delay and the losses that a listener gets",
        example: "media:rate=32kbit,interval=20ms,playout=adaptive",
        keys: &[
            Key::new("rate", "a rate", "rate of the codec", "32kbit"),
            Key::new("interval", "2.5ms to 120ms", "time between two packets", "20ms"),
            Key::new("playout", "a time, or adaptive", "playout buffer", "60ms"),
            Key::new("count", "1 to 10000", "number of flows", "1"),
        ],
    },
    Form {
        name: "call",
        summary: "a video call without congestion control: frames, key frames and the deadline of each",
        example: "call:rate=2.5mbit",
        keys: &[
            Key::new("rate", "a rate", "mean rate of the video, without headers", ""),
            Key::new("fps", "frames per second", "frames per second", "30"),
            Key::new("key", "a time", "time between key frames", "1s"),
            Key::new("deadline", "a time", "time until a frame must be shown", "150ms"),
            Key::new("pace", "1 to 100", "pacing rate of a frame's packets over the mean rate", "2.5"),
            Key::new("count", "1 to 10000", "number of calls", "1"),
        ],
    },
    Form {
        name: "web",
        summary: "short transfers that come at random and end",
        example: "web:load=5mbit",
        keys: &[
            Key::new("load", "a rate", "offered load", ""),
            Key::new("startup", "a scheme", "their startup scheme", "the transport's"),
            Key::new("receiver_rate", "a rate", "rate of their receivers' own links", "that of all hosts"),
            Key::new("smallest", "bytes", "smallest transfer", "4KB"),
            Key::new("mean", "bytes", "mean size; the smallest follows from it", "none"),
            Key::new("largest", "bytes", "largest transfer", "10MB"),
            Key::new("shape", "0.1 to 10", "shape of the Pareto distribution of sizes", "1.2"),
        ],
    },
    Form {
        name: "short",
        summary: "transfers that start with the measured ones, and whose delay is measured",
        example: "short:size=70KB,count=8",
        keys: &[
            Key::new("size", "bytes", "size of each", "70KB"),
            Key::new("count", "1 to 10000", "number of transfers", "8"),
            Key::new("every", "a time", "time between two starts", "all within an RTT"),
            Key::new("startup", "a scheme", "their startup scheme", "slow-start"),
            Key::new("avoidance", "a congestion avoidance", "their congestion avoidance", "the transport's"),
        ],
    },
    Form {
        name: "request-flood",
        summary: "an attacker who sends many small rate requests of Quick-Start",
        example: "request-flood:rate=1000",
        keys: REQUESTS,
    },
    Form {
        name: "bogus-requests",
        summary: "an attacker who sends large rate requests of Quick-Start",
        example: "bogus-requests:rate=10,confirm=80ms",
        keys: REQUESTS,
    },
];

/// What stands for the names of congestion avoidance.
pub const AVOIDANCE: &str = "AVOIDANCE";

/// The keys of established transfers, beside those of their congestion avoidance.
const BULK: &[Key] = &[
    Key::new("count", "1 to 10000", "number of flows", "1"),
    Key::new("startup", "a scheme", "their startup scheme", "the transport's"),
    Key::new("iw", "segments", "initial window of their startup scheme", "the scheme's"),
];

/// The keys of attackers.
const REQUESTS: &[Key] = &[
    Key::new("rate", "0.001 to 1000000", "requests per second", ""),
    Key::new("count", "a number", "number of requests", "no end"),
    Key::new("ask", "a rate", "requested rate", "80kbit; bogus-requests: the highest"),
    Key::new("spoofed", "true or false", "whether the senders are forged", "true"),
    Key::new("confirm", "1ms to 60s", "time until an approval is reported", "never"),
];

impl Competitor {
    /// Reads a competitor. `profile` is the transport of all flows.
    pub fn parse(field: &str, text: &str, profile: &Profile) -> Result<Written<Self>, InputError> {
        let mut spec = Spec::parse(field, text)?;
        // Nor would they stand behind a colon.
        if text.split_once(',').is_some_and(|(name, _)| names::is_same(name.trim(), "none")) {
            return Err(spec.refused("none has no keys; allowed is none alone"));
        }
        let forms: Vec<&str> = form::names(FORMS).into_iter().filter(|name| *name != AVOIDANCE).collect();
        let names = [&forms[..], AvoidanceConfig::NAMES].concat();
        let allowed = "`flowstart list competitors` shows all";
        let value = match spec.choose(&names, allowed)? {
            "none" => {
                spec.finish()?;
                Self::None
            }
            "bulk" => bulk(field, &mut spec, None, profile)?,
            "cbr" => constant(&mut spec)?,
            "onoff" => on_off(&mut spec)?,
            "media" => media(&mut spec)?,
            "call" => call(&mut spec)?,
            "web" => web(field, &mut spec, profile)?,
            "request-flood" => requests(&mut spec, Rate::from_bits_per_sec(80_000))?,
            "bogus-requests" => requests(&mut spec, RateCode::MAX.rate())?,
            "short" => short(field, &mut spec, profile)?,
            avoidance => bulk(field, &mut spec, Some(avoidance), profile)?,
        };
        Ok(Written { text: text.to_owned(), value })
    }

    /// Congestion avoidance of its flows, if the user chose one.
    pub fn avoidance(&self) -> Option<&AvoidanceConfig> {
        match self {
            Self::Bulk { avoidance, .. } | Self::Short { avoidance, .. } => Some(avoidance),
            Self::None | Self::Pattern { .. } | Self::Web { .. } | Self::Requests(_) => None,
        }
    }

    /// The flows' parameters, if they are interactive media.
    pub fn media(&self) -> Option<&Media> {
        match self {
            Self::Pattern { pattern: Pattern::Media(media), .. } => Some(media),
            _ => None,
        }
    }

    /// The flows' parameters, if they are video calls.
    pub fn call(&self) -> Option<&Call> {
        match self {
            Self::Pattern { pattern: Pattern::Call(call), .. } => Some(call),
            _ => None,
        }
    }

    /// Whether its flows are transfers with comparable completion times.
    pub fn has_transfers(&self) -> bool {
        matches!(self, Self::Short { .. })
    }
}

fn count(spec: &mut Spec<'_>) -> Result<Option<u32>, InputError> {
    spec.within("count", 1..=10_000)
}

/// The startup scheme given by `startup`.
fn named_startup(field: &str, spec: &mut Spec<'_>, profile: &Profile) -> Result<Option<StartupConfig>, InputError> {
    spec.value("startup")?.map(|text| host_scheme(field, text, profile)).transpose()
}

/// Refuses a startup scheme that is incompatible with the congestion avoidance.
fn check_pair(spec: &Spec<'_>, startup: &StartupConfig, avoidance: &AvoidanceConfig) -> Result<(), InputError> {
    if startup.needs().contains(Needs::SHARED_WINDOW) {
        return Err(spec.refused(format_args!("{}; the measured flows alone share a window", startup.name())));
    }
    ControllerConfig::validate_pair(startup, avoidance).map_err(|error| spec.refused(error))
}

/// `algorithm` is the congestion avoidance given in place of the competitor's name.
fn bulk(
    field: &str,
    spec: &mut Spec<'_>,
    algorithm: Option<&str>,
    profile: &Profile,
) -> Result<Competitor, InputError> {
    let flows = count(spec)?;
    let named = named_startup(field, spec, profile)?;
    let iw = spec.value("iw")?;
    // All other keys belong to the competitor's congestion avoidance.
    let name = algorithm.or_else(|| spec.word()).unwrap_or(profile.avoidance.name());
    let avoidance = avoidance_of_host(&spec.rest_as(name), profile, BULK)?;
    let mut config = named.unwrap_or_else(|| profile.startup_beside(&avoidance));
    if let Some(iw) = iw {
        let with_window = format!("{}:iw={iw}", config.name());
        config = startup(&Spec::parse(field, &with_window)?, &config, &[])?;
    }
    check_pair(spec, &config, &avoidance)?;
    Ok(Competitor::Bulk { count: flows.unwrap_or(1), startup: config, avoidance })
}

impl Competitor {
    /// Packets per second, in the mean, that it sends whatever the link does with them: all of them, but those of short
    /// flows, are without congestion control.
    pub fn packets_per_s(&self) -> f64 {
        match self {
            Self::None | Self::Bulk { .. } | Self::Short { .. } => 0.0,
            Self::Pattern { count, pattern } => f64::from(*count) * pattern.unresponsive_packets_per_s(),
            Self::Web { load, .. } => load.bits_per_sec() as f64 / PACKET_BITS,
            Self::Requests(requests) => 1.0 / requests.interval.as_secs().max(1e-9),
        }
    }
}

/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// Refuses what is more packets than any run would end with.
fn check_packets(spec: &Spec<'_>, rate: Rate, packet: Bytes, count: u32) -> Result<(), InputError> {
    let packets = rate.bits_per_sec() as f64 / 8.0 / packet.get() as f64 * f64::from(count);
    if packets > MOST_PACKETS {
        return Err(spec.refused(format_args!(
            "{packets:.0} packets per second of all {count} together; allowed are {MOST_PACKETS:.0}"
        )));
    }
    Ok(())
}

fn constant(spec: &mut Spec<'_>) -> Result<Competitor, InputError> {
    let rate = spec.within("rate", RATES)?;
    let count = count(spec)?.unwrap_or(1);
    let packet = spec.within("packet", Bytes::new(100)..=Bytes::new(65_000))?.unwrap_or(Bytes::new(1500));
    spec.finish()?;
    let rate = rate.ok_or_else(|| spec.refused("rate is missing, as in cbr:rate=5mbit"))?;
    check_packets(spec, rate, packet, count)?;
    Ok(Competitor::Pattern { count, pattern: Pattern::ConstantRate { rate, packet: packet.get() as u32 } })
}

fn on_off(spec: &mut Spec<'_>) -> Result<Competitor, InputError> {
    let means = Duration::from_millis(1)..=Duration::from_millis(1_000_000);
    let half = Duration::from_millis(500);
    let rate = spec.within("rate", RATES)?;
    let mean_on = spec.within("on", means.clone())?.unwrap_or(half);
    let mean_off = spec.within("off", means)?.unwrap_or(half);
    let count = count(spec)?.unwrap_or(1);
    spec.finish()?;
    let rate = rate.ok_or_else(|| spec.refused("rate is missing, as in onoff:rate=5mbit"))?;
    check_packets(spec, rate, Bytes::new(1500), count)?;
    Ok(Competitor::Pattern { count, pattern: Pattern::OnOff { rate, mean_on, mean_off } })
}

/// Interactive media. The defaults are Opus at 32 kbit/s in packets of 20 ms (RFC 7587) and a playout buffer of 60 ms.
fn media(spec: &mut Spec<'_>) -> Result<Competitor, InputError> {
    let intervals = Duration::from_micros(2_500)..=Duration::from_millis(120);
    let rate = spec.within("rate", RATES)?.unwrap_or(Rate::from_bits_per_sec(32_000));
    let interval = spec.within("interval", intervals)?.unwrap_or(Duration::from_millis(20));
    let playout = spec.read_with("playout", |text| {
        if names::is_same(text, "adaptive") {
            return Ok(Playout::Adaptive);
        }
        match text.parse::<Duration>() {
            Ok(buffer) if buffer > Duration::from_millis(10_000) => {
                Err(format!("`{text}`: allowed is 0s to 10s, or adaptive"))
            }
            Ok(buffer) => Ok(Playout::Fixed(buffer)),
            Err(error) => Err(format!("{error}; or adaptive")),
        }
    })?;
    let count = count(spec)?.unwrap_or(1);
    spec.finish()?;
    let media = Media { rate, interval, playout: playout.unwrap_or(Playout::Fixed(Duration::from_millis(60))) };
    let payload = media.payload().get();
    if !(1..=1_400).contains(&payload) {
        let problem = format_args!("rate and interval make packets of {payload} B; allowed is 1 B to 1400 B");
        return Err(spec.refused(problem));
    }
    Ok(Competitor::Pattern { count, pattern: Pattern::Media(media) })
}

/// A video call. Its rate has no default, because calls differ by a factor of ten.
fn call(spec: &mut Spec<'_>) -> Result<Competitor, InputError> {
    let rates = Rate::from_bits_per_sec(50_000)..=Rate::from_mbit(1_000);
    let rate = spec.within("rate", rates)?;
    let fps = spec.within("fps", 1..=240)?.unwrap_or(30);
    let keys = Duration::from_millis(100)..=Duration::from_millis(1_000_000);
    let key = spec.within("key", keys)?.unwrap_or(Duration::from_millis(1000));
    let deadlines = Duration::from_millis(1)..=Duration::from_millis(10_000);
    let deadline = spec.within("deadline", deadlines)?.unwrap_or(Duration::from_millis(150));
    let pace = spec.within("pace", 1.0..=100.0)?.unwrap_or(PACE);
    let count = count(spec)?.unwrap_or(1);
    spec.finish()?;
    let rate =
        rate.ok_or_else(|| spec.refused("rate is missing, as in call:rate=2.5mbit; allowed is 50kbit to 1gbit"))?;
    check_packets(spec, rate, Bytes::new(call::PAYLOAD.into()), count)?;
    Ok(Competitor::Pattern { count, pattern: Pattern::Call(Call { rate, fps, key, deadline, pace }) })
}

fn web(field: &str, spec: &mut Spec<'_>, profile: &Profile) -> Result<Competitor, InputError> {
    let load = spec.within("load", RATES)?;
    let startup = named_startup(field, spec, profile)?;
    let receiver_rate = spec.within("receiver_rate", RATES)?;
    let sizes = distributed(spec)?;
    spec.finish()?;
    if let Some(startup) = &startup {
        check_pair(spec, startup, &profile.avoidance)?;
    }
    let load = load.ok_or_else(|| spec.refused("load is missing, as in web:load=5mbit"))?;
    // Gaps that round to zero would make endless arrivals.
    if load.bits_per_sec() as f64 > 8e6 * sizes.mean() {
        return Err(spec.refused("more than a million transfers a second; choose a smaller load"));
    }
    Ok(Competitor::Web { load, sizes, startup, receiver_rate })
}

/// Requests without connections. `ask` is the default of the requested rate.
fn requests(spec: &mut Spec<'_>, ask: Rate) -> Result<Competitor, InputError> {
    let (written, per_second) = (spec.value("rate")?.unwrap_or_default(), spec.read::<f64>("rate")?);
    if per_second.is_some_and(|rate| !(0.001..=1e6).contains(&rate)) {
        let problem = format_args!("rate: {written} requests per second; allowed is 0.001 to 1000000");
        return Err(spec.refused(problem));
    }
    let count = spec.within("count", 1..=MOST_REQUESTS)?;
    let ask = spec.within("ask", RATES)?.unwrap_or(ask);
    let spoofed = spec.read("spoofed")?.unwrap_or(true);
    let confirm = spec.within("confirm", Duration::from_millis(1)..=Duration::from_millis(60_000))?;
    spec.finish()?;
    let per_second = per_second.ok_or_else(|| spec.refused("rate is missing, as in request-flood:rate=1000"))?;
    let interval = Duration::from_secs(1.0 / per_second);
    Ok(Competitor::Requests(Requests { interval, count, ask, spoofed, confirm }))
}

fn short(field: &str, spec: &mut Spec<'_>, profile: &Profile) -> Result<Competitor, InputError> {
    let size = match spec.value("size")? {
        None => Bytes::new(70_000),
        Some(size) => match TransferSize::parse(field, size)?.value {
            TransferSize::Fixed(size) => size,
            _ => return Err(spec.refused("size: one size, such as 70KB")),
        },
    };
    let count = count(spec)?.unwrap_or(8);
    let every = spec.within("every", Duration::ZERO..=LONGEST_GAP)?;
    let startup = match named_startup(field, spec, profile)? {
        Some(startup) => startup,
        None => host_scheme(field, "slow-start", profile)?,
    };
    let avoidance = match spec.value("avoidance")? {
        Some(text) => host_avoidance(field, text, profile)?.value,
        None => profile.avoidance.clone(),
    };
    spec.finish()?;
    check_pair(spec, &startup, &avoidance)?;
    Ok(Competitor::Short { count, size, every, startup, avoidance })
}

#[cfg(test)]
mod tests {
    use flowstart_core::avoidance::bbr;
    use flowstart_core::startup::slow_start;

    use super::*;

    fn parse(text: &str) -> Result<Competitor, InputError> {
        let profile = Profile::named("gquic").unwrap();
        Competitor::parse("--competitor", text, &profile).map(|written| written.value)
    }

    #[test]
    fn a_bare_avoidance_is_one_bulk_flow_of_it() {
        assert_eq!(parse("cubic").unwrap(), parse("bulk:cubic").unwrap());
        assert_eq!(parse("bulk").unwrap(), parse("cubic").unwrap());
        assert_ne!(parse("cubic:connections=1").unwrap(), parse("cubic").unwrap());
        let Competitor::Bulk { count, avoidance, .. } = parse("bulk:reno,count=3,iw=10").unwrap() else {
            panic!("a bulk competitor")
        };
        assert_eq!((count, avoidance.name()), (3, "reno"));
    }

    #[test]
    fn a_competitor_that_probes_by_itself_starts_with_the_plain_window_unless_told_otherwise() {
        // The profile's own startup is hystart.
        let Competitor::Bulk { startup, avoidance, .. } = parse("bulk:bbr,iw=20").unwrap() else {
            panic!("a bulk competitor")
        };
        assert_eq!((startup.name(), avoidance.name()), ("slow-start", "bbr"));
        let StartupConfig::SlowStart(slow_start::Config { iw, .. }) = startup else { panic!("slow start") };
        assert_eq!(iw, Some(20));
        assert!(parse("bulk:bbr,startup=blitzstart").is_ok());
        let error = parse("bulk:bbr,startup=hystart").unwrap_err().to_string();
        assert!(error.contains("hystart is only a rule for leaving slow start"), "{error}");
    }

    #[test]
    fn the_version_of_a_competitors_avoidance_may_be_chosen() {
        for text in ["bulk:bbr,version=1,count=2", "bbr:version=1,count=2", "bulk:count=2,bbr,version=1"] {
            let Competitor::Bulk { count, avoidance: AvoidanceConfig::Bbr(config), .. } = parse(text).unwrap() else {
                panic!("a bulk competitor under BBR")
            };
            assert_eq!((count, config.version), (2, bbr::Version::One), "{text}");
        }
        let error = |text| parse(text).unwrap_err().to_string();
        assert!(
            error("bulk:bbr,version=2").contains("version is 2; allowed is 1 or 3"),
            "{}",
            error("bulk:bbr,version=2")
        );
        assert!(error("bulk:cubic,version=1").contains("version"), "{}", error("bulk:cubic,version=1"));
    }

    #[test]
    fn short_flows_are_ordinary_unless_told_otherwise() {
        let Competitor::Short { count, size, every, startup, avoidance } = parse("short:size=30KB").unwrap() else {
            panic!("short flows")
        };
        assert_eq!((count, size, every), (8, Bytes::new(30_000), None));
        assert_eq!((startup.name(), avoidance.name()), ("slow-start", "cubic"));
        assert_eq!(parse("short"), parse("short:size=70KB,count=8,startup=slow-start,avoidance=cubic"));
    }

    #[test]
    fn media_is_opus_unless_told_otherwise() {
        let Competitor::Pattern { count: 1, pattern: Pattern::Media(media) } = parse("media").unwrap() else {
            panic!("one media flow")
        };
        assert_eq!((media.packet(), media.playout), (120, Playout::Fixed(Duration::from_millis(60))));
        assert_eq!(parse("media:rate=32kbit,interval=20ms,playout=60ms,count=1"), parse("media"));
        let error = parse("media:rate=10mbit").unwrap_err().to_string();
        assert!(error.contains("packets of 25000 B; allowed is 1 B to 1400 B"), "{error}");
    }

    /// Whoever writes a rate of terabits would wait for ever.
    #[test]
    fn more_than_a_million_packets_a_second_are_refused() {
        for text in ["cbr:rate=12001mbit", "onoff:rate=1000gbit", "cbr:rate=10mbit,packet=100B,count=81"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("packets per second of all ") && error.contains("allowed are 1000000"), "{error}");
        }
        for text in ["cbr:rate=12gbit", "onoff:rate=12gbit", "cbr:rate=10mbit,packet=100B,count=80"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn calls_that_no_run_would_end_with_are_refused() {
        let error = parse("call:rate=1gbit,count=10000").unwrap_err().to_string();
        assert!(error.contains("packets per second of all 10000 together; allowed are 1000000"), "{error}");
    }

    #[test]
    fn a_call_needs_a_rate_and_has_defaults_for_the_rest() {
        let Competitor::Pattern { count: 1, pattern: Pattern::Call(call) } = parse("call:rate=2.5mbit").unwrap() else {
            panic!("one call")
        };
        assert_eq!((call.fps, call.deadline), (30, Duration::from_millis(150)));
        assert_eq!(
            parse("call:rate=2.5mbit,fps=30,key=1s,deadline=150ms,pace=2.5,count=1"),
            parse("call:rate=2.5mbit")
        );
        for text in ["call", "call:fps=30"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("rate is missing, as in call:rate=2.5mbit; allowed is 50kbit to 1gbit"), "{error}");
        }
        let error = parse("call:rate=2gbit").unwrap_err().to_string();
        assert!(error.contains("allowed is 50kbit to 1gbit"), "{error}");
    }

    #[test]
    fn attackers_ask_for_little_in_a_flood_and_for_much_in_bogus_requests() {
        let requests = |text: &str| match parse(text) {
            Ok(Competitor::Requests(requests)) => requests,
            other => panic!("{other:?}"),
        };
        let flood = requests("request-flood:rate=1000,count=5");
        assert_eq!((flood.interval, flood.count, flood.spoofed), (Duration::from_millis(1), Some(5), true));
        assert_eq!(flood.ask, Rate::from_bits_per_sec(80_000));
        let bogus = requests("bogus-requests:rate=10,spoofed=false,confirm=80ms");
        assert_eq!((bogus.ask, bogus.count, bogus.spoofed), (RateCode::MAX.rate(), None, false));
        assert_eq!(bogus.confirm, Some(Duration::from_millis(80)));
        let error = parse("request-flood:rate=1e7").unwrap_err().to_string();
        assert!(error.contains("rate: 1e7 requests per second; allowed is 0.001 to 1000000"), "{error}");
    }

    #[test]
    fn an_initial_window_belongs_to_the_startup_that_is_named_whatever_the_order() {
        assert_eq!(parse("bulk:iw=3,startup=slow-start"), parse("bulk:startup=slow-start,iw=3"));
        assert_eq!(parse("bulk:iw=3,startup=slow-start"), parse("bulk:startup=slow-start:iw=3"));
    }

    #[test]
    fn every_form_that_is_listed_is_read_with_its_keys_and_no_others() {
        for Form { name, example, keys, .. } in FORMS {
            assert!(parse(example).is_ok(), "{example}: {:?}", parse(example));
            // All other keys of a bulk flow are those of its congestion avoidance.
            if keys.is_empty() || [AVOIDANCE, "bulk"].contains(name) {
                continue;
            }
            let error = parse(&format!("{name}:nothing=1")).unwrap_err();
            assert_eq!(form::declared(*keys), form::keys_in(&error), "{name}");
        }
        for key in FORMS[1].keys {
            let value = if key.name == "startup" { "slow-start" } else { "3" };
            assert!(parse(&format!("bulk:{}={value}", key.name)).is_ok(), "{}", key.name);
        }
    }

    #[test]
    fn a_slip_in_a_name_gets_the_name_that_was_meant() {
        for (text, meant) in [("bluk", "bulk"), ("cubik", "cubic"), ("request_floods:rate=1", "request-flood")] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("(did you mean `{meant}`?); `flowstart list")), "{error}");
        }
        assert_eq!(parse("CBR:Rate=5Mbps"), parse("cbr:rate=5mbit"));
    }

    #[test]
    fn a_slip_in_a_key_of_a_bulk_flow_gets_the_key_that_was_meant() {
        for (text, meant) in [
            ("bulk:cuont=2", "`cuont` (did you mean `count`?), expected one of `"),
            ("bulk:cubic,startp=hystart", "`startp` (did you mean `startup`?)"),
            ("reno:coutn=2", "`coutn` (did you mean `count`?)"),
            ("bulk:nothing=1", "`, `count`, `startup`, `iw`"),
            ("none,count=3", "none has no keys; allowed is none alone"),
            ("bulk,count=3", "a colon ends the name; expected is bulk:count=3"),
            ("none:count=3", "`count` is not known here; none has no keys"),
            ("bulk:slow-start", "slow-start is a startup scheme"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(meant), "{error}");
        }
    }

    #[test]
    fn wrong_competitors_are_refused() {
        for text in [
            "bulky",
            "bulk:vegas",
            "cbr",
            "cbr:rate=0mbit",
            "web:load=1mbit,shape=99",
            "bulk:count=0",
            "onoff:rate=1mbit,on=0s",
            "cbr:rate=1mbit,packet=1B",
            "web:load=10000gbit,smallest=1B,largest=2B",
            "web:load=1mbit,smallest=4GB,largest=4EB",
            "web:load=1mbit,count=3",
            "short:size=pareto",
            "media:interval=1ms",
            "media:rate=1kbit,interval=2.5ms",
            "media:playout=11s",
            "media:playout=perhaps",
            "media:load=1mbit",
            "call:rate=1mbit,fps=0",
            "call:rate=1mbit,key=1ms",
            "call:rate=1mbit,deadline=0ms",
            "call:rate=1mbit,pace=0.9",
            "call:rate=1mbit,pace=nan",
            "call:rate=1mbit,playout=60ms",
            "short:count=0",
            "short:startup=hystart,avoidance=bbr",
            "short:load=1mbit",
            "short:every=1001s",
            "web:load=1mbit,receiver_rate=1bit",
            "web:load=1mbit,startup=quickstart",
            "request-flood",
            "request-flood:rate=0",
            "request-flood:rate=1e7",
            "request-flood:rate=1,count=0",
            "bogus-requests:rate=1,ask=0mbit",
            "bogus-requests:rate=1,spoofed=perhaps",
            "bogus-requests:rate=1,confirm=0ms",
            "bogus-requests:rate=1,load=1mbit",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
