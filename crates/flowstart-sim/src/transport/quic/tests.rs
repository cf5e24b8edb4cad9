use std::sync::Arc;

use flowstart_core::controller::Controller;
use flowstart_core::units::Rate;

use super::*;
use crate::link::LinkConfig;
use crate::network::Route;
use crate::packet::FlowId;
use crate::traffic::Pattern;
use crate::transport::profile::Profile;

/// cwnd in packets after one acknowledgement of an initial window of ten, which echoes this many marks.
fn window_after(ce_count: u32) -> u64 {
    let profile = Profile::named("rfc9002").unwrap();
    let mut network = Network::new(1);
    let link = network.add_link(&LinkConfig::new(Rate::from_mbit(1000), Duration::from_millis(10)));
    network.set_route(0, &Route { forward: vec![link], back: Vec::new() });
    let mut source = Source::new(Pattern::Transfer(Bytes::new(1_000_000)), 1, 0);
    source.start(Timestamp::ZERO);
    let controller = Controller::new(profile.controller(profile.startup.clone(), profile.avoidance.clone())).unwrap();
    let segment = u64::from(profile.segment);
    let base = SenderBase::new(FlowId { index: 0, generation: 0 }, Arc::new(profile), controller);
    let mut sender = QuicSender::new(base);
    sender.base.limit = u64::MAX;
    sender.base.launch(&mut network, &mut Sources::default());
    while sender.next_number < 10 {
        let next = sender.next(&source).unwrap();
        sender.send(&mut network, next);
    }
    let (echo, limit) = (Timestamp::ZERO, u64::MAX);
    let ack = Acknowledgement { position: 9, ranges: None, delay: Duration::ZERO, echo, limit, ce_count, requests: 0 };
    sender.on_acknowledgement(&mut network, &ack);
    sender.base.controller.cwnd().get() / segment
}

#[test]
fn marks_reduce_the_window_before_it_grows() {
    // Reno halves 10, not the 20 that slow start makes of it.
    assert_eq!((window_after(0), window_after(1)), (20, 5));
}
