//! The latest approvals by flow, with which a router without other state per flow revokes approvals.

use alloc::collections::{BTreeMap, VecDeque};

use crate::quick_start::router::FlowId;
use crate::time::Timestamp;
use crate::units::Rate;

/// An approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Approval {
    /// What was approved and not given back.
    pub(super) rate: Rate,
    /// When.
    pub(super) at: Timestamp,
    /// When it is forgotten.
    ends: Timestamp,
}

/// Approvals of a bounded number of flows. All live equally long, so they end in the order in which they were given.
#[derive(Clone, Debug)]
pub(super) struct ApprovedFlows {
    most: usize,
    approvals: BTreeMap<FlowId, Approval>,
    /// Replaced approvals of a flow stay in here until they would have ended.
    order: VecDeque<(Timestamp, FlowId)>,
}

impl ApprovedFlows {
    pub(super) fn new(most: usize) -> Self {
        Self { most, approvals: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Whether an approval of a flow that has none fits.
    pub(super) fn has_room(&self) -> bool {
        self.approvals.len() < self.most
    }

    /// Forgets one approval that has ended by `now`; call it until there is none.
    pub(super) fn take_ended(&mut self, now: Timestamp) -> Option<Approval> {
        while let Some((ends, flow)) = self.order.front().copied().filter(|(ends, _)| *ends <= now) {
            self.order.pop_front();
            if self.approvals.get(&flow).is_some_and(|approval| approval.ends == ends) {
                return self.approvals.remove(&flow);
            }
        }
        None
    }

    /// Forgets the approval of a flow.
    pub(super) fn take(&mut self, flow: FlowId) -> Option<Approval> {
        self.approvals.remove(&flow)
    }

    /// The approval of a flow.
    pub(super) fn get_mut(&mut self, flow: FlowId) -> Option<&mut Approval> {
        self.approvals.get_mut(&flow)
    }

    /// Remembers an approval, if there is room.
    pub(super) fn insert(&mut self, flow: FlowId, rate: Rate, at: Timestamp, ends: Timestamp) {
        if !self.has_room() && !self.approvals.contains_key(&flow) {
            return;
        }
        // Half of them are replaced ones at least, so this happens once in as many insertions.
        if self.order.len() >= 2 * self.most {
            self.order = self.approvals.iter().map(|(flow, approval)| (approval.ends, *flow)).collect();
            self.order.make_contiguous().sort_unstable();
        }
        self.approvals.insert(flow, Approval { rate, at, ends });
        self.order.push_back((ends, flow));
    }

    /// Flows and places in the order.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.approvals.len(), self.order.len())
    }
}
