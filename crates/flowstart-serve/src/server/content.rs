//! Objects of a server: files below a folder, and generated ones.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes as Chunk;
use flowstart_core::units::Bytes;
use percent_encoding::percent_decode_str;

/// Objects of any size are below this path: `/generate/2MB`.
const GENERATED: &str = "/generate/";
/// The only hidden folder that is public (RFC 8615).
const WELL_KNOWN: &str = ".well-known";
/// What an answer repeats of a path.
const LONGEST_SHOWN: usize = 40;
/// Largest generated object.
pub(crate) const LARGEST: Bytes = Bytes::new(1_000_000_000_000);
/// Bytes read from a file, or generated, at a time.
const CHUNK: usize = 64 << 10;
/// Files that are open at a time where the system lets a process open any number.
const MOST_FILES: usize = 1 << 20;
/// The repeated content of generated objects.
static PATTERN: [u8; CHUNK] = pattern();

/// Each byte is its position modulo a prime, so a missing or repeated part shows.
const fn pattern() -> [u8; CHUNK] {
    let mut bytes = [0; CHUNK];
    let mut place = 0;
    while place < CHUNK {
        bytes[place] = (place % 251) as u8;
        place += 1;
    }
    bytes
}

/// Why there is no object to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The path is invalid.
    BadPath(String),
    /// The object does not exist, or is not public.
    NotFound,
    /// The file exists but cannot be read.
    Unreadable(String),
}

/// Where objects come from.
#[derive(Debug)]
pub(crate) struct Content {
    root: Option<PathBuf>,
}

/// An object to send.
#[derive(Debug)]
pub(crate) struct Object {
    /// Its size.
    pub(crate) size: Bytes,
    /// Its type, for the `content-type` field.
    pub(crate) media_type: String,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Generated { left: u64 },
    File { file: tokio::fs::File, left: u64 },
}

impl Content {
    /// Files below `root`, and generated objects.
    ///
    /// # Errors
    ///
    /// Why `root` cannot be served.
    pub(crate) fn new(root: Option<&Path>) -> Result<Self, String> {
        let checked = |root: &Path| {
            let whole = root.canonicalize().map_err(|error| format!("cannot be served: {error}"))?;
            if whole.is_dir() { Ok(whole) } else { Err("cannot be served: it is no folder".to_owned()) }
        };
        Ok(Self { root: root.map(checked).transpose()? })
    }

    /// The object that `path`, the path of a URL, names. Blocks while the file is opened.
    pub(crate) fn open(&self, path: &str) -> Result<Object, Absent> {
        if let Some(size) = path.strip_prefix(GENERATED) {
            return generated(size);
        }
        let root = self.root.as_ref().ok_or(Absent::NotFound)?;
        let file = below(root, path)?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => Absent::NotFound,
            _ => Absent::Unreadable(error.to_string()),
        };
        // A link may lead anywhere; only files below the root are served.
        let mut file = file.canonicalize().map_err(failed)?;
        if file.is_dir() {
            file = file.join("index.html").canonicalize().map_err(failed)?;
        }
        let Ok(inside) = file.strip_prefix(root) else { return Err(Absent::NotFound) };
        // Nor what a link hides.
        if inside.iter().any(|part| part != WELL_KNOWN && part.as_encoded_bytes().starts_with(b".")) {
            return Err(Absent::NotFound);
        }
        let opened = flowstart_files::open_without_waiting(&file).map_err(failed)?;
        let metadata = opened.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(Absent::NotFound);
        }
        let media_type = mime_guess::from_path(&file).first_or_octet_stream().to_string();
        let left = metadata.len();
        let body = Body::File { file: tokio::fs::File::from_std(opened), left };
        Ok(Object { size: Bytes::new(left), media_type, body })
    }
}

/// Whether `path` names no file.
pub(super) fn is_generated(path: &str) -> bool {
    path.starts_with(GENERATED)
}

/// How many files may be open at a time: half of what the system lets this process open. The rest is for qlog, stores,
/// metrics and whatever else the host does.
pub(super) fn most_files() -> usize {
    #[cfg(unix)]
    let most = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).map_or(256, |(now, _)| now);
    #[cfg(not(unix))]
    let most = 512;
    usize::try_from(most / 2).unwrap_or(MOST_FILES).clamp(1, MOST_FILES)
}

