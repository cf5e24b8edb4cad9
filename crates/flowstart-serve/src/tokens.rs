//! Tokens by which servers recognize the addresses of returning clients (`NEW_TOKEN`, RFC 9000, section 8.1.3).
//!
//! A client keeps its tokens in a file. Each line is a server's name, a space, and the token in hexadecimal digits. A
//! token is used once: it is removed from the file before a connection sends it, even if the connection fails. A server
//! remembers which of its tokens have come back. Processes with one file take turns: none sends what another has taken,
//! and none loses what another has got. Tokens go by a server's name without its port, as the QUIC stack asks for them:
//! two servers of one name take each other's, which then prove nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use noq::{TokenLog, TokenReuseError, TokenStore};

use crate::hexadecimal;

/// Longest token that is kept, in bytes: the first packet of a connection has 1200, and needs most of them for itself.
const LONGEST: usize = 512;
/// Tokens that are kept of a server, the latest ones.
const PER_SERVER: usize = 4;
/// Tokens that a server remembers as used. When it forgets them, it stops accepting older ones.
const USED: usize = 1 << 16;
/// Largest file that is read.
const LARGEST_FILE: u64 = 1 << 20;

/// Why tokens are not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The file exists but is malformed.
    #[error("{}: {problem}", file.display())]
    Unusable {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written: {cause}", file.display())]
    Unwritable {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
}

/// A client's tokens, and where they are kept.
#[derive(Debug)]
pub struct Tokens {
    file: PathBuf,
    /// Who changes the file: connections of one process queue here, and processes at the file.
    turn: Mutex<()>,
    /// Those that are not in the file yet.
    received: Mutex<Kept>,
    /// Those for the next connections, which are no more in the file.
    reserved: Mutex<Kept>,
    /// The file could not be changed, so no token is taken from it any more.
    is_given_up: AtomicBool,
}

/// Servers' names and their tokens, the latest at the end.
type Kept = Vec<(String, Bytes)>;

impl Tokens {
    /// Those in `file`; none if it does not exist yet.
    ///
    /// # Errors
    ///
    /// The file and line of an invalid token.
    pub fn read(file: &Path) -> Result<Self, TokensError> {
        let tokens = Self {
            file: file.to_owned(),
            turn: Mutex::default(),
            received: Mutex::default(),
            reserved: Mutex::default(),
            is_given_up: AtomicBool::new(false),
        };
        tokens.in_file()?;
        Ok(tokens)
    }

    fn in_file(&self) -> Result<Kept, TokensError> {
        let failed = |problem: String| TokensError::Unusable { file: self.file.clone(), problem };
        let read = flowstart_files::read_if_any(&self.file, LARGEST_FILE).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(read.unwrap_or_default()).map_err(|error| failed(error.to_string()))?;
        let mut kept = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
            let token = line.split_once(' ').and_then(|(server, digits)| Some((server, hexadecimal::decode(digits)?)));
            let (server, token) = token
                .filter(|(server, token)| !server.is_empty() && (1..=LONGEST).contains(&token.len()))
                .ok_or_else(|| {
                    let allowed = format!("a server's name, a space and 2 to {} hexadecimal digits", 2 * LONGEST);
                    failed(format!("line {number}: use {allowed}"))
                })?;
            kept.push((server.to_owned(), token.into()));
        }
        Ok(kept)
    }

    /// Takes a token for the next connection to this server, and the file has it no more, also if this process is
    /// killed. It waits for the disk, so it comes before anything is measured.
    pub(crate) fn reserve(&self, server_name: &str) {
        if self.is_given_up.load(Ordering::Relaxed) {
            return;
        }
        let taken = self.change(|kept| {
            let latest = kept.iter().rposition(|(server, _)| server == server_name)?;
            Some(kept.remove(latest))
        });
        match taken {
            Ok(token) => token.into_iter().for_each(|token| locked(&self.reserved).push(token)),
            // Who saves at the end hears why that does not work, and later connections do not wait for it. A token
            // that the file still has may be sent by others.
            Err(_) => self.is_given_up.store(true, Ordering::Relaxed),
        }
    }

    /// Writes what was received into the file. It appears whole or not at all.
    ///
    /// # Errors
    ///
    /// Why it cannot be written, or what is wrong with what is there by now.
    pub fn save(&self) -> Result<(), TokensError> {
        self.change(|_| ())
    }

    /// Changes the file, to which what was received comes first, and no other process changes it meanwhile.
    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> Result<T, TokensError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let unwritable = |cause| TokensError::Unwritable { file: self.file.clone(), cause };
        let _held = flowstart_files::hold(&self.file).map_err(unwritable)?;
        let mut kept = self.in_file()?;
        // Connections receive more while the disk is waited for.
        let received = std::mem::take(&mut *locked(&self.received));
        for token in &received {
            keep(&mut kept, token.clone());
        }
        let changed = change(&mut kept);
        let lines = kept.iter().map(|(server, token)| format!("{server} {}\n", hexadecimal::encode(token)));
        // The latest are at the end, and no more is written than can be read again.
        let mut lines: Vec<String> = lines
            .rev()
            .scan(0, |length, line| {
                *length += line.len() as u64;
                (*length <= LARGEST_FILE).then_some(line)
            })
            .collect();
        lines.reverse();
        let written = flowstart_files::replace_secret(&self.file, lines.concat().as_bytes());
        if written.is_err() {
            locked(&self.received).splice(..0, received);
        }
        written.map_err(unwritable)?;
        Ok(changed)
    }
}

