//! Links: a preset such as `lte`, a preset with keys that override it, `lte,buffer=1bdp`, or keys alone,
//! `rate=25mbit,rtt=50ms,buffer=50ms` or `trace=FILE,rtt=50ms,buffer=100pkt`.
//! A link may have a name of the user's own, `cable=rate=25mbit,rtt=30ms`, which results show in place of the text.
//! [`options`] has the keys and their defaults.

use std::path::PathBuf;
use std::sync::Arc;

use flowstart_core::aqm::{QueueConfig, QueueLimit};
use flowstart_core::path::AccessTechnology;
use flowstart_core::quantize::Grid;
use flowstart_core::scone::element::Config as AdvisingElement;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::capacity_trace::CapacityTrace;
use flowstart_sim::link::transmitter::Capacity;
use flowstart_sim::link::varying_rate::VaryingRate;
use flowstart_sim::link::wire::{DelaySteps, Jitter, LossModel, Reordering};
use flowstart_sim::transport::handshake::TrainReport;
use serde::Serialize;

use super::routers::Routers;
use super::scone;

mod hint;
mod known;
mod named;
mod options;
mod parser;
mod presets;
mod proxy;
pub(crate) mod recording;
mod variation;

pub use hint::Hinted;
pub use known::{Saved, Told, stated_rate};
pub use options::options;
pub use presets::{PRESETS, Preset};
pub use proxy::{Distribution, Proxy};
pub use variation::Varies;

/// The default rate of hosts' own links, which no transfer notices.
pub const ACCESS_RATE: Rate = Rate::from_mbit(10_000);

/// A buffer as the user wrote it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// No limit.
    Unlimited,
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(Bytes),
    /// As many bytes as the link sends in this time.
    Time(Duration),
    /// This many bandwidth-delay products.
    Bdp(f64),
}

/// The hops that the flows of a competitor cross. Measured flows cross all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cross {
    /// All.
    #[default]
    All,
    /// Only this one, from 0.
    Hop(u32),
    /// Each flow one, the first flow the first hop, and so on in turn.
    Each,
}

impl Cross {
    /// The only hop that the competitor's flow number `place` crosses, of this many.
    pub fn hop_of(self, place: u32, hops: u32) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Hop(hop) => Some(hop),
            Self::Each => Some(place % hops),
        }
    }
}

/// A link as the user described it, with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name that the user gave it, else the text as written: a preset's name, or a spec.
    pub text: String,
    /// What the user's name stands for.
    pub stands_for: Option<String>,
    /// Rate of the bottleneck; the mean rate of a trace.
    pub rate: Rate,
    /// Recorded capacity instead of a rate.
    pub trace: Option<Arc<CapacityTrace>>,
    /// File of the trace.
    pub trace_file: Option<PathBuf>,
    /// Round-trip propagation delay between the routers at both ends.
    pub rtt: Duration,
    /// Buffer in front of the bottleneck.
    pub buffer: Buffer,
    /// Rate of the reverse direction.
    pub up_rate: Rate,
    /// Recorded capacity of the reverse direction.
    pub up_trace: Option<Arc<CapacityTrace>>,
    /// File of that trace.
    pub up_trace_file: Option<PathBuf>,
    /// Buffer of the reverse direction.
    pub up_buffer: Buffer,
    /// Packets of the reverse direction arrive together, once in this time.
    pub up_aggregation: Option<Duration>,
    /// Rate of the hosts' own links.
    pub access_rate: Rate,
    /// Propagation delay of the hosts' own links.
    pub access_delay: Duration,
    /// Variable delay of packets from hosts.
    pub access_jitter: Option<Jitter>,
    /// Bottleneck links in a row.
    pub hops: u32,
    /// The hops that other users cross.
    pub cross: Cross,
    /// How rate and delay vary by themselves.
    pub varies: Varies,
    /// Random loss.
    pub loss: Option<LossModel>,
    /// Variable delay.
    pub jitter: Option<Jitter>,
    /// Reordering.
    pub reordering: Option<Reordering>,
    /// Token bucket.
    pub burst: Option<Bytes>,
    /// Rate at which a token bucket empties.
    pub peak: Rate,
    /// Policer: the bucket whose excess is dropped.
    pub policer: Option<Bytes>,
    /// Whether the buffer limit includes the packet in service.
    pub counts_in_service: bool,
    /// The client's statement about its access.
    pub technology: AccessTechnology,
    /// The bandwidth that the client hints; absent: the bottleneck's rate.
    pub hint: Option<Hinted>,
    /// Hints are rounded down to a grid of this many steps per factor of ten; absent: hints are exact.
    pub hint_grid: Option<Grid>,
    /// What an earlier connection saved of the path.
    pub saved: Told<Saved>,
    /// What a capacity oracle answers.
    pub oracle: Told<Rate>,
    /// What clients of QUIC report of the dispersion of the handshake.
    pub train: Told<Rate>,
    /// Whether repetitions begin at different places of the recording; otherwise all begin at its beginning.
    pub trace_start_varies: bool,
    /// Quick-Start routers.
    pub routers: Option<Routers>,
    /// The element at the bottleneck that advises a rate (SCONE).
    pub advising: Option<AdvisingElement>,
    /// Whether every hop is an XCP router.
    pub xcp: bool,
    /// The proxy in front of the bottleneck that splits the connections of measured flows.
    pub proxy: Option<Proxy>,
}

