//! Web pages over several connections, as with HTTP/1.1.
//!
//! References: RFC 9112, section 9.3 (persistent connections) and 9.4 (several connections to a host). Browsers open up
//! to six to a host name (`g_max_sockets_per_group` of Chromium's `client_socket_pool_manager.cc`,
//! `network.http.max-persistent-connections-per-server` of Firefox). Domain sharding spreads a page over more names.
//!
//! A connection carries one response at a time and none is pipelined, as browsers do. An object that finds all
//! connections to its host busy waits in the order in which objects were named. An idle connection is used before a new
//! one is opened, and a new connection carries the object for which it was opened.
//!
//! Differences: looking up names takes no time, all names are at the same server, and requests have no bytes. Browsers
//! may give an object to whichever connection is free first, even if another one was opened for it.

use std::collections::VecDeque;

use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

use crate::flow::FlowConfig;
use crate::observe::record::{FlowRecord, ObjectTimes};
use crate::traffic::Pattern;
use crate::world::World;

/// A page: waves of objects. The first object of a wave names the objects of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Objects of a wave.
    pub objects: u32,
    /// Bytes of an object.
    pub size: Bytes,
    /// Number of waves.
    pub waves: u32,
    /// Most connections to a host.
    pub connections: u32,
    /// Host names, over which the objects are spread in turn.
    pub hosts: u32,
}

impl Page {
    /// Most connections to a host that the page can use.
    fn useful_connections(&self) -> u32 {
        self.connections.min((self.objects * self.waves).div_ceil(self.hosts))
    }

    /// Host names with objects.
    fn used_hosts(&self) -> u32 {
        self.hosts.min(self.objects * self.waves)
    }
}

/// A connection's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unopened,
    Idle,
    /// This object is on its way.
    Busy(u32),
}

/// A connection, whose place is that of its flow after the page's first.
#[derive(Clone, Copy, Debug)]
struct Connection {
    state: State,
    /// Objects that it was used for.
    used: u32,
}

/// A page that is being loaded.
#[derive(Clone, Debug)]
pub(super) struct RunningPage {
    page: Page,
    /// The flow of the first connection, whose record has the page's objects.
    first: u32,
    /// Those to the first host, to the second and so on.
    connections: Vec<Connection>,
    /// For each host the objects that wait for a connection.
    waiting: Vec<VecDeque<u32>>,
    /// Objects that have not arrived.
    left: u32,
}

impl RunningPage {
    /// The connection for the next object of a host: an idle one or an unopened one.
    fn free(&self, host: usize) -> Option<usize> {
        let per_host = self.connections.len() / self.waiting.len();
        let own = host * per_host..(host + 1) * per_host;
        let find = |state| own.clone().find(|place| self.connections[*place].state == state);
        find(State::Idle).or_else(|| find(State::Unopened))
    }

    /// Takes the next object of a host that a connection is free for.
    fn next(&mut self, host: usize) -> Option<(usize, State, u32)> {
        let object = *self.waiting[host].front()?;
        let place = self.free(host)?;
        self.waiting[host].pop_front();
        let connection = &mut self.connections[place];
        connection.used += 1;
        let before = std::mem::replace(&mut connection.state, State::Busy(object));
        Some((place, before, object))
    }

    /// The objects from `named` on that make the next wave wait for connections.
    fn name(&mut self, named: u32) {
        for object in named..named + self.page.objects {
            self.waiting[object as usize % self.page.hosts as usize].push_back(object);
        }
    }
}

impl World {
    /// Loads a page over connections like `template`, of which the first opens at its start. Returns the number of the
    /// first connection's flow, whose record has the objects of the page and is complete with it.
    ///
    /// # Panics
    ///
    /// If [`FlowConfig::validate`] refuses the template.
    pub fn add_page(&mut self, page: Page, template: &FlowConfig) -> u32 {
        let number = self.pages.len() as u32;
        let page = Page { hosts: page.used_hosts(), ..page };
        let count = page.useful_connections() * page.hosts;
        let mut running = RunningPage {
            page,
            first: self.flows.len() as u32,
            connections: vec![Connection { state: State::Unopened, used: 0 }; count as usize],
            waiting: vec![VecDeque::new(); page.hosts as usize],
            left: page.objects * page.waves,
        };
        running.name(0);
        for host in 0..running.waiting.len() {
            while running.next(host).is_some() {}
        }
        for connection in &running.connections {
            let start = if connection.state == State::Unopened { Timestamp::NEVER } else { template.start };
            let pattern = Pattern::Requests { size: page.size };
            let flow = self.add_flow(FlowConfig { start, pattern, ..template.clone() });
            self.flows[flow as usize].page = Some(number);
        }
        let first = running.first;
        self.network.record(first).objects = vec![ObjectTimes::new(template.start); page.objects as usize];
        self.pages.push(running);
        first
    }

