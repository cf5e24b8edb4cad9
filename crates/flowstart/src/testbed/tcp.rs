//! Transfers by the kernel's TCP. The client opens and sends a request, the server answers with the payload.
//!
//! A congestion control of the kernel stands for a scheme: `cubic` for the transport's own behaviour, and for any other
//! scheme the one that `flowstart tcp load` gives the kernel. What TCP did the kernel tells of the server's socket.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use flowstart_bpf::port::{self, PortError};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_emu::dumbbell::{Dumbbell, SERVERS};
use flowstart_lab::run::outcome::{Failure, Known};
use flowstart_lab::run::testbed::patience;
use flowstart_lab::spec::STACK;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_sim::observe::record::{FlowRecord, StartupExit};
use flowstart_sim::transport::profile::Profile;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

#[cfg(feature = "tcp")]
use super::hinted::Hinted;
use super::startup::{Exits, Startup};
use super::tcp_info::TcpInfo;
use super::{Seen, words};
use crate::quic::std_time;

/// Where the server listens.
const PORT: u16 = 5000;
/// Bytes of a request.
const REQUEST: usize = 100;
/// Bytes that are written or read at a time.
const BLOCK: usize = 1 << 16;
/// Buffers of a sender, least, first and most: it is never the buffer that ends a flight.
const SEND_BUFFER: &str = "4096 16777216 67108864";
/// Payload of a segment of 1500 bytes with timestamps.
const SEGMENT: u64 = 1448;

/// Bytes that such a segment takes in a receiver's buffer: 2048 of data and 256 of metadata.
const SPACE: u64 = 2304;

/// What the kernel says of the server's socket.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// When the handshake was complete.
    first: TcpInfo,
    /// When all was over.
    last: TcpInfo,
    /// Its startup; `None`: this kernel does not tell enough.
    startup: Option<Startup>,
}

/// A transfer of a cell; why it is not complete.
pub(super) fn transfer(plan: &Plan, cell: &Cell, dumbbell: &Dumbbell, complete: &dyn Fn()) -> Result<Seen, String> {
    let (patience, size) =
        (std_time(patience(plan, cell)), plan.sizes[cell.size].value.fixed_size().unwrap_or_default());
    let scheme = &plan.schemes[cell.scheme].text;
    let congestion_control = congestion_control(scheme).map_err(words)?;
    prepare(&plan.profile(cell), dumbbell)?;
    let listener = listen(dumbbell, PORT, congestion_control, patience)?;
    #[cfg(feature = "tcp")]
    let _hinted = match port::find(scheme) {
        Ok(port) => Hinted::new(plan, cell, port)?,
        Err(_) => None,
    };
    let exits_before = Exits::now(scheme, dumbbell)?;
    let began = Instant::now();
    let (came, sent) = thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener, size, patience));
        let came = dumbbell.clients.within(|| Ok(get(began, size, patience)));
        complete();
        // Whoever gave up has closed, so the server ends too.
        (came, serving.join())
    });
    let came = came.map_err(words)?;
    let sent = sent.map_err(|_| "the server has panicked".to_owned())?;
    let failure = match &came {
        Ok(_) => None,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Some(Failure::TimeLimit)
        }
        Err(error) => {
            note!("{}: {error}", plan.id(cell));
            Some(Failure::Stalled)
        }
    };
    let sent = sent.ok();
    let mut record = record(came.ok(), sent.as_ref());
    let exits = Exits::now(scheme, dumbbell)?;
    if let Some(Startup { in_flight, reached, end }) = sent.and_then(|sent| sent.startup) {
        record.startup_in_flight = in_flight;
        record.exit = end.map(|end| StartupExit {
            time: at(end.at - began),
            reason: exits.reason(&exits_before, &end),
            cwnd: end.cwnd,
            reached,
        });
    }
    let fell_back = exits.has_fallen_back(&exits_before);
    Ok(Seen { record, known: known(sent.as_ref()), failure, fell_back })
}

