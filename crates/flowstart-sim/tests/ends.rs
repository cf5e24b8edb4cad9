//! External ends: their timers and datagrams arrive in the order of time, and losses are reported.

use std::sync::{Arc, Mutex};

use flowstart_core::aqm::{EcnCodepoint, QueueLimit};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::ends::{Datagram, Ends, Place, Timer};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::{Network, Route};
use flowstart_sim::packet::{Body, Direction, NO_OPTION, Packet};
use flowstart_sim::path::signals::PathSignal;
use flowstart_sim::world::{Stopped, World};

/// The calls that ends get.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Timer,
    Arrived(u32, Direction, u16),
    Lost(u32),
}

/// Ends that send these datagrams when their first timer fires, and record their calls with the times.
#[derive(Debug)]
struct Listener {
    place: Place,
    sends: Vec<(u32, Direction)>,
    told: Arc<Mutex<Vec<(f64, Told)>>>,
}

impl Listener {
    fn note(&self, network: &Network, told: Told) {
        self.told.lock().expect("nobody fails with it").push((network.now().as_secs(), told));
    }
}

impl Ends for Listener {
    fn on_timer(&mut self, network: &mut Network, timer: Timer) {
        assert_eq!(timer, Timer::Sender);
        self.note(network, Told::Timer);
        for (tag, direction) in self.sends.drain(..) {
            let body = Body::Handshake { flight: 0, part: 0, attempt: 0, quick_start: NO_OPTION };
            let (ecn, signal, quick_start) = (EcnCodepoint::Ect0, None, NO_OPTION);
            self.place.send(network, &Datagram { direction, tag, size: 1000, ecn, body, signal, quick_start });
            self.place.set_timer(network, Timestamp::ZERO + Duration::from_millis(12));
        }
    }

    fn on_packet(&mut self, network: &mut Network, packet: &Packet, signal: Option<PathSignal>) {
        assert_eq!((packet.ecn, signal), (EcnCodepoint::Ect0, None));
        self.note(network, Told::Arrived(packet.tag(), packet.direction, packet.hop));
    }

    fn on_lost(&mut self, tag: u32) {
        self.told.lock().expect("nobody fails with it").push((0.0, Told::Lost(tag)));
    }

    fn on_path_change(&mut self, _: &mut Network) {}
}

/// The calls of ends that send these datagrams over links of 8 Mbit/s and 10 ms with this limit, and the number of
/// drops.
fn told(limit: QueueLimit, sends: Vec<(u32, Direction)>) -> (Vec<(f64, Told)>, u64) {
    let mut world = World::new(1);
    let link = LinkConfig { limit, ..LinkConfig::new(Rate::from_mbit(8), Duration::from_millis(10)) };
    let route = Route { forward: vec![world.add_link(&link)], back: vec![world.add_link(&link)] };
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let start = Timestamp::ZERO + Duration::from_millis(5);
    let flow = world.add_ends(&route, start, |place| Box::new(Listener { place, sends, told: heard }));
    let mut silent = world.clone();
    let limit = Timestamp::ZERO + Duration::from_millis(1000);
    assert_eq!(world.run_while(limit, |_| true), Err(Stopped::Idle));
    let dropped = world.record(flow).dropped;
    // Ends that cannot be cloned are silent in a clone.
    let told = told.lock().expect("nobody fails with it").clone();
    assert_eq!(silent.run_while(limit, |_| true), Err(Stopped::Idle));
    assert!(silent.ends_mut::<Listener>(flow).is_none() && world.ends_mut::<Listener>(flow).is_some());
    (told, dropped)
}

#[test]
fn timers_and_datagrams_come_in_the_order_of_time() {
    let (told, _) = told(QueueLimit::default(), vec![(7, Direction::Forward), (8, Direction::Return)]);
    // 1000 bytes take 1 ms at 8 Mbit/s, and 10 ms to the other end: there at 16 ms.
    let expected = [
        (0.005, Told::Timer),
        (0.012, Told::Timer),
        (0.016, Told::Arrived(7, Direction::Forward, 1)),
        (0.016, Told::Arrived(8, Direction::Return, 1)),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_is_lost_is_told() {
    let limit = QueueLimit { bytes: Some(Bytes::new(2000)), ..QueueLimit::default() };
    // One is in transmission, two wait, the fourth finds no room.
    let (told, dropped) = told(limit, (0..4).map(|tag| (tag, Direction::Forward)).collect());
    assert_eq!(told[1], (0.0, Told::Lost(3)));
    let arrived = told.iter().filter(|(_, told)| matches!(told, Told::Arrived(..))).count();
    assert_eq!((told.len(), arrived, dropped), (6, 3, 1));
}