    /// The flows of a page's connections that were opened, or the flow alone if it belongs to no page.
    pub fn connections_of(&self, flow: u32) -> Vec<u32> {
        let page = self.flows.get(flow as usize).and_then(|flow| flow.page);
        let Some(running) = page.map(|page| &self.pages[page as usize]) else { return vec![flow] };
        let opened = running.connections.iter().zip(running.first..);
        opened.filter(|(connection, _)| connection.state != State::Unopened).map(|(_, flow)| flow).collect()
    }

    /// The record of a flow, or the sum over a page's connections. Times and the end of startup are the first
    /// connection's, except for the start, the request and the first drop, which are the earliest of all.
    pub fn joint_record(&self, flow: u32) -> FlowRecord {
        let mut sum = self.record(flow).clone();
        for other in self.connections_of(flow).into_iter().filter(|other| *other != flow) {
            let other = self.record(other);
            let earlier = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
            sum.started = earlier(sum.started, other.started);
            sum.request_sent = earlier(sum.request_sent, other.request_sent);
            sum.first_data_sent = earlier(sum.first_data_sent, other.first_data_sent);
            sum.first_drop = earlier(sum.first_drop, other.first_drop);
            sum.add_counts(other);
        }
        sum
    }

    /// A packet has reached an end of a page's connection.
    pub(super) fn on_page_packet(&mut self, page: u32, flow: u32) {
        let running = &self.pages[page as usize];
        let place = (flow - running.first) as usize;
        let Connection { state: State::Busy(object), used } = running.connections[place] else { return };
        let end = u64::from(used) * running.page.size.get();
        if self.model(flow).is_some_and(|ends| ends.arrived_in_order() >= end) {
            self.on_page_object(page, place, object);
        }
    }

    /// An object has arrived: its connection is free, and the object may name others.
    fn on_page_object(&mut self, page: u32, place: usize, object: u32) {
        let now = self.now();
        let running = &mut self.pages[page as usize];
        running.connections[place].state = State::Idle;
        running.left -= 1;
        let Page { objects, waves, .. } = running.page;
        let (first, is_done) = (running.first, running.left == 0);
        let named = self.network.record(first).objects.len() as u32;
        if named == objects && self.network.record(first).objects.iter().all(|object| object.arrived.is_none()) {
            self.note_first_requests(page);
        }
        let record = self.network.record(first);
        let times = &mut record.objects[object as usize];
        (times.complete, times.arrived) = (Some(now), Some(now));
        if is_done {
            record.completed = Some(now);
            return;
        }
        if object + objects == named && named < objects * waves {
            record.objects.extend((0..objects).map(|_| ObjectTimes::new(now)));
            self.pages[page as usize].name(named);
        }
        self.send_page_requests(page);
    }

    /// The objects of the first wave count as requested when the first of their requests left.
    fn note_first_requests(&mut self, page: u32) {
        let RunningPage { first, ref connections, .. } = self.pages[page as usize];
        let flows = (first..).take(connections.len());
        let Some(sent) = flows.filter_map(|flow| self.record(flow).request_sent).min() else { return };
        self.network.record(first).objects.iter_mut().for_each(|object| object.requested = sent);
    }

    /// Uses the free connections for objects that wait.
    fn send_page_requests(&mut self, page: u32) {
        let now = self.now();
        let first = self.pages[page as usize].first;
        for host in 0..self.pages[page as usize].waiting.len() {
            while let Some((place, before, object)) = self.pages[page as usize].next(host) {
                let times = &mut self.network.record(first).objects[object as usize];
                times.queued = now.since(times.requested);
                let flow = first + place as u32;
                let Some(ends) = self.flows[flow as usize].ends.model_mut() else { continue };
                match before {
                    State::Unopened => ends.open_now(&mut self.network),
                    State::Idle | State::Busy(_) => ends.request_next(&mut self.network),
                }
            }
        }
    }
}
