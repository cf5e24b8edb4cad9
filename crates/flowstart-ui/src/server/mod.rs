//! The pages over HTTP/1.1.
//!
//! | Looking for | Where |
//! |---|---|
//! | connections and their limits | [`serve`] |
//! | which address leads where | `route.rs` |
//! | answers of HTTP, with what browsers may do with them | `answer.rs` |
//! | answers that are kept for a while | `kept.rs` |
//! | who may ask | `guard.rs` |

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use route::{prepare, route};

mod answer;
mod guard;
mod kept;
mod route;

pub use guard::{Guard, token};
pub use route::Lab;

/// Connections at a time; others wait. A browser opens six.
const CONNECTIONS: usize = 96;
/// Connections of one other machine at a time.
const OF_ONE_PEER: usize = 24;
/// Longest time until a request's head is complete, and between two requests of a connection.
const HEAD: Duration = Duration::from_secs(15);
/// Most bytes of a request's head that are kept: an address that has a question in a part of its path, and cookies of
/// other servers of this host.
const LONGEST_HEAD: usize = 96 * 1024;
/// After this time a connection gets no further request.
const LIFE: Duration = Duration::from_secs(300);
/// Time for the answer that is under way then: the longest runs, and those before them.
const LAST: Duration = Duration::from_secs(300);
/// Time for answers when the server ends.
const CLOSING: Duration = Duration::from_secs(1);

/// Answers on `listener` until `shutdown` completes. Blocks.
///
/// # Errors
///
/// The listener or the threads cannot be used.
pub fn serve(
    listener: TcpListener,
    lab: Lab,
    guard: Guard,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().enable_time().build()?;
    let lab = Arc::new(lab);
    let served = runtime.block_on(async {
        tokio::spawn(prepare(Arc::clone(&lab)));
        tokio::select! {
            served = accept(listener, lab, Arc::new(guard)) => served,
            () = shutdown => Ok(()),
        }
    });
    // Runs under way must not keep the program from ending.
    runtime.shutdown_timeout(CLOSING);
    served
}

async fn accept(listener: TcpListener, lab: Arc<Lab>, guard: Arc<Guard>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let peers = Peers::default();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let Ok((stream, peer)) = listener.accept().await else {
            // The peer is gone, or there are no file descriptors left: neither is a reason to stop.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        // On this machine all have one address.
        let Some(counted) = peers.count(peer.ip().to_canonical()) else { continue };
        let (lab, guard) = (Arc::clone(&lab), Arc::clone(&guard));
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let (lab, guard) = (Arc::clone(&lab), Arc::clone(&guard));
                async move { Ok::<_, Infallible>(route(lab, &guard, request).await) }
            });
            let mut connection = pin!(
                Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD)
                    .max_buf_size(LONGEST_HEAD)
                    .serve_connection(TokioIo::new(stream), answer)
            );
            // How a connection ended concerns its client only.
            if timeout(LIFE, connection.as_mut()).await.is_err() {
                connection.as_mut().graceful_shutdown();
                drop(timeout(LAST, connection).await);
            }
            drop((place, counted));
        });
    }
}

/// Other machines with the number of their connections.
#[derive(Clone, Default)]
struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that is counted until this is dropped.
struct Counted(Peers, IpAddr);

impl Peers {
    fn all(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection; `None`: its peer has enough of them.
    fn count(&self, peer: IpAddr) -> Option<Counted> {
        let mut all = self.all();
        let connections = all.entry(peer).or_default();
        if *connections >= OF_ONE_PEER && !peer.is_loopback() {
            return None;
        }
        *connections += 1;
        Some(Counted(self.clone(), peer))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.0.all();
        if let Some(connections) = all.get_mut(&self.1) {
            *connections -= 1;
            if *connections == 0 {
                all.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_does_not_take_all_places() {
        let peers = Peers::default();
        let (far, near): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "127.0.0.1".parse().unwrap());
        let mut kept: Vec<_> = (0..OF_ONE_PEER).map(|_| peers.count(far).unwrap()).collect();
        assert!(peers.count(far).is_none() && peers.count("192.0.2.2".parse().unwrap()).is_some());
        kept.extend((0..2 * OF_ONE_PEER).map(|_| peers.count(near).unwrap()));
        kept.clear();
        assert!(peers.all().is_empty() && peers.count(far).is_some());
    }
}
