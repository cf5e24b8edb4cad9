//! The oracle's questions and answers as bytes.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::{Capacity, PROPERTY};

/// Most endpoints in one request.
const ENDPOINTS_MAX: usize = 256;

/// What is wrong with a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A field is missing, or has the wrong type or value.
    #[error("{code} in `{field}`")]
    Field {
        /// ALTO's code (RFC 7285, section 8.5.2).
        code: &'static str,
        /// The field.
        field: &'static str,
        /// Its value, if that is the cause.
        value: Option<String>,
    },
    /// It is no JSON, or too long.
    #[error("it cannot be read")]
    Syntax,
}

impl QuestionError {
    fn field(code: &'static str, field: &'static str, value: Option<&str>) -> Self {
        Self::Field { code, field, value: value.map(str::to_owned) }
    }
}

/// The address in the query of `GET /capacity`.
pub fn asked_address(query: &[u8]) -> Result<IpAddr, QuestionError> {
    let (_, text) = form_urlencoded::parse(query).find(|(name, _)| name == "address").ok_or(QuestionError::field(
        "E_MISSING_FIELD",
        "address",
        None,
    ))?;
    text.parse().map_err(|_| QuestionError::field("E_INVALID_FIELD_VALUE", "address", Some(&text)))
}

/// The endpoints of ALTO's `ReqEndpointProp`, as they were written and as addresses (sections 11.4.1.3 and 10.4).
pub fn asked_endpoints(body: &[u8]) -> Result<(Vec<String>, Vec<IpAddr>), QuestionError> {
    let value: Value = serde_json::from_slice(body).map_err(|_| QuestionError::Syntax)?;
    let list = |field| match value.get(field) {
        None => Err(QuestionError::field("E_MISSING_FIELD", field, None)),
        Some(list) => {
            let texts: Option<Vec<&str>> = list.as_array().and_then(|all| all.iter().map(Value::as_str).collect());
            texts.ok_or_else(|| QuestionError::field("E_INVALID_FIELD_TYPE", field, None))
        }
    };
    if let Some(other) = list("properties")?.into_iter().find(|property| *property != PROPERTY) {
        return Err(QuestionError::field("E_INVALID_FIELD_VALUE", "properties", Some(other)));
    }
    let endpoints = list("endpoints")?;
    if endpoints.len() > ENDPOINTS_MAX {
        return Err(QuestionError::field("E_INVALID_FIELD_VALUE", "endpoints", None));
    }
    let address = |text: &str| match text.split_once(':')? {
        ("ipv4", address) => address.parse().ok().map(IpAddr::V4),
        ("ipv6", address) => address.parse().ok().map(IpAddr::V6),
        _ => None,
    };
    let addresses = endpoints
        .iter()
        .map(|text| address(text).ok_or_else(|| QuestionError::field("E_INVALID_FIELD_VALUE", "endpoints", Some(text))))
        .collect::<Result<_, _>>()?;
    Ok((endpoints.into_iter().map(str::to_owned).collect(), addresses))
}

/// Why an answer with status 200 to `GET /capacity` is useless.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It cannot be read.
    #[error("the oracle's answer cannot be read: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is for another address.
    #[error("the oracle was asked for {asked} and answered for {prefix}")]
    OtherPrefix {
        /// The address.
        asked: IpAddr,
        /// The answer.
        prefix: IpNet,
    },
}

/// The answer to `GET /capacity` for `asked`.
pub fn told_capacity(body: &[u8], asked: IpAddr) -> Result<Capacity, AnswerError> {
    let capacity: Capacity = serde_json::from_slice(body)?;
    if !capacity.prefix.contains(&asked) {
        return Err(AnswerError::OtherPrefix { asked, prefix: capacity.prefix });
    }
    Ok(capacity)
}
