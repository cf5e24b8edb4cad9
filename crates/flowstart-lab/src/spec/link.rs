//! Links: presets, and `rate=25mbit,rtt=50ms,buffer=50ms,...`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowstart_core::aqm::{QueueConfig, QueueLimit};
use flowstart_core::path::AccessTechnology;
use flowstart_core::quantize::Grid;
use flowstart_core::scone::element::Config as AdvisingElement;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::capacity_trace::CapacityTrace;
use flowstart_sim::link::transmitter::Capacity;
use flowstart_sim::link::wire::{Jitter, LossModel, Reordering};
use serde::Serialize;

use super::routers::Routers;
use super::scone;
use super::{InputError, Parts};

/// A preset: name, spec, source.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name as users write it.
    pub name: &'static str,
    /// What it stands for.
    pub spec: &'static str,
    /// Where its numbers come from.
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

/// The keys of a link without those of its Quick-Start routers, for error messages.
const KEYS: &[&str] = &[
    "rate",
    "trace",
    "rtt",
    "buffer",
    "up_rate",
    "up_trace",
    "up_buffer",
    "access_rate",
    "access_delay",
    "access_jitter",
    "hops",
    "loss",
    "jitter",
    "reorder",
    "burst",
    "peak",
    "policer",
    "counts",
    "technology",
    "hint",
    "hint_steps",
    "trace_start",
    "scone",
    "scone_refresh",
    "xcp",
];

/// Longest propagation delay of anything.
const LONGEST_DELAY: Duration = Duration::from_millis(100_000);

/// Largest buffer and bucket: quantities that are far larger would not survive being written and read.
const LARGEST_BUCKET: Bytes = Bytes::new(1_000_000_000_000);

/// A buffer as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Everything may wait.
    Unlimited,
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(Bytes),
    /// As many bytes as the link sends in this time.
    Time(Duration),
    /// As many bytes as this many bandwidth-delay products.
    Bdp(f64),
}

/// A link as the user described it, with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// As written: a preset's name, or a spec.
    pub text: String,
    /// Rate of the bottleneck; for a trace its mean.
    pub rate: Rate,
    /// Recorded capacity instead of a rate.
    pub trace: Option<Arc<CapacityTrace>>,
    /// File of the trace.
    pub trace_file: Option<PathBuf>,
    /// Round-trip propagation delay between the routers at both ends.
    pub rtt: Duration,
    /// Buffer in front of the bottleneck.
    pub buffer: Buffer,
    /// Rate of the way back.
    pub up_rate: Rate,
    /// Recorded capacity of the way back.
    pub up_trace: Option<Arc<CapacityTrace>>,
    /// File of that trace.
    pub up_trace_file: Option<PathBuf>,
    /// Buffer of the way back.
    pub up_buffer: Buffer,
    /// Rate of the hosts' own links.
    pub access_rate: Rate,
    /// Propagation delay of the hosts' own links.
    pub access_delay: Duration,
    /// Variable delay of what hosts send.
    pub access_jitter: Option<Jitter>,
    /// Bottleneck links in a row.
    pub hops: u32,
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
    /// What the client tells about its access.
    pub technology: AccessTechnology,
    /// The bandwidth that the client hints; absent: the bottleneck's rate.
    pub hint: Option<Rate>,
    /// Steps per factor of ten of the grid that hints are rounded down to; absent: hints are exact.
    pub hint_grid: Option<Grid>,
    /// Whether each repetition begins at a place of its own in the recording; otherwise all begin with it.
    pub trace_start_varies: bool,
    /// Quick-Start routers.
    pub routers: Option<Routers>,
    /// The element at the bottleneck that advises a rate (SCONE).
    pub advising: Option<AdvisingElement>,
    /// Whether every hop is an XCP router.
    pub xcp: bool,
}

/// The link with every default filled in, for results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolvedLink {
    rate: String,
    trace: Option<String>,
    rtt: String,
    buffer: String,
    counts: &'static str,
    up_rate: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_trace: Option<String>,
    up_buffer: String,
    access_rate: String,
    access_delay: String,
    access_jitter: Option<String>,
    hops: u32,
    loss: Option<String>,
    jitter: Option<String>,
    reorder: Option<String>,
    burst: Option<String>,
    policer: Option<String>,
    technology: AccessTechnology,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint_steps: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_start: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quick_start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    xcp: Option<&'static str>,
}

