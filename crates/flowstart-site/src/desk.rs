//! What a page asks of the simulator beside it, and what it is told.

use std::time::Duration;

use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_report::PublishedTable;
use flowstart_ui::{Answered, Event, Program, Question, Refusal, Run, Site, perform};
use serde::Deserialize;
use serde_json::{Value, json};

/// What a page asks for.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    /// What happens while the question at this address is performed, and its answer.
    Ask(String),
    /// The page of the question at this address.
    Page(String),
    /// The page of the packets of the run at this address.
    Packets(String),
    /// The address of a study file's question.
    Open(String),
    /// What belongs to the answer to a question.
    Part {
        /// Its name.
        name: String,
        /// The address of the question.
        query: String,
    },
}

/// Where pages ask.
pub struct Desk {
    site: Site,
    program: Program,
    /// The latest answer, of which its page may want more.
    latest: Option<Answered>,
}

/// Published numbers beside results.
fn published(scenario: &Scenario, plan: &Plan, rows: &[Row], summary: &Summary) -> Option<PublishedTable> {
    flowstart_validate::published_table(scenario, plan, rows, summary)
}

/// The program that performs questions.
pub(crate) fn program(clock: fn() -> Duration) -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").into(),
        host: "WebAssembly in a browser".into(),
        jobs: 1,
        published,
        has_files: false,
        clock,
    }
}

impl Desk {
    /// A desk at which nothing was asked yet. `clock` is the time since whenever.
    ///
    /// # Errors
    ///
    /// A list of what can be chosen cannot be made.
    pub fn new(clock: fn() -> Duration) -> Result<Self, String> {
        let site = Site::of_files().map_err(|error| error.to_string())?;
        Ok(Self { site, program: program(clock), latest: None })
    }

    /// Does what a page asks for in JSON. `tell` gets events, by name: those of [`Event`], `page`, `opened` and `part`,
    /// or `failed` with what is wrong. Blocks.
    pub fn answer(&mut self, wanted: &str, tell: &(dyn Fn(&str, &Value) + Sync)) {
        let told = serde_json::from_str(wanted).map_err(|error| error.to_string());
        if let Err(problem) = told.and_then(|wanted| self.answer_to(wanted, tell)) {
            tell("failed", &json!({ "problem": problem }));
        }
    }

    fn answer_to(&mut self, wanted: Wanted, tell: &(dyn Fn(&str, &Value) + Sync)) -> Result<(), String> {
        let refused = |refusal: Refusal| refusal.to_string();
        let Self { site, program, latest } = self;
        match wanted {
            Wanted::Ask(query) => {
                let question = asked(&query).map_err(refused)?;
                tell("asked", &flowstart_ui::asked(&question));
                let answered = latest.insert(performed(question, program, tell)?);
                tell("answer", &flowstart_ui::answer_of(answered, site));
            }
            Wanted::Page(query) => tell("page", &json!({ "html": page(&query, site) })),
            Wanted::Packets(query) => {
                let page = match Run::of_query(&query) {
                    Ok(run) => flowstart_ui::packets_page(&run, site),
                    Err(refusal) => {
                        flowstart_ui::problem_page("These packets cannot be shown", &refusal.to_string(), site)
                    }
                };
                tell("page", &json!({ "html": page }));
            }
            Wanted::Open(text) => {
                let question = Question::of_file(&text).map_err(refused)?;
                tell("opened", &json!({ "query": question.query }));
            }
            Wanted::Part { name, query } => {
                let question = asked(&query).map_err(refused)?;
                let known = latest.take().filter(|known| known.question.query == question.query);
                let answered = latest.insert(match known {
                    Some(known) => known,
                    None => performed(question, program, &|_, _| ())?,
                });
                let allowed = || Err(format!("`{name}`: allowed are {}", Answered::PARTS.join(", ")));
                let content = answered.part(&name, program).unwrap_or_else(allowed)?;
                let text = String::from_utf8(content).map_err(|error| error.to_string())?;
                tell("part", &json!({ "text": text }));
            }
        }
        Ok(())
    }
}

/// The page of a question; of one that is refused, the first one with what is wrong.
fn page(query: &str, site: &Site) -> String {
    let show = |question: &Question, problem: Option<&str>| flowstart_ui::lab_page(question, None, problem, site);
    match (asked(query), Question::first()) {
        (Ok(question), _) => show(&question, None),
        (Err(refusal), Ok(first)) => show(&first, Some(&refusal.to_string())),
        (Err(refusal), Err(_)) => flowstart_ui::problem_page("This cannot be asked", &refusal.to_string(), site),
    }
}

/// The answer to a question; `tell` gets what happens before.
fn performed(question: Question, program: &Program, tell: &(dyn Fn(&str, &Value) + Sync)) -> Result<Answered, String> {
    // Whoever does not wait any more ends the whole worker.
    let tell = |event: &Event| {
        if let Some((name, data)) = event.told() {
            tell(name, &data);
        }
        true
    };
    perform(question, program, &tell)
}