/// The link with every default filled in, for results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolvedLink {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stands_for: Option<String>,
    pub(crate) rate: String,
    pub(crate) trace: Option<String>,
    pub(crate) rtt: String,
    pub(crate) buffer: String,
    pub(crate) counts: &'static str,
    pub(crate) up_rate: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up_trace: Option<String>,
    pub(crate) up_buffer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up_aggregation: Option<String>,
    pub(crate) access_rate: String,
    pub(crate) access_delay: String,
    pub(crate) access_jitter: Option<String>,
    pub(crate) hops: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cross: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_steps: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_varies: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt_steps: Option<String>,
    pub(crate) loss: Option<String>,
    pub(crate) jitter: Option<String>,
    pub(crate) reorder: Option<String>,
    pub(crate) burst: Option<String>,
    pub(crate) policer: Option<String>,
    pub(crate) technology: AccessTechnology,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint_steps: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) saved: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oracle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handshake_train: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_start: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quick_start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) xcp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pep: Option<String>,
}

impl Link {
    /// What its clients report of the handshake's train.
    pub fn train_report(&self) -> TrainReport {
        match self.train {
            Told::Truth => TrainReport::Measured,
            Told::Nothing => TrainReport::Nothing,
            Told::This(rate) => TrainReport::Stated(rate),
        }
    }

    /// Round-trip propagation delay from host to host.
    pub fn host_rtt(&self) -> Duration {
        self.rtt + self.access_delay * 4
    }

    /// The same link for hosts with this RTT. The RTT beyond the link's own is the delay of their access links, which a
    /// round trip crosses four times.
    pub fn for_hosts(&self, rtt: Duration) -> Self {
        Self { access_delay: rtt.saturating_sub(self.rtt) / 4, ..self.clone() }
    }

    /// The same link in the run with this seed: how it varies is known.
    pub fn in_run(&self, seed: u64) -> Self {
        Self { varies: Varies { seed: Some(seed), ..self.varies }, ..self.clone() }
    }

    /// Whether the bottleneck sends at one rate.
    pub fn has_fixed_rate(&self) -> bool {
        self.trace.is_none() && self.varies.rate.is_none() && self.burst.is_none()
    }

    /// Whether rate and delay are constant, and nothing but queues comes between the hosts.
    pub fn is_steady(&self) -> bool {
        let constant = self.has_fixed_rate() && self.varies.delay.is_none();
        constant && self.up_aggregation.is_none() && self.policer.is_none() && !self.xcp && self.proxy.is_none()
    }

