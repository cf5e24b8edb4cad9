//! The cost of newcomers to others: the difference from the same world without them.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::world::World;

use super::warm_up::Warm;

/// Harm to others counts until this long after the newcomers' end.
pub const AFTERMATH: Duration = Duration::from_millis(5_000);

/// The difference from the same world without the newcomer, from its start until 5 s after its end: others need time to
/// regain the capacity that the newcomer used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// Payload that the others did not receive, in Mbit.
    pub goodput_lost_mbit: f64,
    /// Additional packets that they lost.
    pub dropped_packets: f64,
    /// Mean additional waiting time of their packets, in milliseconds.
    pub extra_delay_ms: Option<f64>,
    /// Mean additional completion time of their transfers, in milliseconds; absent for flows without end. A transfer
    /// that does not complete counts until the end.
    pub extra_fct_ms: Option<f64>,
}

/// What the others got in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Payload that they received, in bytes.
    pub delivered: u64,
    /// Packets that they lost.
    pub dropped: u64,
    /// Packets of theirs that left the bottleneck's queue.
    pub packets: u64,
    /// Sum of the times that these waited in it, in nanoseconds.
    pub waited_nanos: u64,
}

impl Service {
    /// What was added since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            delivered: self.delivered - before.delivered,
            dropped: self.dropped - before.dropped,
            packets: self.packets - before.packets,
            waited_nanos: self.waited_nanos - before.waited_nanos,
        }
    }

    /// Mean time that a packet waited, in milliseconds.
    fn mean_wait(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.waited_nanos as f64 / self.packets as f64 / 1e6)
    }
}

impl Harm {
    /// The harm to others who get the one with newcomers and the other without them, in the same time; the times of
    /// their transfers are not considered.
    pub(super) fn between(with: &Service, without: &Service) -> Self {
        Self {
            goodput_lost_mbit: (without.delivered as f64 - with.delivered as f64) * 8.0 / 1e6,
            dropped_packets: with.dropped as f64 - without.dropped as f64,
            extra_delay_ms: with.mean_wait().zip(without.mean_wait()).map(|(a, b)| a - b),
            extra_fct_ms: None,
        }
    }
}

/// The service of the others so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OthersState {
    service: Service,
    /// Sum and number of the completion times. Unfinished transfers count until now.
    completion: (Duration, u32),
}

/// The service of the others at the end of the newcomers' aftermath, and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithNewcomers {
    pub(super) end: Timestamp,
    pub(super) others: OthersState,
}

/// What the others got in the same time of two worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Beside the newcomers.
    pub with: Service,
    /// In the same world without them.
    pub without: Service,
}

/// Continues the warm world without a newcomer. Returns the cost of each newcomer to the others, and what they got, in
/// the order of `with`.
pub(super) fn compare(warm: &Warm, with: &[Option<WithNewcomers>]) -> Vec<Option<(Harm, Compared)>> {
    let mut world = warm.world.clone();
    let before = others_state(&mut world, &[]);
    let mut order: Vec<(usize, &WithNewcomers)> =
        with.iter().enumerate().filter_map(|(index, with)| Some((index, with.as_ref()?))).collect();
    order.sort_by_key(|(_, with)| with.end);
    let mut all = vec![None; with.len()];
    for (index, WithNewcomers { end, others: with }) in order {
        world.run_until(*end);
        let without = others_state(&mut world, &[]);
        let since = |state: &OthersState| state.service.since(&before.service);
        let compared = Compared { with: since(with), without: since(&without) };
        let harm = Harm {
            extra_fct_ms: with.mean_fct().zip(without.mean_fct()).filter(|_| warm.others_end).map(|(a, b)| a - b),
            ..Harm::between(&compared.with, &compared.without)
        };
        all[index] = Some((harm, compared));
    }
    all
}

impl OthersState {
    /// Adds the activity of a flow until `now`.
    fn add(&mut self, record: &FlowRecord, now: Timestamp) {
        self.service.delivered += record.delivered;
        self.service.dropped += record.dropped;
        if let Some(started) = record.started {
            self.completion.0 += record.completed.unwrap_or(now).since(started);
            self.completion.1 += 1;
        }
    }

    /// Mean completion time of the transfers, in milliseconds.
    fn mean_fct(&self) -> Option<f64> {
        let (sum, count) = self.completion;
        (count > 0).then(|| sum.as_millis_f64() / f64::from(count))
    }
}

/// Sums over all flows except the newcomers: existing flows, and those whose places later arrivals reused. Arrivals do
/// not depend on events in the world, so the others are the same with and without newcomers.
pub(super) fn others_state(world: &mut World, newcomers: &[u32]) -> OthersState {
    let mut state = OthersState::default();
    let now = world.now();
    for record in world.finished_flows() {
        state.add(record, now);
    }
    let others = (0..world.flow_count() as u32).filter(|flow| !newcomers.contains(flow));
    for flow in others {
        state.add(world.record(flow), now);
        if let Some(monitor) = &mut world.network.monitor {
            // The link counts by place, for all flows that have used it.
            let at_link = monitor.flow(flow);
            state.service.waited_nanos += at_link.waited_nanos;
            state.service.packets += at_link.packets;
        }
    }
    state
}