/// Gives both sides buffers by which TCP has the windows of this profile.
pub(super) fn prepare(profile: &Profile, dumbbell: &Dumbbell) -> Result<(), String> {
    let buffer = receive_buffer(profile);
    let given = dumbbell.clients.within(|| fs::write("/proc/sys/net/ipv4/tcp_rmem", &buffer));
    given.map_err(|error| format!("a receive buffer of {buffer} bytes (tcp_rmem): {error}"))?;
    dumbbell.servers.within(|| fs::write("/proc/sys/net/ipv4/tcp_wmem", SEND_BUFFER)).map_err(words)
}

/// A socket of servers whose connections have this congestion control. It waits so long for each.
pub(super) fn listen(
    dumbbell: &Dumbbell,
    port: u16,
    congestion_control: &str,
    patience: Duration,
) -> Result<TcpListener, String> {
    let listener = dumbbell.servers.within(|| TcpListener::bind((SERVERS, port))).map_err(words)?;
    // Nobody may come.
    let micros = i64::try_from(patience.as_micros()).unwrap_or(i64::MAX);
    setsockopt(&listener, sockopt::ReceiveTimeout, &TimeVal::microseconds(micros)).map_err(words)?;
    let given = setsockopt(&listener, sockopt::TcpCongestion, &OsString::from(congestion_control));
    given.map_err(|error| match error {
        Errno::ENOENT => missing(congestion_control),
        other => format!("congestion control {congestion_control}: {other}"),
    })?;
    Ok(listener)
}

/// The congestion controls that the kernel has.
pub(super) fn available() -> Vec<String> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    known.split_whitespace().map(str::to_owned).collect()
}

/// Refuses a scheme that no kernel can have.
pub(super) fn check(plan: &Plan, cell: &Cell) -> Result<(), String> {
    let scheme = &plan.schemes[cell.scheme].text;
    let name = congestion_control(scheme).map_err(|error| format!("--scheme `{scheme}`: {error}, and {STACK}"))?;
    if port::find(scheme).is_ok_and(|port| port.asks_routers) {
        return Err(format!(
            "--scheme `{scheme}`: in the kernel it asks by the interfaces for which it was loaded, and those of a testbed are \
             new for each transfer"
        ));
    }
    match available().iter().any(|one| one == name) {
        true => Ok(()),
        false => Err(format!("--scheme `{scheme}`: {}", missing(name))),
    }
}

/// What is loaded of a scheme, by name; nothing of the kernel's own.
#[cfg(feature = "tcp")]
pub(super) fn in_force(scheme: &str) -> Result<Option<(String, String)>, String> {
    if scheme == STACK {
        return Ok(None);
    }
    let port = port::find(scheme).map_err(words)?;
    let found = flowstart_bpf::kernel::in_force(port).map_err(words)?;
    let told = found.map_or_else(|| "not loaded by flowstart tcp load".to_owned(), |found| found.to_string());
    Ok(Some((format!("TCP scheme {scheme}"), told)))
}

/// As above, for a build that cannot look.
#[cfg(not(feature = "tcp"))]
pub(super) fn in_force(scheme: &str) -> Result<Option<(String, String)>, String> {
    let told = "not read: this build has no `flowstart tcp load` (feature tcp)";
    Ok((scheme != STACK).then(|| (format!("TCP scheme {scheme}"), told.to_owned())))
}

fn missing(name: &str) -> String {
    format!(
        "the kernel has no congestion control {name}; `flowstart tcp load` gives it the schemes that it may have, and \
         {STACK} is its own"
    )
}

/// Least, first and most bytes of a receiver's buffer (`tcp_rmem`).
fn receive_buffer(profile: &Profile) -> String {
    let (first, most) = match profile.receive_buffer {
        Some(buffer) => (buffer.initial.get(), buffer.largest.get()),
        // The kernel lets it grow up to the most. Once it has seen full packets, it counts the space of each.
        None => [profile.receive_window.get().saturating_mul(SPACE) / SEGMENT; 2].into(),
    };
    format!("4096 {first} {most}")
}