    /// Whether it is one steady hop, of which closed forms hold.
    pub fn is_plain(&self) -> bool {
        self.is_steady() && self.hops == 1
    }

    /// The time when the last of these bytes has left a bottleneck that is busy from `begin` on. A rate that varies
    /// counts as its mean if the run is not known.
    pub fn carry(&self, begin: Timestamp, wire: Bytes) -> Timestamp {
        match (&self.trace, self.varies.curve(self.rate)) {
            (Some(trace), _) => trace.finish_after(begin, wire),
            (None, Some(curve)) => curve.finish_after(begin, wire),
            (None, None) => begin + self.rate.time_for(wire),
        }
    }

    /// Bandwidth-delay product at the base RTT.
    pub fn bdp(&self) -> Bytes {
        self.rate.amount_in(self.rtt)
    }

    /// What is under way and in the buffer when the buffer begins to overflow; `None` if it never does.
    pub fn holds(&self) -> Option<Bytes> {
        const PACKET: u64 = 1500;
        let waiting = match self.buffer {
            Buffer::Unlimited => return None,
            Buffer::Packets(packets) => Bytes::new(packets.saturating_mul(PACKET)),
            Buffer::Bytes(bytes) => bytes,
            Buffer::Time(time) => self.rate.amount_in(time),
            Buffer::Bdp(factor) => Bytes::new((self.bdp().get() as f64 * factor) as u64),
        };
        Some(Bytes::new(self.bdp().get().saturating_add(waiting.get())))
    }

    /// A buffer's limit on a link of this rate.
    fn limit(&self, buffer: Buffer, rate: Rate) -> QueueLimit {
        let bytes = |bytes| QueueLimit { bytes: Some(bytes), counts_in_service: self.counts_in_service, packets: None };
        match buffer {
            Buffer::Unlimited => QueueLimit::default(),
            Buffer::Packets(packets) => {
                QueueLimit { packets: Some(packets), bytes: None, counts_in_service: self.counts_in_service }
            }
            Buffer::Bytes(amount) => bytes(amount),
            Buffer::Time(time) => bytes(rate.amount_in(time)),
            Buffer::Bdp(factor) => bytes(rate.amount_in(self.rtt).scale(factor)),
        }
    }

    /// The part of the RTT that the bottleneck's chain has: all of it, or what is behind the proxy.
    pub fn hop_rtt(&self) -> Duration {
        self.rtt.saturating_sub(self.server_rtt())
    }

    /// The part of the RTT between servers and the proxy, if there is one.
    pub fn server_rtt(&self) -> Duration {
        self.proxy.map_or(Duration::ZERO, |proxy| proxy.rtt)
    }

    /// The bottleneck links in both directions, one hop of the chain.
    pub fn hop(&self, aqm: &QueueConfig) -> (LinkConfig, LinkConfig) {
        let delay = Duration::from_nanos(self.hop_rtt().as_nanos() / (2 * u64::from(self.hops)));
        let capacity = match (&self.trace, self.varies.rate, self.burst) {
            (Some(trace), _, _) => Capacity::Trace(trace.clone()),
            (None, Some(variation), _) => Capacity::Varying(VaryingRate { mean: self.rate, variation }),
            (None, None, Some(burst)) => Capacity::TokenBucket { rate: self.rate, burst, peak: self.peak },
            (None, None, None) => Capacity::Rate(self.rate),
        };
        // The hops together make the path's extra delay.
        let share = |steps: DelaySteps| DelaySteps { amplitude: steps.amplitude / u64::from(self.hops), ..steps };
        let forward = LinkConfig {
            capacity,
            delay,
            limit: self.limit(self.buffer, self.rate),
            queue: aqm.clone(),
            policer: self.policer.map(|bucket| (self.rate, bucket)),
            loss: self.loss,
            jitter: self.jitter,
            delay_steps: self.varies.delay.map(share),
            reordering: self.reordering,
            aggregation: None,
        };
        let capacity = self.up_trace.clone().map_or(Capacity::Rate(self.up_rate), Capacity::Trace);
        let back = LinkConfig {
            capacity,
            limit: self.limit(self.up_buffer, self.up_rate),
            aggregation: self.up_aggregation.map(|time| time / u64::from(self.hops)),
            ..LinkConfig::new(self.up_rate, delay)
        };
        (forward, back)
    }

