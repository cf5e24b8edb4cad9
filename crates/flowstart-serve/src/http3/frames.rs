//! Where frames begin in an incoming stream, how large they claim to be (RFC 9114, section 7.1), and whether the head
//! of a message is well-formed.

use super::head::{Section, is_interim, is_malformed};

/// Largest frame besides those of content, which pass piece by piece.
pub(super) const LARGEST: u64 = 64 << 10;
/// Frames of content (RFC 9114, section 7.2.1).
const DATA: u64 = 0;
/// Frames of fields (RFC 9114, section 7.2.2).
const HEADERS: u64 = 1;
/// Streams of control frames (RFC 9114, section 6.2.1).
const CONTROL: u64 = 0;

/// What does not pass.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A frame claims to be larger than [`LARGEST`].
    TooLarge,
    /// The pseudo-header fields of a message make it malformed.
    Malformed,
    /// Content or fields come behind the trailers.
    Unexpected,
}

/// Follows one stream.
#[derive(Debug)]
pub(super) struct Frames {
    place: Place,
    number: Number,
    /// What the next field section is; `None`: there is none.
    section: Option<Section>,
    /// What is here of a field section that has not come to its end.
    fields: Vec<u8>,
    /// Bytes that are here of another frame that is not content: h3 keeps it until it comes to its end.
    payload: usize,
    /// Trailers were here (RFC 9114, section 4.1).
    is_over: bool,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The type of the stream.
    StreamType,
    /// The type of a frame.
    Type,
    /// The length of a frame of this type.
    Length { of: u64 },
    /// Content, of which this much is missing.
    Content { left: u64 },
    /// The payload of another frame, of which this much is missing.
    Payload { left: u64 },
    /// A field section, of which this much is missing.
    Section { left: u64 },
    /// A stream without frames.
    Frameless,
}

/// A variable-length integer (RFC 9000, section 16) that may arrive in parts.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    value: u64,
    /// Bytes that are missing; 0 before the first.
    left: u8,
}

impl Number {
    /// One more byte; the value after the last.
    fn push(&mut self, byte: u8) -> Option<u64> {
        if self.left == 0 {
            *self = Self { value: (byte & 0x3f).into(), left: 1 << (byte >> 6) };
        } else {
            self.value = self.value << 8 | u64::from(byte);
        }
        self.left -= 1;
        (self.left == 0).then_some(self.value)
    }
}

impl Frames {
    /// The stream of a response.
    pub(super) fn of_response() -> Self {
        Self::new(Place::Type, Some(Section::Response))
    }

    /// The stream of a request.
    pub(super) fn of_request() -> Self {
        Self::new(Place::Type, Some(Section::Request))
    }

    /// A stream whose type comes first. Only control streams consist of frames.
    pub(super) fn of_typed_stream() -> Self {
        Self::new(Place::StreamType, None)
    }

    fn new(place: Place, section: Option<Section>) -> Self {
        Self { place, number: Number::default(), section, fields: Vec::new(), payload: 0, is_over: false }
    }

    /// Whether a stream that ends here ends within a frame.
    pub(super) fn is_cut_off(&self) -> bool {
        match self.place {
            Place::Type => self.number.left > 0,
            Place::Length { .. } | Place::Content { .. } | Place::Payload { .. } | Place::Section { .. } => true,
            Place::StreamType | Place::Frameless => false,
        }
    }

    /// Bytes that are kept of a frame which has not come to its end; content is not kept.
    pub(super) fn held(&self) -> usize {
        self.fields.len() + self.payload
    }

