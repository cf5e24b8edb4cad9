//! What happens to controllers in the contracts, at random. The contracts of other languages draw the same.

use proptest::prelude::*;

use crate::host::Operation;

/// One of the things that happen to a host's controller.
pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        any::<u32>().prop_map(Operation::Wait),
        Just(Operation::Send),
        Just(Operation::Send),
        (1..20u8, 0..2000u16, any::<bool>()).prop_map(|(packets, rtt_ms, app_limited)| Operation::Acknowledge {
            packets,
            rtt_ms,
            app_limited
        }),
        (1..10u8).prop_map(|packets| Operation::Lose { packets }),
        Just(Operation::Mark),
        Just(Operation::TimeOut),
        Just(Operation::CongestPersistently),
        Just(Operation::FindSpurious),
        (1200..9000u16).prop_map(Operation::ChangeSegment),
        Just(Operation::Timer),
        (0..400_000u32).prop_map(|ms| Operation::Idle { ms }),
        Just(Operation::Limited),
        Just(Operation::ChangePath),
        prop::option::of(0..1_000_000u32).prop_map(Operation::Advice),
        any::<u32>().prop_map(Operation::Share),
    ]
}
