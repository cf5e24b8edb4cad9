//! The traffic of the measured flows: one transfer each, a stream of objects, or the connections of web sessions.

use std::fmt;

use flowstart_core::rng::Substream;
use flowstart_core::units::Bytes;
use serde::Serialize;

use super::application::Objects;
use super::size::TransferSize;
use super::web::Sessions;
use super::{InputError, Written};

/// The traffic of a cell's measured flows.
#[derive(Clone, Copy, PartialEq)]
pub enum Workload {
    /// One transfer each.
    Transfer(TransferSize),
    /// A stream of objects each: a video or a page.
    Objects(Objects),
    /// Web sessions, whose objects have a connection each.
    Sessions(Sessions),
}

impl Workload {
    /// Reads the size of a transfer.
    pub fn parse_size(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        let Written { text, value } = TransferSize::parse(field, text)?;
        Ok(Written { text, value: Self::Transfer(value) })
    }

    /// Reads an application that contains its sizes. `payload` is a packet's.
    pub fn parse_application(field: &str, text: &str, payload: Bytes) -> Result<Written<Self>, InputError> {
        let value = match Sessions::parse(field, text, payload)? {
            Some(sessions) => Self::Sessions(sessions),
            None => match Objects::parse(field, text)?.value {
                Some(objects) => Self::Objects(objects),
                None => return Err(InputError::new(field, text, "allowed is transfer alone, or others without it")),
            },
        };
        Ok(Written { text: text.to_owned(), value })
    }

    /// The mean size of a flow, in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Transfer(size) => size.mean(),
            Self::Objects(objects) => objects.total().get() as f64,
            Self::Sessions(sessions) => sessions.sizes.mean * sessions.payload.get() as f64,
        }
    }

    /// The mean size in whole bytes.
    pub fn mean_bytes(&self) -> Bytes {
        Bytes::new(libm::round(self.mean()) as u64)
    }

    /// The size of every flow, if all have the same.
    pub fn fixed_size(&self) -> Option<Bytes> {
        match self {
            Self::Objects(Objects::Video(_)) => None,
            Self::Transfer(TransferSize::Fixed(size)) => Some(*size),
            Self::Objects(objects) => Some(objects.total()),
            Self::Transfer(TransferSize::Pareto(_)) | Self::Sessions(_) => None,
        }
    }

    /// The smallest size of a transfer; `None` for applications.
    pub fn smallest(&self) -> Option<Bytes> {
        match self {
            Self::Transfer(TransferSize::Fixed(size)) => Some(*size),
            Self::Transfer(TransferSize::Pareto(sizes)) => Some(sizes.smallest),
            Self::Objects(_) | Self::Sessions(_) => None,
        }
    }

    /// The sizes of `count` flows of a repetition with this seed.
    pub fn draw(&self, count: u32, seed: u64) -> Vec<Bytes> {
        let mut rng = Substream::new(seed, "measured sizes", 0);
        let mut size = || match self {
            Self::Transfer(size) => size.draw(&mut rng),
            Self::Objects(objects) => objects.total(),
            Self::Sessions(sessions) => sessions.payload * sessions.sizes.draw(&mut rng),
        };
        (0..count).map(|_| size()).collect()
    }

    /// The objects, if flows carry any.
    pub fn objects(&self) -> Option<Objects> {
        if let Self::Objects(objects) = self { Some(*objects) } else { None }
    }

    /// Whether a measured flow is one connection, whose packets traces and explanations show.
    pub fn is_one_connection(&self) -> bool {
        match self {
            Self::Transfer(_) => true,
            Self::Objects(objects) => objects.page().is_none(),
            Self::Sessions(_) => false,
        }
    }

    /// The web sessions, if flows belong to any.
    pub fn sessions(&self) -> Option<&Sessions> {
        if let Self::Sessions(sessions) = self { Some(sessions) } else { None }
    }
}

impl fmt::Debug for Workload {
    /// A transfer as its size and objects as an application: identities of results are hashes of these words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer(size) => size.fmt(f),
            Self::Objects(objects) => f.debug_tuple("Application").field(objects).finish(),
            Self::Sessions(sessions) => f.debug_tuple("Web").field(sessions).finish(),
        }
    }
}

impl Serialize for Workload {
    /// Objects serialize as the size of a flow.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Transfer(size) => size.serialize(serializer),
            Self::Objects(objects) => serializer.serialize_u64(objects.total().get()),
            Self::Sessions(sessions) => serializer.serialize_str(&sessions.to_string()),
        }
    }
}
