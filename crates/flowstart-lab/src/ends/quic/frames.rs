//! The contents of a packet, read from its frames before encryption (RFC 9000, section 19).

use flowstart_sim::transport::sender::Chunk;

/// The contents of one datagram's packets, as far as a simulation needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// Number of its packet that may carry application data; `None`: the datagram belongs only to the handshake.
    pub(super) number: Option<u64>,
    /// The piece of the stream.
    pub(super) chunk: Option<Chunk>,
    /// Further pieces, which can result from lost data.
    pub(super) further: Vec<Chunk>,
    /// Largest acknowledged packet number, and its acknowledgement delay in microseconds.
    pub(super) acknowledged: Option<(u64, u64)>,
    /// Acknowledged packet numbers, newest first, half-open; only with a trace.
    pub(super) ranges: Vec<(u64, u64)>,
    /// First byte of the stream that flow control forbids.
    pub(super) limit: Option<u64>,
}

impl Carried {
    /// The pieces of the stream.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        self.chunk.into_iter().chain(self.further.iter().copied())
    }

    /// Records the frames of a packet. A frame of an unknown type ends the reading, because its length is unknown.
    pub(super) fn read(&mut self, mut frames: &[u8], with_ranges: bool) {
        while let Some(&kind) = frames.first() {
            // Padding fills the rest of a packet.
            if kind == 0 {
                frames = &frames[1..];
                continue;
            }
            if self.read_frame(&mut frames, with_ranges).is_none() {
                return;
            }
        }
    }

    fn read_frame(&mut self, frames: &mut &[u8], with_ranges: bool) -> Option<()> {
        match varint(frames)? {
            // PING, HANDSHAKE_DONE, IMMEDIATE_ACK
            0x01 | 0x1e | 0x1f => {}
            kind @ (0x02 | 0x03) => {
                let (largest, delay, count, first) =
                    (varint(frames)?, varint(frames)?, varint(frames)?, varint(frames)?);
                let mut smallest = largest.checked_sub(first)?;
                self.acknowledged = Some((largest, delay));
                self.ranges.clear();
                if with_ranges {
                    self.ranges.push((smallest, largest + 1));
                }
                for _ in 0..count {
                    let (gap, length) = (varint(frames)?, varint(frames)?);
                    let end = smallest.checked_sub(gap + 1)?;
                    smallest = end.checked_sub(length + 1)?;
                    if with_ranges {
                        self.ranges.push((smallest, end));
                    }
                }
                if kind == 0x03 {
                    skip_varints(frames, 3)?;
                }
            }
            // RESET_STREAM
            0x04 => skip_varints(frames, 3)?,
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
            0x05 | 0x15 => skip_varints(frames, 2)?,
            // CRYPTO
            0x06 => {
                varint(frames)?;
                let length = varint(frames)?;
                skip(frames, length)?;
            }
            // DATAGRAM without a length: the rest of the packet
            0x30 => *frames = &[],
            // NEW_TOKEN, DATAGRAM with a length
            0x07 | 0x31 => {
                let length = varint(frames)?;
                skip(frames, length)?;
            }
            kind @ 0x08..=0x0f => {
                varint(frames)?;
                let offset = if kind & 4 != 0 { varint(frames)? } else { 0 };
                let length = if kind & 2 != 0 { varint(frames)? } else { frames.len() as u64 };
                skip(frames, length)?;
                // A frame may carry only the end of the stream.
                let chunk = Chunk { offset, len: u32::try_from(length).ok()? };
                if chunk.len > 0 && self.chunk.is_none() {
                    self.chunk = Some(chunk);
                } else if chunk.len > 0 {
                    self.further.push(chunk);
                }
            }
            0x11 => {
                varint(frames)?;
                self.limit = Some(varint(frames)?);
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => skip_varints(frames, 1)?,
            // NEW_CONNECTION_ID
            0x18 => {
                skip_varints(frames, 2)?;
                let length = u64::from(*frames.first()?);
                skip(frames, 1 + length + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE
            0x1a | 0x1b => skip(frames, 8)?,
            // ACK_FREQUENCY (draft-ietf-quic-ack-frequency)
            0xaf => skip_varints(frames, 4)?,
            _ => return None,
        }
        Some(())
    }
}

/// A variable-length integer (RFC 9000, section 16).
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = rest;
    Some(number[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

fn skip_varints(bytes: &mut &[u8], count: usize) -> Option<()> {
    (0..count).try_for_each(|_| varint(bytes).map(|_| ()))
}

fn skip(bytes: &mut &[u8], length: u64) -> Option<()> {
    *bytes = bytes.get(usize::try_from(length).ok()?..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_the_standard() {
        // RFC 9000, appendix A.1.
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d][..], 494_878_333),
            (&[0x7b, 0xbd][..], 15_293),
            (&[0x25][..], 37),
        ] {
            assert_eq!(varint(&mut &*bytes), Some(value));
            assert_eq!(varint(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_packet_says_what_it_acknowledges_and_carries() {
        let mut carried = Carried::default();
        let frames = [
            // ACK: largest 9, delay 5, one more range, first range 9..=8, gap of two (7, 6), 5..=3.
            &[0x02, 9, 5, 1, 1, 1, 2][..],
            // MAX_STREAM_DATA of stream 0: 16000. PADDING.
            &[0x11, 0, 0x7e, 0x80, 0, 0],
            // STREAM with offset 100 and length 3, then one to the end of the packet at offset 0.
            &[0x0e, 0, 0x40, 100, 3, 1, 2, 3],
            &[0x08, 0, 1, 2, 3, 4],
        ]
        .concat();
        carried.read(&frames, true);
        assert_eq!(carried.acknowledged, Some((9, 5)));
        assert_eq!(carried.ranges, [(8, 10), (3, 6)]);
        assert_eq!(carried.limit, Some(16_000));
        let chunks: Vec<Chunk> = carried.chunks().collect();
        assert_eq!(chunks, [Chunk { offset: 100, len: 3 }, Chunk { offset: 0, len: 4 }]);
    }

    #[test]
    fn what_is_cut_off_or_unknown_ends_the_reading() {
        for frames in [&[0x02, 9][..], &[0x40, 0xff, 0x08, 0, 1], &[0x06, 0, 9, 1], &[0x02, 1, 0, 0, 2]] {
            let mut carried = Carried::default();
            carried.read(frames, true);
            assert_eq!(carried, Carried::default(), "{frames:?}");
        }
    }
}
