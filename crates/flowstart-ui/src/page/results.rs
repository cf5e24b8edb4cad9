//! Pages of results that were written before.

use minijinja::context;
use serde::Serialize;

use super::Site;
use crate::question::Question;
use crate::results::{Entry, Folder, Kind, List, Record};

/// A folder in the list.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    address: String,
    title: &'a str,
    command: &'a str,
    kind: &'static str,
}

/// A folder beside another one.
#[derive(Serialize)]
pub(crate) struct Side {
    name: String,
    /// Its page alone.
    frame: String,
    /// Its page with what belongs to it.
    address: String,
    command: String,
}

/// The address of a folder: its name, in which only `/` separates.
pub(crate) fn address(name: &str) -> String {
    let parts: Vec<String> = name.split('/').map(encoded).collect();
    format!("/results/{}/", parts.join("/"))
}

/// A part of a path.
fn encoded(part: &str) -> String {
    form_urlencoded::byte_serialize(part.as_bytes()).collect::<String>().replace('+', "%20")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Results => "results",
        Kind::Record => "record",
    }
}

/// The list of folders.
pub(crate) fn list(list: &List, site: &Site) -> String {
    let line = |entry: &'_ Entry| address(&entry.name);
    let lines: Vec<Line<'_>> = list
        .entries
        .iter()
        .map(|entry| Line {
            name: &entry.name,
            address: line(entry),
            title: &entry.title,
            command: &entry.command,
            kind: kind(entry.kind),
        })
        .collect();
    site.fill("results.html", context! { title => "Results", place => "results", lines, is_cut => list.is_cut })
}

/// One folder of results.
pub(crate) fn result(folder: &Folder, name: &str, site: &Site) -> String {
    let asked = folder.scenario(name).map_err(|error| error.to_string());
    let again = asked.and_then(|scenario| Question::of_scenario(scenario).map_err(|refusal| refusal.to_string()));
    let entry = folder.entry(name);
    let (query, refusal) = match again {
        Ok(question) => (Some(question.query), None),
        Err(problem) => (None, Some(problem)),
    };
    site.fill(
        "result.html",
        context! {
            title => name,
            place => "results",
            name,
            address => address(name),
            command => entry.map(|entry| entry.command),
            query, refusal,
        },
    )
}

/// A record; without what is around it if it stands beside another one.
pub(crate) fn record(record: &Record, name: &str, is_alone: bool, site: &Site) -> String {
    let (header, rows, more) = (&record.header, &record.rows, record.more);
    site.fill(
        "record.html",
        context! {
            title => name, place => "results", is_alone, name,
            facts => record.facts, header, rows, more, text => record.text,
        },
    )
}

/// A folder that stands beside another one.
pub(crate) fn side(folder: &Folder, name: &str) -> Side {
    let address = address(name);
    let entry = folder.entry(name);
    let page = match &entry {
        Some(Entry { kind: Kind::Record, .. }) => "record.html",
        _ => "report.html",
    };
    let command = entry.map_or(String::new(), |entry| entry.command);
    Side { name: name.to_owned(), frame: format!("{address}{page}"), address, command }
}

/// Two folders beside each other, with what changed between them or why nobody can say.
pub(crate) fn beside(sides: &[Side; 2], change: &Result<Vec<String>, String>, site: &Site) -> String {
    let [before, after] = sides;
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("before", &before.name)
        .append_pair("after", &after.name)
        .finish();
    let turned = form_urlencoded::Serializer::new(String::new())
        .append_pair("before", &after.name)
        .append_pair("after", &before.name)
        .finish();
    site.fill(
        "beside.html",
        context! {
            title => format!("{} and {}", before.name, after.name),
            place => "results",
            sides, query, turned,
            changed => change.as_ref().ok(),
            problem => change.as_ref().err(),
        },
    )
}
