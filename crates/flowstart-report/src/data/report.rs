//! A report has these parts, in the order of the page.

use super::{Cell, ExampleRun, Link, Method, PairedSetting, PublishedTable};
use serde::{Deserialize, Serialize};

/// Everything the report of a comparison shows, in the order of the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// Heading of the page and name of the browser tab.
    pub title: String,
    /// The answer in sentences: the first is shown large, the others below it.
    pub answer: Vec<String>,
    /// Whether the answer depends on the world and on the transport, where there are several. They stand right below
    /// the answer.
    pub agreements: Vec<String>,
    /// What the experiment asks, from the scenario file. Blank lines separate paragraphs.
    pub question: Option<String>,
    /// How its author reads the results, from the scenario file. Blank lines separate paragraphs.
    pub analysis: Option<String>,
    /// Each distinct link of the experiment. Cells refer to it by [`Link::name`].
    pub links: Vec<Link>,
    /// What each kind of scheme does: name and a line.
    pub schemes: Vec<(String, String)>,
    /// What each kind of AQM does, where there is more than one.
    pub aqms: Vec<(String, String)>,
    /// Each cell of the experiment, in the order in which the table should show them at first. Schemes get their
    /// colour, dash and shape in the order of their first appearance here.
    pub cells: Vec<Cell>,
    /// Why the cells have no [`Causes`](super::Causes), when they could have.
    pub unexplained: Option<String>,
    /// AQMs and schemes together, where there is a choice of both.
    pub pairs: Vec<PairedSetting>,
    /// Comparison with numbers that somebody else published.
    pub published: Option<PublishedTable>,
    /// Runs to show as time series. Runs of the same link, size and competitor share a section and their axes.
    pub runs: Vec<ExampleRun>,
    /// How the numbers were obtained.
    pub method: Method,
}
