//! The parser of links.

use std::path::Path;
use std::str::FromStr;

use flowstart_core::spec::{Fraction, names};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::wire::{Jitter, LossModel, Reordering};

use super::super::routers::Routers;
use super::super::{InputError, RATES, Spec, scone};
use super::{ACCESS_RATE, Buffer, Cross, Hinted, Link, PRESETS, Varies, hint, known, named, proxy, recording};

/// Longest propagation delay of anything.
const LONGEST_DELAY: Duration = Duration::from_millis(100_000);

/// Longest time that a link may keep packets to let them arrive together.
const LONGEST_AGGREGATION: Duration = Duration::from_millis(1_000);

/// Largest buffer and bucket: far larger quantities would change when written and read again.
const LARGEST_BUCKET: Bytes = Bytes::new(1_000_000_000_000);

/// Scheduling noise of hosts: packets from a host wait up to 1 ms, which changes every millisecond.
const NOISE: Jitter = Jitter { amplitude: Duration::from_millis(1), step: Duration::from_millis(1) };

impl Link {
    /// Reads a preset's name, a preset with keys that override it (`lte,buffer=1bdp`), or a spec. Paths of trace files
    /// are relative to `directory`.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse(field: &str, text: &str, directory: &Path) -> Result<Self, InputError> {
        Self::parse_with(field, text, None, false, directory)
    }

    /// Reads a link and applies `options` in addition, which do not change its name. With `noise`, hosts have
    /// scheduling noise and repetitions begin at different places of a recording, unless the link says otherwise.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse_with(
        field: &str,
        text: &str,
        options: Option<&str>,
        noise: bool,
        directory: &Path,
    ) -> Result<Self, InputError> {
        let (named, described) = named::split(field, text)?;
        let mut spec = Spec::parse(field, described)?;
        let name = if spec.name().is_empty() { spec.leading_word() } else { Some(spec.name()) };
        if let Some(name) = name {
            let Some(preset) = PRESETS.iter().find(|preset| names::is_same(preset.name, name)) else {
                let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                let allowed = "`flowstart list links` shows the presets; a link of your own is \
                               rate=25mbit,rtt=50ms,buffer=50ms or trace=FILE,rtt=50ms,buffer=100pkt";
                return Err(spec.unknown_name(&presets, allowed));
            };
            spec.add_defaults(Spec::parse(field, preset.spec)?);
        }
        if let Some(options) = options {
            spec.replace_by(Spec::parse(field, options)?);
        }
        let link = read(&mut spec, noise, directory)?;
        Ok(match named {
            Some(name) => Self { text: name.to_owned(), stands_for: Some(described.to_owned()), ..link },
            None => link,
        })
    }
}

/// The keys that are read, in alphabetical order.
#[cfg(test)]
pub(super) fn keys_read() -> Vec<&'static str> {
    let mut spec = Spec::parse("--link", "rate=1mbit,rtt=1s").unwrap();
    read(&mut spec, false, Path::new(".")).unwrap();
    let mut keys = spec.asked().to_vec();
    keys.sort_unstable();
    keys
}