    /// Everything about the link, canonical.
    pub fn resolved(&self) -> ResolvedLink {
        let (rate_steps, rate_varies) = variation::described(self.varies.rate);
        ResolvedLink {
            stands_for: self.stands_for.clone(),
            rate_steps,
            rate_varies,
            rtt_steps: self.varies.delay.map(|steps| format!("{}/{}", steps.amplitude, steps.every)),
            rate: self.rate.to_string(),
            trace: self.trace_file.as_ref().map(|file| file.display().to_string()),
            rtt: self.rtt.to_string(),
            buffer: self.buffer.to_string(),
            counts: if self.counts_in_service { "system" } else { "waiting" },
            up_rate: self.up_rate.to_string(),
            up_trace: self.up_trace_file.as_ref().map(|file| file.display().to_string()),
            up_buffer: self.up_buffer.to_string(),
            up_aggregation: self.up_aggregation.map(|time| time.to_string()),
            access_rate: self.access_rate.to_string(),
            access_delay: self.access_delay.to_string(),
            hops: self.hops,
            cross: match self.cross {
                Cross::All => None,
                Cross::Hop(hop) => Some((hop + 1).to_string()),
                Cross::Each => Some("each".to_owned()),
            },
            loss: self.loss.map(|model| match model {
                LossModel::Independent { probability } => format!("{probability}"),
                LossModel::GilbertElliott { mean_good, mean_bad, probability_bad } => {
                    format!("gilbert/{mean_good}/{mean_bad}/{probability_bad}")
                }
            }),
            access_jitter: self.access_jitter.map(|jitter| format!("{}/{}", jitter.amplitude, jitter.step)),
            jitter: self.jitter.map(|jitter| format!("{}/{}", jitter.amplitude, jitter.step)),
            reorder: self.reordering.map(|model| format!("{}/{}", model.probability, model.delay)),
            burst: self.burst.map(|burst| format!("{burst} at {}", self.peak)),
            policer: self.policer.map(|bucket| bucket.to_string()),
            technology: self.technology,
            hint: self.hint.map(|hint| hint.to_string()),
            hint_steps: self.hint_grid.map(|grid| grid.steps_per_decade),
            saved: self.saved.written(Saved::to_string),
            oracle: self.oracle.written(Rate::to_string),
            handshake_train: self.train.written(Rate::to_string),
            trace_start: self.trace_start_varies.then_some("varied"),
            quick_start: self.routers.map(|routers| routers.to_string()),
            xcp: self.xcp.then_some("on"),
            pep: self.proxy.map(|proxy| proxy.to_string()),
            scone: self.advising.as_ref().map(scone::describe),
        }
    }
}

