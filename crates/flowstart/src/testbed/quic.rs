//! Transfers by QUIC: this program's server and client of HTTP/3. What the server did stands in its qlog file.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use flowstart_core::event::ExitReason;
use flowstart_core::needs::Needs;
use flowstart_core::path::SavedPath;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_emu::dumbbell::{CLIENTS, Dumbbell, SERVERS};
use flowstart_lab::run::outcome::{self, Failure};
use flowstart_lab::run::testbed::{known, patience};
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_quic::hint::BandwidthHint;
use flowstart_sensing::path_store::embedded::EmbeddedStore;
use flowstart_sensing::path_store::{Observation, PathStore, Prefixes, Retention, UnixTime};
use flowstart_serve::analyze::log::{self, Connection};
use flowstart_serve::client::{self, Client, Timings, Url};
use flowstart_serve::server::{self, Schemes, Server};
use flowstart_serve::tls::{Certificate, Trust};
use flowstart_serve::{H3, Scheme, Warnings};
use flowstart_sim::observe::record::{FlowRecord, StartupExit};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::scratch::Scratch;
use super::{Seen, words};
use crate::quic::std_time;

/// How long a server waits for its connection to end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(2);

/// A transfer of a cell; why it is not complete.
pub(super) fn transfer(plan: &Plan, cell: &Cell, dumbbell: &Dumbbell, complete: &dyn Fn()) -> Result<Seen, String> {
    let scratch = Scratch::new().map_err(|error| format!("a folder for the server's log: {error}"))?;
    let came = Pair { plan, cell, folder: scratch.path() }.over(dumbbell, complete)?;
    let seen = connection(scratch.path())?;
    // A server's log begins when the client's first packet has crossed the link.
    let record = record(came.as_ref().ok(), seen.as_ref(), plan.links[cell.link].rtt / 2);
    // The stack does not say which packets it lost that arrived.
    let is_logged = seen.is_some();
    let known = outcome::Known { spurious: false, window_cuts: is_logged, timeouts: is_logged, startup: is_logged };
    Ok(Seen { record, known, failure: came.err(), fell_back: false })
}

/// A server and a client of a cell.
struct Pair<'a> {
    plan: &'a Plan,
    cell: &'a Cell,
    folder: &'a Path,
}

