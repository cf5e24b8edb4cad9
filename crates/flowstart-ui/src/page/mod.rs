//! Pages: templates that are filled with what they show.
//!
//! | File | Page |
//! |---|---|
//! | `lab.rs` | a question, its runs and its answer |
//! | `answer.rs` | the part of it that says the answer |
//! | `packets.rs` | the packets of one run, step by step |
//! | `results.rs` | results of before: the list, one, two beside each other, a record |
//! | `assets.rs` | styles and scripts |

use std::sync::OnceLock;

use flowstart_lab::catalogue::ListError;
use flowstart_lab::spec::transport::Transport;
use minijinja::{AutoEscape, Environment, Value, context};

use crate::choices::{Choice, Choices, TRANSPORT, choices};

pub(crate) mod answer;
pub(crate) mod assets;
pub(crate) mod lab;
pub(crate) mod packets;
#[cfg(feature = "server")]
pub(crate) mod results;

/// Where pages lead, and what they offer.
#[derive(Clone, Debug)]
pub struct Site {
    /// The address of the lab, and that of the packets of a run.
    home: &'static str,
    packets: &'static str,
    /// What stands before the names of styles and scripts.
    assets: &'static str,
    /// What stands before the question in addresses of reports, where a server makes them.
    answers: Option<&'static str>,
    /// Whether there is a list of results of before.
    has_results: bool,
    /// What can be chosen.
    choices: Vec<Choices>,
}

impl Site {
    /// The pages of a server.
    ///
    /// # Errors
    ///
    /// A list cannot be made.
    pub fn served(has_results: bool) -> Result<Self, ListError> {
        Ok(Self {
            home: "/",
            packets: "/packets",
            assets: "/",
            answers: Some("/answers/"),
            has_results,
            choices: choices()?,
        })
    }

    /// Pages that are files, wherever they are: what is asked is answered in the browser, without a real stack.
    ///
    /// # Errors
    ///
    /// A list cannot be made.
    pub fn of_files() -> Result<Self, ListError> {
        let is_model = |choice: &Choice| {
            Transport::parse(TRANSPORT, &choice.text).is_ok_and(|transport| transport.stack.is_none())
        };
        let mut choices = choices()?;
        for transports in choices.iter_mut().filter(|one| one.key == TRANSPORT) {
            transports.choices.retain(is_model);
        }
        let (home, packets) = (Self::LAB_FILE, Self::PACKETS_FILE);
        Ok(Self { home, packets, assets: "", answers: None, has_results: false, choices })
    }

    /// The file of the lab's page.
    pub const LAB_FILE: &str = "index.html";
    /// The file of the page of packets.
    pub const PACKETS_FILE: &str = "packets.html";

    /// Fills a template. A fault of the template itself is told in the place of the page.
    fn fill(&self, template: &str, page: Value) -> String {
        static FILLED: OnceLock<Result<Environment<'static>, minijinja::Error>> = OnceLock::new();
        let environment = match FILLED.get_or_init(environment) {
            Ok(environment) => environment,
            Err(error) => return format!("the pages of this program are broken: {error}"),
        };
        let Self { home, packets, assets, answers, has_results, .. } = self;
        let is_served = answers.is_some();
        let page = context! { home, packets, assets, has_results, is_served, ..page };
        let filled = environment.get_template(template).and_then(|template| template.render(page));
        filled.unwrap_or_else(|error| format!("the page {template} is broken: {error}"))
    }
}

/// Templates and the names by which they include each other.
const TEMPLATES: [(&str, &str); 9] = [
    ("base.html", include_str!("../templates/base.html")),
    ("lab.html", include_str!("../templates/lab.html")),
    ("answer.html", include_str!("../templates/answer.html")),
    ("packets.html", include_str!("../templates/packets.html")),
    ("results.html", include_str!("../templates/results.html")),
    ("result.html", include_str!("../templates/result.html")),
    ("beside.html", include_str!("../templates/beside.html")),
    ("record.html", include_str!("../templates/record.html")),
    ("problem.html", include_str!("../templates/problem.html")),
];

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// A page that says what is wrong.
pub fn problem(title: &str, problem: &str, site: &Site) -> String {
    site.fill("problem.html", context! { title, problem, place => "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Question;

    #[test]
    fn templates_are_in_order_and_escape_what_they_show() {
        environment().unwrap();
        let page = problem("<b>", "size `<script>`: no", &Site::served(true).unwrap());
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>`"), "{page}");
        assert!(page.contains("<html") && page.contains("href=\"&#x2f;results&#x2f;\"") || page.contains("/results/"));
    }

    #[test]
    fn pages_that_are_files_lead_to_files_beside_them_and_offer_no_real_stack() {
        let site = Site::of_files().unwrap();
        let question = Question::first().unwrap();
        let page = lab::page(&question, None, None, &site);
        for address in ["href=\"", "src=\"", "action=\""].iter().flat_map(|name| page.split(name).skip(1)) {
            let address = address.split('"').next().unwrap();
            assert!(!address.starts_with('/') && !address.contains("//"), "{address}");
        }
        assert!(page.contains("value=\"model-tcp\"") || page.contains("value=\"model-tcp:"), "{page}");
        assert!(!page.contains("value=\"quic\""), "a real stack is offered");
        assert!(
            Site::served(false)
                .unwrap()
                .choices
                .iter()
                .any(|one| { one.key == TRANSPORT && one.choices.iter().any(|choice| choice.text == "quic") })
        );
    }
}
