//! What users write, completed by each transport of a plan: a transport's profile has defaults of its own for schemes,
//! congestion avoidance and competitors.

use crate::spec::Written;

/// A value as the user wrote it, and as each transport of a plan completes it.
#[derive(Clone, Debug, PartialEq)]
pub struct PerTransport<T> {
    /// The text.
    pub text: String,
    values: Vec<T>,
}

impl<T> PerTransport<T> {
    /// A value that is the same on every one of `transports`.
    pub fn same(text: impl Into<String>, value: T, transports: usize) -> Self
    where
        T: Clone,
    {
        Self { text: text.into(), values: vec![value; transports] }
    }

    /// The values of one list, of which each transport has read all: `lists` has one for each transport, equally long
    /// and with equal texts.
    pub(super) fn of(lists: Vec<Vec<Written<T>>>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for list in lists {
            for (place, Written { text, value }) in list.into_iter().enumerate() {
                match all.get_mut(place) {
                    Some(known) => known.values.push(value),
                    None => all.push(Self { text, values: vec![value] }),
                }
            }
        }
        all
    }

    /// Its meaning on the transport in this place of the plan.
    pub fn on(&self, transport: usize) -> &T {
        &self.values[transport]
    }

    /// Its meaning on the first transport, for what no transport changes.
    pub fn first(&self) -> &T {
        self.on(0)
    }

    /// Text and meaning on a transport.
    pub fn written(&self, transport: usize) -> Written<&T> {
        Written { text: self.text.clone(), value: self.on(transport) }
    }
}

/// The texts of a list and their meanings on a transport.
pub(super) fn written<T>(list: &[PerTransport<T>], transport: usize) -> Vec<Written<&T>> {
    list.iter().map(|one| one.written(transport)).collect()
}
