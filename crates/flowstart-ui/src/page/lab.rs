//! The page of a question.

use flowstart_core::units::Bytes;
use flowstart_lab::study::axis::Need;
use flowstart_lab::study::plan::AXES;
use minijinja::context;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Site, answer};
use crate::ask::Answered;
use crate::choices::{Choice, Choices};
use crate::question::{MOST_REPS, Question};

/// The axes that a page shows first, with their headings, and whether a choice is added to the others.
const FIRST: [(&str, &str, bool); 6] = [
    ("scheme", "Startup schemes", true),
    ("link", "Link", false),
    ("size", "Transfer size", false),
    ("aqm", "Queue (AQM)", true),
    ("competitor", "Other traffic", false),
    ("transport", "Transport", false),
];
/// The axis that has one value here.
const ALONE: &str = "world";

/// A field of the form.
#[derive(Serialize)]
struct Field<'a> {
    key: &'static str,
    title: String,
    /// What it takes, in a sentence.
    help: &'static str,
    value: String,
    /// What stands for nothing.
    default: &'static str,
    is_needed: bool,
    is_several: bool,
    choices: Vec<Shown<'a>>,
}

/// A choice and whether it is chosen.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    choice: &'a Choice,
    is_chosen: bool,
}

/// The fields, those of [`FIRST`] and the others.
fn fields<'a>(question: &Question, choices: &'a [Choices]) -> (Vec<Field<'a>>, Vec<Field<'a>>) {
    let mut scenario = question.study.scenario.clone();
    let mut field = |key: &'static str, title: &str, is_several: bool| {
        let declared = AXES.iter().flat_map(|axis| axis.keys).find(|declared| declared.name == key)?;
        let written = scenario.list(key).cloned().unwrap_or_default();
        let default = declared.default.unwrap_or_default();
        let chosen = if written.is_empty() { vec![default.to_owned()] } else { written.clone() };
        let listed = choices.iter().find(|choices| choices.key == key).map_or(&[][..], |choices| &choices.choices);
        let choices = listed.iter().map(|choice| Shown { choice, is_chosen: chosen.contains(&choice.text) }).collect();
        Some(Field {
            key,
            title: title.to_owned(),
            help: declared.several.split(". ").next().unwrap_or_default(),
            value: written.join(" "),
            default,
            is_needed: declared.need == Need::Always,
            is_several,
            choices,
        })
    };
    let first = FIRST.iter().filter_map(|(key, title, is_several)| field(key, title, *is_several)).collect();
    let is_other = |key: &&'static str| *key != ALONE && FIRST.iter().all(|(first, ..)| first != key);
    let others = AXES.iter().flat_map(|axis| axis.keys).map(|key| key.name).filter(is_other);
    let others = others.filter_map(|key| field(key, key, true)).collect();
    (first, others)
}

/// What controls show of a question.
pub fn asked(question: &Question) -> Value {
    let plan = &question.study.plan;
    let link = plan.links.first();
    // What a link holds is a BDP and its buffer.
    let buffer = link.and_then(|link| Some(link.holds()?.get() as f64 / link.bdp().get().max(1) as f64 - 1.0));
    let size = plan.sizes.first().and_then(|size| size.value.fixed_size()).map(Bytes::get);
    json!({
        "query": question.query,
        "rate_mbit": link.map(|link| link.rate.as_mbit()),
        "rtt_ms": link.map(|link| link.rtt.as_millis_f64()),
        "buffer_bdp": buffer,
        "size_bytes": size,
        "links": plan.links.len(),
        "sizes": plan.sizes.len(),
        "labels": plan.cells().iter().map(|cell| crate::ask::label(plan, cell)).collect::<Vec<_>>(),
        "command": question.command().join(" "),
    })
}

/// The page; with the answer if it is there already.
pub fn page(question: &Question, answered: Option<&Answered>, problem: Option<&str>, site: &Site) -> String {
    let (first, others) = fields(question, &site.choices);
    let scenario = &question.study.scenario;
    let known = answered.map(|answered| {
        json!({"asked": asked(question), "runs": answered.runs, "times": answered.times, "answer": answer::event(answered, site)})
    });
    let start = known.unwrap_or_else(|| json!({"asked": asked(question)}));
    let texts = [
        ("title", "Title", &scenario.title),
        ("question", "Question", &scenario.question),
        ("analysis", "Analysis", &scenario.analysis),
    ];
    let options = scenario.link_options.clone().unwrap_or_default();
    site.fill(
        "lab.html",
        context! {
            title => if scenario.title.is_empty() { "flowstart" } else { &scenario.title },
            place => "lab",
            scripts => ["chart.js", "lab.js"],
            problem, first, others, texts, options,
            hidden_published => scenario.published,
            heading => scenario.title,
            asks => scenario.question,
            answer => answered.map(|answered| answer::fragment(answered, site)),
            report => answer::report_address(question, site),
            query => question.query,
            command => question.command().join(" "),
            flows => scenario.flows,
            reps => scenario.reps,
            most_reps => MOST_REPS,
            seed => scenario.seed,
            no_hint => !scenario.hint,
            no_knowledge => scenario.unknown,
            no_noise => !scenario.noise,
            start => in_script(&start),
        },
    )
}

/// JSON that may stand inside a script element.
pub(super) fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}
