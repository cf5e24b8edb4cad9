//! The types that C sees. The comments become those of the header.
//!
//! A field is never removed or moved; new ones are added at the end, where zero must mean what was before. So a caller
//! with an older header goes on working: its `size` says which fields it has.

use std::os::raw::c_char;

/// What became of a call. A call that is refused changes nothing. `flowstart_last_error()` says what was wrong.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer that must not be NULL is NULL.
    Null = 1,
    /// The field `size` of a struct is that of no version of this library.
    Size = 2,
    /// A value is out of its range, or a text cannot be read.
    Value = 3,
    /// The call does not fit what happened before, such as a second launch.
    State = 4,
    /// Another thread is inside a call with the same controller.
    Busy = 5,
    /// The library failed inside, in this call or in an earlier one. The controller takes no more events;
    /// `flowstart_query()` answers with a fixed window of two segments.
    Failed = 6,
}

/// Who moves the window.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody yet: `flowstart_launch()` was not called.
    Waiting = 0,
    /// The startup scheme, or the startup of a congestion avoidance that starts by itself.
    Startup = 1,
    /// Congestion avoidance, or classic slow start after a timeout.
    Avoidance = 2,
    /// Nobody any more: the controller has failed, and the window is fixed.
    Fallback = 3,
}

/// The access technology behind a client's hint.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technology {
    /// Not stated.
    Unknown = 0,
    /// A cable from end to end.
    Ethernet = 1,
    /// DSL.
    Dsl = 2,
    /// Cable with DOCSIS.
    Docsis = 3,
    /// Wi-Fi.
    Wifi = 4,
    /// Third-generation cellular.
    ThirdGeneration = 5,
    /// LTE.
    Lte = 6,
    /// Fibre to the home.
    Fibre = 7,
}

/// What a controller is made of. Zero means the default, so `{ .size = sizeof(flowstart_config) }` is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `sizeof(flowstart_config)`.
    pub size: usize,
    /// Startup scheme with its parameters, such as "blitzstart" or "blitzstart:estimate=1.5". NULL: "slow-start".
    /// `flowstart list schemes` shows all, and their parameters.
    pub scheme: *const c_char,
    /// Congestion avoidance with its parameters, such as "reno" or "cubic:beta=0.8". NULL: "cubic".
    pub avoidance: *const c_char,
    /// Size of a full packet in bytes, 1 to 65535. 0: 1200.
    pub segment: u64,
    /// Initial window in segments, 1 to 1000000, unless the scheme says another. 0: 10.
    pub initial_window: u64,
    /// 1: data carries ECT(1), and `ce_packets` counts every marked packet, as "prague" needs it (RFC 9331). 0: not.
    pub ect1: u32,
    /// 0.
    pub reserved: u32,
}

/// What is known of a path before the first data leaves. Zero means unknown; never guess.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// `sizeof(flowstart_path)`.
    pub size: usize,
    /// RTT of the handshake in nanoseconds, which is the first sample if there was none. 0: the smallest sample that
    /// `flowstart_on_ack()` got, if any.
    pub handshake_rtt: u64,
    /// Bytes that an earlier connection delivered over this path in one RTT. 0: no earlier connection is known.
    pub saved_cwnd: u64,
    /// The smallest RTT which that connection saw, in nanoseconds. Needed with `saved_cwnd`.
    pub saved_rtt: u64,
    /// How long ago that was, in nanoseconds.
    pub saved_age: u64,
    /// The receiver's flow-control window in bytes.
    pub receive_window: u64,
    /// Bytes that the application has ready to send, with the overhead of their packets.
    pub bytes_waiting: u64,
    /// The client's hint about the bandwidth of its access link, in bits per second.
    pub hint_rate: u64,
    /// The rate that the application asks for, in bits per second.
    pub requested_rate: u64,
    /// Speed of the sender's own interface in bits per second.
    pub interface_rate: u64,
    /// The rate that all routers of the path approved (RFC 4782), in bits per second.
    pub approved_rate: u64,
    /// The rate that elements of the path advise (SCONE), in bits per second: caps what a scheme launches.
    pub advised_rate: u64,
    /// A capacity oracle's answer for the destination, in bits per second.
    pub oracle_rate: u64,
    /// The access technology behind `hint_rate`, a `flowstart_technology`.
    pub hint_technology: u32,
    /// 1: the RTT of the handshake is only the client's word, who may lengthen it to get a larger window; the launch
    /// counts only as far as later samples bear it out. For servers that believe what strangers say. 0: it is true.
    pub doubt_handshake: u32,
    /// The rate at which the client saw the server's part of the handshake arrive, if it reports that, in bits per
    /// second.
    pub train_rate: u64,
}

