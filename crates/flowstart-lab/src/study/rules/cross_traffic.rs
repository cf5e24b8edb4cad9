//! Experiments whose competitors may cross one hop each, or hint what each of their transfers knows.

use crate::spec::InputError;
use crate::spec::competitor::Competitor;
use crate::spec::link::{Cross, Hinted};
use crate::study::plan::Plan;

/// Flows that arrive by themselves have one place, so they cannot be at each hop, and one hint.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    one_hint(plan)?;
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

/// Hints from a recording's past are not for flows that arrive by themselves.
fn one_hint(plan: &Plan) -> Result<(), InputError> {
    let Some(link) = plan.links.iter().find(|link| matches!(link.hint, Some(Hinted::Past { .. }))) else {
        return Ok(());
    };
    let launches = |competitor: &Competitor| matches!(competitor, Competitor::Web { startup: Some(_), .. });
    match plan.competitors.iter().find(|competitor| launches(competitor.first())) {
        Some(competitor) => {
            let problem = format!("its transfers have one hint; on link {} allowed is web without startup", link.text);
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
        refusal_on(&format!("dsl-fast,hops=2,cross={cross}"), competitor, Path::new("."))
    }

    fn refusal_on(link: &str, competitor: &str, folder: &Path) -> String {
        let text = format!(
            "link = [\"{link}\"]\nscheme = [\"slow-start\"]\nsize = [\"70KB\"]\n\
             competitor = [\"none\", \"{competitor}\"]"
        );
        let plan = Scenario::from_text(&text).unwrap().plan(folder);
        plan.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn requests_of_the_web_cannot_be_at_each_hop() {
        assert_eq!(refusal("each", "bulk:cubic,count=2"), "");
        assert_eq!(refusal("2", "web:load=5mbit"), "");
        let refused = refusal("each", "web:load=5mbit");
        assert!(refused.contains("web:load=5mbit") && refused.contains("competitors with a count"), "{refused}");
    }

    #[test]
    fn transfers_that_arrive_by_themselves_have_no_past() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("up"), "1\n2\n1000\n").unwrap();
        let refusal = |hint: &str, competitor: &str| {
            refusal_on(&format!("trace=up,rtt=20ms,buffer=100pkt,hint={hint}"), competitor, folder.path())
        };
        assert_eq!(refusal("past/500ms/100ms", "web:load=5kbit"), "");
        assert_eq!(refusal("1mbit", "web:load=5kbit,startup=more-start"), "");
        let refused = refusal("past/500ms/100ms", "web:load=5kbit,startup=more-start");
        assert!(refused.contains("one hint") && refused.contains("without startup"), "{refused}");
    }
}