impl Link {
    /// Round-trip propagation delay from host to host.
    pub fn host_rtt(&self) -> Duration {
        self.rtt + self.access_delay * 4
    }

    /// The same link for hosts that are this far from each other: what is beyond the link's own RTT is the delay of their
    /// access links, which a round trip crosses four times.
    pub fn for_hosts(&self, rtt: Duration) -> Self {
        Self { access_delay: rtt.saturating_sub(self.rtt) / 4, ..self.clone() }
    }

    /// Reads a preset's name, a preset with keys that override it (`lte,buffer=1bdp`), or a spec. Trace files are looked
    /// for relative to `directory`.
    pub fn parse(field: &str, text: &str, directory: &Path) -> Result<Self, InputError> {
        Self::parse_with(field, text, None, directory)
    }

    /// Reads a link and gives it `options` in addition, which do not change how it is called.
    pub fn parse_with(field: &str, text: &str, options: Option<&str>, directory: &Path) -> Result<Self, InputError> {
        let text = text.trim();
        let mut parts = Parts::parse(field, text)?;
        let mut keys = Vec::new();
        // A preset is the name, or a first part without a value.
        let first = parts.keys.first().filter(|(_, value)| value.is_empty()).map(|(key, _)| *key);
        let name = if parts.name.is_empty() { first } else { Some(parts.name) };
        if let Some(name) = name {
            let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
                let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                let problem = format!(
                    "no preset `{name}`; use one of {}, or rate=25mbit,rtt=50ms,buffer=50ms, or \
                     trace=FILE,rtt=50ms,buffer=100pkt",
                    names.join(", ")
                );
                return Err(InputError::new(field, text, problem));
            };
            keys = Parts::parse(field, preset.spec)?.keys;
            parts.keys.retain(|(key, _)| *key != name);
        }
        let extra = options.map(|options| Parts::parse(field, options)).transpose()?;
        for (key, value) in parts.keys.into_iter().chain(extra.into_iter().flat_map(|extra| extra.keys)) {
            keys.retain(|(known, _)| *known != key);
            keys.push((key, value));
        }
        Reader { field, text, keys, directory }.link()
    }

    /// Bandwidth-delay product at the base RTT.
    pub fn bdp(&self) -> Bytes {
        self.rate.amount_in(self.rtt)
    }

    /// The bandwidth that a client hints; a link too slow for the grid of hints sends none.
    pub fn hinted(&self) -> Option<Rate> {
        let hint = self.hint.unwrap_or(self.rate);
        self.hint_grid.map_or(Some(hint), |grid| grid.quantize(hint))
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

    /// The bottleneck links towards the receiver and back, one hop of the chain.
    pub fn hop(&self, aqm: &QueueConfig) -> (LinkConfig, LinkConfig) {
        let delay = Duration::from_nanos(self.rtt.as_nanos() / (2 * u64::from(self.hops)));
        let capacity = match (&self.trace, self.burst) {
            (Some(trace), _) => Capacity::Trace(trace.clone()),
            (None, Some(burst)) => Capacity::TokenBucket { rate: self.rate, burst, peak: self.peak },
            (None, None) => Capacity::Rate(self.rate),
        };
        let forward = LinkConfig {
            capacity,
            delay,
            limit: self.limit(self.buffer, self.rate),
            queue: aqm.clone(),
            policer: self.policer.map(|bucket| (self.rate, bucket)),
            loss: self.loss,
            jitter: self.jitter,
            reordering: self.reordering,
        };
        let capacity = self.up_trace.clone().map_or(Capacity::Rate(self.up_rate), Capacity::Trace);
        let back = LinkConfig {
            capacity,
            limit: self.limit(self.up_buffer, self.up_rate),
            ..LinkConfig::new(self.up_rate, delay)
        };
        (forward, back)
    }

    /// Everything about the link, canonical.
    pub fn resolved(&self) -> ResolvedLink {
        ResolvedLink {
            rate: self.rate.to_string(),
            trace: self.trace_file.as_ref().map(|file| file.display().to_string()),
            rtt: self.rtt.to_string(),
            buffer: self.buffer.to_string(),
            counts: if self.counts_in_service { "system" } else { "waiting" },
            up_rate: self.up_rate.to_string(),
            up_trace: self.up_trace_file.as_ref().map(|file| file.display().to_string()),
            up_buffer: self.up_buffer.to_string(),
            access_rate: self.access_rate.to_string(),
            access_delay: self.access_delay.to_string(),
            hops: self.hops,
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
            trace_start: self.trace_start_varies.then_some("varied"),
            quick_start: self.routers.map(|routers| routers.to_string()),
            xcp: self.xcp.then_some("on"),
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

/// Reads the keys of one link.
struct Reader<'a> {
    field: &'a str,
    text: &'a str,
    keys: Vec<(&'a str, &'a str)>,
    directory: &'a Path,
}

impl Reader<'_> {
    fn refused(&self, key: &str, problem: impl std::fmt::Display) -> InputError {
        InputError::new(self.field, self.text, format!("{key}: {problem}"))
    }

    fn raw(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn read<T>(&self, key: &str) -> Result<Option<T>, InputError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        self.raw(key).map(|text| text.parse().map_err(|error| self.refused(key, error))).transpose()
    }

    fn rate(&self, key: &str) -> Result<Option<Rate>, InputError> {
        let rate: Option<Rate> = self.read(key)?;
        match rate {
            Some(rate) if !(1_000..=10_000_000_000_000).contains(&rate.bits_per_sec()) => {
                Err(self.refused(key, format!("{rate} is out of range; allowed is 1kbit to 10000gbit")))
            }
            rate => Ok(rate),
        }
    }

    /// Refuses a trace that is so sparse that its rate is no rate.
    fn mean_rate(&self, key: &str, trace: &CapacityTrace) -> Result<Rate, InputError> {
        let rate = trace.mean_rate();
        if rate.bits_per_sec() < 1_000 {
            return Err(self.refused(key, format!("its mean rate of {rate} is out of range; allowed is 1kbit or more")));
        }
        Ok(rate)
    }

    fn within(&self, key: &str, time: Duration, least: Duration, most: Duration) -> Result<Duration, InputError> {
        if (least..=most).contains(&time) {
            return Ok(time);
        }
        Err(self.refused(key, format!("{time} is out of range; allowed is {least} to {most}")))
    }

    fn trace(&self, key: &str) -> Result<Option<(PathBuf, Arc<CapacityTrace>)>, InputError> {
        let Some(name) = self.raw(key) else { return Ok(None) };
        let path = self.directory.join(name);
        let shown = path.display();
        let bytes = std::fs::read(&path).map_err(|error| self.refused(key, format!("cannot read {shown}: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            self.refused(
                key,
                format!("{shown}, line {line}: this is not text; expected one whole number of milliseconds per line"),
            )
        })?;
        let trace = CapacityTrace::parse(&text).map_err(|error| self.refused(key, format!("{shown}: {error}")))?;
        Ok(Some((path, Arc::new(trace))))
    }

    fn buffer(&self, key: &str) -> Result<Option<Buffer>, InputError> {
        let Some(text) = self.raw(key) else { return Ok(None) };
        let expected = "a buffer such as 104pkt, 250KB, 50ms, 1bdp or unlimited";
        let buffer = if text == "unlimited" {
            Buffer::Unlimited
        } else if let Some(count) = text.strip_suffix("pkt") {
            let packets = count.parse().map_err(|_| self.refused(key, format!("`{text}` is not {expected}")))?;
            Buffer::Packets(packets)
        } else if let Some(factor) = text.strip_suffix("bdp") {
            let factor: f64 = if factor.is_empty() { 1.0 } else { factor.parse().unwrap_or(f64::NAN) };
            if !(0.001..=1000.0).contains(&factor) {
                return Err(self.refused(key, format!("`{text}`: allowed is 0.001bdp to 1000bdp")));
            }
            Buffer::Bdp(factor)
        } else if text.ends_with(['B', 'b']) {
            Buffer::Bytes(text.parse().map_err(|error| self.refused(key, error))?)
        } else {
            Buffer::Time(text.parse().map_err(|_| self.refused(key, format!("`{text}` is not {expected}")))?)
        };
        let absurd = match buffer {
            Buffer::Unlimited | Buffer::Bdp(_) => false,
            Buffer::Packets(packets) => packets > 1_000_000_000,
            Buffer::Bytes(amount) => amount > LARGEST_BUCKET,
            Buffer::Time(time) => time > LONGEST_DELAY,
        };
        if absurd {
            let allowed = format!("1000000000pkt, {LARGEST_BUCKET} or {LONGEST_DELAY}");
            return Err(self.refused(key, format!("`{text}`: allowed is up to {allowed}, or unlimited")));
        }
        Ok(Some(buffer))
    }

    /// Refuses a buffer that no full-sized packet fits into.
    fn holds_a_packet(&self, key: &str, link: &Link, buffer: Buffer, rate: Rate) -> Result<(), InputError> {
        let limit = link.limit(buffer, rate);
        let one = 1 + u64::from(link.counts_in_service);
        let too_small = limit.packets.is_some_and(|packets| packets < one)
            || limit.bytes.is_some_and(|bytes| bytes < Bytes::new(1600 * one));
        if too_small {
            let unit = if link.counts_in_service { "two packets, one of them in service," } else { "one packet" };
            return Err(self.refused(key, format!("{buffer} holds less than {unit} (1600 bytes each)")));
        }
        Ok(())
    }

    fn probability(&self, key: &str, text: &str) -> Result<f64, InputError> {
        let value = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().map(|value| value / 100.0),
            None => text.parse::<f64>(),
        };
        match value {
            Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
            _ => Err(self.refused(key, format!("`{text}` is not a probability; allowed is 0 to 1, or 0% to 100%"))),
        }
    }

    fn loss(&self) -> Result<Option<LossModel>, InputError> {
        let Some(text) = self.raw("loss") else { return Ok(None) };
        let Some(rest) = text.strip_prefix("gilbert/") else {
            return Ok(Some(LossModel::Independent { probability: self.probability("loss", text)? }));
        };
        let parts: Vec<&str> = rest.split('/').collect();
        let [good, bad, probability] = parts[..] else {
            return Err(
                self.refused("loss", "expected gilbert/MEAN_GOOD/MEAN_BAD/LOSS_IN_BAD, as gilbert/490ms/10ms/0.5")
            );
        };
        let time = |text: &str| -> Result<Duration, InputError> {
            let time: Duration = text.parse().map_err(|error| self.refused("loss", error))?;
            self.within("loss", time, Duration::from_micros(10), Duration::from_millis(1_000_000))
        };
        Ok(Some(LossModel::GilbertElliott {
            mean_good: time(good)?,
            mean_bad: time(bad)?,
            probability_bad: self.probability("loss", probability)?,
        }))
    }

    fn jitter(&self, key: &str, default_step: &str) -> Result<Option<Jitter>, InputError> {
        let Some(text) = self.raw(key) else { return Ok(None) };
        let (amplitude, step) = text.split_once('/').unwrap_or((text, default_step));
        let time = |text: &str| text.parse::<Duration>().map_err(|error| self.refused(key, error));
        let jitter = Jitter { amplitude: time(amplitude)?, step: time(step)? };
        let longest = Duration::from_millis(10_000);
        if jitter.step == Duration::ZERO || jitter.step > longest || jitter.amplitude > longest {
            return Err(self.refused(key, "allowed is 0ms to 10s, with a step above 0 and up to 10s, as 5ms/20ms"));
        }
        Ok(Some(jitter))
    }

    fn reordering(&self) -> Result<Option<Reordering>, InputError> {
        let Some(text) = self.raw("reorder") else { return Ok(None) };
        let Some((probability, delay)) = text.split_once('/') else {
            return Err(self.refused("reorder", "expected PROBABILITY/DELAY, as 1%/5ms"));
        };
        let delay = delay.parse().map_err(|error| self.refused("reorder", error))?;
        Ok(Some(Reordering {
            probability: self.probability("reorder", probability)?,
            delay: self.within("reorder", delay, Duration::ZERO, LONGEST_DELAY)?,
        }))
    }

    /// The grid of hints.
    fn hint_grid(&self) -> Result<Option<Grid>, InputError> {
        let Some(steps_per_decade) = self.read("hint_steps")? else { return Ok(None) };
        let grid = Grid { steps_per_decade, ..Grid::default() };
        grid.validate().map_err(|_| self.refused("hint_steps", "allowed is 1 to 100 steps per factor of ten"))?;
        Ok(Some(grid))
    }

    fn link(&self) -> Result<Link, InputError> {
        let allowed = [KEYS, &super::routers::KEYS].concat();
        if let Some((key, _)) = self.keys.iter().find(|(key, _)| !allowed.contains(key)) {
            return Err(self.refused(key, format!("no such field; allowed are {}", allowed.join(", "))));
        }
        let trace = self.trace("trace")?;
        let rate = match (self.rate("rate")?, &trace) {
            (Some(rate), None) => rate,
            (None, Some((_, trace))) => self.mean_rate("trace", trace)?,
            (Some(_), Some(_)) => return Err(self.refused("rate", "a link has a rate or a trace, not both")),
            (None, None) => return Err(self.refused("rate", "missing; a link needs rate=... or trace=FILE")),
        };
        let rtt: Duration = self.read("rtt")?.ok_or_else(|| self.refused("rtt", "missing, as in rtt=50ms"))?;
        self.within("rtt", rtt, Duration::from_micros(1), LONGEST_DELAY)?;
        let access_delay = self.read("access_delay")?.unwrap_or(Duration::ZERO);
        self.within("access_delay", access_delay, Duration::ZERO, LONGEST_DELAY)?;
        let up_trace = self.trace("up_trace")?;
        if let Some((_, trace)) = &up_trace {
            self.mean_rate("up_trace", trace)?;
        }
        let hops: u32 = self.read("hops")?.unwrap_or(1);
        if !(1..=64).contains(&hops) {
            return Err(self.refused("hops", format!("{hops} is out of range; allowed is 1 to 64")));
        }
        let counts_in_service = match self.raw("counts") {
            None | Some("waiting") => false,
            Some("system") => true,
            Some(other) => return Err(self.refused("counts", format!("`{other}`; allowed are waiting and system"))),
        };
        let access_rate = self.rate("access_rate")?.unwrap_or(Rate::from_mbit(10_000));
        let link = Link {
            text: self.text.to_owned(),
            rate,
            rtt,
            buffer: self.buffer("buffer")?.unwrap_or(Buffer::Bdp(1.0)),
            up_rate: self.rate("up_rate")?.unwrap_or(rate),
            up_trace_file: up_trace.as_ref().map(|(file, _)| file.clone()),
            up_trace: up_trace.map(|(_, trace)| trace),
            up_buffer: self.buffer("up_buffer")?.unwrap_or(Buffer::Unlimited),
            access_rate,
            access_delay,
            hops,
            loss: self.loss()?,
            jitter: self.jitter("jitter", "20ms")?,
            access_jitter: self.jitter("access_jitter", "1ms")?,
            reordering: self.reordering()?,
            burst: self.read("burst")?,
            peak: self.rate("peak")?.unwrap_or(access_rate),
            policer: self.read("policer")?,
            counts_in_service,
            technology: self.read("technology")?.unwrap_or_default(),
            hint: self.rate("hint")?,
            hint_grid: self.hint_grid()?,
            routers: Routers::parse(|key| self.raw(key)).map_err(|(key, problem)| self.refused(key, problem))?,
            xcp: match self.raw("xcp") {
                None | Some("off") => false,
                Some("on") => true,
                Some(other) => return Err(self.refused("xcp", format!("`{other}`; allowed are on and off"))),
            },
            advising: scone::parse(rate, |key| self.raw(key)).map_err(|(key, problem)| self.refused(key, problem))?,
            trace_start_varies: match self.raw("trace_start") {
                None | Some("zero") => false,
                Some("varied") if trace.is_some() => true,
                Some("varied") => return Err(self.refused("trace_start", "a link with a rate has no recording")),
                Some(other) => {
                    return Err(self.refused("trace_start", format!("`{other}`; allowed are zero and varied")));
                }
            },
            trace_file: trace.as_ref().map(|(file, _)| file.clone()),
            trace: trace.map(|(_, trace)| trace),
        };
        self.holds_a_packet("buffer", &link, link.buffer, link.rate)?;
        self.holds_a_packet("up_buffer", &link, link.up_buffer, link.up_rate)?;
        for (key, bucket) in [("burst", link.burst), ("policer", link.policer)] {
            if bucket.is_some_and(|bucket| bucket < Bytes::new(1600)) {
                return Err(self.refused(key, "a bucket must hold one packet (1600 bytes)"));
            }
            if bucket.is_some_and(|bucket| bucket > LARGEST_BUCKET) {
                return Err(self.refused(key, format!("allowed is up to {LARGEST_BUCKET}")));
            }
        }
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
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
    fn defaults_are_filled_in() {
        let link = parse("rate=25mbit,rtt=50ms,buffer=50ms").unwrap();
        assert_eq!(link.up_rate, link.rate);
        assert_eq!(link.access_rate, Rate::from_mbit(10_000));
        // 25 Mbit/s * 50 ms = 156,250 bytes.
        assert_eq!(link.limit(link.buffer, link.rate).bytes, Some(Bytes::new(156_250)));
        assert_eq!(link.bdp(), Bytes::new(156_250));
    }

    #[test]
    fn absurd_links_are_refused_with_the_key_and_what_is_allowed() {
        for (text, expected) in [
            ("dsl", "dsl-slow"),
            ("rate=0mbit,rtt=50ms", "1kbit"),
            ("rate=-5mbit,rtt=50ms", "rate"),
            ("rate=nanmbit,rtt=50ms", "rate"),
            ("rate=25mbit,rtt=0ms", "1us"),
            ("rate=25mbit", "rtt: missing"),
            ("rtt=50ms", "rate=... or trace"),
            ("rate=25mbit,rtt=50ms,buffer=0pkt", "less than one packet"),
            ("rate=25mbit,rtt=50ms,buffer=100B", "less than one packet"),
            ("rate=25mbit,rtt=50ms,buffer=1pkt,counts=system", "two packets"),
            ("rate=25mbit,rtt=50ms,bufer=1pkt", "no such field"),
            ("rate=25mbit,rtt=50ms,loss=2", "0 to 1"),
            ("rate=25mbit,rtt=50ms,trace=x", "x"),
            ("trace=does-not-exist,rtt=50ms", "does-not-exist"),
            ("rate=25mbit,rtt=50ms,rtt=60ms", "twice"),
            ("rate=25mbit,rtt=50ms,access_delay=1000s", "0s to 100s"),
            ("rate=25mbit,rtt=50ms,buffer=542949672960ms", "unlimited"),
            ("rate=25mbit,rtt=50ms,policer=4000000GB", "up to 1000GB"),
            ("rate=25mbit,rtt=50ms,reorder=1%/1000s", "0s to 100s"),
            ("rate=25mbit,rtt=50ms,loss=gilbert/1ns/1ns/0.5", "10us to 1000s"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn clients_hint_the_links_rate_unless_told_otherwise() {
        let hinted = |text: &str| Link::parse("--link", text, Path::new(".")).unwrap().hinted().map(Rate::bits_per_sec);
        assert_eq!(hinted("dsl-fast"), Some(50_000_000));
        assert_eq!(hinted("dsl-fast,hint=10mbit"), Some(10_000_000));
        // Steps of the grid are 10^(1/5) = 1.585 apart: 39.8 Mbit/s is the one below 50, 6.31 the one below 10.
        assert_eq!(hinted("dsl-fast,hint_steps=5"), Some(39_810_717));
        assert_eq!(hinted("dsl-fast,hint=9mbit,hint_steps=5"), Some(6_309_573));
        // Below the grid there is no hint.
        assert_eq!(hinted("rate=64kbit,rtt=50ms,buffer=100pkt,hint_steps=5"), None);
    }

    #[test]
    fn wrong_hints_say_what_is_allowed() {
        let error = |text: &str| Link::parse("--link", text, Path::new(".")).unwrap_err().to_string();
        assert!(error("lte,hint=0mbit").contains("allowed is 1kbit to"));
        assert!(error("lte,hint_steps=0").contains("1 to 100"));
        assert!(error("lte,hint_steps=x").contains("hint_steps"));
        assert!(error("lte,trace_start=varied").contains("no recording"));
        assert!(error("lte,trace_start=later").contains("zero and varied"));
    }
}