/// Reads the keys of one link.
fn read(spec: &mut Spec<'_>, noise: bool, directory: &Path) -> Result<Link, InputError> {
    let noise = spec.one_of("noise", &[("off", false), ("on", true)])?.unwrap_or(noise);
    let rate = spec.within("rate", RATES)?;
    let trace = recording::read(spec, "trace", directory)?;
    if rate.is_some() && trace.is_some() {
        return Err(spec.refused(
            "rate: a link has a rate or a trace, not both; beside a preset, which has a rate, write its other keys",
        ));
    }
    let rate = rate.or(trace.as_ref().map(|trace| trace.rate));
    let rtt = spec.within("rtt", Duration::from_micros(1)..=LONGEST_DELAY)?;
    let buffer = buffer(spec, "buffer")?.unwrap_or(Buffer::Bdp(1.0));
    let up_rate = spec.within("up_rate", RATES)?;
    let up_trace = recording::read(spec, "up_trace", directory)?;
    let up_buffer = self::buffer(spec, "up_buffer")?.unwrap_or(Buffer::Unlimited);
    let aggregated = Duration::from_micros(1)..=LONGEST_AGGREGATION;
    let up_aggregation = spec.within("up_aggregation", aggregated)?;
    let access_rate = spec.within("access_rate", RATES)?.unwrap_or(ACCESS_RATE);
    let access_delay = spec.within("access_delay", Duration::ZERO..=LONGEST_DELAY)?.unwrap_or(Duration::ZERO);
    let access_jitter = spec.read_with("access_jitter", |text| jitter(text, "1ms"))?.or(noise.then_some(NOISE));
    let hops = spec.within("hops", 1..=64)?.unwrap_or(1);
    let cross = spec.read_with("cross", |text| cross(text, hops))?.unwrap_or_default();
    let varies = Varies::read(spec)?;
    let loss = spec.read_with("loss", loss)?;
    let jitter = spec.read_with("jitter", |text| jitter(text, "20ms"))?;
    let reordering = spec.read_with("reorder", reordering)?;
    let burst = bucket(spec, "burst")?;
    if varies.rate.is_some() && (trace.is_some() || burst.is_some()) {
        return Err(
            spec.refused("rate_steps and rate_varies are for a rate; not allowed are trace and burst beside them")
        );
    }
    let peak = spec.within("peak", RATES)?.unwrap_or(access_rate);
    let policer = bucket(spec, "policer")?;
    let counts_in_service = spec.one_of("counts", &[("waiting", false), ("system", true)])?.unwrap_or(false);
    let technology = spec.read("technology")?.unwrap_or_default();
    let hint = Hinted::read(spec, trace.as_ref().map(|recording| &*recording.trace))?;
    let hint_grid = hint::grid(spec)?;
    let known::Known { saved, oracle, train } = known::read(spec)?;
    let trace_start_varies = spec.one_of("trace_start", &[("zero", false), ("varied", true)])?;
    let trace_start_varies = trace_start_varies.unwrap_or(noise && trace.is_some());
    if trace_start_varies && trace.is_none() {
        return Err(spec.refused_value("trace_start", "a link with a rate has no recording"));
    }
    let advising = scone::read(spec, rate)?;
    let xcp = spec.switch("xcp")?;
    let routers = Routers::read(spec)?;
    if routers.is_some() && cross != Cross::All {
        return Err(spec.refused_value("cross", "not for a link with quick_start, whose routers see whole paths"));
    }
    let proxy = proxy::read(spec, rtt)?;
    let of_whole_paths = routers.is_some() || advising.is_some() || xcp || cross != Cross::All;
    if proxy.is_some() && of_whole_paths {
        let problem = "ends connections within the path; not allowed beside it are quick_start, scone, xcp and cross";
        return Err(spec.refused_value("pep", problem));
    }
    if let Some(key) = spec.unasked() {
        if PRESETS.iter().any(|preset| names::is_same(preset.name, key)) {
            return Err(spec.refused(format_args!("`{key}` is a link of its own; a space separates links")));
        }
        return Err(spec.refused(names::unknown(key, spec.asked(), "`flowstart list link-options` shows all")));
    }
    let rate = rate.ok_or_else(|| spec.refused("rate: missing; a link needs rate=... or trace=FILE"))?;
    varies.check(spec, rate)?;
    let (trace_file, trace) = trace.map(|recording| (recording.file, recording.trace)).unzip();
    let (up_trace_file, up_trace) = up_trace.map(|recording| (recording.file, recording.trace)).unzip();
    let link = Link {
        text: spec.text().to_owned(),
        stands_for: None,
        rate,
        trace,
        trace_file,
        rtt: rtt.ok_or_else(|| spec.refused("rtt: missing, as in rtt=50ms"))?,
        buffer,
        up_rate: up_rate.unwrap_or(rate),
        up_trace,
        up_trace_file,
        up_buffer,
        up_aggregation,
        access_rate,
        access_delay,
        access_jitter,
        hops,
        cross,
        varies,
        loss,
        jitter,
        reordering,
        burst,
        peak,
        policer,
        counts_in_service,
        technology,
        hint,
        hint_grid,
        saved,
        oracle,
        train,
        trace_start_varies,
        routers,
        advising,
        xcp,
        proxy,
    };
    holds_a_packet(spec, "buffer", &link, link.buffer, link.rate)?;
    holds_a_packet(spec, "up_buffer", &link, link.up_buffer, link.up_rate)?;
    Ok(link)
}

fn quantity<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn within(time: Duration, least: Duration, most: Duration) -> Result<Duration, String> {
    if (least..=most).contains(&time) {
        return Ok(time);
    }
    Err(format!("{time} is out of range; allowed is {least} to {most}"))
}

fn bucket(spec: &mut Spec<'_>, key: &'static str) -> Result<Option<Bytes>, InputError> {
    let bucket: Option<Bytes> = spec.read(key)?;
    if bucket.is_some_and(|bucket| bucket < Bytes::new(1600)) {
        return Err(spec.refused_value(key, "a bucket must hold one packet (1600 bytes)"));
    }
    if bucket.is_some_and(|bucket| bucket > LARGEST_BUCKET) {
        return Err(spec.refused_value(key, format_args!("allowed is up to {LARGEST_BUCKET}")));
    }
    Ok(bucket)
}

