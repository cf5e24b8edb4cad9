//! Transfers by the kernel's TCP. The client opens and sends a request, the server answers with the payload.
//!
//! A congestion control of the kernel stands for a scheme: `cubic` for the transport's own behaviour, and for any other
//! scheme the one that `flowstart tcp load` gives the kernel. What TCP did is read from the counters of the server's
//! namespace, in which there is no other connection.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use flowstart_bpf::port::{self, PortError};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_emu::dumbbell::{Dumbbell, SERVERS};
use flowstart_lab::run::outcome::Failure;
use flowstart_lab::run::testbed::patience;
use flowstart_lab::spec::STACK;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::transport::profile::Profile;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

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

/// What the kernel counted in a namespace since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    /// Segments that the receiver says came twice (D-SACK, RFC 2883).
    spurious: u64,
}

/// A transfer of a cell; why it is not complete.
pub(super) fn transfer(plan: &Plan, cell: &Cell, dumbbell: &Dumbbell) -> Result<Seen, String> {
    let (patience, size) =
        (std_time(patience(plan, cell)), plan.sizes[cell.size].value.fixed_size().unwrap_or_default());
    let congestion_control = congestion_control(&plan.schemes[cell.scheme].text).map_err(words)?;
    let buffer = receive_buffer(&plan.profile(cell));
    let given = dumbbell.clients.within(|| fs::write("/proc/sys/net/ipv4/tcp_rmem", &buffer));
    given.map_err(|error| format!("a receive buffer of {buffer} bytes (tcp_rmem): {error}"))?;
    let listener = dumbbell.servers.within(|| {
        fs::write("/proc/sys/net/ipv4/tcp_wmem", SEND_BUFFER)?;
        TcpListener::bind((SERVERS, PORT))
    });
    let listener = listener.map_err(words)?;
    // Nobody may come.
    setsockopt(&listener, sockopt::ReceiveTimeout, &TimeVal::seconds(patience.as_secs() as i64)).map_err(words)?;
    setsockopt(&listener, sockopt::TcpCongestion, &OsString::from(congestion_control)).map_err(
        |error| match error {
            Errno::ENOENT => missing(congestion_control),
            other => format!("congestion control {congestion_control}: {other}"),
        },
    )?;
    let (came, counted) = thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener, size, patience));
        let came = dumbbell.clients.within(|| Ok(get(size, patience)));
        // Whoever gave up has closed, so the server ends too.
        drop(serving.join());
        (came, dumbbell.servers.within(counters))
    });
    let (came, counted) = (came.map_err(words)?, counted.map_err(words)?);
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
    Ok((record(came.ok(), counted), failure))
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
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    match known.split_whitespace().any(|one| one == name) {
        true => Ok(()),
        false => Err(format!("--scheme `{scheme}`: {}", missing(name))),
    }
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
fn serve(listener: &TcpListener, size: Bytes, patience: Duration) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
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
fn get(size: Bytes, patience: Duration) -> io::Result<(Duration, Duration)> {
    let began = Instant::now();
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

/// What the kernel counted in the namespace of this thread.
fn counters() -> io::Result<Counters> {
    let of = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let (plain, more) = (of("snmp")?, of("netstat")?);
    Ok(Counters {
        sent: counter(&plain, "Tcp", "OutSegs"),
        retransmitted: counter(&plain, "Tcp", "RetransSegs"),
        timeouts: counter(&more, "TcpExt", "TCPTimeouts"),
        spurious: counter(&more, "TcpExt", "TCPDSACKRecvSegs"),
    })
}

/// A counter in a file that has a line of names and a line of values for each group; zero if it has none.
fn counter(file: &str, group: &str, name: &str) -> u64 {
    let mut lines = file.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    both.find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

fn record(came: Option<(Duration, Duration)>, counted: Counters) -> FlowRecord {
    let at = |time: Duration| Timestamp::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    FlowRecord {
        started: Some(Timestamp::ZERO),
        request_sent: came.map(|(requested, _)| at(requested)),
        completed: came.map(|(_, complete)| at(complete)),
        data_packets: counted.sent,
        retransmitted: counted.retransmitted * SEGMENT,
        retransmissions: counted.retransmitted,
        declared_lost: counted.retransmitted,
        spurious: counted.spurious,
        timeouts: counted.timeouts,
        ..FlowRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let file = "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 17 3\n";
        assert_eq!(counter(file, "Tcp", "RetransSegs"), 3);
        assert_eq!(counter(file, "Tcp", "OutSegs"), 17);
        assert_eq!(counter(file, "TcpExt", "OutSegs"), 0);
        assert_eq!(counter("Tcp: OutSegs\nTcp:", "Tcp", "OutSegs"), 0);
    }

    #[test]
    fn schemes_have_names_in_the_kernel() {
        assert_eq!(congestion_control("stack"), Ok("cubic"));
        assert_eq!(congestion_control("jump-start"), Ok("fs_jump_start"));
        assert!(congestion_control("halfback").unwrap_err().to_string().contains("there are blitzstart"));
    }
}
