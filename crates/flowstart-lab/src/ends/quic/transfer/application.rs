//! The applications at the two ends of a flow: the client requests a number of bytes and reads them, the server
//! answers.

use bytes::Bytes as Buffer;
use flowstart_core::sources::{Statement, name};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_sim::network::Network;
use noq_proto::{Dir, StreamEvent};

use super::{Transfer, train};
use crate::ends::quic::end::{CLIENT, SERVER};

/// Bytes of a request: a GET with its headers, which fits into the model's completion of the handshake.
const REQUEST: usize = 230;
/// The data that servers send, piece by piece. Nothing writes to it, so the machine keeps a single page for it. It has
/// few enough pages for the processor's cache of addresses.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

impl Transfer {
    /// The applications: the client requests and reads, the server reads the request and answers.
    pub(super) fn run_application(&mut self, network: &mut Network, side: usize) {
        if side == SERVER {
            self.hear_answer();
        }
        loop {
            let Some((_, connection)) = &mut self.ends[side].connection else { return };
            let Some(event) = connection.poll() else { break };
            match event {
                noq_proto::Event::Connected if side == CLIENT => {
                    self.send_answer();
                    self.send_request(network.now());
                }
                noq_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) if side == SERVER => {
                    self.streams[SERVER] = connection.streams().accept(Dir::Bi);
                    self.note_quick_start(network);
                    self.read_request(network);
                }
                noq_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) if side == SERVER => {
                    self.read_advice(network);
                }
                noq_proto::Event::Stream(StreamEvent::Readable { .. }) => {
                    if side == CLIENT {
                        self.read_response(network);
                    } else {
                        self.read_request(network);
                    }
                }
                noq_proto::Event::Stream(StreamEvent::Writable { .. }) if side == SERVER => self.write_response(),
                noq_proto::Event::ConnectionLost { .. } => self.failed = true,
                _ => {}
            }
        }
    }

    /// The client sends its request as soon as it may.
    pub(super) fn send_request(&mut self, now: Timestamp) {
        let Some((_, connection)) = &mut self.ends[CLIENT].connection else { return };
        let allowed = !connection.is_handshaking() || connection.has_0rtt();
        if self.streams[CLIENT].is_some() || !allowed {
            return;
        }
        self.streams[CLIENT] = connection.streams().open(Dir::Bi);
        let Some(stream) = self.streams[CLIENT] else { return };
        let mut request = [0; REQUEST];
        request[..8].copy_from_slice(&self.size.to_be_bytes());
        request[8] = self.scone.message(now);
        request[9..13].copy_from_slice(&self.train.message().to_be_bytes());
        let mut stream = connection.send_stream(stream);
        let written = stream.write(&request);
        if written != Ok(REQUEST) || stream.finish().is_err() {
            self.failed = true;
        }
    }

    fn read_request(&mut self, network: &mut Network) {
        let (Some((_, connection)), Some(stream)) = (&mut self.ends[SERVER].connection, self.streams[SERVER]) else {
            return;
        };
        let mut reader = connection.recv_stream(stream);
        let Ok(mut chunks) = reader.read(true) else { return };
        let mut complete = false;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.request.extend_from_slice(&chunk.bytes),
                Ok(None) => {
                    complete = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // The next poll for packets decides whether the peer has to learn of that.
        let _ = chunks.finalize();
        if let (true, Some(&[a, b, c, d, e, f, g, h, advice, i, j, k, l])) = (complete, self.request.first_chunk()) {
            self.unwritten = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            if let Some(rate) = self.hear(network, advice) {
                self.flow.advise(Some(rate));
            }
            if let Some(rate) = train::read(u32::from_be_bytes([i, j, k, l])) {
                self.flow.hear(|sources| sources.believe(name::HANDSHAKE_TRAIN, Statement::Train(rate)));
            }
            self.flow.expect(Bytes::new(self.unwritten), Bytes::new(self.packet()));
            self.write_response();
        }
    }

    fn write_response(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.ends[SERVER].connection, self.streams[SERVER]) else {
            return;
        };
        let mut stream = connection.send_stream(stream);
        while self.unwritten > 0 {
            let next = self.unwritten.min(ZEROS.len() as u64) as usize;
            let Ok(written) = stream.write_chunks(&mut &mut [Buffer::from_static(&ZEROS[..next])][..]) else { return };
            self.unwritten -= written as u64;
            if self.unwritten == 0 && stream.finish().is_err() {
                self.failed = true;
            }
        }
    }

    fn read_response(&mut self, network: &mut Network) {
        let (Some((_, connection)), Some(stream)) = (&mut self.ends[CLIENT].connection, self.streams[CLIENT]) else {
            return;
        };
        let mut reader = connection.recv_stream(stream);
        // In any order, as into a file. noq closes a connection whose reader leaves more than some thousand pieces
        // behind gaps, and slow start on a long path loses every second packet of a whole window.
        let Ok(mut chunks) = reader.read(false) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.read += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
        if self.read >= self.size {
            let now = network.now();
            network.record(self.number).completed.get_or_insert(now);
        }
    }
}
