//! A runtime for noq whose timers fire when they should: within about 0.1 ms, where tokio's fire up to 1 ms late.
//!
//! A launch of 50 Mbit/s sends a packet every 0.2 ms. noq keeps credit for 2 ms, so a timer that is 1 ms late and then
//! has to wait for a processor loses credit, and the flight takes longer than it was launched for. tokio's timer wheel
//! has slots of a millisecond. Here the last two milliseconds of a timer belong to one thread for all of them, which
//! sleeps with the resolution of the kernel.
//!
//! Only timers that are about to fire cost anything: idle connections have tokio's timers alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ::noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::time::{Sleep, sleep_until};

/// How long before its time a timer goes over to the thread: more than tokio's timers are late.
const NEAR: Duration = Duration::from_millis(2);

/// tokio's runtime with finer timers. Use it in the context of a tokio runtime, as `noq::TokioRuntime`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PreciseRuntime;

impl Runtime for PreciseRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        let coarse = Box::pin(sleep_until(early(at).into()));
        Box::pin(Timer { at, coarse, alarm: Arc::default() })
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

fn early(at: Instant) -> Instant {
    at.checked_sub(NEAR).unwrap_or(at)
}

/// A timer of a connection.
#[derive(Debug)]
struct Timer {
    at: Instant,
    coarse: Pin<Box<Sleep>>,
    alarm: Arc<Mutex<Alarm>>,
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.at = at;
        self.coarse.as_mut().reset(early(at).into());
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        if now >= self.at {
            locked(&self.alarm).waker = None;
            return Poll::Ready(());
        }
        // Beyond the range of the thread tokio wakes this task.
        if self.at.saturating_duration_since(now) > NEAR && Future::poll(self.coarse.as_mut(), context).is_pending() {
            return Poll::Pending;
        }
        match THREAD.get_or_init(Alarms::start) {
            Some(alarms) => alarms.set(self.at, &self.alarm, context.waker()),
            // Without the thread tokio's timer has to do.
            None => {
                let at = self.at;
                self.coarse.as_mut().reset(at.into());
                if Future::poll(self.coarse.as_mut(), context).is_ready() {
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    }
}

/// What the thread knows of a timer.
#[derive(Debug, Default)]
struct Alarm {
    /// Whom to wake; `None` if the timer is not waiting.
    waker: Option<Waker>,
    /// When.
    at: Option<Instant>,
    /// The earliest entry that the thread has of it.
    entered: Option<Instant>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's timers by their times.
#[derive(Debug, Default)]
struct Alarms {
    waiting: Mutex<BinaryHeap<Reverse<Entry>>>,
    earlier: Condvar,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    alarm: Arc<Mutex<Alarm>>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

static THREAD: OnceLock<Option<Arc<Alarms>>> = OnceLock::new();

impl Alarms {
    /// Starts the thread, which lives as long as the program; `None` if the system gives none.
    fn start() -> Option<Arc<Self>> {
        let alarms: Arc<Self> = Arc::default();
        let work = alarms.clone();
        let started = std::thread::Builder::new().name("timers".to_owned()).spawn(move || work.work());
        started.ok().map(|_| alarms)
    }

    /// Wakes the task at this time. A timer that moves to a later time keeps its entry, which moves when it is due.
    fn set(&self, at: Instant, alarm: &Arc<Mutex<Alarm>>, waker: &Waker) {
        let mut told = locked(alarm);
        told.at = Some(at);
        if !told.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            told.waker = Some(waker.clone());
        }
        if told.entered.is_some_and(|entered| entered <= at) {
            return;
        }
        told.entered = Some(at);
        drop(told);
        let mut waiting = locked(&self.waiting);
        let is_first = waiting.peek().is_none_or(|Reverse(first)| at < first.at);
        waiting.push(Reverse(Entry { at, alarm: alarm.clone() }));
        drop(waiting);
        if is_first {
            self.earlier.notify_one();
        }
    }

    fn work(&self) {
        // A sleep otherwise ends up to 50 us late, to wake the processor less often.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut waiting = locked(&self.waiting);
        loop {
            let Some(Reverse(first)) = waiting.peek() else {
                waiting = self.earlier.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = first.at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                waiting = self.earlier.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if let Some(Reverse(Entry { at, alarm })) = waiting.pop() {
                waiting.extend(due(at, alarm).map(Reverse));
            }
        }
    }
}

/// Wakes the task of an entry that is due; or gives the entry that its timer has now.
fn due(at: Instant, alarm: Arc<Mutex<Alarm>>) -> Option<Entry> {
    let mut told = locked(&alarm);
    if told.entered != Some(at) {
        // An earlier entry took its place.
        return None;
    }
    match told.at.filter(|_| told.waker.is_some()) {
        Some(later) if later > at => {
            told.entered = Some(later);
            drop(told);
            Some(Entry { at: later, alarm })
        }
        _ => {
            told.entered = None;
            let waker = told.waker.take();
            drop(told);
            if let Some(waker) = waker {
                waker.wake();
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// By how much timers of this length are late.
    async fn lateness(length: Duration) -> Duration {
        let mut timer = PreciseRuntime.new_timer(Instant::now());
        let mut late: Vec<Duration> = Vec::new();
        for _ in 0..50 {
            let at = Instant::now() + length;
            timer.as_mut().reset(at);
            poll_fn(|context| timer.as_mut().poll(context)).await;
            late.push(Instant::now().checked_duration_since(at).expect("no timer fires early"));
        }
        late.sort_unstable();
        late[25]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn timers_are_never_early_and_rarely_late() {
        for micros in [0, 200, 1500, 2100, 5000] {
            // A busy machine is later; tokio's own timers are 0.5 ms late in the mean.
            let late = lateness(Duration::from_micros(micros)).await;
            assert!(late < Duration::from_millis(1), "{micros} us: {late:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_timer_follows_its_resets() {
        let mut timer = PreciseRuntime.new_timer(Instant::now() + Duration::from_secs(1000));
        let begin = Instant::now();
        let mut polls = 0;
        // Later, then earlier than what the thread knows.
        for millis in [1, 30, 4] {
            timer.as_mut().reset(begin + Duration::from_millis(millis));
            let polled = poll_fn(|context| Poll::Ready(timer.as_mut().poll(context).is_ready())).await;
            polls += u32::from(polled);
        }
        poll_fn(|context| timer.as_mut().poll(context)).await;
        let taken = begin.elapsed();
        assert!(polls == 0 && taken >= Duration::from_millis(4) && taken < Duration::from_millis(25), "{taken:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_timers_fire_each_at_its_time() {
        let timers = (0..200_u32).map(|number| {
            tokio::spawn(async move {
                let at = Instant::now() + Duration::from_micros(u64::from(number) * 37);
                let mut timer = PreciseRuntime.new_timer(at);
                poll_fn(|context| timer.as_mut().poll(context)).await;
                assert!(Instant::now() >= at);
            })
        });
        for timer in timers.collect::<Vec<_>>() {
            timer.await.expect("no timer is lost");
        }
    }
}
