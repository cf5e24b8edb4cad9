//! Experiments that can use the queue discipline `oracle`.

use flowstart_core::avoidance::Kind;
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::policy::Protocol;

use crate::spec::InputError;
use crate::spec::aqm::Aqm;
use crate::spec::competitor::Competitor;
use crate::spec::transport::Transport;
use crate::study::plan::Plan;

/// The oracle knows only slow start of model TCP on a link without other users.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    if plan.aqms.iter().all(|aqm| aqm.value != Aqm::Oracle) {
        return Ok(());
    }
    let beside = |field: &str, text: &str, allowed: &str| {
        Err(InputError::new(field, text, format!("with aqm oracle allowed is {allowed}")))
    };
    let is_other = |one: &&Transport| one.stack.is_some() || one.profile.protocol != Protocol::Tcp;
    if let Some(other) = plan.transports.iter().find(is_other) {
        return beside("transport", &other.text, "model-tcp");
    }
    let classic = |scheme: &StartupConfig| match scheme {
        StartupConfig::SlowStart(config) => config.is_classic(),
        _ => false,
    };
    let places = 0..plan.transports.len();
    if let Some(scheme) = plan.schemes.iter().find(|scheme| !places.clone().all(|place| classic(scheme.on(place)))) {
        return beside("scheme", &scheme.text, "slow-start, with no other parameter than iw");
    }
    let avoidances = plan.cells().into_iter().map(|cell| plan.avoidance_of(&cell));
    if let Some(integrated) = avoidances.into_iter().find(|avoidance| avoidance.value.kind() == Kind::Integrated) {
        return beside("avoidance", &integrated.text, "reno or cubic");
    }
    if let Some(other) = plan.competitors.iter().find(|one| *one.first() != Competitor::None) {
        return beside("competitor", &other.text, "none");
    }
    if let Some(size) = plan.sizes.iter().find(|size| size.value.objects().is_some() || size.value.sessions().is_some())
    {
        return beside("application", &size.text, "transfer");
    }
    if let Some(mobility) = plan.moves.iter().find(|mobility| mobility.value.is_some()) {
        return beside("move", &mobility.text, "none");
    }
    match plan.links.iter().find(|link| !link.is_plain()) {
        Some(link) => beside("link", &link.text, "one hop of a fixed rate"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    fn refusal(more: &str) -> String {
        let text = format!("aqm = [\"codel\", \"oracle\"]\n{more}");
        Scenario::from_text(&text)
            .unwrap()
            .plan(Path::new("."))
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn the_oracle_is_for_slow_start_of_model_tcp_alone_on_a_link() {
        let base = "link = [\"rate=10mbit,rtt=50ms,buffer=1bdp\"]\nsize = [\"2MB\"]\n";
        let fine = format!("{base}transport = \"model-tcp\"\nscheme = [\"slow-start:iw=3\"]\n");
        assert_eq!(refusal(&fine), "");
        for (more, field, allowed) in [
            (format!("{base}transport = \"model-quic\"\nscheme = [\"slow-start\"]\n"), "transport", "model-tcp"),
            (format!("{base}transport = \"model-tcp\"\nscheme = [\"hystart\"]\n"), "scheme", "slow-start"),
            (format!("{fine}avoidance = \"bbr\"\n"), "avoidance", "reno or cubic"),
            (format!("{fine}competitor = [\"bulk:cubic\"]\n"), "competitor", "none"),
            (fine.replace("buffer=1bdp", "buffer=1bdp,hops=2"), "link", "one hop"),
        ] {
            let message = refusal(&more);
            assert!(
                message.contains(field) && message.contains("with aqm oracle") && message.contains(allowed),
                "{message}"
            );
        }
    }
}
