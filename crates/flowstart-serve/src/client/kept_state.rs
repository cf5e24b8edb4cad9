//! The path state that the server gave, for the next connection of this command, and of later ones.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flowstart_quic::transport_parameters::MAX_PATH_STATE;

use super::ClientError;

/// A server's path state, and the file in which it stays from run to run.
#[derive(Debug)]
pub(super) struct KeptState {
    file: PathBuf,
    latest: Mutex<Latest>,
    /// Why the latest one is not in the file.
    unkept: Mutex<Option<io::Error>>,
}

/// What came before a client was given up is kept, too.
impl Drop for KeptState {
    fn drop(&mut self) {
        self.keep();
    }
}

/// The latest path state.
#[derive(Debug, Default)]
struct Latest {
    state: Option<Vec<u8>>,
    /// Whether it is not in the file yet.
    is_new: bool,
}

impl KeptState {
    /// The one in `file`, none if there is no file yet.
    ///
    /// # Errors
    ///
    /// [`ClientError::File`] when it cannot be read.
    pub(super) fn read(file: PathBuf) -> Result<Self, ClientError> {
        match flowstart_files::read_if_any(&file, MAX_PATH_STATE as u64) {
            Ok(state) => {
                let latest = Mutex::new(Latest { state, is_new: false });
                Ok(Self { file, latest, unkept: Mutex::default() })
            }
            Err(error) => Err(ClientError::File { file, problem: error.to_string() }),
        }
    }

    /// The latest one.
    pub(super) fn latest(&self) -> Option<Vec<u8>> {
        self.locked().state.clone()
    }

    /// Takes `state` for the next connection. What a client may not send is not worth keeping.
    pub(super) fn learn(&self, state: Vec<u8>) {
        if (1..=MAX_PATH_STATE).contains(&state.len()) {
            *self.locked() = Latest { state: Some(state), is_new: true };
        }
    }

    /// Puts the latest one into the file. Nothing is measured meanwhile: it takes as long as the disk.
    pub(super) fn keep(&self) {
        let mut latest = self.locked();
        if let Some(state) = latest.state.as_deref().filter(|_| latest.is_new) {
            let written = flowstart_files::replace_secret(&self.file, state);
            *self.unkept.lock().unwrap_or_else(PoisonError::into_inner) = written.err();
        }
        latest.is_new = false;
    }

    /// Why the latest one is not in the file, told once.
    pub(super) fn unkept(&self) -> Option<ClientError> {
        let error = self.unkept.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(ClientError::File { file: self.file.clone(), problem: format!("cannot be written: {error}") })
    }

    /// The error of a state that cannot be sent.
    pub(super) fn refused(&self, error: &impl ToString) -> ClientError {
        ClientError::File { file: self.file.clone(), problem: error.to_string() }
    }

    fn locked(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
