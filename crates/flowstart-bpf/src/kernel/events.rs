//! Events of startups while someone follows them.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flowstart_core::time::Timestamp;
use flowstart_core::units::Rate;
use libbpf_rs::{MapHandle, RingBufferBuilder};

use super::pins::{self, Found};
use super::wire::{Control, Fields, control, set_control};
use super::{KernelError, lock, permission};
use crate::port::{PORTS, Port, REASONS};

/// How long a wait for events lasts before `stop` is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A connection launched.
    Launch,
    /// A connection started with the kernel's slow start, because the scheme lacked something.
    Fallback,
    /// Startup ended, for this reason.
    Exit(&'static str),
}

/// An event of a connection's startup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The scheme.
    pub scheme: &'static str,
    /// When, on the kernel's monotonic clock.
    pub time: Timestamp,
    /// What.
    pub kind: EventKind,
    /// The connection's own address.
    pub source: SocketAddr,
    /// Its peer.
    pub destination: SocketAddr,
    /// Its window in packets after the event.
    pub cwnd: u32,
    /// Bytes of a packet.
    pub segment: u32,
    /// ssthresh in packets after the event; `None`: infinite.
    pub ssthresh: Option<u32>,
    /// The smoothed RTT in microseconds.
    pub srtt_us: u32,
    /// The rate of a launch that is paced.
    pub pacing_rate: Option<Rate>,
}

impl Event {
    /// Reads `struct event`.
    fn read(scheme: &'static str, bytes: &[u8]) -> Option<Self> {
        /// `TCP_INFINITE_SSTHRESH`.
        const INFINITE: u32 = 0x7fff_ffff;
        let mut fields = Fields::new(bytes);
        let (time, rate) = (fields.wide()?, fields.wide()?);
        let (kind, reason) = (fields.number()?, fields.number()?);
        let (cwnd, ssthresh, srtt_us, segment) =
            (fields.number()?, fields.number()?, fields.number()?, fields.number()?);
        let (source, destination) = (fields.address()?, fields.address()?);
        let (source_port, destination_port) = (fields.short()?, fields.short()?);
        Some(Self {
            scheme,
            time: Timestamp::from_nanos(time),
            kind: match kind {
                1 => EventKind::Launch,
                2 => EventKind::Fallback,
                _ => EventKind::Exit(REASONS.get((reason as usize).checked_sub(1)?)?),
            },
            source: (source, source_port).into(),
            destination: (destination, destination_port).into(),
            cwnd,
            segment,
            ssthresh: Some(ssthresh).filter(|ssthresh| *ssthresh != INFINITE),
            srtt_us,
            pacing_rate: (rate > 0).then(|| Rate::from_bits_per_sec(rate.saturating_mul(8))),
        })
    }
}

/// Someone who follows a scheme; when it is dropped the programs stop writing events.
struct Follower {
    port: &'static Port,
    control: MapHandle,
    events: MapHandle,
    /// One at a time: the events of a ring go to whoever reads first.
    _lock: File,
}

impl Follower {
    fn new(port: &'static Port) -> Result<Self, KernelError> {
        let lock = lock::following(port)?;
        let (control, events) = (pins::map(port, pins::CONTROL)?, pins::map(port, "events")?);
        let follower = Self { port, control, events, _lock: lock };
        // One that was killed has left this on.
        follower.set(0)?;
        Ok(follower)
    }

    fn set(&self, wanted: u32) -> Result<(), KernelError> {
        set_control(&self.control, Control::Following, wanted).map_err(|error| KernelError::File {
            file: pins::file(self.port, pins::CONTROL),
            cause: pins::as_io(&error),
        })
    }

    /// Events for which there was no room since the scheme was loaded.
    fn lost(&self) -> u32 {
        control(&self.control, Control::Lost).ok().flatten().unwrap_or(0)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.set(0));
    }
}

/// Tells events of all schemes that are loaded now, until `stop` is set or `tell` returns false. Returns how many were
/// lost, because they came faster than `tell` took them.
///
/// # Errors
///
/// What cannot be read, or is followed already.
pub fn follow(stop: &AtomicBool, mut tell: impl FnMut(&Event) -> bool) -> Result<u64, KernelError> {
    permission::check()?;
    let mut followers = Vec::new();
    for port in PORTS {
        if matches!(pins::find(port), Ok(Found::Loaded)) {
            followers.push(Follower::new(port)?);
        }
    }
    let Some(first) = followers.first() else { return Ok(0) };
    let refused = |error: libbpf_rs::Error| KernelError::File {
        file: pins::file(first.port, "events"),
        cause: pins::as_io(&error),
    };
    let seen = std::cell::RefCell::new(Vec::new());
    let mut builder = RingBufferBuilder::new();
    for follower in &followers {
        let scheme = follower.port.scheme;
        let seen = &seen;
        let keep = move |bytes: &[u8]| {
            seen.borrow_mut().extend(Event::read(scheme, bytes));
            0
        };
        builder.add(&follower.events, keep).map_err(refused)?;
    }
    let ring = builder.build().map_err(refused)?;
    // What is there was left by an earlier follower.
    ring.consume().map_err(refused)?;
    drop(seen.take());
    let lost = || followers.iter().map(|follower| u64::from(follower.lost())).sum::<u64>();
    let lost_before = lost();
    for follower in &followers {
        follower.set(1)?;
    }
    while !stop.load(Ordering::Relaxed) {
        match ring.poll(PAUSE) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => return Err(refused(error)),
            _ => {}
        }
        for event in seen.take() {
            if !tell(&event) {
                return Ok(lost() - lost_before);
            }
        }
    }
    Ok(lost() - lost_before)
}
