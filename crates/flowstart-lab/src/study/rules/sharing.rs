//! Experiments in which connections share a window.

use flowstart_core::needs::Needs;

use crate::spec::InputError;
use crate::study::plan::Plan;

/// The measured connections come from one server and go to one client. Web sessions have clients of their own.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    let Some(scheme) = plan.schemes.iter().find(|scheme| scheme.first().needs().contains(Needs::SHARED_WINDOW)) else {
        return Ok(());
    };
    let Some(size) = plan.sizes.iter().find(|size| size.value.sessions().is_some()) else { return Ok(()) };
    let allowed = format!("with scheme {} allowed is what one client asks for: not sessions of several", scheme.text);
    Err(InputError::new("application", &size.text, allowed))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    fn refusal(more: &str) -> String {
        let text = format!("link = [\"lte\"]\nscheme = [\"slow-start\", \"ensemble-sharing\"]\n{more}");
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new("."));
        plan.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn a_window_is_shared_by_connections_to_one_client() {
        assert_eq!(refusal("size = [\"70KB\"]"), "");
        assert_eq!(refusal("application = [\"page:objects=2,size=1KB,waves=2\"]"), "");
        let web = refusal("application = [\"web:sessions=2\"]\ntransport = \"model-tcp\"");
        assert!(web.contains("not sessions of several"), "{web}");
        let beside = refusal("size = [\"70KB\"]\ncompetitor = [\"bulk:startup=ensemble-sharing\"]");
        assert!(beside.contains("the measured flows alone share a window"), "{beside}");
        let integrated = refusal("size = [\"70KB\"]\navoidance = [\"bbr\"]");
        assert!(integrated.contains("has no window that others may take"), "{integrated}");
    }
}
