//! What to get.

use std::net::SocketAddr;

use http::Uri;

use super::ClientError;
use crate::printable;

/// What to get: an `https` URL with a host.
#[derive(Clone, Debug)]
pub struct Url {
    pub(super) uri: Uri,
    pub(super) host: String,
}

impl Url {
    /// Checks it.
    ///
    /// # Errors
    ///
    /// [`ClientError::Url`] when it has another scheme or no host.
    pub fn new(uri: Uri) -> Result<Self, ClientError> {
        let wrong = |problem| ClientError::Url { url: uri.to_string(), problem };
        if uri.scheme_str() != Some("https") {
            return Err(wrong("it does not begin with https://"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        // What stands after the host: nothing, or a colon and a port.
        let after = authority.rsplit_once(host).map_or("", |(_, after)| after);
        if !after.is_empty() && uri.port_u16().is_none() {
            return Err(wrong("its port is none of 0 to 65535"));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { uri, host })
    }

    /// The addresses of its host.
    ///
    /// # Errors
    ///
    /// [`ClientError::Host`] when it has none.
    pub async fn addresses(&self) -> Result<Vec<SocketAddr>, ClientError> {
        let unknown = |cause| ClientError::Host { host: self.host.clone(), cause };
        let port = self.uri.port_u16().unwrap_or(443);
        let found = tokio::net::lookup_host((self.host.as_str(), port)).await;
        let found: Vec<_> = found.map_err(|error| unknown(error.to_string()))?.collect();
        if found.is_empty() { Err(unknown("it has no address".into())) } else { Ok(found) }
    }

    pub(super) fn failed(&self, cause: &dyn std::fmt::Display) -> ClientError {
        // A server says why it closes a connection, and what it says is shown to a user.
        ClientError::Failed { url: self.uri.to_string(), cause: printable(&cause.to_string()) }
    }
}
