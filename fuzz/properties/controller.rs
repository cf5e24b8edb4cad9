//! Random sequences of events, for every startup scheme with every congestion avoidance: as a host tells them to the
//! controller itself, and as noq tells them to the adapter.

#[path = "../../crates/flowstart-core/tests/host/mod.rs"]
#[allow(dead_code, reason = "the contracts use all of it")]
mod host;
#[path = "../../crates/flowstart-quic/tests/world/mod.rs"]
mod world;

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use flowstart_core::controller::ControllerConfig;
use flowstart_core::path::{AccessTechnology, Concurrent, Hint, PathKnowledge, SavedPath};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::Window;
use flowstart_quic::{ControllerFactory, Flow};
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, Controller, ControllerFactory as _};

use super::configurations::{Configuration, Random, Space, spaces};
use host::{Host, Operation, POLICIES, SEGMENT};

/// Events of one sequence. The effort of some grows with what is in flight.
const MOST: usize = 2000;

/// Takes numbers from the front of an input.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.0.split_off_first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// Two bytes for any number up to 2^32 or so: a mantissa of 11 bits and an exponent.
    fn wide(&mut self) -> Option<u64> {
        let number = self.number()?;
        Some(u64::from(number & 0x7ff) << (number >> 11))
    }

    /// One of a list, which is not empty.
    fn pick<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        Some(list[usize::from(self.byte()?) % list.len()].clone())
    }

    /// Which of the registry's entries, and what to draw of it.
    fn configuration<T: Configuration>(&mut self, entries: &[Space<T>], random: &mut Option<Random>) -> Option<T> {
        let entry = &entries[usize::from(self.byte()?) % entries.len()];
        Some(random.as_mut().map_or_else(|| entry.default().clone(), |random| entry.draw(random)))
    }

    /// What draws valid configurations; zero stands for the defaults.
    fn random(&mut self) -> Option<Option<Random>> {
        let seed = self.number()?;
        Some((seed > 0).then(|| Random(u64::from(seed) << 32)))
    }

    /// A bit for each thing that may be known, and its value.
    fn path(&mut self) -> Option<PathKnowledge> {
        let known = self.byte()?;
        let mut number = |bit: u8| if known >> bit & 1 == 1 { self.wide().map(Some) } else { Some(None) };
        let rate = |kbit: u64| Rate::from_bits_per_sec(kbit.max(1) * 1000);
        let technology = AccessTechnology::Lte;
        let path = PathKnowledge {
            handshake_rtt: number(0)?.map(Duration::from_micros),
            saved: number(1)?.map(|number| SavedPath {
                rtt: Duration::from_micros(number),
                cwnd: Bytes::new(number),
                age: Duration::from_millis(number),
            }),
            receive_window: number(2)?.map(Bytes::new),
            bytes_waiting: number(3)?.map(Bytes::new),
            hint: number(4)?.map(|kbit| Hint { bandwidth: rate(kbit), technology }),
            requested_rate: number(5)?.map(rate),
            interface_rate: number(6)?.map(rate),
            oracle_rate: number(7)?.map(rate),
            train_rate: None,
            approved_rate: None,
            advised_rate: None,
            concurrent: None,
        };
        // What was asked for was approved, what the oracle says is advised, and the handshake came at the interface's
        // rate.
        // What was saved is what others have now.
        let concurrent = path.saved.map(|SavedPath { rtt, cwnd, .. }| {
            let ssthresh = if rtt.as_nanos() % 2 == 0 { Bytes::MAX } else { cwnd };
            Concurrent { rtt, window: Window { cwnd, ssthresh } }
        });
        let (approved_rate, advised_rate, train_rate) = (path.requested_rate, path.oracle_rate, path.interface_rate);
        Some(PathKnowledge { approved_rate, advised_rate, train_rate, concurrent, ..path })
    }

    /// An operation, and how often it happens.
    fn operation(&mut self) -> Option<(Operation, u8)> {
        let operation = match self.byte()? % 16 {
            0 => Operation::Wait(u32::try_from(self.wide()?).unwrap_or(u32::MAX)),
            1 => Operation::Wait(u32::from(self.number()?).saturating_mul(1_000_000)),
            2..=4 => return Some((Operation::Send, self.byte()?)),
            5 | 6 => {
                let (packets, rtt_ms) = (self.byte()?, self.number()?.max(1));
                Operation::Acknowledge { packets: packets & 0x7f, rtt_ms, app_limited: packets > 0x7f }
            }
            7 => Operation::Lose { packets: self.byte()? },
            8 => Operation::Mark,
            9 => Operation::TimeOut,
            10 => Operation::CongestPersistently,
            11 => Operation::FindSpurious,
            12 => Operation::ChangeSegment(self.number()?),
            13 => Operation::Timer,
            14 => Operation::Idle { ms: u32::from(self.number()?) },
            _ => match self.byte()? % 4 {
                0 => Operation::Limited,
                1 => Operation::ChangePath,
                2 => Operation::Share(u32::try_from(self.wide()?).unwrap_or(u32::MAX)),
                _ => Operation::Advice(u32::try_from(self.wide()?).ok()),
            },
        };
        Some((operation, 1))
    }
}