fn buffer(spec: &mut Spec<'_>, key: &'static str) -> Result<Option<Buffer>, InputError> {
    spec.read_with(key, |text| {
        let buffer: Buffer = text.parse()?;
        let absurd = match buffer {
            Buffer::Unlimited | Buffer::Bdp(_) => false,
            Buffer::Packets(packets) => packets > 1_000_000_000,
            Buffer::Bytes(amount) => amount > LARGEST_BUCKET,
            Buffer::Time(time) => time > LONGEST_DELAY,
        };
        if absurd {
            let allowed = format!("1000000000pkt, {LARGEST_BUCKET} or {LONGEST_DELAY}");
            return Err(format!("`{text}`: allowed is up to {allowed}, or unlimited"));
        }
        Ok(buffer)
    })
}

impl FromStr for Buffer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is not a buffer such as 104pkt, 250KB, 50ms, 1bdp or unlimited");
        let lower = text.to_ascii_lowercase();
        if lower == "unlimited" {
            return Ok(Self::Unlimited);
        }
        if let Some(count) = ["pkt", "pkts", "packets"].iter().find_map(|unit| lower.strip_suffix(unit)) {
            return count.trim().parse().map(Self::Packets).map_err(|_| refused());
        }
        if let Some(factor) = lower.strip_suffix("bdp").map(str::trim) {
            let factor: f64 = if factor.is_empty() { 1.0 } else { factor.parse().unwrap_or(f64::NAN) };
            if !(0.001..=1000.0).contains(&factor) {
                return Err(format!("`{text}`: allowed is 0.001bdp to 1000bdp"));
            }
            return Ok(Self::Bdp(factor));
        }
        if text.ends_with(['B', 'b']) {
            return quantity(text).map(Self::Bytes);
        }
        text.parse().map(Self::Time).map_err(|_| refused())
    }
}

/// Refuses a buffer smaller than a full-sized packet.
fn holds_a_packet(spec: &Spec<'_>, key: &str, link: &Link, buffer: Buffer, rate: Rate) -> Result<(), InputError> {
    let limit = link.limit(buffer, rate);
    let one = 1 + u64::from(link.counts_in_service);
    let too_small = limit.packets.is_some_and(|packets| packets < one)
        || limit.bytes.is_some_and(|bytes| bytes < Bytes::new(1600 * one));
    if too_small {
        let unit = if link.counts_in_service { "two packets, one of them in service," } else { "one packet" };
        return Err(spec.refused(format_args!("{key}: {buffer} holds less than {unit} (1600 bytes each)")));
    }
    Ok(())
}

fn loss(text: &str) -> Result<LossModel, String> {
    let Some(rest) = text.strip_prefix("gilbert/") else {
        let Fraction(probability) = text.parse()?;
        return Ok(LossModel::Independent { probability });
    };
    let parts: Vec<&str> = rest.split('/').collect();
    let [good, bad, probability] = parts[..] else {
        return Err("expected gilbert/MEAN_GOOD/MEAN_BAD/LOSS_IN_BAD, as gilbert/490ms/10ms/0.5".into());
    };
    let time = |text| within(quantity(text)?, Duration::from_micros(10), Duration::from_millis(1_000_000));
    let (mean_good, mean_bad, Fraction(probability_bad)) = (time(good)?, time(bad)?, probability.parse()?);
    Ok(LossModel::GilbertElliott { mean_good, mean_bad, probability_bad })
}

/// The hops that other users cross.
fn cross(text: &str, hops: u32) -> Result<Cross, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(Cross::All),
        _ if hops < 2 => Err("there is only one hop; allowed is cross with hops=2 or more".into()),
        ("each", _) => Ok(Cross::Each),
        (_, Ok(hop)) if (1..=hops).contains(&hop) => Ok(Cross::Hop(hop - 1)),
        _ => Err(format!("`{text}`: allowed is all, each, or 1 to {hops}, the number of a hop")),
    }
}

fn jitter(text: &str, default_step: &str) -> Result<Jitter, String> {
    let (amplitude, step) = text.split_once('/').unwrap_or((text, default_step));
    let jitter = Jitter { amplitude: quantity(amplitude)?, step: quantity(step)? };
    let longest = Duration::from_millis(10_000);
    if jitter.step == Duration::ZERO || jitter.step > longest || jitter.amplitude > longest {
        return Err("allowed is 0ms to 10s, with a step above 0 and up to 10s, as 5ms/20ms".into());
    }
    Ok(jitter)
}

fn reordering(text: &str) -> Result<Reordering, String> {
    let Some((probability, delay)) = text.split_once('/') else {
        return Err("expected PROBABILITY/DELAY, as 1%/5ms".into());
    };
    let Fraction(probability) = probability.parse()?;
    Ok(Reordering { probability, delay: within(quantity(delay)?, Duration::ZERO, LONGEST_DELAY)? })
}
