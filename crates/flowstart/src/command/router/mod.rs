//! `flowstart router`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use flowstart_core::time::Duration;

use crate::failure::Failure;
use crate::quic::socket_address;

#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod latest;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod metrics;
#[cfg(target_os = "linux")]
mod packet_log;
#[cfg(target_os = "linux")]
mod told;
#[cfg(target_os = "linux")]
mod units;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
pub(super) use told::{as_json, in_words, warn_of_slow_host};

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the command is refused there"))]
#[command(after_long_help = "\
Examples:
  flowstart router --link rate=20mbit,rtt=60ms,buffer=1bdp --aqm fq-codel \\
    --port tun:servers --port tun:clients --stats 1s
  ip netns add here
  ip link set clients netns here
  ip -n here address add 10.9.0.2/24 dev clients
  ip -n here link set clients up
  ip address add 10.9.0.1/24 dev servers
  ip link set servers up
  ip netns exec here ping 10.9.0.1

  flowstart router --mahimahi lte.up lte.down --link rtt=50ms,buffer=100pkt \
    --port tun:servers --port tun:clients

The router is a wire between two interfaces that is as slow as a link of the lab: whatever comes in at one port \
leaves at the other. It needs no address and, without --decrement-ttl, is no hop; give the two ends addresses of \
one network. What comes from the first --port, the side of servers, crosses the link with its AQM; what comes from \
the second, that of clients, crosses the way back (up_rate, up_buffer). Both are the links of compare and run, in \
real time; `flowstart list links` and `list link-options` say what there is. Ports are two TUN devices or two \
interfaces that exist. tun:NAME makes a TUN device, which is gone when the router ends and may move to another \
network namespace meanwhile. At an interface everything that comes in is taken, so it should have no address; ARP \
passes beside the link, and packets that offloads have left whole are cut before the link. A packet counts with \
the length that its header of IP says, without anything around it, as with relay. An AQM that marks writes CE into \
packets whose transport understands ECN. Where flows have queues of their own, a flow is one of addresses, \
protocol and ports. Packets that are neither IPv4 nor IPv6, frames with tags of VLANs and what is malformed are \
counted and dropped. With quick_start=target, or another of these keys, the link to clients has a router that \
approves rates in the option of Quick-Start (RFC 4782), as in the lab, and takes one from the TTL or hop limit of \
packets with one. With scone=RATE the link to clients is also an element that advises this rate in SCONE packets. \
While it runs on a terminal a table on stderr shows queue, sojourn, drops, marks and approvals, unless --stats \
writes lines or --quiet is given. Hosts are the real ones, so keys about hosts and hints are refused. SIGINT and \
SIGTERM end the router, which then says what it counted. It takes Linux and root (CAP_NET_ADMIN, and CAP_NET_RAW \
for interfaces).

On a busy host the router waits for other programs, and packets leave some milliseconds late, though in the order \
and with the drops that the link says. `chrt --fifo 10 flowstart router ...` lets it run first; a router that needs a \
whole core takes kernel.sched_rt_runtime_us=-1 besides. At the end it says how late packets left, and --packet-log \
has the times of each. Packets that come faster than the host takes them are lost before the link: they are counted \
as missed, but for those to a TUN device that has moved to another network namespace.")]
pub(crate) struct Arguments {
    /// The link: a preset, a preset with keys, or keys (list links, list link-options). With --mahimahi it is
    /// rtt=1us,buffer=unlimited without this.
    #[arg(long, required_unless_present = "recordings")]
    link: Option<String>,
    /// Recorded capacities as mm-link of Mahimahi takes them: from clients to servers first.
    #[arg(long = "mahimahi", num_args = 2, value_names = ["UPLINK", "DOWNLINK"])]
    recordings: Option<Vec<String>>,
    /// The queue discipline of the link to clients (list aqms).
    #[arg(long, default_value = "taildrop")]
    aqm: String,
    /// The side of servers first, that of clients second: tun:NAME, a TUN device that is made, or INTERFACE, twice.
    #[arg(long = "port", required = true, num_args = 1.., value_name = "PORT")]
    ports: Vec<String>,
    /// Be a hop: take one from every TTL or hop limit. Packets that have no more are dropped and counted, and their
    /// senders told by ICMP if the port at which they came has an address. Packets for hosts of one link pass as they
    /// are.
    #[arg(long)]
    decrement_ttl: bool,
    /// Seed of loss, jitter and of the queue's random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The ports and the counts as JSON, a line each.
    #[arg(long)]
    json: bool,
    /// Answer /metrics (Prometheus) over HTTP/1.1 here; counts are up to a second old.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
    /// Answer here (a Unix socket that is made, for this user only): a line {"get":"statistics"} gets a line of JSON
    /// with queue, sojourn, drops, marks and approvals, which are up to a tenth of a second old.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Write a line of CSV for each packet into this file: its direction and bytes, when it arrived, when it was to
    /// leave by the link (empty: it was dropped or lost), and when it had left, in nanoseconds.
    #[arg(long, value_name = "FILE")]
    packet_log: Option<PathBuf>,
    /// How often to say rate, queue, drops and marks since the last time, 100ms to 1h.
    #[arg(long, value_name = "TIME", value_parser = interval)]
    stats: Option<Duration>,
}

/// Reads a time with a unit, or seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let bare = text.parse::<u32>().is_ok();
    let time: Duration =
        if bare { format!("{text}s").parse() } else { text.parse() }.map_err(|error| format!("{error}"))?;
    let allowed = Duration::from_millis(100)..=Duration::from_millis(3_600_000);
    if allowed.contains(&time) { Ok(time) } else { Err("allowed is 100ms to 1h".into()) }
}

#[cfg(target_os = "linux")]
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    linux::main(arguments)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn main(_: &Arguments) -> Result<ExitCode, Failure> {
    Err(Failure::Input("router: it takes Linux, whose TUN devices it uses".into()))
}