/// The controller of a pair, with the policies of a host: two bytes that draw their configurations, three that choose
/// them, what is known of the path, events.
pub fn controller(data: &[u8]) -> bool {
    events_of_a_host(&mut Input(data)).is_some()
}

fn events_of_a_host(input: &mut Input<'_>) -> Option<()> {
    let mut random = input.random()?;
    let startup = input.configuration(&spaces().startup, &mut random)?;
    let avoidance = input.configuration(&spaces().avoidance, &mut random)?;
    let policies = input.byte()?;
    let config = match &mut random {
        Some(random) if policies >= 128 => ControllerConfig { startup, avoidance, ..spaces().policies.draw(random) },
        _ => host::config(startup, avoidance, POLICIES[usize::from(policies) % POLICIES.len()]),
    };
    let mut host = Host::new(config, input.path()?)?;
    for _ in 0..MOST {
        let Some((operation, times)) = input.operation() else { break };
        (0..times).for_each(|_| host.apply(&operation));
    }
    Some(())
}

/// Notes how noq saw the RTT; without it nobody can make its estimators.
#[derive(Clone, Debug)]
struct Witness(Arc<Mutex<Vec<RttEstimator>>>);

impl congestion::ControllerFactory for Witness {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

impl Controller for Witness {
    fn on_ack(&mut self, _: Instant, _: Instant, _: u64, _: u64, _: bool, rtt: &RttEstimator) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(*rtt);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        12_000
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        12_000
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Estimators of connections with RTTs of 0.2 ms to 2 s.
fn estimators() -> &'static [RttEstimator] {
    static ESTIMATORS: OnceLock<Vec<RttEstimator>> = OnceLock::new();
    ESTIMATORS.get_or_init(|| {
        let seen = Witness(Arc::default());
        for micros in [100, 1_000, 20_000, 100_000, 1_000_000] {
            let path = world::Path { delay: StdDuration::from_micros(micros), ..world::Path::default() };
            world::transfer_with(Arc::new(seen.clone()), 10_000, path, StdDuration::from_secs(60));
        }
        seen.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    })
}

/// A packet that is under way.
#[derive(Clone, Copy)]
struct Packet {
    sent: Instant,
    number: u64,
    bytes: u16,
}

/// The host noq with one of its paths.
struct Noq {
    factory: Arc<ControllerFactory>,
    flow: Arc<Flow>,
    controller: Box<dyn Controller>,
    now: Instant,
    next: u64,
    under_way: Vec<Packet>,
}

/// The adapter for noq: two bytes that draw configurations, two that choose the pair, what is known of the path,
/// whether the launch has to wait, events.
pub fn adapter(data: &[u8]) -> bool {
    events_of_noq(&mut Input(data)).is_some()
}

fn events_of_noq(input: &mut Input<'_>) -> Option<()> {
    let mut random = input.random()?;
    let startup = input.configuration(&spaces().startup, &mut random)?;
    let avoidance = input.configuration(&spaces().avoidance, &mut random)?;
    let path = input.path()?;
    let flow = if input.byte()? % 2 == 0 { Flow::new(path) } else { Flow::waiting(path) };
    let config = ControllerConfig { undo: true, ..ControllerConfig::new(startup, avoidance) };
    // What the host lacks makes it another scheme, and must do no harm either.
    let factory = Arc::new(ControllerFactory::forced(config).ok()?.for_flow(flow.clone()));
    let now = Instant::now();
    let controller = factory.clone().build(now, SEGMENT as u16);
    let mut noq = Noq { factory, flow, controller, now, next: 0, under_way: Vec::new() };
    for _ in 0..MOST {
        if noq.happen(input).is_none() {
            break;
        }
        noq.check();
    }
    Some(())
}

impl Noq {
    /// The next event.
    fn happen(&mut self, input: &mut Input<'_>) -> Option<()> {
        match input.byte()? % 16 {
            0 => self.now += StdDuration::from_nanos(input.wide()?),
            1 => self.now += StdDuration::from_millis(input.number()?.into()),
            2..=4 => {
                let (packets, bytes) = (input.byte()?, input.number()?);
                // Numbers may be left out (RFC 9000, section 21.4).
                self.next += u64::from(packets >> 6);
                for _ in 0..packets & 0x3f {
                    self.controller.on_packet_sent(self.now, bytes, self.next);
                    self.under_way.push(Packet { sent: self.now, number: self.next, bytes });
                    self.next += 1;
                }
            }
            5..=7 => {
                let rtt = input.pick(estimators())?;
                let app_limited = input.byte()? % 2 == 0;
                let acknowledged = self.take(input)?;
                let largest = acknowledged.last().map(|packet| packet.number);
                for Packet { sent, number, bytes } in acknowledged {
                    self.controller.on_ack(self.now, sent, bytes.into(), number, app_limited, &rtt);
                }
                self.controller.on_end_acks(self.now, self.in_flight(), app_limited, largest);
            }
            8 | 9 => {
                let persistent = input.byte()? % 4 == 0;
                let lost = self.take(input)?;
                let Some(last) = lost.last() else { return Some(()) };
                for Packet { number, bytes, .. } in &lost {
                    self.controller.on_packet_lost(*bytes, *number, self.now);
                }
                let bytes = lost.iter().map(|packet| u64::from(packet.bytes)).sum();
                self.controller.on_congestion_event(self.now, last.sent, persistent, false, bytes, last.number);
            }
            10 => {
                let sent = self.under_way.last().map_or(self.now, |packet| packet.sent);
                self.controller.on_congestion_event(self.now, sent, false, true, 0, self.next);
            }
            11 => self.controller.on_spurious_congestion_event(),
            12 => self.controller.on_mtu_update(input.number()?.max(SEGMENT as u16)),
            13 => self.flow.expect(Bytes::new(input.wide()?), Bytes::new(SEGMENT)),
            // Packets that nobody sent: of one that was, noq knows the size.
            14 => {
                let (rtt, number) = (input.pick(estimators())?, input.wide()? | 1 << 61);
                self.controller.on_ack(self.now, self.now, SEGMENT, number, false, &rtt);
                self.controller.on_packet_lost(SEGMENT as u16, number, self.now);
            }
            _ if input.byte()? % 2 == 0 => {
                self.controller = self.factory.clone().build(self.now, SEGMENT as u16);
                self.under_way.clear();
                self.next = 0;
            }
            _ => self.controller = self.controller.clone_box(),
        }
        Some(())
    }

    /// Some packets in a row, of those under way.
    fn take(&mut self, input: &mut Input<'_>) -> Option<Vec<Packet>> {
        let (back, count) = (usize::from(input.byte()?), usize::from(input.byte()?));
        let end = self.under_way.len().saturating_sub(back);
        Some(self.under_way.drain(end.saturating_sub(count)..end).collect())
    }

    fn in_flight(&self) -> u64 {
        self.under_way.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    /// What noq relies on: it can send, and does not wait for ever between packets.
    fn check(&self) {
        let (window, metrics, status) = (self.controller.window(), self.controller.metrics(), self.flow.status());
        assert!(window >= SEGMENT, "{window}");
        assert_eq!(metrics.congestion_window, window);
        assert!(metrics.pacing_rate.is_some_and(|rate| rate > 0), "{:?}", metrics.pacing_rate);
        assert!(metrics.send_quantum.is_some_and(|quantum| quantum >= 2 * SEGMENT), "{:?}", metrics.send_quantum);
        assert!(status.startup_lost <= status.lost.min(status.startup_sent), "{status:?}");
    }
}
