//! The schemes that the kernel's TCP can have, and their parameters as the programs read them.

use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;

use self::layout::Layout;

mod layout;
mod parameters;

/// Why startup ended: the names of `enum reason` in `bpf/startup.h`, from 1, as results have them.
pub const REASONS: [&str; 11] = [
    "launch",
    "loss",
    "ecn",
    "delay",
    "chokepoint",
    "validated",
    "timeout",
    "idle",
    "ssthresh",
    "path-changed",
    "ack-train",
];

/// A scheme that the kernel can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The scheme.
    pub scheme: &'static str,
    /// Its name as a congestion control; the kernel takes 15 characters.
    pub kernel_name: &'static str,
    /// What it has to know of a destination to launch; `None`: nothing.
    pub needs: Option<&'static str>,
    /// Whether hints can serve it, with some parameters.
    pub takes_hints: bool,
    /// Whether the routers of the path are asked, by interfaces of this host.
    pub asks_routers: bool,
}

/// All of them, in alphabetical order.
pub const PORTS: &[Port] = &[
    Port::hinted("blitzstart", "fs_blitzstart", Some("a hint for the destination")),
    Port::hinted("careful-resume", "fs_careful", Some("a hint for the destination with an RTT")),
    Port::unhinted("hystart-plus-plus", "fs_hystartpp"),
    Port::hinted("initial-start", "fs_initialstart", None),
    Port::unhinted("jump-start", "fs_jump_start"),
    Port::hinted("more-start", "fs_more_start", Some("rate=, or a hint for the destination")),
    Port::asking("quick-start", "fs_quick_start", "an approval by the routers of the path"),
    Port::unhinted("search", "fs_search"),
    Port::unhinted("suss", "fs_suss"),
];

impl Port {
    const fn hinted(scheme: &'static str, kernel_name: &'static str, needs: Option<&'static str>) -> Self {
        Self { scheme, kernel_name, needs, takes_hints: true, asks_routers: false }
    }

    const fn unhinted(scheme: &'static str, kernel_name: &'static str) -> Self {
        Self { scheme, kernel_name, needs: None, takes_hints: false, asks_routers: false }
    }

    const fn asking(scheme: &'static str, kernel_name: &'static str, needs: &'static str) -> Self {
        Self { scheme, kernel_name, needs: Some(needs), takes_hints: false, asks_routers: true }
    }
}

/// Why the kernel cannot have a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// There is no port.
    #[error("there is no {scheme} for TCP of Linux; there are {}", listed())]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The port does not have a parameter.
    #[error("{scheme} for TCP of Linux has no choice of `{parameter}`, only {implemented}")]
    Parameter {
        /// The scheme.
        scheme: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What the port does.
        implemented: &'static str,
    },
}

/// The names of all schemes.
fn listed() -> String {
    PORTS.iter().map(|port| port.scheme).collect::<Vec<_>>().join(", ")
}

/// The port of a scheme, whose name may be written with other signs or letters.
///
/// # Errors
///
/// There is none.
pub fn find(scheme: &str) -> Result<&'static Port, PortError> {
    let found = PORTS.iter().find(|port| names::is_same(scheme, port.scheme));
    found.ok_or_else(|| PortError::Scheme { scheme: scheme.to_owned() })
}

/// A scheme for the kernel with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ported {
    /// The scheme.
    pub port: &'static Port,
    /// Its parameters: `struct NAME_config` of `bpf/NAME.h`.
    pub parameters: Vec<u8>,
    /// Which hints it can use, with these parameters.
    pub hint_use: HintUse,
}

/// Which hints a scheme can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintUse {
    /// None.
    None,
    /// Those that give an RTT.
    WithRtt,
    /// All.
    Any,
}

impl Ported {
    /// What the kernel gets for a scheme with these parameters.
    ///
    /// # Errors
    ///
    /// What the kernel cannot have.
    pub fn new(config: &StartupConfig) -> Result<Self, PortError> {
        let port = find(config.name())?;
        let mut layout = Layout::new(port.scheme);
        let hint_use = parameters::write(config, &mut layout)?;
        Ok(Self { port, parameters: layout.into_bytes(), hint_use })
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::startup::jump_start;
    use flowstart_core::units::Bytes;

    use super::*;

    #[test]
    fn names_fit_the_kernel_and_the_registry() {
        for port in PORTS {
            assert!(port.kernel_name.len() <= 15 && port.kernel_name.starts_with("fs_"), "{}", port.kernel_name);
            let config = StartupConfig::defaults().into_iter().find(|config| config.name() == port.scheme).unwrap();
            assert_eq!(Ported::new(&config).unwrap().port, port);
            assert_eq!(Ported::new(&config).unwrap().parameters.len() % 8, 0, "{}", port.scheme);
            assert!(port.takes_hints || Ported::new(&config).unwrap().hint_use == HintUse::None, "{}", port.scheme);
        }
        assert!(PORTS.is_sorted_by_key(|port| port.scheme));
    }

    #[test]
    fn what_a_port_has_not_is_refused() {
        let refused = |config: StartupConfig| Ported::new(&config).unwrap_err().to_string();
        let config = jump_start::Config { retreat: jump_start::Retreat::Acknowledged, ..Default::default() };
        assert!(
            refused(StartupConfig::JumpStart(config))
                .contains("jump-start for TCP of Linux has no choice of `retreat`")
        );
        let told = refused(StartupConfig::defaults().remove(0));
        assert!(told.starts_with("there is no slow-start for TCP of Linux; there are "), "{told}");
    }

    #[test]
    fn parameters_lie_as_the_program_reads_them() {
        let config = jump_start::Config { threshold: Some(Bytes::new(65_536)), ..Default::default() };
        let parameters = Ported::new(&StartupConfig::JumpStart(config)).unwrap().parameters;
        let expected = [&65_536_u64.to_ne_bytes()[..], &1_u32.to_ne_bytes(), &[0; 4]].concat();
        assert_eq!(parameters, expected);
    }
}
