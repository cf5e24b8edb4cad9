//! The router, and what it says.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::thread;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_emu::port::PortName;
use flowstart_emu::router::{Config, Direction, Router, RouterError, Told};
use serde_json::{Value, json};

use super::Arguments;
use super::metrics::Metrics;
use super::packet_log::PacketLog;
use super::units::{micros, seconds};
use crate::command::real_link::real_link;
use crate::command::relay::{
    quick_start_as_json, quick_start_in_words, scone_as_json, seen_scone_in_words, unsent_in_words, until_signal,
};
use crate::failure::Failure;
use crate::output::print;
use crate::testbed::path;

/// The link of recorded capacities that has nothing else: the shortest RTT of links, and no bound.
const LINK_OF_RECORDINGS: &str = "rtt=1us,buffer=unlimited";
/// How old metrics may be.
const METRICS_EVERY: Duration = Duration::from_millis(1000);

/// What happened at a time.
type Moment = (Timestamp, Told);

impl Arguments {
    fn config(&self) -> Result<Config, Failure> {
        let keys = self.recordings.as_deref().map(keys_of_recordings).transpose()?;
        let link = self.link.as_deref().unwrap_or(LINK_OF_RECORDINGS);
        let (link, aqm) = real_link("router", link, keys.as_deref(), &self.aqm)?;
        let [servers, clients] = &*self.ports else {
            let told = "two are needed: the side of servers first, that of clients second";
            return Err(Failure::Input(format!("--port: {told}")));
        };
        let port = |text: &String| text.parse::<PortName>().map_err(|error| Failure::Input(format!("--port {error}")));
        let (servers, clients) = (port(servers)?, port(clients)?);
        if servers == clients {
            return Err(Failure::Input(format!("--port `{servers}`: named twice; the two sides need a port each")));
        }
        let path = path(&link, &aqm, self.decrement_ttl, self.seed);
        Ok(Config { servers, clients, path })
    }
}

/// The keys of a link that has these recordings, the way to servers first.
fn keys_of_recordings(files: &[String]) -> Result<String, Failure> {
    // Commas stand between keys.
    let comma = files.iter().find(|file| file.contains(','));
    if let Some(file) = comma {
        return Err(Failure::Input(format!("--mahimahi `{file}`: a name without commas is needed")));
    }
    let [up, down] = files else { return Err(Failure::Input("--mahimahi: two files are needed".into())) };
    Ok(format!("trace={down},up_trace={up}"))
}

