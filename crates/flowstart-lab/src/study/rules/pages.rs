//! Experiments that can have pages over versions of HTTP.

use crate::spec::{InputError, STACK};

use crate::study::plan::Plan;

/// Most connections that the pages of a repetition may have.
const MOST_CONNECTIONS: u64 = 10_000;

/// A page of another protocol than the transport's needs schemes that this protocol's profile can use; the transport's
/// own startup is none of them. Memory bounds the number of connections.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    for size in &plan.sizes {
        for (place, transport) in plan.transports.iter().enumerate() {
            let (name, profile) = plan.profile_for(transport, &size.value);
            if profile.protocol == transport.profile.protocol {
                continue;
            }
            let has_own_keys = |keys: &str| keys.split(',').any(|key| !key.trim_start().starts_with("profile="));
            let named = transport.text.split_once(':').is_some_and(|(_, keys)| has_own_keys(keys));
            if named || plan.transports.len() > 1 {
                let own = if named { "whose keys would do nothing" } else { "and so would be the same as another" };
                let problem = format!("{} runs over {name} in its place, {own}: give one of that protocol", size.text);
                return Err(InputError::new("transport", &transport.text, problem));
            }
            for (scheme, own) in plan.schemes.iter().zip(&plan.scheme_avoidances[place]) {
                if scheme.text == STACK {
                    let problem = format!("with {}, which uses {name}: give that protocol's transport", size.text);
                    return Err(InputError::new("scheme", &scheme.text, problem));
                }
                let chosen = plan.avoidances.iter().map(|chosen| chosen.on(place).clone());
                let avoidances = match own {
                    Some(own) => vec![own.value.clone()],
                    None if plan.avoidances.is_empty() => vec![transport.own_avoidance().value],
                    None => chosen.collect(),
                };
                for avoidance in avoidances {
                    profile.controller(scheme.on(place).clone(), avoidance).validate().map_err(|error| {
                        let problem = format!("with {}, which uses {name}: {error}", size.text);
                        InputError::new("scheme", &scheme.text, problem)
                    })?;
                }
            }
        }
        let Some(page) = size.value.objects().and_then(|objects| objects.page()) else { continue };
        let most = plan.arrivals.iter().map(|arrival| arrival.value.flows.unwrap_or(plan.flows)).max().unwrap_or(1);
        let connections = u64::from(most) * u64::from(page.connections) * u64::from(page.hosts);
        if connections > MOST_CONNECTIONS {
            let problem = format!("{most} pages have {connections} connections; allowed are {MOST_CONNECTIONS}");
            return Err(InputError::new("application", &size.text, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use flowstart_sim::transport::policy::Protocol;

    use crate::study::plan::Plan;
    use crate::study::scenario::Scenario;

    fn plan(application: &str, more: &str) -> Result<Plan, String> {
        let text = format!("link = [\"lte\"]\napplication = [\"{application}\"]\nscheme = [\"slow-start\"]\n{more}");
        Scenario::from_text(&text).unwrap().plan(Path::new(".")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_page_uses_the_transport_or_the_profile_of_its_own_protocol() {
        let page = |http: &str| format!("page:objects=6,size=50KB,waves=3,http={http}");
        for (transport, http, name) in [
            ("model-tcp:profile=tcp-rfc", "2", "tcp-rfc"),
            ("model-tcp", "1.1", "tcp-linux"),
            ("model-tcp", "3", "rfc9002"),
            ("model-quic", "3", "rfc9002"),
            ("model-quic", "1.1", "tcp-linux"),
        ] {
            let plan = plan(&page(http), &format!("transport = \"{transport}\"")).unwrap();
            let (used, profile) = plan.profile_for(&plan.transports[0], &plan.sizes[0].value);
            assert_eq!(used, name, "{transport} {http}");
            assert_eq!(profile.protocol == Protocol::Quic, http == "3");
        }
    }

    #[test]
    fn the_startup_of_another_protocols_transport_is_refused() {
        let page = |http: &str| format!("page:objects=6,size=50KB,waves=3,http={http}");
        let with = |http: &str, scheme: &str, transport: &str| {
            let text = format!(
                "link = [\"lte\"]\napplication = [\"{}\"]\nscheme = [\"{scheme}\"]\ntransport = \"{transport}\"",
                page(http)
            );
            Scenario::from_text(&text).unwrap().plan(Path::new(".")).map_err(|error| error.to_string()).err()
        };
        assert_eq!(with("2", "stack", "model-tcp"), None);
        assert!(with("3", "stack", "model-tcp").unwrap().contains("which uses rfc9002"));
        assert_eq!(with("3", "slow-start", "model-tcp:profile=tcp-rfc"), None);
        // What the page would not use is refused: keys, and a second transport that would be the first.
        let keys = with("1.1", "slow-start", "model-quic:ack.every=10").unwrap();
        assert!(keys.contains("runs over tcp-linux in its place, whose keys would do nothing"), "{keys}");
        let two = "transport = [\"model-quic\", \"model-tcp:profile=tcp-linux\"]";
        assert!(plan(&page("1.1"), two).unwrap_err().contains("would be the same as another"));
        assert!(plan("page:objects=6,size=50KB,waves=3", two).is_ok());
    }

    #[test]
    fn pages_with_very_many_connections_are_refused() {
        let page = "page:objects=6,size=50KB,waves=3,http=1.1,connections=16,shards=16";
        assert!(plan(page, "flows = 39").is_ok());
        let many = plan(page, "flows = 40").unwrap_err();
        assert!(many.contains("40 pages have 10240 connections; allowed are 10000"), "{many}");
    }
}
