//! The router, and what it says.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::thread;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_emu::port::PortName;
use flowstart_emu::router::{Config, Router, RouterError, Told};
use serde_json::json;

use super::control::Control;
use super::latest::Latest;
use super::packet_log::PacketLog;
use super::told::{Moment, as_json, in_words, lately_as_json, lately_in_words, warn_of_slow_host};
use super::units::seconds;
use super::view::View;
use super::{Arguments, metrics};
use crate::command::real_link::real_link;
use crate::command::relay::until_signal;
use crate::failure::Failure;
use crate::output::print;
use crate::testbed::path;

/// The link of recorded capacities that has nothing else: the shortest RTT of links, and no bound.
const LINK_OF_RECORDINGS: &str = "rtt=1us,buffer=unlimited";
/// How old metrics may be, and the answers of the control socket.
const METRICS_EVERY: Duration = Duration::from_millis(1000);
const CONTROL_EVERY: Duration = Duration::from_millis(100);
/// How often a table on a terminal changes.
const VIEW_EVERY: Duration = Duration::from_millis(1000);

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

/// Whether this thread has real-time priority, and the kernel limits how long such threads run (sched(7)).
fn is_stopped_by_the_kernel() -> bool {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let stat = read("/proc/thread-self/stat");
    // The name in brackets may have spaces; the third field is behind it, and the policy is the 41st (proc(5)).
    let policy = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(41 - 3));
    let limit = read("/proc/sys/kernel/sched_rt_runtime_us").trim().parse::<i64>();
    matches!(policy, Some("1" | "2")) && limit.is_ok_and(|limit| limit >= 0)
}

/// Routes until a signal ends it, and then says what it counted: JSON to stdout, words to stderr.
pub(super) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (config, json) = (arguments.config()?, arguments.json);
    let mut router = Router::open(&config).map_err(failure)?;
    if is_stopped_by_the_kernel() {
        tell!(
            "note: the kernel stops real-time programs that need all of a core for a part of each second; \
             `sysctl kernel.sched_rt_runtime_us=-1` lets them run"
        );
    }
    let stop = until_signal()?;
    let latest = Latest::default();
    let url = arguments.metrics.map(|address| metrics::listen(address, &latest)).transpose()?;
    let url = url.map(|address| format!("http://{address}/metrics"));
    let control = arguments.control.as_deref().map(|path| Control::listen(path, &latest)).transpose()?;
    // Last, so that nothing is left of a router that cannot begin.
    let log = arguments.packet_log.as_deref().map(PacketLog::create).transpose()?;
    let Config { servers, clients, .. } = &config;
    let ready = print(&if json {
        let mut ready = json!({ "servers": servers.to_string(), "clients": clients.to_string() });
        if let Some(url) = &url {
            ready["metrics"] = url.as_str().into();
        }
        format!("{ready}\n")
    } else {
        let metrics = url.as_ref().map_or(String::new(), |url| format!("metrics at {url}\n"));
        format!("routing between {servers} and {clients}\n{metrics}")
    });
    let log = match (ready, log) {
        (Err(why), Some(log)) => {
            log.remove();
            return Err(why);
        }
        (ready, log) => ready.map(|()| log)?,
    };
    // Whoever reads the lines may be slow, and packets do not wait for him: what he misses is left out.
    let (moments, told) = sync_channel(1);
    let view = if arguments.stats.is_none() { View::on_terminal() } else { None };
    let shown = arguments.stats.or(view.as_ref().map(|_| VIEW_EVERY));
    let lines = thread::spawn(move || match view {
        Some(view) => {
            view.show(&told);
            Ok(())
        }
        None => say_moments(&told, json),
    });
    let logging = log.map(|log| {
        let entries = router.log_packets();
        // A router may run for days, and whoever needs its log wants to know now.
        thread::spawn(move || log.write(entries).inspect_err(|why| tell!("warning: {why}")))
    });
    let mut said = Timestamp::ZERO;
    let of_others = [url.as_ref().map(|_| METRICS_EVERY), control.as_ref().map(|_| CONTROL_EVERY)];
    let is_asked = of_others.iter().any(Option::is_some);
    let every = of_others.into_iter().chain([shown]).flatten().min();
    let ended = router.run(&stop, every, |at, told| {
        if is_asked {
            latest.set(at, told);
        }
        if shown.is_none_or(|shown| at.since(said) < shown) {
            return;
        }
        said = at;
        if let Err(TrySendError::Disconnected(_)) = moments.try_send((at, told.clone())) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    drop(control);
    drop(moments);
    let told_lines = lines.join().unwrap_or(Ok(()));
    let logged = logging.map_or(Ok(()), |logging| logging.join().unwrap_or(Ok(()))).map_err(Failure::Other);
    let told = router.told();
    let missed = told.down.missed + told.up.missed;
    if missed > 0 {
        tell!(
            "warning: {missed} packets came faster than this host took them, and were lost before the link; what it \
             dropped is not all"
        );
    }
    if json {
        print(&format!("{}\n", as_json(&told)))?;
    } else {
        tell!("{}", in_words(&told));
    }
    warn_of_slow_host(&told.late);
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
                    "approved": told.quick_start.approved() - before.quick_start.approved(),
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
