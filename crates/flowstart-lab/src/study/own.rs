//! Algorithms from outside this program. Scenarios name them like the shipped ones.

use flowstart_core::aqm::CustomQueue;
use flowstart_core::custom::Custom;
use flowstart_core::startup::CustomStartup;

use crate::spec::aqm::ORACLE;
use crate::spec::{InputError, STACK};

/// The caller's own algorithms.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Startup schemes.
    pub schemes: Vec<CustomStartup>,
    /// Queue disciplines.
    pub aqms: Vec<CustomQueue>,
}

impl Own {
    /// Whether one of them has this name.
    pub fn has(&self, name: &str) -> bool {
        self.schemes.iter().any(|own| own.name() == name) || self.aqms.iter().any(|own| own.name() == name)
    }

    /// Refuses those whose names mean something else. Their constructors refuse the names of shipped algorithms.
    pub(super) fn check(&self) -> Result<(), InputError> {
        check_names("scheme", &self.schemes, STACK)?;
        check_names("aqm", &self.aqms, ORACLE)
    }
}

/// Refuses a name that two have, and `reserved`.
fn check_names<T: ?Sized>(field: &str, own: &[Custom<T>], reserved: &str) -> Result<(), InputError> {
    for (place, one) in own.iter().enumerate() {
        let name = one.name();
        if name == reserved || own[..place].iter().any(|other| other.name() == name) {
            let problem = format!("names two of them; allowed is a name other than {reserved} for each");
            return Err(InputError::new(field, name, problem));
        }
    }
    Ok(())
}
