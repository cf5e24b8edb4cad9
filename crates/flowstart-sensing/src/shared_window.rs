//! One window for parallel connections to the same peer: a new connection gets a share of what the others have learned.
//!
//! Reference: RFC 9040, section 7 (ensemble sharing of TCP control blocks); RFC 3124, section 2 (the macroflow of the
//! Congestion Manager). The windows of all flows to a peer make the aggregate. A new flow starts with an equal share of
//! it, taken from the others in proportion to their windows, so the path carries no more than before. A flow that
//! leaves gives its window back to the others in the same proportion.
//!
//! Differences from the references: flows keep their own congestion control after they started, as in RFC 9040; the
//! Congestion Manager has one control for all. RFC 9040 leaves the windows of the older flows to the implementation;
//! here they shrink, because otherwise the aggregate would grow with every flow. A flow never has less than
//! [`SharedWindow::least`], so many flows over a path with a small window do exceed it.
//!
//! Status: worked examples, and random sequences that keep the aggregate.

use std::collections::BTreeMap;

use flowstart_core::units::Bytes;

/// Names a flow among those to one peer. A number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(u64);

/// A flow that never registered, or has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow {} is not registered with the shared window", .0.0)]
pub struct UnknownFlow(pub FlowId);

/// The windows of all flows to one peer.
#[derive(Clone, Debug)]
pub struct SharedWindow {
    least: Bytes,
    flows: BTreeMap<FlowId, Bytes>,
    next: FlowId,
}

impl SharedWindow {
    /// A window without flows. No flow gets less than `least`; two segments are the least initial window of RFC 6928.
    pub const fn new(least: Bytes) -> Self {
        Self { least, flows: BTreeMap::new(), next: FlowId(0) }
    }

    /// What no flow gets less than.
    pub const fn least(&self) -> Bytes {
        self.least
    }

    /// The sum of all windows.
    pub fn aggregate(&self) -> Bytes {
        self.flows.values().copied().sum()
    }

    /// The window of a flow, `None` when it is not registered. It changes when others come or leave.
    pub fn window(&self, flow: FlowId) -> Option<Bytes> {
        self.flows.get(&flow).copied()
    }

    /// The flows and their windows, in the order in which they registered.
    pub fn windows(&self) -> impl Iterator<Item = (FlowId, Bytes)> {
        self.flows.iter().map(|(flow, window)| (*flow, *window))
    }

    /// A new flow and its window: `alone` if it is the only one, otherwise its share, and never more than the aggregate
    /// allows it even if `alone` is more.
    pub fn register(&mut self, alone: Bytes) -> (FlowId, Bytes) {
        let flow = self.next;
        self.next = FlowId(flow.0 + 1);
        let share = match self.flows.len() as u64 {
            0 => alone,
            others => self.aggregate() / (others + 1),
        }
        .max(self.least);
        self.take(share);
        self.flows.insert(flow, share);
        (flow, share)
    }

    /// The new window from a flow's congestion control.
    pub fn report(&mut self, flow: FlowId, cwnd: Bytes) -> Result<(), UnknownFlow> {
        let window = self.flows.get_mut(&flow).ok_or(UnknownFlow(flow))?;
        *window = cwnd.max(self.least);
        Ok(())
    }

    /// A flow ends. Its window goes to the others. The last flow's window is returned, as an observation for a
    /// [`PathStore`](crate::path_store::PathStore).
    pub fn leave(&mut self, flow: FlowId) -> Result<Option<Bytes>, UnknownFlow> {
        let returned = self.flows.remove(&flow).ok_or(UnknownFlow(flow))?;
        if self.flows.is_empty() {
            return Ok(Some(returned));
        }
        let weights: Vec<u64> = self.flows.values().map(|window| window.get().max(1)).collect();
        for (window, part) in self.flows.values_mut().zip(divided(returned.get(), &weights)) {
            *window += Bytes::new(part);
        }
        Ok(None)
    }

    /// Takes `share` from the flows in proportion to their windows above the minimum, as far as they go.
    fn take(&mut self, share: Bytes) {
        let spare: Vec<u64> = self.flows.values().map(|window| window.saturating_sub(self.least).get()).collect();
        let all = spare.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        for (window, part) in self.flows.values_mut().zip(divided(share.get().min(all), &spare)) {
            *window = window.saturating_sub(Bytes::new(part));
        }
    }
}

