//! Acknowledgements of what a client has not received, and what `flowstart serve` makes of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::sync::Arc;
use std::time::Duration;

use flowstart_quic::session::observer::{Level, ObservedConfig, Observer};
use noq::{ConnectionError, ReadError, ReadToEndError};
use noq_proto::crypto::{CryptoError, PacketKey};
use noq_proto::{PathId, TransportErrorCode};
use server::{Server, certificate, connected_by, flowstart, request, trusting};

/// What a client says of packets that it has not received.
#[derive(Clone, Copy, Debug)]
enum Lie {
    None,
    /// It has one that was never sent.
    Unsent,
    /// It has every one below the largest that it has.
    NoGaps,
}

impl Observer for Lie {
    fn on_key(&self, key: Box<dyn PacketKey>, level: Level) -> Box<dyn PacketKey> {
        match level {
            Level::Handshake => key,
            Level::Application => Box::new(LyingKey { key, lie: *self }),
        }
    }
}

/// A key that changes acknowledgements before they are encrypted.
struct LyingKey {
    key: Box<dyn PacketKey>,
    lie: Lie,
}

impl PacketKey for LyingKey {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len() - self.key.tag_len();
        rewrite(&mut buf[header_len..end], self.lie);
        self.key.encrypt(path_id, packet, buf, header_len);
    }

    fn decrypt(
        &self,
        path_id: PathId,
        packet: u64,
        header: &[u8],
        payload: &mut bytes::BytesMut,
    ) -> Result<(), CryptoError> {
        self.key.decrypt(path_id, packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

/// The bytes and the value of an integer at the beginning (RFC 9000, section 16).
fn integer(bytes: &[u8]) -> (usize, u64) {
    let length = 1 << (bytes[0] >> 6);
    let first = u64::from(bytes[0] & 0x3f);
    (length, bytes[1..length].iter().fold(first, |value, byte| value << 8 | u64::from(*byte)))
}

/// Changes an ACK frame at the beginning of a packet (RFC 9000, section 19.3), whose length stays.
fn rewrite(frames: &mut [u8], lie: Lie) {
    if !matches!(frames.first(), Some(2 | 3)) {
        return;
    }
    let (length, largest) = integer(&frames[1..]);
    // An integer of two bytes: numbers from 64 on.
    if length != 2 {
        return;
    }
    match lie {
        Lie::None => {}
        Lie::Unsent => frames[1..3].fill(0x7f),
        Lie::NoGaps => {
            let count = 3 + integer(&frames[3..]).0;
            let (mut end, ranges) = (count + integer(&frames[count..]).0, integer(&frames[count..]).1);
            let first = end;
            for _ in 0..=2 * ranges {
                end += integer(&frames[end..]).0;
            }
            // The first range becomes an integer of as many bytes as all ranges have, as far as there are such.
            let room = end - first;
            if ranges == 0 || count + 1 != first || room < 3 {
                return;
            }
            frames[count] = 0;
            frames[first..first + 2].copy_from_slice(&(0x4000 | largest as u16).to_be_bytes());
            let counts = if frames[0] == 3 { (0..3).fold(end, |end, _| end + integer(&frames[end..]).0) } else { end };
            frames.copy_within(end..counts, first + 2);
            // PADDING.
            frames[first + 2 + counts - end..counts].fill(0);
        }
    }
}

/// How 1 MB arrives at a client that lies, and whether others are served afterwards.
fn answer(lie: Lie) -> Result<usize, ConnectionError> {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let tls = Arc::new(ObservedConfig::new(trusting(&cert), move || lie));
    let got = connected_by(&server, tls, 1 << 20, async |connection| {
        let (mut stream, mut answer) = connection.open_bi().await.unwrap();
        stream.write_all(&request("/generate/1MB", &[])).await.unwrap();
        stream.finish().unwrap();
        match tokio::time::timeout(Duration::from_secs(60), answer.read_to_end(2 << 20)).await.unwrap() {
            Ok(bytes) => Ok(bytes.len()),
            Err(ReadToEndError::Read(ReadError::ConnectionLost(error))) => Err(error),
            Err(error) => panic!("{error}"),
        }
    });
    let get = ["get", "--ca", &cert, "--json", &format!("{}/generate/1MB", server.url)];
    flowstart().args(get).assert().success();
    got.unwrap()
}

#[test]
fn who_acknowledges_what_was_not_sent_loses_the_connection() {
    assert!(answer(Lie::None).unwrap() > 1_000_000);
    // Number 16,383, and a number that the stack leaves out among the first 64 to find those who guess (RFC 9000,
    // section 21.4).
    for lie in [Lie::Unsent, Lie::NoGaps] {
        match answer(lie) {
            Err(ConnectionError::ConnectionClosed(close)) => {
                assert_eq!(close.error_code, TransportErrorCode::PROTOCOL_VIOLATION, "{lie:?}: {close:?}");
            }
            other => panic!("{lie:?}: {other:?}"),
        }
    }
}
