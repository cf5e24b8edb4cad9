//! The socket of `--control`: who may write to it asks for statistics, a line of JSON for each line.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use flowstart_core::time::Timestamp;
use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr};
use nix::sys::stat::{Mode, umask};
use serde::Deserialize;
use serde_json::{Value, json};

use super::latest::Latest;
use super::told::as_json;
use super::units::seconds;
use crate::failure::Failure;

/// Clients at a time.
const MOST_CLIENTS: usize = 16;
/// Bytes of a request with its end.
const LONGEST_REQUEST: u64 = 256;
/// How long a client may say nothing.
const IDLE: Duration = Duration::from_secs(60);
/// How long it may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the system is given when it cannot accept.
const PAUSE: Duration = Duration::from_millis(100);

/// What clients may ask.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Request {
    Get(Subject),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Subject {
    Statistics,
}

/// The socket, whose file is gone with it.
#[derive(Debug)]
pub(super) struct Control {
    path: PathBuf,
    /// Its device and number, by which it is told from what another program put there.
    file: Option<(u64, u64)>,
}

impl Control {
    /// Answers there until the process ends or this is dropped. Only the user of this process may connect.
    pub(super) fn listen(path: &Path, latest: &Latest) -> Result<Self, Failure> {
        let unusable =
            |cause: &dyn std::fmt::Display| Failure::Input(format!("--control `{}`: {cause}", path.display()));
        remove_remains(path).map_err(|cause| unusable(&cause))?;
        // The socket has its mode from the begin, so nobody connects before it is set.
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        umask(before);
        let listener = bound.map_err(|cause| unusable(&cause))?;
        let latest = latest.clone();
        thread::spawn(move || accept(&listener, &latest));
        Ok(Self { path: path.to_owned(), file: identity(path) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.file.is_some() && identity(&self.path) == self.file {
            drop(fs::remove_file(&self.path));
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Removes a socket on which nobody listens any more, as a router leaves it that was killed. All else is refused.
fn remove_remains(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::other("there is something that is no socket; name a path where nothing is"));
    }
    match connect(path) {
        Err(Errno::ECONNREFUSED) => fs::remove_file(path),
        // Whoever listens and is slow to accept is there, too.
        Ok(()) | Err(Errno::EAGAIN) => Err(io::Error::other("a program answers there already")),
        Err(error) => Err(error.into()),
    }
}

/// Connects without waiting for a place in the queue.
fn connect(path: &Path) -> nix::Result<()> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
}

fn accept(listener: &UnixListener, latest: &Latest) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        // The thread ends with the process.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let timely = stream.set_read_timeout(Some(IDLE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        if timely.is_err() {
            continue;
        }
        let place = Place::take(&clients);
        let Some(place) = place else {
            drop(say(&stream, &wrong(&format!("{MOST_CLIENTS} clients are here already"))));
            continue;
        };
        let latest = latest.clone();
        // Without a thread the client is gone, and its place with it.
        drop(thread::Builder::new().name("control".into()).spawn(move || {
            let _place = place;
            drop(serve(&stream, &latest));
        }));
    }
}

/// The place of one client.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(clients: &Arc<AtomicUsize>) -> Option<Self> {
        let is_free = |taken: usize| (taken < MOST_CLIENTS).then_some(taken + 1);
        clients.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_free).ok().map(|_| Self(clients.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers one client until it goes, is silent for too long, or says too much.
fn serve(stream: &UnixStream, latest: &Latest) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        reader.by_ref().take(LONGEST_REQUEST).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST_REQUEST {
            return say(stream, &wrong(&format!("a request has at most {LONGEST_REQUEST} bytes with its end")));
        }
        say(stream, &answer(&line, latest))?;
    }
}

fn say(mut stream: &UnixStream, answer: &Value) -> io::Result<()> {
    stream.write_all(format!("{answer}\n").as_bytes())
}

fn wrong(told: &str) -> Value {
    json!({ "error": told })
}