/// What one acknowledgement says, or a loss timer: the losses that it reveals are those reported by
/// `flowstart_on_packet_lost()` just before. Only packets count that were reported by `flowstart_on_sent()`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// `sizeof(flowstart_ack)`.
    pub size: usize,
    /// When it arrived, in nanoseconds.
    pub now: u64,
    /// Largest packet number that it acknowledges. Counts only with `delivered_bytes` or `ce_packets`.
    pub largest_acked: u64,
    /// Bytes that it newly acknowledges; packets that were declared lost before do not count.
    pub delivered_bytes: u64,
    /// Packets that it newly acknowledges.
    pub delivered_packets: u64,
    /// Bytes in flight after it, and after the losses that it reveals.
    pub in_flight: u64,
    /// RTT sample in nanoseconds, with the receiver's delay. 0: it gives none (RFC 9002, section 5.1).
    pub rtt: u64,
    /// How long the receiver says that it held the acknowledgement back, in nanoseconds: at most the
    /// delay that the peer has announced, once the handshake is confirmed; the host sees to it (RFC 9002, 5.3).
    pub ack_delay: u64,
    /// Packets newly reported as CE marked; 1 if the host knows only that there were some.
    pub ce_packets: u64,
    /// 1: nothing more waits to be sent, or flow control stops it. 0: there is more.
    pub app_limited: u32,
    /// 1: the losses establish persistent congestion (RFC 9002, section 7.6). 0: not.
    pub persistent_congestion: u32,
}

/// What may be sent now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// `sizeof(flowstart_output)`, set by the caller.
    pub size: usize,
    /// Bytes that may be in flight: at least two segments.
    pub cwnd: u64,
    /// Slow-start threshold in bytes. `UINT64_MAX`: there was no reduction yet.
    pub ssthresh: u64,
    /// Rate at which packets may leave, in bits per second; never 0. Without pacing 10^15.
    pub pacing_rate: u64,
    /// When the next packet may leave by this rate, in nanoseconds; a time in the past: at once. For hosts without a
    /// pacer of their own.
    pub next_send: u64,
    /// Bytes that may leave at once when sending starts or resumes. For hosts with a pacer of their own.
    pub burst: u64,
    /// Bytes that may go down as one batch of segmentation offload.
    pub send_quantum: u64,
    /// When to call `flowstart_query()` again if nothing else happens, in nanoseconds. `UINT64_MAX`: never.
    pub next_wakeup: u64,
    /// Smallest RTT of this path in nanoseconds. 0: no sample yet.
    pub min_rtt: u64,
    /// Smoothed RTT in nanoseconds. 0: no sample yet.
    pub smoothed_rtt: u64,
    /// When startup ended, in nanoseconds. 0 with `exit_cwnd` 0: it has not ended.
    pub exit_time: u64,
    /// The window that it left, in bytes.
    pub exit_cwnd: u64,
    /// Why startup ended, such as "loss" or "delay". Empty: it has not ended.
    pub exit_reason: [c_char; 32],
    /// Who moves the window.
    pub phase: Phase,
    /// 1: the window was reduced, and acknowledgements have not confirmed the reduction yet.
    pub in_recovery: u32,
}
