//! Two network namespaces, of servers and of clients, joined by a router: a testbed on one machine.
//!
//! Each side has one interface, a TUN device of the router, so every packet between them crosses the link and none
//! takes another way. Nothing of it has a name outside ([`crate::namespace`]): two of them may stand side by side, and
//! nothing is left behind when one ends.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::namespace::Namespace;
use crate::port::{Port, PortError, PortName};
use crate::router::{Path, Router, RouterError, Told};
use crate::watch::Watch;

/// Address of servers.
pub const SERVERS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Address of clients.
pub const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Port of servers whose flows are the others beside a measured one.
pub const OTHERS: u16 = 5001;
/// Length of the prefix of both.
const PREFIX: u8 = 24;
/// The interface of either side.
const DEVICES: [&str; 2] = ["servers", "clients"];

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumbbellError {
    /// Namespaces cannot be made.
    #[error("network namespaces: {0}; they take Linux and root (CAP_SYS_ADMIN and CAP_NET_ADMIN)")]
    Namespace(#[source] io::Error),
    /// Their interfaces cannot be made.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The router stopped.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// The router's thread cannot be started, or has failed.
    #[error("the router: {0}")]
    Thread(String),
}

/// A router that has ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// What it counted.
    pub told: Told,
    /// The CPU time that it took, with what the kernel did for it.
    pub cpu_time: Duration,
}

/// A running one.
#[derive(Debug)]
pub struct Dumbbell {
    /// Where servers run.
    pub servers: Namespace,
    /// Where clients run.
    pub clients: Namespace,
    /// What the router counts of the flows to the port [`OTHERS`] and of all others than these.
    pub watch: Watch,
    stop: Arc<AtomicBool>,
    routing: Option<JoinHandle<Result<Ended, RouterError>>>,
}

impl Dumbbell {
    /// Builds it. Its links begin empty.
    ///
    /// # Errors
    ///
    /// [`DumbbellError`].
    pub fn new(path: &Path) -> Result<Self, DumbbellError> {
        let side = || Namespace::new().map_err(DumbbellError::Namespace);
        let (servers, clients) = (side()?, side()?);
        let port = |namespace: &Namespace, device: &str, address: Ipv4Addr| {
            let opened = namespace.within(|| Ok(Port::with_address(device, address, PREFIX)));
            opened.map_err(DumbbellError::Namespace)?.map_err(DumbbellError::Port)
        };
        let ports = [port(&servers, DEVICES[0], SERVERS)?, port(&clients, DEVICES[1], CLIENTS)?];
        let names = DEVICES.map(|device| PortName::Tun(device.to_owned()));
        let mut router = Router::between(names, ports, path)?;
        let watch = router.watch(OTHERS);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || {
            router.run(&stopped, None, |_, _| {})?;
            Ok(Ended { told: router.told(), cpu_time: cpu_time_of_thread() })
        };
        let routing = thread::Builder::new().name("router".into()).spawn(run);
        let routing = routing.map_err(|error| DumbbellError::Thread(error.to_string()))?;
        Ok(Self { servers, clients, watch, stop, routing: Some(routing) })
    }

    /// Ends it; what the router counted.
    ///
    /// # Errors
    ///
    /// [`DumbbellError::Router`] when the router had stopped before.
    pub fn end(self) -> Result<Told, DumbbellError> {
        self.end_with_cost().map(|ended| ended.told)
    }

    /// As [`Dumbbell::end`], with what it cost.
    ///
    /// # Errors
    ///
    /// As [`Dumbbell::end`].
    pub fn end_with_cost(mut self) -> Result<Ended, DumbbellError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.routing.take().map(JoinHandle::join) {
            Some(Ok(ended)) => Ok(ended?),
            _ => Err(DumbbellError::Thread("it has panicked".into())),
        }
    }
}

/// Zero where the system does not tell.
fn cpu_time_of_thread() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

impl Drop for Dumbbell {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(routing) = self.routing.take() {
            drop(routing.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration as StdDuration, Instant};

    use flowstart_core::time::Duration;
    use flowstart_core::units::Rate;
    use flowstart_sim::link::LinkConfig;

    use super::*;

    fn path() -> Path {
        let link = LinkConfig::new(Rate::from_mbit(100), Duration::from_millis(20));
        Path { down: link.clone(), up: link, quick_start: None, advice: None, decrement_ttl: false, seed: 1 }
    }

    /// A socket on one side, which gives up after a second.
    fn socket(side: &Namespace, address: Ipv4Addr) -> UdpSocket {
        let socket = side.within(|| UdpSocket::bind((address, 4000))).unwrap();
        socket.set_read_timeout(Some(StdDuration::from_secs(1))).unwrap();
        socket
    }

    #[test]
    fn packets_between_the_sides_cross_the_link_and_two_testbeds_know_nothing_of_each_other() {
        let made = [path(), path()].map(|path| Dumbbell::new(&path));
        let testbeds = match made {
            [Ok(one), Ok(other)] => [one, other],
            [Err(DumbbellError::Namespace(why)), _] if why.kind() == io::ErrorKind::PermissionDenied => {
                println!("skipped: {why}");
                return;
            }
            [Err(DumbbellError::Port(PortError::Missing(device))), _] => {
                println!("skipped: there is no TUN device {device}");
                return;
            }
            [one, other] => panic!("{:?} {:?}", one.err(), other.err()),
        };
        for testbed in testbeds {
            let (server, client) = (socket(&testbed.servers, SERVERS), socket(&testbed.clients, CLIENTS));
            let began = Instant::now();
            client.send_to(&[7; 100], (SERVERS, 4000)).unwrap();
            let mut buffer = [0; 200];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!((length, from), (100, (CLIENTS, 4000).into()));
            server.send_to(&buffer[..length], from).unwrap();
            client.recv_from(&mut buffer).unwrap();
            assert!(began.elapsed() >= StdDuration::from_millis(40), "{:?}", began.elapsed());
            let (watch, told) = (testbed.watch.clone(), testbed.end().unwrap());
            let counts = watch.counts();
            let measured = counts.monitor.flows.first().map(|flow| (flow.bytes, flow.share()));
            assert_eq!((counts.dropped, measured), ([0, 0], Some((128, Some(1.0)))));
            // The packets, and nothing that the system sends by itself.
            assert_eq!((told.down.link.departed_bytes, told.up.link.departed_bytes), (128, 128));
        }
    }
}
