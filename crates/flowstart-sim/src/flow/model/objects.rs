//! Streams of objects: the request and the arrival of each.

use flowstart_core::time::Timestamp;

use super::ModelEnds;
use crate::network::Network;
use crate::observe::record::ObjectTimes;
use crate::observe::trace::Event;

/// Objects of a stream that a record has room for from the start.
const OBJECTS_EXPECTED: u32 = 4096;

impl ModelEnds {
    /// The application has started: makes room for its objects, and records the first of them.
    pub(super) fn expect_first_objects(&mut self, network: &mut Network) {
        if let Some((_, count)) = self.source.objects() {
            network.record(self.id.index).objects.reserve(count.min(OBJECTS_EXPECTED) as usize);
        }
        self.note_written(network);
        self.expect_first_chunk(network);
        if let Some((objects, _)) = self.source.waves() {
            let now = network.now();
            let requested = network.record(self.id.index).request_sent.unwrap_or(now);
            self.expect_objects(network, objects, requested);
        }
    }

    /// Records the chunks that were written since the last call, and reports the end of the stream to a trace.
    pub(super) fn note_written(&mut self, network: &mut Network) {
        let written = self.source.written();
        match self.source.objects() {
            Some((size, _)) if self.source.waves().is_none() => {
                let known = network.record(self.id.index).objects.len() as u64;
                self.expect_objects(network, (written / size - known) as u32, network.now());
            }
            Some(_) => {}
            None if self.source.is_requested() => {}
            None => return,
        }
        network.note(self.id.index, || Event::Written { end: written });
    }

    fn expect_objects(&mut self, network: &mut Network, count: u32, requested: Timestamp) {
        let objects = &mut network.record(self.id.index).objects;
        objects.extend((0..count).map(|_| ObjectTimes::new(requested)));
    }

    /// Records the objects that the arrival of `[start, end)` completes, and requests the next wave of a page.
    pub(super) fn take_objects(&mut self, network: &mut Network, size: u64, start: u64, end: u64) {
        let now = network.now();
        let objects = &mut network.record(self.id.index).objects;
        let touched = start / size..end.div_ceil(size);
        // Data that arrives in order may precede data that has already arrived.
        let end = end.max(self.receiver.contiguous());
        for place in start / size..end.div_ceil(size) {
            let Some(object) = objects.get_mut(place as usize) else { break };
            let is_whole = touched.contains(&place) && object.complete.is_none();
            if is_whole && self.receiver.holds(place * size, (place + 1) * size) {
                object.complete = Some(now);
            }
            if object.arrived.is_none() && self.receiver.has(place * size, (place + 1) * size) {
                object.arrived = Some(now);
            }
        }
        let Some((per_wave, waves)) = self.source.waves() else { return };
        let requested = objects.len() as u32 / per_wave;
        let newest = objects[((requested - 1) * per_wave) as usize];
        if requested < waves && newest.arrived.is_some() {
            self.expect_objects(network, per_wave, now);
            self.receiver.request(network);
        }
    }
}
