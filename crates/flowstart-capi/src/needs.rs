//! What a host in C can give to algorithms, and the refusal of those that need more.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::needs::Needs;
use flowstart_core::startup::StartupConfig;

use crate::refusal::Refusal;

/// What a host in C can give to schemes: it paces at the rate and with the bursts that it is told, and may have asked
/// routers before the launch. It keeps no state of packets for rate samples, has no congestion header, and sends
/// nothing again that is not lost.
const GIVES: Needs = Needs::OWN_RATE.and(Needs::APPROVAL).and(Needs::BURST);

/// Refuses algorithms that need what a host in C cannot give.
pub(crate) fn check_needs(config: &ControllerConfig, ect1: bool) -> Result<(), Refusal> {
    // An algorithm is built to say what it needs, so its parameters must be in range before.
    config.validate()?;
    let gives = if ect1 { GIVES.and(Needs::SCALABLE_MARKS) } else { GIVES };
    let (startup, avoidance) = (config.startup.name(), config.avoidance.name());
    let needs = [("scheme", startup, config.startup.needs()), ("avoidance", avoidance, config.avoidance.needs())];
    for (field, name, needs) in needs {
        let missing = needs.without(gives);
        let Some(wants) = missing.first() else { continue };
        let why = if missing.and(Needs::SCALABLE_MARKS) == Needs::SCALABLE_MARKS {
            "ect1 = 1 promises"
        } else {
            "no host in C gives"
        };
        let allowed = names_within(field == "scheme", gives).join(", ");
        return Err(Refusal::value(format_args!(
            "{field} `{name}`: it needs {wants}, which {why}; allowed are {allowed}"
        )));
    }
    Ok(())
}

/// The names of the schemes, or else the kinds of congestion avoidance, that need no more than this.
fn names_within(schemes: bool, gives: Needs) -> Vec<&'static str> {
    let enough = |needs: Needs| needs.without(gives) == Needs::NONE;
    if schemes {
        let all = StartupConfig::defaults().into_iter();
        return all.filter(|one| enough(one.needs())).map(|one| one.name()).collect();
    }
    let all = AvoidanceConfig::defaults().into_iter();
    all.filter(|one| enough(one.needs())).map(|one| one.name()).collect()
}
