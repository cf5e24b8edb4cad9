//! An algorithm from outside this crate, with a name, wherever a configuration of its family goes.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use crate::registry::ConfigError;

/// An algorithm of the caller's, in its initial state. Hosts begin with clones of it.
pub struct Custom<T: ?Sized> {
    name: &'static str,
    prototype: Box<T>,
}

impl<T: ?Sized> Custom<T> {
    /// An algorithm with a name that none of `taken` is.
    ///
    /// # Errors
    ///
    /// A name that is taken, or that cannot be written in a spec: allowed are lower-case letters, digits and hyphens.
    pub(crate) fn named(name: &'static str, taken: &[&str], prototype: Box<T>) -> Result<Self, ConfigError> {
        let writable = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(writable) {
            return Err(ConfigError::new("name", format!("`{name}`"), "lower-case letters, digits and hyphens"));
        }
        if taken.contains(&name) {
            let allowed = format!("a name other than {}", taken.join(", "));
            return Err(ConfigError::new("name", format!("`{name}`"), allowed));
        }
        Ok(Self { name, prototype })
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<T: ?Sized> Custom<T>
where
    Box<T>: Clone,
{
    /// The algorithm in its initial state.
    pub(crate) fn fresh(&self) -> Box<T> {
        self.prototype.clone()
    }
}

impl<T: ?Sized> Clone for Custom<T>
where
    Box<T>: Clone,
{
    fn clone(&self) -> Self {
        Self { name: self.name, prototype: self.prototype.clone() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Custom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("name", &self.name).field("prototype", &self.prototype).finish()
    }
}

/// Two are the same if their names are and their prototypes show the same state.
impl<T: ?Sized + fmt::Debug> PartialEq for Custom<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && format!("{:?}", self.prototype) == format!("{:?}", other.prototype)
    }
}

/// The name and the state of the prototype, to show. It cannot be read again.
#[cfg(feature = "serde")]
impl<T: ?Sized + fmt::Debug> serde::Serialize for Custom<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Custom", 2)?;
        fields.serialize_field("name", self.name)?;
        fields.serialize_field("state", &format!("{:?}", self.prototype))?;
        fields.end()
    }
}