impl Pair<'_> {
    fn startup(&self) -> &StartupConfig {
        self.plan.schemes[self.cell.scheme].on(self.cell.transport)
    }

    /// Whether its scheme asks routers.
    fn asks(&self) -> bool {
        self.startup().needs().contains(Needs::APPROVAL)
    }

    /// One transfer; why it is not complete.
    fn over(&self, dumbbell: &Dumbbell, complete: &dyn Fn()) -> Result<Result<Timings, Failure>, String> {
        let (end, ended) = oneshot::channel::<()>();
        let (listens, listening) = mpsc::sync_channel(1);
        let config = self.server()?;
        thread::scope(|scope| {
            let served = scope.spawn(move || {
                let serve = || {
                    runtime()?.block_on(async {
                        let server = Server::start(config).await.map_err(io::Error::other)?;
                        // Nobody waits any more if the client has failed.
                        let _ = listens.send(server.address());
                        server.run(async { drop(ended.await) }).await;
                        Ok(())
                    })
                };
                dumbbell.servers.within(serve)
            });
            let came = match listening.recv() {
                Ok(address) => dumbbell.clients.within(|| runtime()?.block_on(self.get(address))).map_err(words),
                // The server says why below.
                Err(_) => Err(String::new()),
            };
            complete();
            drop(end);
            served.join().map_err(|_| "the server has panicked".to_owned())?.map_err(words)?;
            came
        })
    }

    fn server(&self) -> Result<server::Config, String> {
        let (plan, cell) = (self.plan, self.cell);
        let avoidance = plan.avoidance_of(cell).value;
        // The policies of the stack in simulated time, among them how far slow start is spread.
        let controller = plan.transport_of(cell).profile.controller(self.startup().clone(), avoidance.clone());
        let scheme = Scheme::with_config(&plan.schemes[cell.scheme].text, controller);
        let schemes = Schemes::new(scheme.map_err(words)?, Scheme::plain(&avoidance).map_err(words)?);
        let tls = Certificate::SelfSigned.config(&[H3], &Warnings::default()).map_err(words)?;
        let mut config = server::Config::new(tls, schemes);
        config.listen = (SERVERS, 0).into();
        config.limits.grace = GRACE;
        // A slow link is no idle client.
        let patience = std_time(patience(plan, cell));
        (config.limits.handshake, config.limits.stall, config.limits.idle) = (patience, patience, patience);
        config.qlog = Some(self.folder.to_owned());
        config.quick_start = self.asks();
        if let Some(stack) = &plan.transport_of(cell).stack {
            config.hint_policy = stack.hint_policy().clone();
            config.mtu_discovery = stack.mtu_discovery();
        }
        // Of what an earlier connection saved, schemes that take no rate from it take the smallest RTT.
        if let Some(saved) = known(plan, cell).saved {
            config.path_store = Some(self.remembered(&saved)?);
        }
        Ok(config)
    }

    /// A path store with what an earlier connection saved.
    fn remembered(&self, saved: &SavedPath) -> Result<String, String> {
        let file = self.folder.join("paths.redb");
        let (store, _) = EmbeddedStore::open(&file, Retention::default()).map_err(words)?;
        let at = UnixTime::from_secs(UnixTime::now().as_secs().saturating_sub(saved.age.as_nanos() / 1_000_000_000));
        let rate = saved.rate().unwrap_or_default();
        let observation = Observation { at, min_rtt: saved.rtt, cwnd: saved.cwnd, rate };
        let prefix = Prefixes::default().prefix_of(IpAddr::from(CLIENTS));
        store.put(prefix, observation).map_err(words)?;
        Ok(file.display().to_string())
    }

    /// Gets the cell's payload.
    async fn get(&self, server: SocketAddr) -> io::Result<Result<Timings, Failure>> {
        let (plan, cell) = (self.plan, self.cell);
        let (link, transport) = (&plan.links[cell.link], plan.transport_of(cell));
        let mut config = client::Config::new(Trust::Anyone.config(&[H3]).map_err(io::Error::other)?);
        config.receive_window = transport.profile.receive_window;
        config.quick_start = self.asks();
        config.hint = link.hinted(Timestamp::ZERO).filter(|_| plan.hint).map(|rate| BandwidthHint {
            rate,
            technology: link.technology,
            age: Duration::ZERO,
        });
        let client = Client::new(config).map_err(io::Error::other)?;
        let size = plan.sizes[cell.size].value.fixed_size().unwrap_or_default().get();
        let uri = format!("https://{server}/generate/{size}B").parse().map_err(io::Error::other)?;
        let url = Url::new(uri).map_err(io::Error::other)?;
        let mut nowhere = tokio::io::sink();
        let got = timeout(std_time(patience(plan, cell)), client.get(&url, &[server], &mut nowhere, &|_| {})).await;
        client.close().await;
        Ok(match got {
            Err(_) => Err(Failure::TimeLimit),
            Ok(Ok(timings)) if timings.is_refused() => {
                return Err(io::Error::other(format!("the server answered {}", timings.status)));
            }
            Ok(Ok(timings)) => Ok(timings),
            Ok(Err(error)) => {
                note!("{}: {error}", plan.id(cell));
                Err(Failure::Stalled)
            }
        })
    }
}

/// A runtime that stays in this thread, and so in its namespace.
fn runtime() -> io::Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_all().build()
}

/// What the server wrote of its connection; `None`: there was none.
fn connection(folder: &Path) -> Result<Option<Connection>, String> {
    let files = fs::read_dir(folder).map_err(words)?;
    let files: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let file = files.iter().find(|file| file.extension().is_some_and(|extension| extension == "sqlog"));
    file.map(|file| log::read(file)).transpose().map_err(words)
}

/// A record of what both ends saw, the server later by this much.
fn record(came: Option<&Timings>, seen: Option<&Connection>, later: Duration) -> FlowRecord {
    let mut record = FlowRecord { started: Some(Timestamp::ZERO), ..FlowRecord::default() };
    let at = |time: std::time::Duration| Timestamp::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    if let Some(came) = came {
        record.completed = Some(at(came.fct));
        record.request_sent = Some(at(came.fct.saturating_sub(came.request)));
        record.delivered = came.bytes;
    }
    if let Some(seen) = seen {
        record.data_packets = seen.sent;
        record.declared_lost = seen.lost;
        record.retransmissions = seen.lost;
        record.retransmitted = seen.lost_bytes;
        record.window_cuts = seen.window_cuts;
        record.timeouts = seen.collapses;
        record.startup_in_flight = Bytes::new(seen.startup_in_flight);
        record.exit = seen.exited.zip(seen.exit.as_deref()).map(|(exited, reason)| {
            let cwnd = Bytes::new(exited.cwnd);
            let time = at(std::time::Duration::from_secs_f64((exited.millis / 1e3).clamp(0.0, 1e6))) + later;
            let reason = ExitReason::named(reason).unwrap_or(ExitReason::Other("of-the-scheme"));
            StartupExit { time, reason, cwnd, reached: cwnd }
        });
    }
    record
}
