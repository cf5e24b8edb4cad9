//! Web pages over several connections, as with HTTP/1.1.
//!
//! References: RFC 9112, section 9.3 (persistent connections) and 9.4 (several connections to a host). Browsers open up
//! to six to a host name (`g_max_sockets_per_group` of Chromium's `client_socket_pool_manager.cc`,
//! `network.http.max-persistent-connections-per-server` of Firefox). Domain sharding spreads a page over more names.
//!
//! A connection carries one response at a time, as in browsers. An object that finds all connections to its host busy
//! waits in the order in which objects were named. An idle connection is used before a new one is opened, and a new
//! connection carries the object for which it was opened. With pipelining (RFC 9112, section 9.3.2) an open connection
//! takes further requests before the response has come. Responses come in the order of the requests, so each waits for
//! those before it.
//!
//! Differences: RFC 9112 lets clients pipeline from the start of a connection, except when they repeat requests. Here
//! the first response comes first, as a client waits that does not know whether the server keeps connections open.
//! Connections are opened before they pipeline, and of several that do the one with the fewest outstanding requests is
//! next; the RFC leaves both to clients. Looking up names takes no time, all names are at the same server, and requests
//! have no bytes. Browsers may give an object to whichever connection is free first, even if another one was opened for
//! it.

use std::collections::VecDeque;
use std::iter;

use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

use crate::flow::FlowConfig;
use crate::flow::model::ModelEnds;
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
    /// Most outstanding requests of a connection; 1 is without pipelining.
    pub pipelining: u32,
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

/// A connection, whose place is that of its flow after the page's first.
#[derive(Clone, Debug, Default)]
struct Connection {
    is_open: bool,
    /// Objects that were requested and have not arrived, in the order of their requests.
    outstanding: VecDeque<u32>,
    /// Objects that arrived.
    done: u32,
}

impl Connection {
    /// Whether another request may follow at once.
    fn takes(&self, pipelining: usize) -> bool {
        self.is_open && (self.outstanding.is_empty() || (self.done > 0 && self.outstanding.len() < pipelining))
    }
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
    /// The connection for the next object of a host: an idle one, an unopened one or one that pipelines.
    fn free(&self, host: usize) -> Option<usize> {
        let per_host = self.connections.len() / self.waiting.len();
        let own = host * per_host..(host + 1) * per_host;
        let outstanding = |place: &usize| self.connections[*place].outstanding.len();
        let opened = own.clone().filter(|place| self.connections[*place].takes(self.page.pipelining as usize));
        let best = opened.min_by_key(outstanding);
        let unopened = || own.clone().find(|place| !self.connections[*place].is_open);
        best.filter(|place| outstanding(place) == 0).or_else(unopened).or(best)
    }

    /// Takes the next object of a host that a connection is free for. Says whether it was open.
    fn next(&mut self, host: usize) -> Option<(usize, bool, u32)> {
        let object = *self.waiting[host].front()?;
        let place = self.free(host)?;
        self.waiting[host].pop_front();
        let connection = &mut self.connections[place];
        connection.outstanding.push_back(object);
        Some((place, std::mem::replace(&mut connection.is_open, true), object))
    }

    /// The next object of a connection, if it is among the first `whole` that arrived there.
    fn arrived(&mut self, place: usize, whole: u64) -> Option<u32> {
        let connection = &mut self.connections[place];
        if whole <= u64::from(connection.done) {
            return None;
        }
        let object = connection.outstanding.pop_front()?;
        connection.done += 1;
        Some(object)
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
            connections: vec![Connection::default(); count as usize],
            waiting: vec![VecDeque::new(); page.hosts as usize],
            left: page.objects * page.waves,
        };
        running.name(0);
        for host in 0..running.waiting.len() {
            while running.next(host).is_some() {}
        }
        for connection in &running.connections {
            let start = if connection.is_open { template.start } else { Timestamp::NEVER };
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
        opened.filter(|(connection, _)| connection.is_open).map(|(_, flow)| flow).collect()
    }

    /// The record of a flow, or that of a page: its connections' together ([`FlowRecord::of_transfer`]), and complete
    /// when the page is.
    pub fn joint_record(&self, flow: u32) -> FlowRecord {
        let others = self.connections_of(flow).into_iter().filter(|other| *other != flow);
        let whole = FlowRecord::of_transfer(iter::once(flow).chain(others).map(|flow| self.record(flow)));
        // Connections that serve requests are never complete; the first one's record has the page's time.
        FlowRecord { completed: self.record(flow).completed, ..whole }
    }

    /// A packet has reached an end of a page's connection.
    pub(super) fn on_page_packet(&mut self, page: u32, flow: u32) {
        let running = &self.pages[page as usize];
        let (place, size) = ((flow - running.first) as usize, running.page.size.get());
        self.note_complete(page, flow, place);
        let Some(arrived) = self.model(flow).map(ModelEnds::arrived_in_order) else { return };
        // A packet that closes a gap may complete several responses.
        while let Some(object) = self.pages[page as usize].arrived(place, arrived / size) {
            self.on_page_object(page, object);
        }
    }

    /// Notes which pipelined objects of a connection are there, whether or not they have to wait for those before them.
    fn note_complete(&mut self, page: u32, flow: u32, place: usize) {
        let now = self.now();
        let RunningPage { page: Page { size, .. }, first, ref connections, .. } = self.pages[page as usize];
        let Connection { outstanding, done, .. } = &connections[place];
        if outstanding.len() < 2 {
            return;
        }
        let Some(ends) = self.flows[flow as usize].ends.model() else { return };
        let ranges = (u64::from(*done)..).map(|place| (place * size.get(), (place + 1) * size.get()));
        for (object, (start, end)) in outstanding.iter().zip(ranges) {
            if ends.holds(start, end) {
                self.network.record(first).objects[*object as usize].complete.get_or_insert(now);
            }
        }
    }

    /// An object has arrived: its connection takes another request, and the object may name others.
    fn on_page_object(&mut self, page: u32, object: u32) {
        let now = self.now();
        let running = &mut self.pages[page as usize];
        running.left -= 1;
        let Page { objects, waves, .. } = running.page;
        let (first, is_done) = (running.first, running.left == 0);
        let named = self.network.record(first).objects.len() as u32;
        if named == objects && self.network.record(first).objects.iter().all(|object| object.arrived.is_none()) {
            self.note_first_requests(page);
        }
        let record = self.network.record(first);
        let times = &mut record.objects[object as usize];
        (times.complete, times.arrived) = (times.complete.or(Some(now)), Some(now));
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
            while let Some((place, was_open, object)) = self.pages[page as usize].next(host) {
                let times = &mut self.network.record(first).objects[object as usize];
                times.queued = now.since(times.requested);
                let flow = first + place as u32;
                let Some(ends) = self.flows[flow as usize].ends.model_mut() else { continue };
                if was_open {
                    ends.request_next(&mut self.network);
                } else {
                    ends.open_now(&mut self.network);
                }
            }
        }
    }
}
