//! A server's measurements of a path, sealed and kept by the client.

use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use flowstart_core::path::SavedPath;
use flowstart_quic::Status;
use flowstart_quic::careful_resume::{Measured, OpenError, Sealer};
use flowstart_sensing::path_store::Prefixes;

use crate::hexadecimal;
use crate::tls::provider;

/// The field of an answer's trailer in which a client gets its path state, in hexadecimal digits.
pub(crate) const PATH_STATE: &str = "flowstart-path-state";

/// Bytes that are read of a key's file: more than a key has, so one that is too long is told from a key.
const LARGEST_KEY: u64 = 4096;

/// Seals the measurements of connections; clients keep the sealed state and send it with the next connection.
#[derive(Debug)]
pub(crate) struct Seal {
    sealer: Sealer,
    prefixes: Prefixes,
}

impl Seal {
    /// With the key in `file`; servers that share it open each other's states.
    ///
    /// # Errors
    ///
    /// Why the file holds no key.
    pub(crate) fn new(file: &Path) -> Result<Self, String> {
        let key = flowstart_files::read(file, LARGEST_KEY).map_err(|error| error.to_string())?;
        let sealer = Sealer::new(&key).map_err(|error| error.to_string())?;
        Ok(Self { sealer, prefixes: Prefixes::default() })
    }

    /// The measurements of a connection to `client` so far; `None` before there are any.
    pub(crate) fn seal(&self, client: IpAddr, status: &Status) -> Option<String> {
        let prefix = self.prefixes.prefix_of(client).network();
        let random = provider().secure_random;
        let sealed = self.sealer.seal(&Measured::of(status)?, prefix, SystemTime::now(), random).ok()?;
        Some(hexadecimal::encode(&sealed))
    }

    /// The measurements of an earlier connection to `client`.
    pub(crate) fn open(&self, client: IpAddr, sealed: &[u8]) -> Result<SavedPath, OpenError> {
        self.sealer.open(sealed, self.prefixes.prefix_of(client).network(), SystemTime::now())
    }
}
