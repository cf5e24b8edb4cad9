//! Messages and attributes of netlink as bytes.
//!
//! Reference: Linux, include/uapi/linux/netlink.h and genetlink.h. Numbers have the byte order of the host.

/// The two highest bits of an attribute's type are flags (netlink.h, `NLA_TYPE_MASK`).
const TYPE_MASK: u16 = 0x3fff;
/// Types of messages.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Bytes of netlink's head, and of generic netlink's behind it.
pub(super) const HEAD: usize = 16;
const GENERIC_HEAD: usize = 4;

/// Why bytes from the kernel mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// An attribute claims more bytes than there are, or fewer than its own head.
    #[error("attribute {kind} claims {claimed} bytes of {left}")]
    Length {
        /// Its type.
        kind: u16,
        /// Its length field.
        claimed: u16,
        /// Bytes from its head to the end.
        left: usize,
    },
    /// Bytes are left that are no attribute.
    #[error("{0} bytes are left at the end of the attributes")]
    Rest(usize),
    /// An attribute has another size than its type.
    #[error("attribute {kind} has {found} bytes instead of {expected}")]
    Size {
        /// Its type.
        kind: u16,
        /// Bytes of its type.
        expected: usize,
        /// Bytes of its value.
        found: usize,
    },
}

/// An attribute of netlink: type, value.
pub type Attribute<'a> = (u16, &'a [u8]);

/// Goes through attributes: 16 bits of length, 16 bits of type, the value, and zeros up to a multiple of four.
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, AttributeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let Some((&[l0, l1, t0, t1], _)) = bytes.split_first_chunk() else {
            return Some(Err(AttributeError::Rest(bytes.len())));
        };
        let claimed = u16::from_ne_bytes([l0, l1]);
        let kind = u16::from_ne_bytes([t0, t1]) & TYPE_MASK;
        let Some(value) = bytes.get(4..usize::from(claimed)) else {
            return Some(Err(AttributeError::Length { kind, claimed, left: bytes.len() }));
        };
        self.0 = bytes.get(usize::from(claimed).next_multiple_of(4)..).unwrap_or_default();
        Some(Ok((kind, value)))
    }
}

/// A number of an attribute.
pub(super) fn number<const N: usize>((kind, value): Attribute) -> Result<[u8; N], AttributeError> {
    value.try_into().map_err(|_| AttributeError::Size { kind, expected: N, found: value.len() })
}

/// A message claims more bytes than there are, or fewer than its heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message claims {claimed} bytes of {left}")]
pub struct MessageError {
    /// Its length field; the length of a head where there is none.
    claimed: u32,
    /// What there is.
    left: usize,
}

impl MessageError {
    /// What is wrong with the first of these messages.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let claimed = bytes.first_chunk().map_or(HEAD as u32, |length| u32::from_ne_bytes(*length));
        Self { claimed, left: bytes.len() }
    }
}

/// What the kernel sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// An answer of generic netlink: its attributes.
    Answer(&'a [u8]),
    /// The end of a dump.
    Done,
    /// The number of an error; 0 means that there was none.
    Error(i32),
}

/// Goes through the messages of a datagram.
#[derive(Debug)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Messages<'a> {
    /// Takes off the first message and what fills it up to a multiple of four.
    fn take(&mut self) -> Result<Message<'a>, MessageError> {
        let bytes = std::mem::take(&mut self.0);
        let wrong = MessageError::new(bytes);
        let (length, rest) = bytes.split_first_chunk().ok_or(wrong)?;
        let (kind, _) = rest.split_first_chunk().ok_or(wrong)?;
        let claimed = u32::from_ne_bytes(*length);
        let body = bytes.get(HEAD..claimed as usize).ok_or(wrong)?;
        let message = match u16::from_ne_bytes(*kind) {
            NLMSG_DONE => Message::Done,
            NLMSG_ERROR => Message::Error(i32::from_ne_bytes(*body.split_first_chunk().ok_or(wrong)?.0)),
            _ => Message::Answer(body.get(GENERIC_HEAD..).ok_or(wrong)?),
        };
        self.0 = (claimed as usize).checked_next_multiple_of(4).and_then(|next| bytes.get(next..)).unwrap_or_default();
        Ok(message)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, MessageError>;

    /// After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| self.take())
    }
}