impl std::fmt::Display for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Packets(packets) => write!(f, "{packets}pkt"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Time(time) => write!(f, "{time}"),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::InputError;
    use super::*;

    fn parse(text: &str) -> Result<Link, InputError> {
        Link::parse("--link", text, Path::new("."))
    }

    #[test]
    fn every_preset_is_valid() {
        for preset in PRESETS {
            assert_eq!(parse(preset.name).unwrap().text, preset.name);
        }
    }

    #[test]
    fn noise_is_a_default_that_the_link_overrides() {
        let folder = std::env::temp_dir().join(format!("flowstart-noise-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("up"), "1\n2\n").unwrap();
        let read = |text: &str, noise| {
            let link = Link::parse_with("--link", text, None, noise, &folder).unwrap();
            (link.resolved().access_jitter, link.trace_start_varies)
        };
        let noisy = Some("1ms/1ms".to_owned());
        for text in ["lte", "rate=20mbit,rtt=30ms"] {
            assert_eq!(read(text, true), (noisy.clone(), false), "{text}");
            assert_eq!(read(text, false), (None, false), "{text}");
            assert_eq!(read(&format!("{text},noise=off"), true), (None, false), "{text}");
            assert_eq!(read(&format!("{text},noise=on"), false), (noisy.clone(), false), "{text}");
        }
        assert_eq!(read("lte,access_jitter=3ms/2ms", true).0, Some("3ms/2ms".into()));
        assert_eq!(read("trace=up,rtt=30ms", true), (noisy.clone(), true));
        assert_eq!(read("trace=up,rtt=30ms,trace_start=zero", true), (noisy, false));
        assert_eq!(read("trace=up,rtt=30ms,noise=off", true), (None, false));
        assert_eq!(read("trace=up,rtt=30ms", false), (None, false));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(parse("lte,noise=maybe").unwrap_err().to_string().contains("off"));
    }

    #[test]
    fn defaults_are_filled_in() {
        let link = parse("rate=25mbit,rtt=50ms,buffer=50ms").unwrap();
        assert_eq!(link.up_rate, link.rate);
        assert_eq!(link.access_rate, Rate::from_mbit(10_000));
        // 25 Mbit/s * 50 ms = 156,250 bytes.
        assert_eq!(link.limit(link.buffer, link.rate).bytes, Some(Bytes::new(156_250)));
        assert_eq!(link.bdp(), Bytes::new(156_250));
    }

    #[test]
    fn quantities_and_names_may_be_written_as_elsewhere() {
        let canonical = |text: &str| Link { text: String::new(), ..parse(text).unwrap() };
        let same = canonical("rate=20mbit,up_rate=1mbit,rtt=50ms,buffer=1bdp,counts=system,technology=docsis");
        for text in [
            "rate=20Mbps,up-rate=1Mbit/s,RTT=50ms,buffer=1BDP,counts=System,technology=cable",
            "Rate=20M,up_rate=1000k,rtt=50 ms,buffer=BDP,counts=system,technology=DOCSIS",
        ] {
            assert_eq!(canonical(text), same, "{text}");
        }
        assert_eq!(parse("DSL_Fast").unwrap().resolved(), parse("dsl-fast").unwrap().resolved());
        assert_eq!(parse("lte,buffer=104PKT").unwrap().buffer, Buffer::Packets(104));
        assert_eq!(parse("lte,buffer=104 packets").unwrap().buffer, Buffer::Packets(104));
        assert_eq!(parse("lte,buffer=Unlimited").unwrap().buffer, Buffer::Unlimited);
        let error = parse("rate=20MB/s,rtt=50ms").unwrap_err().to_string();
        assert!(error.contains("20MB/s would be 160mbit"), "{error}");
    }

    #[test]
    fn what_varies_is_relative_to_the_rate_and_told_in_results() {
        let link = parse("leo,rate=50mbit").unwrap();
        assert_eq!((link.rate, link.hinted(Timestamp::ZERO)), (Rate::from_mbit(50), Some(Rate::from_mbit(50))));
        let told = serde_json::to_value(link.resolved()).unwrap();
        assert_eq!(
            (&told["rate_steps"], &told["rtt_steps"], told.get("rate_varies")),
            (&"0.5/15s".into(), &"20ms/15s".into(), None)
        );
        assert!(parse("5g").unwrap().varies.rate.is_some() && !parse("5g").unwrap().has_fixed_rate());
        // What is read again means the same.
        let again = parse("rate=50mbit,rtt=20ms,rate_steps=0.5/15s,rtt_steps=20ms/15s").unwrap();
        assert_eq!(again.varies, link.varies);
    }

    #[test]
    fn absurd_links_are_refused_with_the_key_and_what_is_allowed() {
        for (text, expected) in [
            ("dsl", "`dsl` is not known (did you mean `dsl-fast` or `dsl-slow`?)"),
            ("lte,buffer=1bpd", "250KB, 50ms, 1bdp"),
            ("rate=0mbit,rtt=50ms", "1kbit"),
            ("rate=-5mbit,rtt=50ms", "rate"),
            ("rate=nanmbit,rtt=50ms", "rate"),
            ("rate=25mbit,rtt=0ms", "1us"),
            ("rate=25mbit", "rtt: missing"),
            ("rtt=50ms", "rate=... or trace"),
            ("rate=25mbit,rtt=50ms,buffer=0pkt", "less than one packet"),
            ("rate=25mbit,rtt=50ms,buffer=100B", "less than one packet"),
            ("rate=25mbit,rtt=50ms,buffer=1pkt,counts=system", "two packets"),
            (
                "rate=25mbit,rtt=50ms,bufer=1pkt",
                "`bufer` is not known (did you mean `buffer`?); `flowstart list link-options`",
            ),
            ("rate=25mbit,rtt=50ms,loss=2", "0 to 1"),
            ("rate=25mbit,rtt=50ms,trace=x", "x"),
            ("trace=does-not-exist,rtt=50ms", "does-not-exist"),
            ("rate=25mbit,rtt=50ms,rtt=60ms", "twice"),
            ("rate=25mbit,rtt=50ms,access_delay=1000s", "0s to 100s"),
            ("rate=25mbit,rtt=50ms,buffer=542949672960ms", "unlimited"),
            ("rate=25mbit,rtt=50ms,policer=4000000GB", "up to 1000GB"),
            ("rate=25mbit,rtt=50ms,reorder=1%/1000s", "0s to 100s"),
            ("rate=25mbit,rtt=50ms,loss=gilbert/1ns/1ns/0.5", "10us to 1000s"),
            ("rate=25mbit,rtt=50ms,cross=1", "hops=2 or more"),
            ("rate=25mbit,rtt=50ms,hops=2,cross=3", "allowed is all, each, or 1 to 2"),
            ("rate=25mbit,rtt=50ms,hops=2,cross=0", "allowed is all, each, or 1 to 2"),
            ("rate=25mbit,rtt=50ms,hops=2,cross=some", "allowed is all, each, or 1 to 2"),
            ("rate=25mbit,rtt=50ms,hops=2,cross=2,quick_start=target", "quick_start"),
            ("rate=25mbit,rtt=50ms,rate_steps=50%", "PART/TIME, as 50%/15s"),
            ("rate=25mbit,rtt=50ms,rate_steps=99%/1s", "up to 95%"),
            ("rate=25mbit,rtt=50ms,rate_steps=50%/1us", "1ms to 1000s"),
            ("rate=25mbit,rtt=50ms,rate_varies=200%/1s", "0 to 1"),
            (
                "rate=1kbit,rtt=10ms,rate_varies=50%/479ms",
                "a packet takes 12s at 1kbit, and TIME is 479ms; allowed is 480ms",
            ),
            ("rate=25mbit,rtt=50ms,rate_varies=40%/1s,rate_steps=50%/1s", "not both"),
            ("rate=25mbit,rtt=50ms,rate_varies=40%/1s,burst=30KB", "rate_steps and rate_varies"),
            ("rate=25mbit,rtt=50ms,rtt_steps=20s/15s", "up to 10s"),
            ("rate=25mbit,rtt=50ms,rtt_steps=20ms", "20ms/15s"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_start_in_a_recording_needs_one() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("lte,trace_start=varied").contains("no recording"));
        assert!(error("lte,trace_start=later").contains("zero and varied"));
    }
}
