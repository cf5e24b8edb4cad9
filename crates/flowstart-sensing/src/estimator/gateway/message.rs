//! Gateways' messages as text: answers to a search, descriptions, answers to the question.
//!
//! Reference: UPnP Device Architecture 1.0, sections 1.2.3 (answers to a search), 2.1 (description) and 3.2 (control).

use flowstart_core::path::{AccessTechnology, Hint};
use flowstart_core::units::Rate;
use roxmltree::{Document, Node, ParsingOptions};
use serde::{Deserialize, Serialize};

/// What is searched for: gateways of both versions of UPnP, and those that speak TR-064 alone.
pub(super) const SEARCH_TARGETS: [&str; 3] = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
    "urn:dslforum-org:device:InternetGatewayDevice:1",
];
/// The service, by the names of UPnP and of TR-064.
pub(super) const SERVICES: [&str; 2] =
    ["urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1", "urn:dslforum-org:service:WANCommonInterfaceConfig:1"];
/// Most elements of a document.
const NODES_MAX: u32 = 20_000;
/// Deepest element of a document; descriptions have about ten levels.
const DEPTH_MAX: usize = 64;

/// A gateway's statement about its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkProperties {
    /// Towards the client; `None` when the gateway does not know.
    pub downstream: Option<Rate>,
    /// Towards the Internet; `None` when the gateway does not know.
    pub upstream: Option<Rate>,
    /// What it calls the access.
    pub technology: AccessTechnology,
    /// Whether the link is up.
    pub up: bool,
}

impl LinkProperties {
    /// The hint for a server that sends to this client.
    pub fn hint(&self) -> Option<Hint> {
        let bandwidth = self.downstream.filter(|_| self.up)?;
        Some(Hint { bandwidth, technology: self.technology })
    }
}

