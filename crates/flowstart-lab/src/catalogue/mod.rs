//! What users may name: schemes, queue disciplines, links and all else that has a list, from the registries.
//!
//! | Looking for | Where |
//! |---|---|
//! | the entries of each list | [`of`] |
//! | the parameters of an entry | [`Parameter`] |

mod entry;
mod parameter;

pub use entry::{Entry, ListError, implied, of};
pub use parameter::Parameter;

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Startup schemes.
    Schemes,
    /// Congestion avoidance.
    Avoidance,
    /// Queue disciplines.
    Aqms,
    /// Links with a name.
    Links,
    /// Keys of links.
    LinkOptions,
    /// Transports.
    Transports,
    /// Other users of the link.
    Competitors,
    /// What flows carry.
    Applications,
    /// Scenarios.
    Scenarios,
    /// What results say of a run.
    Metrics,
}

/// A list with the word that names it, and what it has.
pub const LISTS: [(List, &str, &str); 10] = [
    (List::Schemes, "schemes", "Startup schemes, for --scheme and --startup; tcp marks those for Linux TCP"),
    (List::Avoidance, "avoidance", "Congestion avoidance, for --avoidance"),
    (List::Aqms, "aqms", "Queue disciplines, for --aqm"),
    (List::Links, "links", "Links with a name, for --link"),
    (List::LinkOptions, "link-options", "Keys of links, for --link and --move"),
    (List::Transports, "transports", "Transports, for --transport"),
    (List::Competitors, "competitors", "Other users of the link, for --competitor"),
    (List::Applications, "applications", "What flows carry, for --application"),
    (List::Scenarios, "scenarios", "Scenarios, for `flowstart run`"),
    (List::Metrics, "metrics", "What results say of a run"),
];
