//! The program of a Quick-Start router in the kernel, on frames that are handed to it (`BPF_PROG_TEST_RUN`).

use std::time::Duration as StdDuration;

use flowstart_core::quick_start::router::Config;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};

use super::load::{listening, program};
use super::wire::Fields;
use super::{KernelError, permission};
use crate::quick_start::{Unsupported, settings};

/// What messages call it.
const NAME: &str = "the Quick-Start router";
/// Its file.
const FILE: &str = "quick_start_target";
/// The map of `struct target_config`.
const CONFIG: &str = ".rodata.config";
/// Bytes of a frame that each run begins with anew.
const RESTORED: usize = 48;
/// The shortest frame that the kernel takes, and the longest here.
const FRAMES: std::ops::RangeInclusive<usize> = 60..=2048;
/// `XDP_DROP` and `XDP_PASS`.
const DROP: u32 = 1;
const PASS: u32 = 2;
/// Where `struct options_seen` is in `struct target`: behind four times, 64 intervals and five numbers.
const SEEN: usize = (4 + 64 + 5) * 8;

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuickStartError {
    /// The program does not have this.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// This host or kernel cannot.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// What happened to options, as `struct options_seen` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Rate Requests, of either pass.
    pub requests: u64,
    /// Of those, the ones that left with a lower rate, but with one.
    pub reduced: u64,
    /// Of those, the ones that left without a rate.
    pub denied: u64,
    /// Reports of Approved Rate.
    pub reports: u64,
    /// Options that cannot be read.
    pub malformed: u64,
    /// Packets whose TTL ended here.
    pub expired: u64,
}

/// Nanoseconds that a packet took, the mean of many runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// A program that does nothing but pass.
    pub pass: f64,
    /// What the router took beyond that.
    pub router: f64,
}

/// A router that is in the kernel as long as this lives.
#[derive(Debug)]
pub struct Router(Object);

impl Router {
    /// Puts a router at a link of this bandwidth into the kernel.
    ///
    /// # Errors
    ///
    /// What the program does not have, or this host cannot do.
    pub fn load(config: &Config, bandwidth: Rate) -> Result<Self, QuickStartError> {
        let settings = settings(config, bandwidth)?;
        permission::check()?;
        let missing = || refused("this build does not contain its program");
        let program = program(FILE).ok_or_else(missing)?;
        let object = listening(NAME, || {
            let mut open = ObjectBuilder::default().open_memory(program)?;
            for mut map in open.maps_mut().filter(|map| map.name() == CONFIG) {
                map.set_initial_value(&settings)?;
            }
            open.load()
        })?;
        Ok(Self(object))
    }

    /// What becomes of a frame at a time; whether it leaves. New bits of its nonce are those of `random`.
    ///
    /// # Errors
    ///
    /// A frame of a length that the kernel does not take, or what the kernel says.
    pub fn route(&mut self, frame: &mut [u8], now: Timestamp, random: u32) -> Result<bool, QuickStartError> {
        self.tell(now.since(Timestamp::ZERO), Duration::ZERO, random, &[])?;
        let mut left = [0; 2048];
        let (verdict, _) = self.run("quick_start_at", frame, Some(&mut left[..]), 1)?;
        frame.copy_from_slice(left.get(..frame.len()).ok_or_else(|| refused("the frame is too long"))?);
        Ok(verdict == PASS)
    }

    /// What a frame costs that comes again and again, `step` later each time beside the time that passes.
    ///
    /// # Errors
    ///
    /// As [`Router::route`].
    pub fn measure(&mut self, frame: &[u8], step: Duration, runs: u32) -> Result<Cost, QuickStartError> {
        // Times begin with now for every measurement, and never go back.
        self.tell(self.told()?, step, 0, frame)?;
        let nanos = |program| self.run(program, frame, None, runs).map(|(_, took)| took.as_nanos() as f64);
        let (pass, against, router) = (nanos("pass")?, nanos("pass_again")?, nanos("quick_start_again")?);
        Ok(Cost { pass, router: router - against })
    }

    /// What happened to options since it was loaded.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn seen(&self) -> Result<Seen, QuickStartError> {
        let value = self.value("router")?;
        let mut fields = Fields::new(value.get(SEEN..).unwrap_or_default());
        let mut next = || fields.wide().ok_or_else(|| refused("its state is too short"));
        Ok(Seen {
            requests: next()?,
            reduced: next()?,
            denied: next()?,
            reports: next()?,
            malformed: next()?,
            expired: next()?,
        })
    }

    /// The kernel's mean time of a run is whole nanoseconds.
    fn run(
        &self,
        name: &str,
        frame: &[u8],
        left: Option<&mut [u8]>,
        repeat: u32,
    ) -> Result<(u32, StdDuration), KernelError> {
        if !FRAMES.contains(&frame.len()) {
            return Err(refused("a frame has 60 to 2048 bytes"));
        }
        let found = self.0.progs_mut().find(|program| program.name() == name);
        let program = found.ok_or_else(|| refused("it lacks a program"))?;
        let ran = listening(NAME, || {
            program.test_run(ProgramInput { data_in: Some(frame), data_out: left, repeat, ..Default::default() })
        })?;
        match ran.return_value {
            PASS | DROP => Ok((ran.return_value, ran.duration)),
            _ => Err(refused("its answer has no meaning")),
        }
    }

    fn value(&self, name: &str) -> Result<Vec<u8>, KernelError> {
        let found = self.0.maps().find(|map| map.name() == name);
        let map = found.ok_or_else(|| refused("it lacks a map"))?;
        let value = listening(NAME, || map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY))?;
        value.ok_or_else(|| refused("a map is empty"))
    }

    /// The time that the last run was told.
    fn told(&self) -> Result<Duration, KernelError> {
        let now = Fields::new(&self.value("trial")?).wide();
        now.map(Duration::from_nanos).ok_or_else(|| refused("its state is too short"))
    }

    /// Writes `struct trial`.
    fn tell(&self, now: Duration, step: Duration, random: u32, frame: &[u8]) -> Result<(), KernelError> {
        let mut restored = [0; RESTORED];
        for (to, from) in restored.iter_mut().zip(frame) {
            *to = *from;
        }
        let times = [now, step].map(|time| time.as_nanos().to_ne_bytes()).concat();
        let value = [&times[..], &random.to_ne_bytes(), &[0; 4], &restored].concat();
        let found = self.0.maps().find(|map| map.name() == "trial");
        let map = found.ok_or_else(|| refused("it lacks a map"))?;
        listening(NAME, || map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY))
    }
}

fn refused(told: &str) -> KernelError {
    KernelError::Refused { scheme: NAME, told: told.to_owned() }
}