/// Routes until a signal ends it, and then says what it counted: JSON to stdout, words to stderr.
pub(super) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (config, json) = (arguments.config()?, arguments.json);
    let log = arguments.packet_log.as_deref().map(PacketLog::create).transpose()?;
    let mut router = Router::open(&config).map_err(failure)?;
    let stop = until_signal()?;
    let metrics = arguments.metrics.map(|address| {
        let metrics = Metrics::default();
        metrics.listen(address).map(|address| (metrics, format!("http://{address}/metrics")))
    });
    let (metrics, url) = metrics.transpose()?.unzip();
    let Config { servers, clients, .. } = &config;
    print(&if json {
        let mut ready = json!({ "servers": servers.to_string(), "clients": clients.to_string() });
        if let Some(url) = url {
            ready["metrics"] = url.into();
        }
        format!("{ready}\n")
    } else {
        let metrics = url.map_or(String::new(), |url| format!("metrics at {url}\n"));
        format!("routing between {servers} and {clients}\n{metrics}")
    })?;
    // Whoever reads the lines may be slow, and packets do not wait for him: what he misses is left out.
    let (moments, told) = sync_channel(1);
    let lines = thread::spawn(move || say_moments(&told, json));
    let logging = log.map(|log| {
        let entries = router.log_packets();
        thread::spawn(move || log.write(entries))
    });
    let (stats, mut said) = (arguments.stats, Timestamp::ZERO);
    let every = metrics.as_ref().map(|_| METRICS_EVERY).into_iter().chain(stats).min();
    let ended = router.run(&stop, every, |at, told| {
        if let Some(metrics) = &metrics {
            metrics.set(told);
        }
        if stats.is_none_or(|stats| at.since(said) < stats) {
            return;
        }
        said = at;
        if let Err(TrySendError::Disconnected(_)) = moments.try_send((at, told.clone())) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    drop(moments);
    let told_lines = lines.join().unwrap_or(Ok(()));
    let logged = logging.map_or(Ok(()), |logging| logging.join().unwrap_or(Ok(()))).map_err(Failure::Other);
    let told = router.told();
    if json {
        print(&format!("{}\n", as_json(&told)))?;
    } else {
        tell!("{}", in_words(&told));
    }
    told_lines.and(logged)?;
    ended.map(|()| ExitCode::SUCCESS).map_err(failure)
}

fn failure(error: RouterError) -> Failure {
    match error {
        RouterError::Port(error) => Failure::Input(format!("--port {error}")),
        other => Failure::Other(other.to_string()),
    }
}

/// A line for each moment, about the time since the one before.
fn say_moments(moments: &Receiver<Moment>, json: bool) -> Result<(), Failure> {
    let (mut since, mut before) = (Timestamp::ZERO, Told::default());
    for (at, told) in moments {
        let passed = at.since(since);
        print(&format!(
            "{}\n",
            if json {
                json!({
                    "seconds": seconds(at.since(Timestamp::ZERO)),
                    "down": lately_as_json(&told.down, &before.down, passed),
                    "up": lately_as_json(&told.up, &before.up, passed),
                })
                .to_string()
            } else {
                let down = lately_in_words(&told.down, &before.down, passed);
                let up = lately_in_words(&told.up, &before.up, passed);
                format!("{:.1} s: to clients {down}; back {up}", seconds(at.since(Timestamp::ZERO)))
            }
        ))?;
        (since, before) = (at, told);
    }
    Ok(())
}

fn mbit_per_second(now: &Direction, before: &Direction, passed: Duration) -> f64 {
    let bytes = now.link.departed_bytes - before.link.departed_bytes;
    bytes as f64 * 8.0 / 1000.0 / passed.as_millis_f64()
}

fn lately_in_words(now: &Direction, before: &Direction, passed: Duration) -> String {
    let (packets, bytes) = now.waiting;
    let (dropped, marked) = (now.link.dropped - before.link.dropped, now.marked - before.marked);
    let rate = mbit_per_second(now, before, passed);
    format!("{rate:.2} Mbit/s, {packets} wait ({} bytes), {dropped} dropped, {marked} marked", bytes.get())
}

fn lately_as_json(now: &Direction, before: &Direction, passed: Duration) -> Value {
    let (packets, bytes) = now.waiting;
    json!({
        "mbit_per_s": mbit_per_second(now, before, passed),
        "waiting": packets,
        "waiting_bytes": bytes.get(),
        "dropped": now.link.dropped - before.link.dropped,
        "marked": now.marked - before.marked,
    })
}

pub(in crate::command) fn in_words(told: &Told) -> String {
    let of = |name: &str, direction: &Direction| {
        let (link, marked) = (&direction.link, direction.marked);
        let (departed, dropped, lost, waiting) = (link.departed, link.dropped, link.lost, link.max_waiting);
        let text = format!(
            "{name}: {departed} packets, {dropped} dropped, {marked} marked, {lost} lost, at most {waiting} waited"
        );
        let others = [
            (direction.foreign, "neither IPv4 nor IPv6"),
            (direction.malformed, "malformed"),
            (direction.expired, "at the end of their TTL"),
        ];
        let others = others.into_iter().filter(|(number, _)| *number > 0);
        others.fold(text, |text, (number, what)| format!("{text}, {number} {what}"))
    };
    let latest = told.latest.as_millis_f64();
    let [median, p99] = [told.late.median, told.late.p99].map(micros);
    format!("{}; {}; at most {latest:.1} ms late", of("to clients", &told.down), of("back", &told.up))
        + &format!(", half of the packets {median:.0} us or less, 99 of 100 {p99:.0} us or less")
        + &seen_scone_in_words(&told.scone)
        + &quick_start_in_words(&told.quick_start)
        + &unsent_in_words(told.refused, told.unsent)
}

pub(in crate::command) fn as_json(told: &Told) -> Value {
    let of = |direction: &Direction| {
        let Direction { link, marked, foreign, malformed, segmented, expired, .. } = direction;
        json!({
            "departed": link.departed,
            "departed_bytes": link.departed_bytes,
            "dropped": link.dropped,
            "marked": marked,
            "lost": link.lost,
            "foreign": foreign,
            "malformed": malformed,
            "segmented": segmented,
            "expired": expired,
            "max_waiting": link.max_waiting,
            "max_delay_ms": link.max_delay.as_millis_f64(),
        })
    };
    json!({
        "down": of(&told.down),
        "up": of(&told.up),
        "quick_start": quick_start_as_json(&told.quick_start),
        "scone": scone_as_json(&told.scone),
        "refused": told.refused,
        "unsent": told.unsent,
        "max_late_ms": told.latest.as_millis_f64(),
        "left_late_us": {
            "p50": micros(told.late.median),
            "p99": micros(told.late.p99),
            "max": micros(told.late.largest),
        },
        "unlogged": told.unlogged,
    })
}
