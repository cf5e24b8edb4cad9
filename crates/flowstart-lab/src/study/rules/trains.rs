//! Which clients can report a train of the handshake: those of QUIC that wait for the server's part before they ask.

use flowstart_sim::transport::policy::{Opening, Protocol};
use flowstart_sim::transport::profile::Profile;

use crate::spec::InputError;
use crate::spec::link::Told;
use crate::study::plan::Plan;

/// Refuses a rate that clients are to report where they have no train.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    let Some(link) = plan.links.iter().find(|link| matches!(link.train, Told::This(_))) else { return Ok(()) };
    let has_train = |profile: &Profile| profile.protocol == Protocol::Quic && profile.opening == Opening::Request;
    match plan.transports.iter().find(|transport| !has_train(&transport.profile)) {
        None => Ok(()),
        Some(transport) => {
            let who = "clients of QUIC report a train of the handshake with their request";
            let problem = format!("handshake_train: {who}; not allowed with a rate is transport {}", transport.text);
            Err(InputError::new("link", &link.text, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    #[test]
    fn a_train_that_nobody_can_report_is_refused() {
        let plan = |link: &str, transport: &str| {
            let text = format!(
                "link = ['lte,{link}']\nsize = ['70KB']\nscheme = ['plumb']\ntransport = ['{transport}']\nreps = 1"
            );
            Scenario::from_text(&text).unwrap().plan(Path::new(".")).map_err(|error| error.to_string())
        };
        assert!(plan("handshake_train=5mbit", "model-quic").is_ok());
        for transport in ["model-tcp", "model-quic:opening=zero-rtt"] {
            let told = plan("handshake_train=5mbit", transport).unwrap_err();
            assert!(told.contains("handshake_train") && told.contains(transport), "{told}");
            assert!(plan("handshake_train=off", transport).is_ok());
        }
    }
}
