//! Events of startups while someone follows them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flowstart_core::time::Timestamp;
use flowstart_core::units::Rate;
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBufferBuilder};

use super::wire::{Fields, REASONS};
use super::{KernelError, permission, pins};
use crate::port::{PORTS, Port};

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
    following: MapHandle,
    events: MapHandle,
}

impl Follower {
    fn new(port: &'static Port) -> Result<Self, KernelError> {
        let follower = Self { port, following: pins::map(port, "following")?, events: pins::map(port, "events")? };
        follower
            .set(1)
            .map_err(|error| KernelError::File { file: pins::file(port, "following"), cause: pins::as_io(&error) })?;
        Ok(follower)
    }

    fn set(&self, wanted: u32) -> libbpf_rs::Result<()> {
        self.following.update(&0_u32.to_ne_bytes(), &wanted.to_ne_bytes(), MapFlags::ANY)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.set(0));
    }
}

/// Tells events of all schemes that are loaded now, until `stop` is set or `tell` returns false.
///
/// # Errors
///
/// What cannot be read.
pub fn follow(stop: &AtomicBool, mut tell: impl FnMut(&Event) -> bool) -> Result<(), KernelError> {
    permission::check()?;
    let mut followers = Vec::new();
    for port in PORTS {
        if pins::is_loaded(port)? {
            followers.push(Follower::new(port)?);
        }
    }
    let Some(first) = followers.first() else { return Ok(()) };
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
    while !stop.load(Ordering::Relaxed) {
        match ring.poll(PAUSE) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => return Err(refused(error)),
            _ => {}
        }
        for event in seen.take() {
            if !tell(&event) {
                return Ok(());
            }
        }
    }
    Ok(())
}
