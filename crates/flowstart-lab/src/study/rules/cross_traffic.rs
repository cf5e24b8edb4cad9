//! Experiments whose competitors may cross one hop each.

use crate::spec::InputError;
use crate::spec::competitor::Competitor;
use crate::spec::link::Cross;
use crate::study::plan::Plan;

/// Flows that arrive by themselves have one place, so they cannot be at each hop.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    let Some(link) = plan.links.iter().find(|link| link.cross == Cross::Each) else { return Ok(()) };
    let has_one_place =
        |competitor: &Competitor| matches!(competitor, Competitor::Web { .. } | Competitor::Requests(_));
    match plan.competitors.iter().find(|competitor| has_one_place(competitor.first())) {
        Some(competitor) => {
            let problem = format!("crosses one hop; on link {} allowed are competitors with a count", link.text);
            Err(InputError::new("competitor", &competitor.text, problem))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    fn refusal(cross: &str, competitor: &str) -> String {
        let text = format!(
            "link = [\"dsl-fast,hops=2,cross={cross}\"]\nscheme = [\"slow-start\"]\nsize = [\"70KB\"]\n\
             competitor = [\"none\", \"{competitor}\"]"
        );
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new("."));
        plan.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn requests_of_the_web_cannot_be_at_each_hop() {
        assert_eq!(refusal("each", "bulk:cubic,count=2"), "");
        assert_eq!(refusal("2", "web:load=5mbit"), "");
        let refused = refusal("each", "web:load=5mbit");
        assert!(refused.contains("web:load=5mbit") && refused.contains("competitors with a count"), "{refused}");
    }
}