fn answer(line: &[u8], latest: &Latest) -> Value {
    match serde_json::from_slice(line) {
        Ok(Request::Get(Subject::Statistics)) => {
            let (at, told) = latest.get();
            let mut statistics = as_json(&told);
            statistics["seconds"] = json!(seconds(at.since(Timestamp::ZERO)));
            json!({ "statistics": statistics })
        }
        Err(error) => wrong(&format!("{error}; use {{\"get\":\"statistics\"}}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What a client gets for these bytes.
    fn asked(path: &Path, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        told
    }

    fn listening() -> (tempfile::TempDir, PathBuf, Control) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let control = Control::listen(&path, &Latest::default()).unwrap();
        (folder, path, control)
    }

    #[test]
    fn each_line_gets_a_line_of_json() {
        let (_folder, path, _control) = listening();
        let told = asked(&path, b"{\"get\":\"statistics\"}\n{\"get\": \"statistics\"}\n{\"get\":\"all\"}\n[]\n\xff\n");
        let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 5, "{told}");
        assert!(lines[..2].iter().all(|line| line["statistics"]["down"]["waiting"] == 0), "{told}");
        for line in &lines[2..] {
            assert!(line["error"].as_str().unwrap().ends_with("use {\"get\":\"statistics\"}"), "{told}");
        }
    }

    /// A program that accepts nobody has a queue that is full; a connect that waits for a place would not end.
    #[test]
    fn a_queue_that_is_full_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let listener = socket::socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).unwrap();
        socket::bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        socket::listen(&listener, socket::Backlog::new(0).unwrap()).unwrap();
        let _waits = UnixStream::connect(&path).unwrap();
        assert_eq!(connect(&path), Err(Errno::EAGAIN));
        let error = remove_remains(&path).unwrap_err().to_string();
        assert!(error.contains("a program answers there already"), "{error}");
    }

    #[test]
    fn a_request_without_an_end_is_cut_off() {
        let (_folder, path, _control) = listening();
        let told = asked(&path, &[b' '; 256]);
        assert_eq!(told, "{\"error\":\"a request has at most 256 bytes with its end\"}\n");
    }

    #[test]
    fn only_its_user_may_connect_and_the_file_goes_with_the_router() {
        let (_folder, path, control) = listening();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_there_is_not_replaced_but_for_what_a_killed_router_left() {
        let (folder, path, control) = listening();
        let refused = |path: &Path| match Control::listen(path, &Latest::default()) {
            Err(Failure::Input(told)) => told,
            other => panic!("{other:?}"),
        };
        assert!(refused(&path).ends_with("a program answers there already"));
        let file = folder.path().join("file");
        fs::write(&file, "kept").unwrap();
        assert!(refused(&file).contains("no socket") && fs::read(&file).unwrap() == b"kept");
        assert!(refused(&folder.path().join("missing/control")).contains("No such file"));
        drop(control);
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as a process leaves it that is killed");
        drop(Control::listen(&path, &Latest::default()).unwrap());
        // What another program has put there meanwhile stays.
        let control = Control::listen(&path, &Latest::default()).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "other").unwrap();
        drop(control);
        assert_eq!(fs::read(&path).unwrap(), b"other");
    }

    #[test]
    fn more_clients_than_there_are_places_are_sent_away() {
        let (_folder, path, _control) = listening();
        let mut here: Vec<_> = (0..MOST_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for stream in &mut here {
            // Its answer says that it has a place.
            stream.write_all(b"{\"get\":\"statistics\"}\n").unwrap();
            assert!(BufReader::new(&*stream).lines().next().unwrap().unwrap().contains("statistics"));
        }
        let mut told = String::new();
        UnixStream::connect(&path).unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(told, "{\"error\":\"16 clients are here already\"}\n");
        here.clear();
        let began = std::time::Instant::now();
        while asked(&path, b"{\"get\":\"statistics\"}\n").contains("error") {
            assert!(began.elapsed() < Duration::from_secs(10), "no place becomes free");
        }
    }
}
