//! The macro behind the registries of startup schemes, congestion avoidance and queue disciplines.

/// Generates, for one family of algorithms, the configuration enum (serde, tagged by `kind`), its names, its defaults
/// and the state enum with one variant per algorithm and a `Custom` one for algorithms outside this crate.
///
/// Each algorithm's module offers `Config` (serde, `Default`, unknown fields refused), a state type with
/// `new(Config, Context)`, and `SUMMARY` and `REFERENCE` strings for listings.
macro_rules! algorithms {
    (
        $(#[$config_doc:meta])* config $config:ident;
        $(#[$state_doc:meta])* state $state:ident: $algorithm:ident;
        context $context:ty;
        $( $variant:ident = $name:literal in $module:ident ),* $(,)?
    ) => {
        $(#[$config_doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $config {
            $(
                #[doc = concat!("`", $name, "`, see [`", stringify!($module), "`].")]
                #[serde(rename = $name)]
                $variant($module::Config),
            )*
        }

        impl $config {
            /// The names of all algorithms of the family, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Every algorithm with its default configuration, in the order of [`Self::NAMES`].
            pub fn defaults() -> alloc::vec::Vec<Self> {
                alloc::vec![$(Self::$variant($module::Config::default())),*]
            }

            /// The name as users write it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name),* }
            }

            /// What the algorithm does, in one line.
            pub fn summary(&self) -> &'static str {
                match self { $(Self::$variant(_) => $module::SUMMARY),* }
            }

            /// The document that defines the algorithm.
            pub fn reference(&self) -> &'static str {
                match self { $(Self::$variant(_) => $module::REFERENCE),* }
            }

            /// The algorithm in its initial state.
            pub fn build(&self, context: $context) -> $state {
                match self {
                    $(Self::$variant(config) => $state::$variant($module::$variant::new(config.clone(), context))),*
                }
            }
        }

        $(#[$state_doc])*
        #[derive(Clone, Debug)]
        pub enum $state {
            $(
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
                    $(Self::$variant(state) => state,)*
                    Self::Custom(state) => state.as_mut(),
                }
            }
        }
    };
}
