//! Where there are no calls for it, every function refuses.

use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, SocketAddr};

use crate::{Header, Received, Unable};

fn refused<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "options of IP need Linux"))
}

/// Refuses.
///
/// # Errors
///
/// Always.
pub fn show_headers<S>(_: &S, _: bool) -> Result<()> {
    refused()
}

/// Refuses.
///
/// # Errors
///
/// Always.
pub fn receive<S>(_: &S, _: &mut [u8]) -> Result<Received> {
    refused()
}

/// Refuses.
///
/// # Errors
///
/// Always.
pub fn peek<S>(_: &S, _: &mut [u8]) -> Result<Received> {
    refused()
}

/// Refuses.
///
/// # Errors
///
/// Always.
pub fn send<S>(_: &S, _: &[u8], _: Option<SocketAddr>, _: &Header<'_>) -> Result<()> {
    refused()
}

/// Refuses.
///
/// # Errors
///
/// Always.
pub fn try_sending(_: IpAddr, _: &[u8]) -> std::result::Result<(), Unable> {
    Err(Unable::System)
}
