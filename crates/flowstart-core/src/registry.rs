//! The macro behind the registries of startup schemes, congestion avoidance and queue disciplines, and the error for
//! parameters that an algorithm cannot work with.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::RangeInclusive;

/// A parameter that an algorithm cannot work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter as users write it.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

impl ConfigError {
    /// An error in `field`, which has `value`; `allowed` names the valid values.
    pub fn new(field: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), allowed: allowed.into() }
    }

    /// Refuses a value outside `range`; NaN is outside every range.
    pub fn unless_in<T: PartialOrd + fmt::Display>(
        field: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Self> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(Self::new(field, value, format!("{} to {}", range.start(), range.end())))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; allowed is {}", self.field, self.value, self.allowed)
    }
}

impl core::error::Error for ConfigError {}

/// Lets boxed algorithms of a trait be cloned.
macro_rules! cloned_in_boxes {
    ($( $(#[$doc:meta])* $clone:ident: $algorithm:ident; )*) => {
        $(
            $(#[$doc])*
            pub trait $clone {
                /// The algorithm in a new box.
                fn clone_box(&self) -> alloc::boxed::Box<dyn $algorithm>;
            }

            impl<T: $algorithm + Clone + 'static> $clone for T {
                fn clone_box(&self) -> alloc::boxed::Box<dyn $algorithm> {
                    alloc::boxed::Box::new(self.clone())
                }
            }

            impl Clone for alloc::boxed::Box<dyn $algorithm> {
                fn clone(&self) -> Self {
                    $clone::clone_box(self.as_ref())
                }
            }
        )*
    };
}

/// Generates, for one family of algorithms, the configuration enum (serde, tagged by `kind`), its names, its defaults
/// and the state enum with one variant per algorithm and a `Custom` one for algorithms outside this crate.
///
/// Each algorithm's module offers `Config` (serde, `Default`, unknown fields refused, `validate` for the ranges of its
/// parameters), a state type with `new(Config, Context)`, and `SUMMARY` and `REFERENCE` strings for listings. An
/// attribute before an entry names the feature that it needs.
macro_rules! algorithms {
    // A family of one trait. Its configurations include algorithms from outside this crate, of the type `$custom`.
    (
        $(#[$config_doc:meta])* config $config:ident;
        $(#[$state_doc:meta])* state $state:ident: $algorithm:ident;
        context $context:ty;
        with $custom:ident;
        $( $(#[$gate:meta])? $variant:ident = $name:literal in $module:ident ),* $(,)?
    ) => {
        algorithms! {
            @config $(#[$config_doc])* $config; $state; $context; $( $(#[$gate])? $variant = $name in $module ),*;
            custom $custom
        }
        algorithms! {
            @state $(#[$state_doc])* $state: $algorithm; $( $(#[$gate])? $variant = $name in $module ),*
        }
    };
    // A family whose algorithms have the four phases of startup: each module also offers `PHASES`.
    (
        $(#[$config_doc:meta])* config $config:ident;
        $(#[$state_doc:meta])* state $state:ident: $algorithm:ident;
        context $context:ty;
        with phases and $custom:ident;
        $( $(#[$gate:meta])? $variant:ident = $name:literal in $module:ident ),* $(,)?
    ) => {
        algorithms! {
            $(#[$config_doc])* config $config;
            $(#[$state_doc])* state $state: $algorithm;
            context $context;
            with $custom;
            $( $(#[$gate])? $variant = $name in $module ),*
        }

        impl $config {
            /// Sensing, Probing, Validation and Continuation, in a line.
            pub fn phases(&self) -> &'static str {
                match self {
                    $($(#[$gate])? Self::$variant(_) => $module::PHASES,)*
                    Self::Custom(_) => $custom::PHASES,
                }
            }
        }

        impl $state {
            /// What the algorithm needs of its host.
            pub fn needs(&self) -> $crate::needs::Needs {
                match self {
                    $($(#[$gate])? Self::$variant(state) => $algorithm::needs(state),)*
                    Self::Custom(state) => state.needs(),
                }
            }

            /// Whether the algorithm has a launch of its own ([`Startup::has_launch`]).
            pub fn has_launch(&self) -> bool {
                match self {
                    $($(#[$gate])? Self::$variant(state) => $algorithm::has_launch(state),)*
                    Self::Custom(state) => state.has_launch(),
                }
            }
        }
    };
    // A family of several kinds, with a trait each: `kind::Kind` names them.
    (
        $(#[$config_doc:meta])* config $config:ident;
        $(#[$state_doc:meta])* state $state:ident;
        context $context:ty;
        with kinds;
        $( $(#[$gate:meta])? $variant:ident = $name:literal in $module:ident: $kind:ident ),* $(,)?
    ) => {
        algorithms! {
            @config $(#[$config_doc])* $config; $state; $context; $( $(#[$gate])? $variant = $name in $module ),*
        }

        impl $config {
            /// The kind of the algorithm.
            pub fn kind(&self) -> Kind {
                match self { $($(#[$gate])? Self::$variant(_) => Kind::$kind),* }
            }
        }

        $(#[$state_doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum $state {
            $(
                $(#[$gate])?
                #[doc = concat!("`", $name, "`.")]
                $variant($module::$variant),
            )*
            /// An algorithm that lives outside this crate.
            Custom(Custom),
        }

        impl $state {
            /// The algorithm behind the trait of its kind.
            #[inline]
            pub fn algorithm(&mut self) -> Algorithm<'_> {
                match self {
                    $($(#[$gate])? Self::$variant(state) => Algorithm::$kind(state),)*
                    Self::Custom(state) => state.algorithm(),
                }
            }

            /// The kind of the algorithm.
            pub fn kind(&self) -> Kind {
                match self {
                    $($(#[$gate])? Self::$variant(_) => Kind::$kind,)*
                    Self::Custom(state) => state.kind(),
                }
            }

            /// What the algorithm needs of its host.
            pub fn needs(&self) -> $crate::needs::Needs {
                match self {
                    $($(#[$gate])? Self::$variant(state) => state.needs(),)*
                    Self::Custom(state) => state.needs(),
                }
            }
        }
    };
    // The states of a family of one trait.
    (
        @state $(#[$state_doc:meta])* $state:ident: $algorithm:ident;
        $( $(#[$gate:meta])? $variant:ident = $name:literal in $module:ident ),*
    ) => {
        $(#[$state_doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum $state {
            $(
                $(#[$gate])?
                #[doc = concat!("`", $name, "`.")]
                $variant($module::$variant),
            )*
            /// An algorithm that lives outside this crate.
            Custom(alloc::boxed::Box<dyn $algorithm>),
        }

        impl $state {
            /// The algorithm behind its trait.
            #[inline]
            pub fn as_dyn(&mut self) -> &mut dyn $algorithm {
                match self {
                    $($(#[$gate])? Self::$variant(state) => state,)*
                    Self::Custom(state) => state.as_mut(),
                }
            }
        }
    };
    (
        @config $(#[$config_doc:meta])* $config:ident; $state:ident; $context:ty;
        $( $(#[$gate:meta])? $variant:ident = $name:literal in $module:ident ),*
        $(; custom $custom:ident)?
    ) => {
        $(#[$config_doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
        #[non_exhaustive]
        pub enum $config {
            $(
                $(#[$gate])?
                #[doc = concat!("`", $name, "`, see [`", stringify!($module), "`].")]
                #[cfg_attr(feature = "serde", serde(rename = $name))]
                $variant($module::Config),
            )*
            $(
                /// An algorithm that lives outside this crate. Texts cannot name it.
                #[cfg_attr(feature = "serde", serde(rename = "custom", skip_deserializing))]
                Custom($custom),
            )?
        }

        impl $config {
            /// The names of all algorithms of the family, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($(#[$gate])? $name),*];

            /// Every algorithm with its default configuration, in the order of [`Self::NAMES`].
            pub fn defaults() -> alloc::vec::Vec<Self> {
                alloc::vec::Vec::from([$($(#[$gate])? Self::$variant($module::Config::default())),*])
            }

            /// The name as users write it.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(#[$gate])? Self::$variant(_) => $name,)*
                    $(Self::Custom(custom) => $custom::name(custom),)?
                }
            }

            /// What the algorithm does, in one line.
            pub fn summary(&self) -> &'static str {
                match self {
                    $($(#[$gate])? Self::$variant(_) => $module::SUMMARY,)*
                    $(Self::Custom(_) => $custom::SUMMARY,)?
                }
            }

            /// The document that defines the algorithm.
            pub fn reference(&self) -> &'static str {
                match self {
                    $($(#[$gate])? Self::$variant(_) => $module::REFERENCE,)*
                    $(Self::Custom(_) => $custom::REFERENCE,)?
                }
            }

            /// Refuses parameters that the algorithm cannot work with. Code that reads an external configuration calls
            /// this; the algorithm itself relies on it.
            pub fn validate(&self) -> Result<(), $crate::registry::ConfigError> {
                match self {
                    $($(#[$gate])? Self::$variant(config) => config.validate(),)*
                    $(Self::Custom(custom) => { let _: &$custom = custom; Ok(()) })?
                }
            }

            /// The algorithm in its initial state.
            pub fn build(&self, context: $context) -> $state {
                match self {
                    $(
                        $(#[$gate])?
                        Self::$variant(config) => $state::$variant($module::$variant::new(config.clone(), context)),
                    )*
                    $(Self::Custom(custom) => $state::Custom($custom::build(custom, context)),)?
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "aqm")]
    use crate::aqm::QueueConfig;
    use crate::avoidance::AvoidanceConfig;
    use crate::startup::StartupConfig;

    #[test]
    fn every_algorithm_accepts_its_own_defaults() {
        StartupConfig::defaults().iter().for_each(|config| assert_eq!(config.validate(), Ok(())));
        AvoidanceConfig::defaults().iter().for_each(|config| assert_eq!(config.validate(), Ok(())));
        #[cfg(feature = "aqm")]
        QueueConfig::defaults().iter().for_each(|config| assert_eq!(config.validate(), Ok(())));
    }

    #[test]
    fn an_error_names_the_field_the_value_and_what_is_allowed() {
        let error = ConfigError::unless_in("beta", 1.5, 0.1..=0.99).unwrap_err();
        assert_eq!(error.to_string(), "beta is 1.5; allowed is 0.1 to 0.99");
        assert!(ConfigError::unless_in("beta", f64::NAN, 0.1..=0.99).is_err());
        assert_eq!(ConfigError::unless_in("beta", 0.1, 0.1..=0.99), Ok(()));
    }
}