/// `amount` in parts that are proportional to `weights`; what rounding leaves goes to the first, a byte each, and no
/// part exceeds its weight as long as `amount` does not exceed their sum.
fn divided(amount: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if all == 0 {
        return vec![0; weights.len()];
    }
    let part = |weight: &u64| (u128::from(amount) * u128::from(*weight) / all) as u64;
    let mut parts: Vec<u64> = weights.iter().map(part).collect();
    let mut left = amount.saturating_sub(parts.iter().sum());
    for (part, weight) in parts.iter_mut().zip(weights) {
        if left > 0 && *weight > 0 {
            *part += 1;
            left -= 1;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAST: Bytes = Bytes::new(2920);

    fn with(windows: &[u64]) -> (SharedWindow, Vec<FlowId>) {
        let mut shared = SharedWindow::new(LEAST);
        let flows: Vec<FlowId> = windows.iter().map(|_| shared.register(LEAST).0).collect();
        for (flow, window) in flows.iter().zip(windows) {
            shared.report(*flow, Bytes::new(*window)).unwrap();
        }
        (shared, flows)
    }

    fn windows(shared: &SharedWindow) -> Vec<u64> {
        shared.windows().map(|(_, window)| window.get()).collect()
    }

    #[test]
    fn the_first_flow_starts_as_it_would_alone() {
        let mut shared = SharedWindow::new(LEAST);
        assert_eq!(shared.register(Bytes::new(14_720)).1, Bytes::new(14_720));
    }

    #[test]
    fn a_new_flow_gets_an_equal_share_and_the_aggregate_stays() {
        // 62,920 + 32,920 = 95,840; a third is 31,946. Above the least the others have 60,000 and 30,000, so they give
        // 31,946 * 2/3 = 21,297 and 31,946 / 3 = 10,648, and the byte that is left comes from the first.
        let (mut shared, _) = with(&[62_920, 32_920]);
        let (_, share) = shared.register(Bytes::new(1_000_000));
        assert_eq!(share, Bytes::new(31_946));
        assert_eq!(windows(&shared), [62_920 - 21_298, 32_920 - 10_648, 31_946]);
        assert_eq!(shared.aggregate(), Bytes::new(95_840));
    }

    #[test]
    fn a_flow_that_leaves_returns_its_window_in_proportion() {
        // 30,000 to 60,000 and 30,000: 20,000 and 10,000.
        let (mut shared, flows) = with(&[60_000, 30_000, 30_000]);
        assert_eq!(shared.leave(flows[2]), Ok(None));
        assert_eq!(windows(&shared), [80_000, 40_000]);
        assert_eq!(shared.leave(flows[0]), Ok(None));
        assert_eq!(shared.leave(flows[1]), Ok(Some(Bytes::new(120_000))), "the last one takes it with it");
        assert_eq!(shared.leave(flows[1]), Err(UnknownFlow(flows[1])));
        assert_eq!(shared.report(flows[1], LEAST), Err(UnknownFlow(flows[1])));
    }

    #[test]
    fn no_flow_gets_less_than_the_least() {
        let (mut shared, _) = with(&[3920, 2920]);
        // A third of 6840 is 2280, less than 2920. The first can give 1000; the aggregate grows by the rest.
        assert_eq!(shared.register(LEAST).1, LEAST);
        assert_eq!(windows(&shared), [2920, 2920, 2920]);
    }

    proptest! {
        #[test]
        fn coming_and_leaving_keeps_the_aggregate(
            start in prop::collection::vec(3000u64..10_000_000, 1..6),
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..40),
        ) {
            let (mut shared, mut flows) = with(&start);
            for (comes, which) in steps {
                let before = shared.aggregate();
                if comes {
                    let (flow, share) = shared.register(Bytes::MAX);
                    flows.push(flow);
                    let needed = LEAST * flows.len() as u64;
                    prop_assert!(shared.aggregate() == before || before < needed + Bytes::new(LEAST.get()));
                    prop_assert!(share >= LEAST);
                } else if flows.len() > 1 {
                    let flow = flows.remove(which.index(flows.len()));
                    prop_assert_eq!(shared.leave(flow), Ok(None));
                    prop_assert_eq!(shared.aggregate(), before);
                }
                prop_assert!(shared.windows().all(|(_, window)| window >= LEAST));
            }
        }

        #[test]
        fn parts_sum_up_and_stay_within_their_weights(
            weights in prop::collection::vec(0u64..u64::MAX / 100, 1..20), percent in 0u64..=100,
        ) {
            let all: u64 = weights.iter().sum();
            let amount = (u128::from(all) * u128::from(percent) / 100) as u64;
            let parts = divided(amount, &weights);
            prop_assert_eq!(parts.iter().sum::<u64>(), amount);
            prop_assert!(parts.iter().zip(&weights).all(|(part, weight)| part <= weight));
        }
    }
}