/// The name that the kernel has for a scheme.
///
/// # Errors
///
/// The kernel cannot have the scheme.
fn congestion_control(scheme: &str) -> Result<&str, PortError> {
    if scheme == STACK { Ok("cubic") } else { port::find(scheme).map(|port| port.kernel_name) }
}

/// Answers one request.
fn serve(listener: &TcpListener, size: Bytes, patience: Duration) -> io::Result<Sent> {
    let (stream, _) = listener.accept()?;
    let first = TcpInfo::of(&stream)?;
    let startup = thread::scope(|scope| {
        let (answering, answered) = mpsc::channel();
        let watching = scope.spawn(|| Startup::watch(&stream, &{ answered }));
        // A client that gave up says why.
        drop(answer(&stream, size, patience));
        drop(answering);
        watching.join()
    });
    let startup = startup.map_err(|_| io::Error::other("who looks at startup has panicked"))?.ok();
    Ok(Sent { first, last: TcpInfo::of(&stream)?, startup })
}

fn answer(mut stream: &TcpStream, size: Bytes, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.read_exact(&mut [0; REQUEST])?;
    let (block, mut left) = (vec![0; BLOCK], size.get());
    while left > 0 {
        let length = left.min(BLOCK as u64);
        stream.write_all(&block[..length as usize])?;
        left -= length;
    }
    stream.shutdown(Shutdown::Write)?;
    // Until the client has closed.
    stream.read(&mut [0]).map(|_| ())
}

/// When a request left and when the answer was there, since the begin.
fn get(began: Instant, size: Bytes, patience: Duration) -> io::Result<(Duration, Duration)> {
    let mut stream = TcpStream::connect_timeout(&(SERVERS, PORT).into(), patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&[0; REQUEST])?;
    let requested = began.elapsed();
    let (mut block, mut left) = (vec![0; BLOCK], size.get());
    while left > 0 {
        match stream.read(&mut block)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => left = left.saturating_sub(length as u64),
        }
        if began.elapsed() > patience {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok((requested, began.elapsed()))
}

/// What this kernel tells. How often a window was reduced it keeps to itself.
fn known(sent: Option<&Sent>) -> Known {
    let tells = |of: fn(&TcpInfo) -> Option<u64>| sent.is_some_and(|sent| of(&sent.last).is_some());
    Known {
        spurious: tells(TcpInfo::spurious),
        timeouts: tells(TcpInfo::timeouts),
        window_cuts: false,
        startup: sent.is_some_and(|sent| sent.startup.is_some()),
    }
}

/// A time since the begin.
fn at(time: Duration) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn record(came: Option<(Duration, Duration)>, sent: Option<&Sent>) -> FlowRecord {
    let count = |of: fn(&TcpInfo) -> Option<u64>| sent.and_then(|sent| of(&sent.last));
    let retransmitted = count(TcpInfo::retransmitted).unwrap_or(0);
    FlowRecord {
        started: Some(Timestamp::ZERO),
        request_sent: came.map(|(requested, _)| at(requested)),
        completed: came.map(|(_, complete)| at(complete)),
        handshake_rtt: sent.and_then(|sent| sent.first.rtt()),
        data_packets: count(TcpInfo::data_segments).unwrap_or(0),
        retransmitted: count(TcpInfo::retransmitted_bytes).unwrap_or(retransmitted * SEGMENT),
        retransmissions: retransmitted,
        declared_lost: retransmitted,
        spurious: count(TcpInfo::spurious).unwrap_or(0),
        timeouts: count(TcpInfo::timeouts).unwrap_or(0),
        ..FlowRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_names_in_the_kernel() {
        assert_eq!(congestion_control("stack"), Ok("cubic"));
        assert_eq!(congestion_control("jump-start"), Ok("fs_jump_start"));
        assert!(congestion_control("halfback").unwrap_err().to_string().contains("there are blitzstart"));
    }
}