fn generated(size: &str) -> Result<Object, Absent> {
    let shown: String = size.chars().take(LONGEST_SHOWN).collect();
    let refused = |cause: &dyn std::fmt::Display| Absent::BadPath(format!("{GENERATED}{shown}: {cause}"));
    let size: Bytes = size.parse().map_err(|error| refused(&error))?;
    if size > LARGEST {
        return Err(refused(&format!("allowed is 0B to {LARGEST}")));
    }
    let body = Body::Generated { left: size.get() };
    Ok(Object { size, media_type: "application/octet-stream".into(), body })
}

/// The file that a URL's path names, below `root`.
pub(crate) fn below(root: &Path, path: &str) -> Result<PathBuf, Absent> {
    let decoded =
        percent_decode_str(path).decode_utf8().map_err(|_| Absent::BadPath("the path is not UTF-8".into()))?;
    let mut file = root.to_owned();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            WELL_KNOWN => file.push(part),
            // A separator or drive of another platform, the parent, and what is hidden.
            _ if part.starts_with('.') || part.contains(['\\', ':', '\0']) => return Err(Absent::NotFound),
            _ => file.push(part),
        }
    }
    Ok(file)
}

impl Object {
    /// The next part, `None` after the last.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Chunk>> {
        match &mut self.body {
            Body::Generated { left: 0 } | Body::File { left: 0, .. } => Ok(None),
            Body::Generated { left } => {
                let length = usize::try_from(*left).unwrap_or(CHUNK).min(CHUNK);
                *left -= length as u64;
                Ok(Some(Chunk::from_static(&PATTERN).slice(..length)))
            }
            Body::File { file, left } => {
                let length = usize::try_from(*left).unwrap_or(CHUNK).min(CHUNK);
                let mut chunk = vec![0; length];
                tokio::io::AsyncReadExt::read_exact(file, &mut chunk).await?;
                *left -= length as u64;
                Ok(Some(chunk.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let root = Path::new("/srv");
        assert_eq!(below(root, "/a/b.txt").unwrap(), Path::new("/srv/a/b.txt"));
        assert_eq!(below(root, "//a/./b%20c").unwrap(), Path::new("/srv/a/b c"));
        for hostile in ["/../etc/passwd", "/a/%2e%2e/%2e%2e/etc", "/.git/config", "/a\\..\\b", "/c:/x", "/a%00b"] {
            assert_eq!(below(root, hostile), Err(Absent::NotFound), "{hostile}");
        }
        assert!(matches!(below(root, "/%ff"), Err(Absent::BadPath(_))));
        // An encoded slash separates like any other.
        assert_eq!(below(root, "/..%2fetc"), Err(Absent::NotFound));
    }

    #[test]
    fn files_have_a_type_and_links_do_not_lead_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("site");
        std::fs::create_dir_all(root.join("empty")).unwrap();
        std::fs::write(root.join("index.html"), "<p>").unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("secret"), root.join("link")).unwrap();
        std::fs::write(root.join(".hidden"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join(".hidden"), root.join("shown")).unwrap();
        let content = Content::new(Some(&root)).unwrap();
        let page = content.open("/").map(|object| (object.size, object.media_type));
        assert_eq!(page, Ok((Bytes::new(3), "text/html".into())));
        #[cfg(unix)]
        nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        for missing in ["/link", "/shown", "/nothing", "/empty", "/index.html/x", "/pipe"] {
            assert_eq!(content.open(missing).map(|_| ()), Err(Absent::NotFound), "{missing}");
        }
        assert!(Content::new(Some(&root.join("nothing"))).unwrap_err().contains("cannot be served"));
        assert!(Content::new(Some(&root.join("index.html"))).unwrap_err().contains("no folder"));
    }

    #[tokio::test]
    async fn generated_objects_have_the_size_asked_for() {
        let content = Content::new(None).unwrap();
        let mut object = content.open("/generate/70KB").unwrap();
        assert_eq!(object.size, Bytes::new(70_000));
        let mut lengths = Vec::new();
        while let Some(chunk) = object.next().await.unwrap() {
            lengths.push(chunk.len());
        }
        // 70000 = 65536 + 4464
        assert_eq!(lengths, [65_536, 4464]);
        assert_eq!(content.open("/generate/0B").unwrap().next().await.unwrap(), None);
        for refused in ["/generate/", "/generate/2XB", "/generate/-1", "/generate/2000GB", "/generate/1MB/x"] {
            assert!(matches!(content.open(refused), Err(Absent::BadPath(_))), "{refused}");
        }
    }
}
