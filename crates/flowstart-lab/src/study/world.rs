//! Where the runs of a study happen.

use flowstart_core::spec::names;

use crate::spec::InputError;

/// The world when none is given.
pub const SIMULATOR: &str = "simulator";

/// Where runs happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// In the simulator, whose time is virtual.
    #[default]
    Simulator,
    /// Between real sockets of this machine, over a link that is driven by its clock.
    Sockets,
}

impl World {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Simulator, Self::Sockets];

    /// Reads one.
    ///
    /// # Errors
    ///
    /// What is none.
    pub fn parse(field: &str, text: &str) -> Result<Self, InputError> {
        Self::ALL.into_iter().find(|world| names::is_same(world.name(), text)).ok_or_else(|| {
            let all = Self::ALL.map(Self::name);
            let problem = names::unknown(text, &all, format_args!("use one of {}", all.join(", ")));
            InputError::new(field, text, problem)
        })
    }

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulator => SIMULATOR,
            Self::Sockets => "sockets",
        }
    }

    /// Where that is, at the begin of a sentence.
    pub fn place(self) -> &'static str {
        match self {
            Self::Simulator => "In the simulator",
            Self::Sockets => "Between sockets",
        }
    }
}
