//! Transfers of the kernel's TCP between the two sides of a router, and their packets.

use std::io::{IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimeout, ReceiveTimestampns, SetStruct, TcpCongestion};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, connect, recvmsg,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::namespaces::Sides;

/// Bytes per second above which the kernel does not pace; with it a socket is paced always.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxPacingRate;

nix::setsockopt_impl!(MaxPacingRate, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64, SetStruct<u64>);

/// Lets the receiver's window be no limit.
pub(crate) fn open_receive_window(sides: &Sides) {
    sides.of_clients(|| std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 16777216 67108864").unwrap());
}

/// A socket of the servers' side that listens with a congestion control.
pub(crate) fn listener(sides: &Sides, congestion_control: &str) -> (TcpListener, SocketAddr) {
    listener_at(sides, "10.9.0.1:0", congestion_control)
}

/// A socket of servers with this congestion control, and where it listens.
pub(crate) fn listener_at(sides: &Sides, address: &'static str, congestion_control: &str) -> (TcpListener, SocketAddr) {
    let name = congestion_control.to_owned();
    let listener = sides.of_servers(move || {
        let listener = TcpListener::bind(address).unwrap();
        setsockopt(&listener, TcpCongestion, &name.into()).unwrap();
        listener
    });
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A server that answers each connection's request with so many bytes.
pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new(sides: &Sides, congestion_control: &str, size: usize) -> Self {
        Self::at(sides, "10.9.0.1:0", congestion_control, size)
    }

    pub(crate) fn at(sides: &Sides, address: &'static str, congestion_control: &str, size: usize) -> Self {
        Self::answering_after(Duration::ZERO, listener_at(sides, address, congestion_control), size)
    }

    /// A server that needs some time for an answer.
    pub(crate) fn answering_after(time: Duration, bound: (TcpListener, SocketAddr), size: usize) -> Self {
        let (listener, address) = bound;
        let stop = Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        listener.set_nonblocking(true).unwrap();
        let serving = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                stream.read_exact(&mut [0; 1]).unwrap();
                std::thread::sleep(time);
                stream.write_all(&vec![7; size]).unwrap();
            }
        });
        Self { address, stop, serving: Some(serving) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.serving.take().map(JoinHandle::join);
    }
}

/// Gets what the server has: seconds from the connection's beginning to the last byte, and bytes.
pub(crate) fn get(sides: &Sides, server: &Server) -> (f64, usize) {
    let address = server.address;
    sides.of_clients(move || {
        let began = Instant::now();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"?").unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        (began.elapsed().as_secs_f64(), got.len())
    })
}

/// Sends so many bytes from the servers' side, which connects, to a socket of the clients' side; how many arrive.
pub(crate) fn upload(sides: &Sides, sink: TcpListener, congestion_control: &str, size: usize) -> usize {
    let port = sink.local_addr().unwrap().port();
    let counting = std::thread::spawn(move || {
        let mut got = Vec::new();
        sink.accept().unwrap().0.read_to_end(&mut got).unwrap();
        got.len()
    });
    let name = congestion_control.to_owned();
    sides.of_servers(move || {
        let flags = SockFlag::empty();
        let own = socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
        setsockopt(&own, TcpCongestion, &name.into()).unwrap();
        let to = SockaddrIn::new(10, 9, 0, 2, port);
        connect(own.as_raw_fd(), &to).unwrap();
        TcpStream::from(own).write_all(&vec![7; size]).unwrap();
    });
    counting.join().unwrap()
}

/// A packet of TCP that has passed the servers' interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Seconds.
    pub(crate) at: f64,
    pub(crate) is_from_server: bool,
    pub(crate) payload: usize,
    pub(crate) position: u32,
    pub(crate) acknowledged: u32,
}

impl Packet {
    /// Reads a packet of IPv4.
    fn read(at: f64, bytes: &[u8]) -> Option<Self> {
        let header = usize::from(bytes.first()? & 0xf) * 4;
        if bytes.first()? >> 4 != 4 || *bytes.get(9)? != 6 {
            return None;
        }
        let of = |range: std::ops::Range<usize>| bytes.get(range);
        let total = usize::from(u16::from_be_bytes(of(2..4)?.try_into().ok()?));
        let number = |at: usize| Some(u32::from_be_bytes(of(header + at..header + at + 4)?.try_into().ok()?));
        let tcp = usize::from(bytes.get(header + 12)? >> 4) * 4;
        let is_from_server = of(12..16)? == [10, 9, 0, 1];
        let payload = total.checked_sub(header + tcp)?;
        Some(Self { at, is_from_server, payload, position: number(4)?, acknowledged: number(8)? })
    }
}

/// Packets of the servers' interface, with the kernel's times, until it ends.
pub(crate) struct Capture {
    stop: Arc<AtomicBool>,
    working: JoinHandle<Vec<Packet>>,
}

impl Capture {
    pub(crate) fn new(sides: &Sides) -> Self {
        let socket = sides.of_servers(|| {
            let all = SockProtocol::EthAll;
            let socket = socket(AddressFamily::Packet, SockType::Datagram, SockFlag::empty(), all).unwrap();
            setsockopt(&socket, ReceiveTimestampns, &true).unwrap();
            setsockopt(&socket, RcvBufForce, &(64 << 20)).unwrap();
            setsockopt(&socket, ReceiveTimeout, &TimeVal::milliseconds(50)).unwrap();
            socket
        });
        let stop = Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let working = std::thread::spawn(move || {
            let mut packets = Vec::new();
            let (mut bytes, mut control) = ([0; 128], nix::cmsg_space!(nix::sys::time::TimeSpec));
            loop {
                let mut parts = [IoSliceMut::new(&mut bytes)];
                let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
                let Ok(received) = received else {
                    if ends.load(Ordering::Relaxed) {
                        return packets;
                    }
                    continue;
                };
                let at = received.cmsgs().unwrap().find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(at) => Some(at.tv_sec() as f64 + at.tv_nsec() as f64 / 1e9),
                    _ => None,
                });
                let (at, length) = (at.unwrap(), received.bytes.min(128));
                packets.extend(Packet::read(at, &bytes[..length]));
            }
        });
        Self { stop, working }
    }

    pub(crate) fn end(self) -> Vec<Packet> {
        self.stop.store(true, Ordering::Relaxed);
        self.working.join().unwrap()
    }
}