/// The question at an address, which is the first one if there is nothing else.
fn asked(query: &str) -> Result<Question, Refusal> {
    if query.is_empty() { Question::first() } else { Question::of_query(query) }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const SHORT: &str = "link=lte&size=70KB&scheme=slow-start&scheme=hystart&reps=3";

    /// What a page is told.
    fn told(desk: &mut Desk, wanted: &Value) -> Vec<(String, Value)> {
        let events = Mutex::new(Vec::new());
        desk.answer(&wanted.to_string(), &|name, data| events.lock().unwrap().push((name.to_owned(), data.clone())));
        events.into_inner().unwrap()
    }

    fn desk() -> Desk {
        Desk::new(|| Duration::ZERO).unwrap()
    }

    #[test]
    fn runs_are_told_before_the_answer_and_its_parts_can_be_had() {
        let desk = &mut desk();
        let events = told(desk, &json!({ "ask": SHORT }));
        let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names[..3], ["asked", "run", "run"]);
        assert_eq!(names.last(), Some(&"answer"));
        let answer = &events.last().unwrap().1;
        assert!(answer["html"].as_str().unwrap().contains("packets.html?"), "{answer}");
        for (name, part) in [
            ("flows.csv", "lte/taildrop/70KB/hystart/none"),
            ("summary.json", "\"answer\""),
            ("question.toml", "hystart"),
            ("report.html", "vegaEmbed"),
        ] {
            let parts = told(desk, &json!({ "part": { "name": name, "query": SHORT } }));
            let [(event, data)] = &parts[..] else { panic!("{name}: {} events", parts.len()) };
            assert!(event == "part" && data["text"].as_str().unwrap().contains(part), "{name}: {event}");
        }
        // Of a question that was not asked just now, too.
        let other = SHORT.replace("70KB", "5KB");
        let rows = told(desk, &json!({ "part": { "name": "flows.csv", "query": other } }));
        assert!(rows[0].1["text"].as_str().unwrap().contains("lte/taildrop/5KB"));
    }

    #[test]
    fn what_costs_too_much_is_refused_as_by_a_server_and_nothing_runs() {
        for (more, parts) in [
            ("reps=1000000", &["reps `1000000`", "1 to 1000"][..]),
            ("reps=3&size=1000000000B", &["size `1000000000B`", "100 MB"]),
            ("reps=3&link=trace%3Ddown%2Crtt%3D40ms", &["allowed are links without files"]),
            ("reps=3&transport=nothing", &["transport `nothing`", "model-tcp"]),
        ] {
            let query = SHORT.replace("reps=3", more);
            let expected = Question::of_query(&query).unwrap_err().to_string();
            assert!(parts.iter().all(|part| expected.contains(part)), "{expected}");
            for wanted in [json!({ "ask": query }), json!({ "part": { "name": "flows.csv", "query": query } })] {
                let events = told(&mut desk(), &wanted);
                assert_eq!(events, [("failed".to_owned(), json!({ "problem": expected }))]);
            }
            // Its page says the same, and has a form to go on with.
            let page = told(&mut desk(), &json!({ "page": query }))[0].1["html"].as_str().unwrap().to_owned();
            assert!(page.contains("role=\"alert\">") && page.contains("id=\"question\""), "{page}");
        }
    }

    #[test]
    fn pages_are_those_of_their_address() {
        let desk = &mut desk();
        let page = |desk: &mut Desk, wanted: Value| told(desk, &wanted)[0].1["html"].as_str().unwrap().to_owned();
        assert!(page(desk, json!({ "page": SHORT })).contains("value=\"slow-start hystart\""));
        let packets = page(desk, json!({ "packets": format!("{SHORT}&cell=1&rep=2") }));
        assert!(packets.contains("id=\"scene\"") && packets.contains("repetition 2"), "{packets}");
        assert!(page(desk, json!({ "packets": format!("{SHORT}&cell=9") })).contains("0 to 1"));
    }

    #[test]
    fn a_study_file_is_opened_and_what_nobody_understands_is_refused() {
        let desk = &mut desk();
        let text = "link = ['lte']\nsize = ['70KB']\nscheme = ['slow-start', 'hystart']\nreps = 3\nnoise = true";
        assert_eq!(told(desk, &json!({ "open": text })), [("opened".to_owned(), json!({ "query": SHORT }))]);
        for (wanted, part) in [
            (json!({ "open": "link = [" }), "study file: "),
            (json!({ "part": { "name": "../secret", "query": SHORT } }), "allowed are report.html"),
            (json!({ "nothing": "" }), "unknown variant `nothing`"),
            (json!(7), "expected value"),
        ] {
            let events = told(desk, &wanted);
            assert!(events.len() == 1 && events[0].0 == "failed", "{wanted}: {events:?}");
            let problem = events[0].1["problem"].as_str().unwrap();
            assert!(problem.contains(part), "{wanted}: {problem}");
        }
    }
}
