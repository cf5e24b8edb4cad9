//! What a question about a fleet is about: the start that its transfers use, or the queue of its links.
//!
//! With a question about queues the transfers arrive with starts of their own, each with its share. The baseline of
//! starts is the first one. That of queues is taildrop with the link's own buffer.

use flowstart_core::aqm::QueueConfig;
use flowstart_core::needs::Needs;
use flowstart_core::startup::StartupConfig;

use super::population::Kind;
use crate::spec::algorithm::scheme;
use crate::study::plan::Axis;

/// The start or the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Startup schemes.
    Scheme,
    /// Queue disciplines, with buffers.
    Queue,
}

impl Subject {
    /// What one of its choices is called, also in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::Queue => "queue",
        }
    }
}

/// A start with which transfers arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The scheme, as `--scheme` takes it.
    pub scheme: String,
    /// Its share of all transfers.
    pub share: f64,
}

/// The choices of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Choices {
    /// Schemes, as `--scheme` takes them.
    Schemes(Vec<String>),
    /// Each queue discipline with each buffer.
    Queues {
        /// Queue disciplines, as `--aqm` takes them.
        aqms: Vec<String>,
        /// Buffers, as links take them; `None`: the link's own.
        buffers: Vec<Option<String>>,
        /// The starts that arrive; their shares together are 1.
        starts: Vec<Start>,
    },
}

/// The cells of a kind of transfers: their order is that of the choices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    pub(super) link: String,
    /// The buffer that is a choice and not the link's own.
    pub(super) buffer: Option<String>,
    pub(super) aqms: Vec<String>,
    pub(super) schemes: Vec<String>,
}

/// The baseline of queues.
fn baseline_aqm() -> &'static str {
    Axis::key("aqm").and_then(|key| key.default).unwrap_or_default()
}

impl Choices {
    /// The shipped schemes that depend on nobody else: neither on routers nor on other connections.
    pub fn every_scheme() -> Self {
        let others = [Needs::APPROVAL, Needs::CONGESTION_HEADER, Needs::SHARED_WINDOW];
        let is_alone = |name: &&&str| {
            let read = scheme("scheme", name, &StartupConfig::SlowStart(Default::default()));
            read.is_ok_and(|read| others.iter().all(|other| !read.value.needs().contains(*other)))
        };
        Self::Schemes(StartupConfig::NAMES.iter().filter(is_alone).map(|name| (*name).to_owned()).collect())
    }

    /// These queue disciplines with these buffers and the baseline; without a discipline all shipped ones. Shares need
    /// not be shares yet.
    pub fn queues(aqms: &[String], buffers: &[String], starts: Vec<Start>) -> Self {
        let all: Vec<String> = QueueConfig::NAMES.iter().map(|name| (*name).to_owned()).collect();
        let asked = if aqms.is_empty() { &all } else { aqms };
        let others = asked.iter().filter(|aqm| aqm.trim() != baseline_aqm()).cloned();
        let sum: f64 = starts.iter().map(|start| start.share).sum();
        Self::Queues {
            aqms: std::iter::once(baseline_aqm().to_owned()).chain(others).collect(),
            buffers: std::iter::once(None).chain(buffers.iter().cloned().map(Some)).collect(),
            starts: starts.into_iter().map(|start| Start { share: start.share / sum, ..start }).collect(),
        }
    }

    /// What they are.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Schemes(_) => Subject::Scheme,
            Self::Queues { .. } => Subject::Queue,
        }
    }

    /// What results call them; the first is the baseline.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Schemes(schemes) => schemes.clone(),
            Self::Queues { aqms, buffers, .. } => {
                let with = |buffer: &Option<String>| {
                    let behind = buffer.as_ref().map_or(String::new(), |buffer| format!(" buffer={buffer}"));
                    aqms.iter().map(move |aqm| format!("{aqm}{behind}")).collect::<Vec<_>>()
                };
                buffers.iter().flat_map(with).collect()
            }
        }
    }

    /// The starts with which transfers arrive, and their shares; `None`: the start is the choice.
    pub(super) fn starts(&self) -> Vec<(Option<String>, f64)> {
        match self {
            Self::Schemes(_) => vec![(None, 1.0)],
            Self::Queues { starts, .. } => {
                starts.iter().map(|start| (Some(start.scheme.clone()), start.share)).collect()
            }
        }
    }

    /// The cells of all choices for a kind of transfers that arrive with this start.
    pub(super) fn cells(&self, kind: &Kind, start: Option<&str>) -> Vec<Cells> {
        match self {
            Self::Schemes(schemes) => {
                vec![Cells { link: kind.link(), buffer: None, aqms: vec![kind.aqm.clone()], schemes: schemes.clone() }]
            }
            Self::Queues { aqms, buffers, .. } => {
                let with = |buffer: &Option<String>| Cells {
                    link: kind.link_with(buffer.as_deref().or(kind.buffer.as_deref())),
                    buffer: buffer.clone(),
                    aqms: aqms.clone(),
                    schemes: start.map(str::to_owned).into_iter().collect(),
                };
                buffers.iter().map(with).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::population::Population;
    use super::*;

    #[test]
    fn queues_are_each_discipline_with_each_buffer_and_the_baseline_is_first() {
        let starts = ["slow-start", "suss"].map(|scheme| Start { scheme: scheme.into(), share: 2.0 });
        let choices = Choices::queues(&["codel".into(), "taildrop".into()], &["50ms".into()], starts.to_vec());
        assert_eq!(choices.names(), ["taildrop", "codel", "taildrop buffer=50ms", "codel buffer=50ms"]);
        assert_eq!(choices.starts(), [(Some("slow-start".into()), 0.5), (Some("suss".into()), 0.5)]);
        let kind = &Population::from_text("weight,size,rate,rtt\n1,2MB,1mbit,10ms\n").unwrap().kinds[0];
        let links: Vec<String> = choices.cells(kind, Some("suss")).into_iter().map(|cells| cells.link).collect();
        assert_eq!(links, ["rate=1mbit,rtt=10ms,buffer=1bdp", "rate=1mbit,rtt=10ms,buffer=50ms"]);
        let all = Choices::queues(&[], &[], starts.to_vec()).names();
        assert_eq!((all.len(), &*all[0]), (QueueConfig::NAMES.len(), "taildrop"));
    }

    #[test]
    fn the_shipped_schemes_are_those_that_need_nobody() {
        let names = Choices::every_scheme().names();
        assert!(names.contains(&"slow-start".to_owned()) && !names.contains(&"quick-start".to_owned()), "{names:?}");
    }
}