/// Adds a token that is not there, and gives up a server's oldest if it has too many.
fn keep(kept: &mut Kept, (server_name, token): (String, Bytes)) {
    if kept.iter().any(|(server, known)| *server == server_name && *known == token) {
        return;
    }
    if kept.iter().filter(|(server, _)| *server == server_name).count() >= PER_SERVER
        && let Some(oldest) = kept.iter().position(|(server, _)| *server == server_name)
    {
        kept.remove(oldest);
    }
    kept.push((server_name, token));
}

fn locked(tokens: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    tokens.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TokenStore for Tokens {
    fn insert(&self, server_name: &str, token: Bytes) {
        if token.len() > LONGEST {
            return;
        }
        keep(&mut locked(&self.received), (server_name.to_owned(), token));
    }

    fn take(&self, server_name: &str) -> Option<Bytes> {
        let mut reserved = locked(&self.reserved);
        let place = reserved.iter().position(|(server, _)| server == server_name)?;
        Some(reserved.swap_remove(place).1)
    }
}

/// Tokens that clients have sent back. A second time they prove nothing, because anyone who saw the first could send
/// them from anywhere.
#[derive(Debug)]
pub(crate) struct Used(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    nonces: HashSet<u128>,
    /// It is unknown whether tokens older than this were used.
    known_since: SystemTime,
}

impl Default for Used {
    fn default() -> Self {
        Self(Mutex::new(Seen { nonces: HashSet::new(), known_since: SystemTime::UNIX_EPOCH }))
    }
}

impl TokenLog for Used {
    fn check_and_insert(&self, nonce: u128, issued: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if issued < seen.known_since || !seen.nonces.insert(nonce) {
            return Err(TokenReuseError);
        }
        if seen.nonces.len() >= USED {
            *seen = Seen { nonces: HashSet::new(), known_since: SystemTime::now() };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_kept_in_a_file_and_used_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let tokens = Tokens::read(&file).unwrap();
        for number in 0..6_u8 {
            tokens.insert("a.example", vec![number, 255].into());
        }
        tokens.insert("b.example", vec![9].into());
        tokens.insert("b.example", vec![7; LONGEST + 1].into());
        tokens.save().unwrap();
        let tokens = Tokens::read(&file).unwrap();
        let lines = || std::fs::read_to_string(&file).unwrap();
        assert_eq!(tokens.take("a.example"), None, "none is reserved");
        // The latest first; two of six were given up. Before one leaves, the file has it no more.
        tokens.reserve("a.example");
        assert_eq!(lines(), "a.example 02ff\na.example 03ff\na.example 04ff\nb.example 09\n");
        assert_eq!(tokens.take("a.example").map(|token| token[0]), Some(5));
        for _ in 0..9 {
            tokens.reserve("a.example");
        }
        let taken: Vec<_> = std::iter::from_fn(|| tokens.take("a.example")).map(|token| token[0]).collect();
        assert_eq!(taken.len(), 3);
        assert_eq!((lines().as_str(), tokens.take("b.example")), ("b.example 09\n", None));
    }

    #[test]
    fn two_processes_send_no_token_twice_and_lose_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, "a.example 01\na.example 02\n").unwrap();
        let [one, other] = [(); 2].map(|()| Tokens::read(&file).unwrap());
        one.reserve("a.example");
        other.reserve("a.example");
        let taken = [&one, &other].map(|tokens| tokens.take("a.example").unwrap()[0]);
        assert_eq!(taken, [2, 1]);
        one.insert("a.example", vec![3].into());
        other.insert("b.example", vec![4].into());
        other.save().unwrap();
        one.save().unwrap();
        one.save().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "b.example 04\na.example 03\n");
        // What became unusable meanwhile stays as it is, and a token that the file still has is not sent.
        std::fs::write(&file, "a.example 03\nnonsense\n").unwrap();
        one.reserve("a.example");
        assert_eq!(one.take("a.example"), None);
        assert!(matches!(one.save(), Err(TokensError::Unusable { .. })));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a.example 03\nnonsense\n");
    }

    #[test]
    fn a_token_proves_an_address_once() {
        let used = Used::default();
        let (start, lifetime) = (SystemTime::now(), Duration::from_secs(60));
        assert!(used.check_and_insert(0, start, lifetime).is_ok());
        assert!(used.check_and_insert(0, start, lifetime).is_err());
        for nonce in 1..USED as u128 {
            assert!(used.check_and_insert(nonce, start, lifetime).is_ok());
        }
        // It is full and has forgotten tokens: it refuses older ones and accepts newer ones.
        assert!(used.check_and_insert(0, start, lifetime).is_err());
        let later = SystemTime::now() + lifetime;
        assert!(used.check_and_insert(0, later, lifetime).is_ok());
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let long = format!("a.example {}", "00".repeat(LONGEST + 1));
        for wrong in ["a.example", "a.example 0", "a.example 0g", "a.example +1", " 00", "a.example ", &long] {
            std::fs::write(&file, format!("b.example 09\n{wrong}\n")).unwrap();
            let Err(TokensError::Unusable { problem, .. }) = Tokens::read(&file) else { panic!("{wrong}") };
            assert!(problem.starts_with("line 2: "), "{problem}");
        }
    }
}
