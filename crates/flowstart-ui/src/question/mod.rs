//! What may be asked.
//!
//! | Looking for | Where |
//! |---|---|
//! | a question from an address, and its address | `query.rs` |
//! | what a question may cost | `limits.rs` |
//! | a question as a command | `command.rs` |
//! | one run of a question | `run.rs` |

use std::fmt;
use std::path::Path;

use flowstart_lab::spec::InputError;
use flowstart_lab::study::Study;
use flowstart_lab::study::scenario::Scenario;

mod command;
pub(crate) mod limits;
mod query;
mod run;

pub(crate) use command::FILE;
pub use limits::MOST_REPS;
pub use run::Run;

/// The question of the first page, as a study file.
const FIRST: &str = include_str!("../first.toml");

/// A question that may be asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its runs.
    pub study: Study,
    /// Its address, behind `?`: the same for all that mean the same.
    pub query: String,
}

/// Why a question may not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    /// A value that is refused, and what is allowed.
    fn of(field: &str, value: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Self(InputError::new(field, shortened(&value.to_string()), allowed.to_string()).to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The begin of a value without end.
fn shortened(value: &str) -> String {
    const LONGEST: usize = 200;
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

impl Question {
    /// The question of the first page.
    ///
    /// # Errors
    ///
    /// Those of its file.
    pub fn first() -> Result<Self, Refusal> {
        Self::of_file(FIRST)
    }

    /// The question in an address.
    ///
    /// # Errors
    ///
    /// What is wrong, and what is allowed.
    pub fn of_query(query: &str) -> Result<Self, Refusal> {
        Self::of_scenario(query::read(query)?)
    }

    /// The question of a study file.
    ///
    /// # Errors
    ///
    /// What is wrong, and what is allowed.
    pub fn of_file(text: &str) -> Result<Self, Refusal> {
        let scenario = Scenario::from_text(text).map_err(|error| Refusal(format!("study file: {error}")))?;
        Self::of_scenario(scenario)
    }

    /// The question of a scenario.
    pub(crate) fn of_scenario(mut scenario: Scenario) -> Result<Self, Refusal> {
        // First: what is checked has to be what is read.
        let query = query::write(&mut scenario)?;
        limits::before(&scenario)?;
        // It names no file, so the folder does not matter.
        let mut study = Study::new(scenario, Path::new(".")).map_err(|error| Refusal(error.to_string()))?;
        limits::after(&study.plan)?;
        study.notes.extend(study.scenario.unchosen_avoidance(&study.plan));
        Ok(Self { study, query })
    }

    /// The command that asks the same.
    pub(crate) fn command(&self) -> Vec<String> {
        command::command(&self.study.scenario)
    }

    /// The question as a study file.
    pub(crate) fn file(&self) -> Result<String, String> {
        self.study.to_toml()
    }
}

#[cfg(test)]
mod tests {
    use flowstart_lab::study::plan::AXES;
    use flowstart_lab::study::shipped::SHIPPED;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const BASE: &str = "link=dsl-fast&size=2MB&scheme=slow-start";

    fn refused(query: &str) -> String {
        Question::of_query(query).unwrap_err().to_string()
    }

    #[test]
    fn values_repeat_or_stand_beside_each_other_and_empty_fields_are_defaults() {
        let one =
            Question::of_query("link=lte&size=70KB+2MB&scheme=slow-start&scheme=hystart&aqm=&reps=&seed=7").unwrap();
        let scenario = &one.study.scenario;
        assert_eq!((scenario.size.len(), scenario.scheme.len(), scenario.seed), (2, 2, 7));
        assert_eq!(one.study.plan.cells().len(), 4);
        assert!(scenario.noise && scenario.hint);
        let other = Question::of_query("seed=7&scheme=slow-start+hystart&size=70KB&size=2MB&link=lte").unwrap();
        assert_eq!(one.query, other.query);
    }

    #[test]
    fn an_address_is_the_question_and_so_is_its_file() {
        let query = "link=lte&size=70KB&scheme=slow-start&aqm=codel%3Atarget%3D5ms&flows=2&no-hint=on&title=A+%26+B";
        let asked = Question::of_query(query).unwrap();
        let again = Question::of_query(&asked.query).unwrap();
        assert_eq!((&again.query, &again.study.scenario), (&asked.query, &asked.study.scenario));
        let of_file = Question::of_file(&asked.file().unwrap()).unwrap();
        assert_eq!((&of_file.query, &of_file.study.scenario), (&asked.query, &asked.study.scenario));
        assert_eq!(asked.study.scenario.title, "A & B");
    }

    #[test]
    fn shipped_scenarios_are_asked_or_refused_with_what_is_allowed() {
        let mut asked = 0;
        for (name, text) in SHIPPED {
            match Question::of_file(text) {
                Ok(question) => {
                    asked += 1;
                    let again = Question::of_query(&question.query).unwrap();
                    assert_eq!(again.study.plan.cells(), question.study.plan.cells(), "{name}");
                }
                Err(refusal) => assert!(refusal.to_string().contains("allowed"), "{name}: {refusal}"),
            }
        }
        assert!(asked > 5, "{asked}");
    }

    #[test]
    fn what_costs_too_much_is_refused_with_what_is_allowed() {
        for (more, parts) in [
            ("reps=1000000", &["reps `1000000`", "1 to 1000"][..]),
            ("reps=-1", &["reps `-1`", "1 to 1000"]),
            ("reps=many", &["reps `many`", "1 to 1000"]),
            ("reps=99999999999999999999", &["1 to 1000"]),
            ("size=1GB", &["size `1GB`", "100 MB"]),
            ("size=1000000000B", &["size `1000000000B`", "100 MB"]),
            ("flows=1000", &["flows `1000`", "1 to 100"]),
            ("size=100MB&reps=1000", &["reps `1000`", "allowed"]),
            ("link=10g&competitor=cubic&reps=10", &["reps `10`", "allowed"]),
            ("competitor=cbr%3Arate%3D100gbit", &["cbr:rate=100gbit", "allowed"]),
            ("link=gprs&competitor=cbr%3Arate%3D5gbit", &["cbr:rate=5gbit", "allowed"]),
            ("competitor=bulk%3Acubic%2Ccount%3D1000", &["count=1000", "1 to 100"]),
            ("competitor=web%3Aload%3D60mbit", &["web:load=60mbit", "50mbit"]),
            ("size=pareto%3Amean%3D1MB%2Clargest%3D1GB&size=5KB", &["pareto", "100 MB"]),
            ("world=sockets", &["world `sockets`", "simulator"]),
            ("application=web%3Asessions%3D5", &["application `web:sessions=5`", "allowed"]),
        ] {
            // What a case names it has alone.
            let base = BASE.split('&').filter(|pair| !more.contains(pair.split('=').next().unwrap()));
            let base = base.filter(|pair| !more.starts_with("application") || !pair.starts_with("size"));
            let told = refused(&format!("{}&{more}", base.collect::<Vec<_>>().join("&")));
            for part in parts {
                assert!(told.contains(part), "{more}: {told}");
            }
        }
        let sizes: Vec<String> = (1..50).map(|size| format!("size={size}KB")).collect();
        let told = refused(&format!("link=dsl-fast&scheme=slow-start&{}", sizes.join("&")));
        assert!(told.contains("cells") && told.contains("48"), "{told}");
        // Before anything is made of them: 10^10 cells.
        let many: Vec<String> = AXES
            .iter()
            .flat_map(|axis| axis.keys)
            .map(|key| format!("{}={}", key.name, (0..9).map(|place| format!("x{place}+")).collect::<String>()))
            .filter(|pair| !pair.starts_with("world"))
            .collect();
        let told = refused(&many[..10].join("&"));
        assert!(told.contains("3486784401 cells"), "{told}");
        let values = "&size=1KB".repeat(500);
        assert!(refused(&format!("{BASE}{values}")).contains("values"));
        assert!(refused(&format!("{BASE}&title={}", "x".repeat(20_000))).contains("16000"));
    }

    #[test]
    fn files_are_refused_wherever_they_are_named() {
        for more in [
            "link=trace%3D%2Fetc%2Fpasswd%2Crtt%3D40ms",
            "link=mine%3Dtrace%3D..%2F..%2Fdown%2Crtt%3D40ms",
            "link=Trace%3Ddown%2Crtt%3D40ms",
            "link=lte%2CUP-trace%3Ddown",
            "move=at%3D1s%2Ctrace%3Ddown%2Crtt%3D40ms",
            "link-options=trace%3Ddown",
        ] {
            let told = refused(&format!("link=lte&size=2MB&scheme=slow-start&{more}"));
            assert!(told.contains("allowed are links without files"), "{more}: {told}");
        }
        assert!(refused("link=%2Fetc%2Fpasswd&size=2MB&scheme=slow-start").contains("link `/etc/passwd`"));
    }

    #[test]
    fn files_are_refused_whatever_spaces_their_names_have() {
        for text in ["tr ace=/etc/passwd,rtt=40ms", "tr\\tace=/etc/passwd", "mine=up_ trace=/etc/passwd,lte"] {
            let told = Question::of_file(&format!("link=[\"{text}\"]\nsize=[\"70KB\"]\nscheme=[\"slow-start\"]\n"));
            let told = told.unwrap_err().to_string();
            assert!(told.contains("a file; allowed are links without files"), "{told}");
        }
        let text = "link=[\"lte\"]\nsize=[\"70KB\"]\nscheme=[\"slow-start\"]\nmove=[\"at=1s,t race=/etc/passwd\"]\n";
        assert!(Question::of_file(text).unwrap_err().to_string().contains("a file; allowed"));
    }

    #[test]
    fn slips_are_pointed_out() {
        assert!(refused(&format!("{BASE}&shceme=hystart")).contains("did you mean `scheme`"));
        assert!(refused("link=dsl-fats&size=2MB&scheme=slow-start").contains("did you mean `dsl-fast`"));
        assert!(refused(&format!("{BASE}&seed=1&seed=2")).contains("twice"));
        assert!(refused(&format!("{BASE}&no-hint=maybe")).contains("on"));
        assert!(refused("size=2MB&scheme=slow-start").contains("link"));
        assert!(Question::of_file("link = [").unwrap_err().to_string().starts_with("study file: "));
    }

    proptest! {
        #[test]
        fn no_address_is_more_than_refused_and_what_is_asked_has_one_address(
            pairs in vec((select(NAMES), select(VALUES)), 0..8), noise in "[ -~]{0,40}", is_whole in any::<bool>(),
        ) {
            let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
            let mut query = pairs.collect::<Vec<_>>().join("&");
            if is_whole {
                query = format!("{BASE}&{query}");
            } else {
                query += &noise;
            }
            if let Ok(asked) = Question::of_query(&query) {
                let again = Question::of_query(&asked.query).unwrap();
                prop_assert_eq!(&again.query, &asked.query);
                prop_assert_eq!(again.study.plan, asked.study.plan);
                prop_assert!(asked.query.is_ascii() && !asked.query.contains(' '));
            }
        }
    }

    const NAMES: &[&str] = &[
        "link",
        "size",
        "scheme",
        "aqm",
        "competitor",
        "transport",
        "reps",
        "seed",
        "flows",
        "application",
        "arrival",
        "idle",
        "move",
        "avoidance",
        "no-hint",
        "no-knowledge",
        "noise",
        "title",
        "link-options",
    ];
    const VALUES: &[&str] = &[
        "",
        "lte",
        "rate%3D5mbit%2Crtt%3D20ms%2Cbuffer%3D1bdp",
        "70KB",
        "2MB+5KB",
        "hystart",
        "slow-start%3Aiw%3D32",
        "codel",
        "cubic",
        "cbr%3Arate%3D5mbit",
        "model-tcp",
        "both",
        "7",
        "1000",
        "-1",
        "on",
        "off",
        "keep",
        "none",
        "page%3Aobjects%3D6%2Csize%3D50KB%2Cwaves%3D3",
        "every%3D100ms%2Cflows%3D3",
        "lte%2Cat%3D2s",
        "%00",
        "%C3%A9+x",
        "access_jitter%3D1ms%2F1ms",
        "pareto%3Amean%3D100KB%2Cshape%3D1.2",
    ];

    #[test]
    fn a_command_asks_the_same() {
        let asked = Question::of_query(&format!("{BASE}&scheme=hystart&reps=5&aqm=codel&no-knowledge=on")).unwrap();
        assert_eq!(
            asked.command().join(" "),
            "flowstart compare --link dsl-fast --aqm codel --size 2MB --scheme slow-start hystart --reps 5 --no-knowledge"
        );
        let file = Question::of_query(&format!("{BASE}&title=Mine")).unwrap();
        assert_eq!(file.command().join(" "), "flowstart run question.toml");
    }
}