    /// The next bytes of the stream.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) -> Result<(), Refused> {
        while let Some((&first, rest)) = bytes.split_first() {
            match self.place {
                Place::Frameless => return Ok(()),
                Place::Content { left } | Place::Payload { left } => {
                    let here = left.min(bytes.len() as u64);
                    let (_, after) = bytes.split_at(here as usize);
                    bytes = after;
                    let (left, is_content) = (left - here, matches!(self.place, Place::Content { .. }));
                    self.payload = if is_content || left == 0 { 0 } else { self.payload + here as usize };
                    self.place = match left {
                        0 => Place::Type,
                        left if is_content => Place::Content { left },
                        left => Place::Payload { left },
                    };
                    continue;
                }
                Place::Section { left } => {
                    let here = left.min(bytes.len() as u64);
                    let (fields, after) = bytes.split_at(here as usize);
                    bytes = after;
                    self.place = Place::Section { left: left - here };
                    self.fields.extend_from_slice(fields);
                    if here == left {
                        self.place = Place::Type;
                        self.end_section()?;
                    }
                    continue;
                }
                Place::StreamType | Place::Type | Place::Length { .. } => bytes = rest,
            }
            let Some(number) = self.number.push(first) else { continue };
            self.place = match self.place {
                Place::StreamType if number == CONTROL => Place::Type,
                Place::Type if self.is_over && matches!(number, DATA | HEADERS) => return Err(Refused::Unexpected),
                Place::Type => {
                    // What comes behind content is no head, whatever came before.
                    if number == DATA && self.section.is_some() {
                        self.section = Some(Section::Trailers);
                    }
                    Place::Length { of: number }
                }
                Place::Length { of } if of != DATA && number > LARGEST => return Err(Refused::TooLarge),
                Place::Length { .. } if number == 0 => Place::Type,
                Place::Length { of: HEADERS } if self.section.is_some() => Place::Section { left: number },
                Place::Length { of: DATA } => Place::Content { left: number },
                Place::Length { .. } => Place::Payload { left: number },
                Place::StreamType
                | Place::Content { .. }
                | Place::Payload { .. }
                | Place::Section { .. }
                | Place::Frameless => Place::Frameless,
            };
        }
        Ok(())
    }

    /// All fields of a section are here.
    fn end_section(&mut self) -> Result<(), Refused> {
        let fields = std::mem::take(&mut self.fields);
        let Some(section) = self.section else { return Ok(()) };
        self.is_over = section == Section::Trailers;
        // Interim responses come before the final one, and are not the head of the content.
        if section == Section::Request || (section == Section::Response && !is_interim(&fields)) {
            self.section = Some(Section::Trailers);
        }
        if is_malformed(section, &fields) { Err(Refused::Malformed) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A number in as many bytes as `exponent` says, at least as many as it needs.
    fn number(value: u64, exponent: u32) -> Vec<u8> {
        let needed = [0x3f, 0x3fff, 0x3fff_ffff, u64::MAX].iter().position(|most| value <= *most).unwrap() as u32;
        let exponent = exponent.max(needed);
        let bytes = (value | u64::from(exponent) << ((8 << exponent) - 2)).to_be_bytes();
        bytes[8 - (1 << exponent)..].to_vec()
    }

    #[test]
    fn announced_frames_are_bounded_and_content_is_not() {
        // HEADERS (1) and SETTINGS (4) of 2^40 bytes, and DATA (0) of as many.
        for (kind, of_request) in [(1, true), (4, false), (0x21, true)] {
            let mut frames = if of_request { Frames::of_request() } else { Frames::of_typed_stream() };
            let before = if of_request { vec![] } else { vec![0] };
            let announced = [before, number(kind, 0), number(1 << 40, 3)].concat();
            assert_eq!(frames.pass(&announced), Err(Refused::TooLarge), "{kind}");
        }
        let content = [number(0, 0), number(1 << 40, 3), vec![1; 9]].concat();
        assert_eq!(Frames::of_request().pass(&content), Ok(()));
        // A stream of QPACK's instructions has no frames.
        assert_eq!(Frames::of_typed_stream().pass(&[2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), Ok(()));
    }

    /// A request for `/` whose `:path` comes this often, and what follows it.
    fn request(paths: usize) -> Vec<u8> {
        let section = [&[0, 0, 0xd1, 0xd7][..], &[0xc1].repeat(paths)].concat();
        [&[0x21, 1, 9][..], &[1, section.len() as u8], &section, &[0, 2, 7, 7]].concat()
    }

    #[test]
    fn the_fields_of_a_message_are_looked_into() {
        // `:status: 103`, `:status: 200`, and `accept: */*`, which may be a trailer.
        let fields = |entry: u8| vec![1, 3, 0, 0, entry];
        let (interim, last, trailers) = (fields(0xd8), fields(0xd9), fields(0xdd));
        let content = [0, 2, 7, 7];
        for piece in 1..20 {
            let pass = |mut frames: Frames, stream: &[u8]| stream.chunks(piece).try_for_each(|part| frames.pass(part));
            let refused = Err(Refused::Malformed);
            assert_eq!(pass(Frames::of_request(), &request(1)), Ok(()));
            assert_eq!(pass(Frames::of_request(), &request(2)), refused);
            assert_eq!(pass(Frames::of_request(), &[&request(1)[..], &trailers].concat()), Ok(()));
            assert_eq!(pass(Frames::of_request(), &[request(1), request(1)].concat()), refused);
            let over = [&request(1)[..], &trailers].concat();
            for behind in [&content[..], &trailers] {
                assert_eq!(pass(Frames::of_request(), &[&over[..], behind].concat()), Err(Refused::Unexpected));
            }
            assert_eq!(pass(Frames::of_request(), &[&over[..], &[0x21, 1, 9]].concat()), Ok(()));
            let answer = [&interim[..], &last, &content, &trailers].concat();
            assert_eq!(pass(Frames::of_response(), &answer), Ok(()));
            assert_eq!(pass(Frames::of_response(), &[&answer[..], &last].concat()), Err(Refused::Unexpected));
            assert_eq!(pass(Frames::of_response(), &[&interim[..], &last, &content, &last].concat()), refused);
            assert_eq!(pass(Frames::of_response(), &[&interim[..], &last, &last].concat()), refused, "no content");
            let early = [&last[..], &trailers, &content].concat();
            assert_eq!(pass(Frames::of_response(), &early), Err(Refused::Unexpected), "trailers, and then content");
            assert_eq!(pass(Frames::of_response(), &request(1)), refused);
            assert_eq!(pass(Frames::of_response(), &[1, 4, 0, 0, 0xd9, 0xd9]), refused);
        }
    }

    #[test]
    fn what_h3_keeps_of_a_frame_counts_and_content_does_not() {
        // 20 of 40 bytes of fields, of an unknown frame, and of content.
        for (kind, held) in [(1, 20), (0x21, 20), (0, 0)] {
            let mut frames = Frames::of_request();
            for piece in [&[kind, 40][..], &[0; 7], &[0; 13]] {
                frames.pass(piece).unwrap();
            }
            assert_eq!(frames.held(), held, "{kind}");
        }
        let mut frames = Frames::of_request();
        frames.pass(&[&[0x21, 40][..], &[0; 40]].concat()).unwrap();
        assert_eq!(frames.held(), 0);
    }

    #[test]
    fn only_between_frames_a_stream_may_end() {
        let stream = request(1);
        let ends: Vec<_> = (0..=stream.len())
            .filter(|length| {
                let mut frames = Frames::of_request();
                frames.pass(&stream[..*length]).unwrap();
                !frames.is_cut_off()
            })
            .collect();
        // Before, after three bytes of an unknown frame, after the fields, after the content.
        assert_eq!(ends, [0, 3, stream.len() - 4, stream.len()]);
        // The type of a stream in two bytes (RFC 9114, section 6.2).
        let mut typed = Frames::of_typed_stream();
        typed.pass(&[0x40]).unwrap();
        assert!(!typed.is_cut_off());
    }

    proptest! {
        /// However a stream is cut, exactly its first frame that is too large is found.
        #[test]
        fn pieces_do_not_matter(
            sizes in prop::collection::vec((0_u64..6, 0_u64..70_000, 0_u32..4), 1..6),
            piece in 1_usize..40_000,
        ) {
            let mut stream = Vec::new();
            let mut is_fine = true;
            for (kind, size, exponent) in sizes {
                // Fields are looked into, and end a message.
                let kind = if kind == HEADERS { 7 } else { kind };
                stream.extend(number(kind, exponent));
                stream.extend(number(size, exponent));
                is_fine &= kind == DATA || size <= LARGEST;
                stream.resize(stream.len() + size as usize, 0xff);
            }
            let mut frames = Frames::of_request();
            let passed = stream.chunks(piece).try_for_each(|bytes| frames.pass(bytes));
            prop_assert_eq!(passed.is_ok(), is_fine);
        }
    }
}