/// Why an answer is useless.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// An answer is no XML.
    #[error("the gateway's answer cannot be read: {0}")]
    Xml(#[source] roxmltree::Error),
    /// An answer nests more deeply than any of UPnP.
    #[error("the gateway's answer nests more than {DEPTH_MAX} elements")]
    Depth,
    /// The description has no link to ask for.
    #[error("the gateway has no service WANCommonInterfaceConfig")]
    NoService,
    /// The answer lacks the requested values.
    #[error("the gateway's answer has no `{0}`")]
    Missing(&'static str),
    /// A rate is no number.
    #[error("the gateway's `{field}` is `{text}`, which is no rate")]
    Rate {
        /// The field.
        field: &'static str,
        /// What it says.
        text: String,
    },
}

/// The `LOCATION` of a gateway's answer to a search, `None` when it is another message or another device's.
pub fn location(datagram: &[u8]) -> Option<String> {
    let text = str::from_utf8(datagram).ok()?;
    let mut lines = text.split("\r\n");
    let mut status = lines.next()?.split(' ');
    if !status.next()?.starts_with("HTTP/1.") || status.next()? != "200" {
        return None;
    }
    let field = |name: &str| {
        lines.clone().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
    };
    let (_, target) = field("ST")?;
    let (_, location) = field("LOCATION")?;
    SEARCH_TARGETS.contains(&target.trim()).then(|| location.trim().to_owned())
}

/// The address that `reference` means in the document at `document` (UPnP Device Architecture 1.0, section 2.1).
pub fn resolved(document: &str, base: Option<&str>, reference: &str) -> String {
    if reference.contains("://") {
        return reference.into();
    }
    let base = base.filter(|base| base.contains("://")).unwrap_or(document);
    let authority = base.find("://").map_or(0, |scheme| scheme + 3);
    let path = base[authority..].find('/').map_or(base.len(), |slash| authority + slash);
    if reference.starts_with('/') {
        return format!("{}{reference}", &base[..path]);
    }
    let folder = base[path..].rfind('/').map_or("/", |slash| &base[path..=path + slash]);
    format!("{}{folder}{reference}", &base[..path])
}

/// How to ask for the link, from a description.
#[derive(Debug, PartialEq, Eq)]
pub struct Service {
    /// Its type, by which it is asked.
    pub kind: &'static str,
    /// Where it is asked, perhaps relative to the base.
    pub control: String,
    /// What relative addresses are relative to, where that is not the description.
    pub base: Option<String>,
}

/// Parses XML within limits: no entities, few elements, none deep.
fn with_document<T>(text: &str, read: impl FnOnce(&Document) -> Result<T, AnswerError>) -> Result<T, AnswerError> {
    let mut depth = 0usize;
    for (index, _) in text.match_indices('<') {
        match text.as_bytes().get(index + 1) {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(b'?' | b'!') => {}
            _ if text[index..].split('>').next().is_some_and(|tag| tag.ends_with('/')) => {}
            _ => depth += 1,
        }
        if depth > DEPTH_MAX {
            return Err(AnswerError::Depth);
        }
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    read(&Document::parse_with_options(text, options).map_err(AnswerError::Xml)?)
}

/// Whether the node is an element called `name`, whatever its namespace: gateways are careless with them.
fn is(node: Node, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

/// The text of the first descendant called `name`, whatever its namespace.
fn text_in<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let found = node.descendants().find(|one| is(*one, name))?;
    Some(found.text().unwrap_or_default().trim())
}

/// The service in a description.
pub fn service(text: &str) -> Result<Service, AnswerError> {
    with_document(text, |document| {
        let root = document.root();
        for node in root.descendants().filter(|node| is(*node, "service")) {
            let kind = text_in(node, "serviceType").and_then(|kind| SERVICES.into_iter().find(|one| *one == kind));
            if let (Some(kind), Some(control)) = (kind, text_in(node, "controlURL")) {
                let base = text_in(root, "URLBase").filter(|base| !base.is_empty());
                return Ok(Service { kind, control: control.into(), base: base.map(str::to_owned) });
            }
        }
        Err(AnswerError::NoService)
    })
}

/// The answer to the question.
pub fn properties(text: &str) -> Result<LinkProperties, AnswerError> {
    with_document(text, |document| {
        let root = document.root();
        let rate = |field: &'static str| {
            let text = text_in(root, field).ok_or(AnswerError::Missing(field))?;
            match text.parse::<u64>() {
                // With zero or the largest value of the field's type, ui4, gateways say that they do not know.
                Ok(0) => Ok(None),
                Ok(bits) if bits == u64::from(u32::MAX) => Ok(None),
                Ok(bits) => Ok(Some(Rate::from_bits_per_sec(bits))),
                Err(_) => Err(AnswerError::Rate { field, text: text.into() }),
            }
        };
        // Those that begin with X are AVM's, beside the ones of the standard.
        let technology = match text_in(root, "NewWANAccessType") {
            Some("DSL") => AccessTechnology::Dsl,
            Some("Cable" | "X_AVM-DE_Cable") => AccessTechnology::Docsis,
            Some("Ethernet") => AccessTechnology::Ethernet,
            Some("X_AVM-DE_LTE") => AccessTechnology::Lte,
            Some("X_AVM-DE_Fiber") => AccessTechnology::Fibre,
            Some("X_AVM-DE_UMTS") => AccessTechnology::ThirdGeneration,
            _ => AccessTechnology::Unknown,
        };
        Ok(LinkProperties {
            downstream: rate("NewLayer1DownstreamMaxBitRate")?,
            upstream: rate("NewLayer1UpstreamMaxBitRate")?,
            technology,
            up: text_in(root, "NewPhysicalLinkStatus") == Some("Up"),
        })
    })
}

/// UPnP's error code in an answer that refuses.
pub fn error_code(text: &str) -> Option<u32> {
    with_document(text, |document| Ok(text_in(document.root(), "errorCode").and_then(|code| code.parse().ok())))
        .ok()
        .flatten()
}
