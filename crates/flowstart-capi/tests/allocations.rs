//! No call allocates for a packet.

#![allow(unsafe_code, reason = "calls as C makes them")]

#[path = "../../flowstart-core/tests/counting_allocator/mod.rs"]
mod counting_allocator;

use std::ffi::CString;
use std::ptr;

use counting_allocator::ALLOCATIONS;
use flowstart_capi::boundary::{
    flowstart_free, flowstart_launch, flowstart_new, flowstart_on_ack, flowstart_on_packet_lost, flowstart_on_sent,
    flowstart_query,
};
use flowstart_capi::layout::{Ack, Config, Output, Path, Status};
use flowstart_core::startup::StartupConfig;

/// All bytes zero but the size, as `{.size = sizeof it}` in C.
fn zeroed<T: Copy>() -> T {
    let mut made = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: used for the structs of the header: numbers and pointers, the first of which is the size.
    unsafe {
        made.as_mut_ptr().cast::<usize>().write(size_of::<T>());
        made.assume_init()
    }
}

#[test]
fn ten_thousand_packets_take_no_memory() {
    // A window of two packets is always free. A packet in a thousand is lost.
    const PACKETS: u64 = 10_000;
    for scheme in StartupConfig::NAMES.iter().filter(|name| !["halfback", "ensemble-sharing"].contains(name)) {
        let text = CString::new(*scheme).expect("a name");
        let (mut config, mut path): (Config, Path) = (zeroed(), zeroed());
        config.scheme = text.as_ptr();
        (path.handshake_rtt, path.hint_rate, path.bytes_waiting) = (50_000_000, 20_000_000, 2_000_000);
        let (mut flow, mut output, mut ack): (_, Output, Ack) = (ptr::null_mut(), zeroed(), zeroed());
        // SAFETY: complete structs, and a controller that is freed once.
        unsafe {
            assert_eq!(flowstart_new(&raw const config, &raw mut flow), Status::Ok);
            assert_eq!(flowstart_launch(flow, 0, &raw const path), Status::Ok);
            let mut before = 0;
            for number in 0..2 * PACKETS {
                if number == PACKETS {
                    before = ALLOCATIONS.get();
                }
                let now = number * 10_000_000;
                assert_eq!(flowstart_query(flow, now, &raw mut output), Status::Ok);
                assert_eq!(flowstart_on_sent(flow, now, number, 1200, 1200, 0), Status::Ok);
                let lost = number % 1000 == 999;
                if lost {
                    assert_eq!(flowstart_on_packet_lost(flow, number, 1200), Status::Ok);
                }
                (ack.now, ack.largest_acked, ack.rtt) = (now + 5_000_000, number, 5_000_000);
                (ack.delivered_bytes, ack.delivered_packets) = if lost { (0, 0) } else { (1200, 1) };
                assert_eq!(flowstart_on_ack(flow, &raw const ack), Status::Ok);
            }
            let allocated = ALLOCATIONS.get() - before;
            // What a reduction may have to take back is kept aside, once for each.
            assert!(allocated <= PACKETS / 1000, "{scheme}: {allocated} allocations");
            assert_eq!(flowstart_free(flow), Status::Ok);
        }
    }
}
