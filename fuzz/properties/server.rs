//! What clients ask `flowstart serve` for.

#[path = "../../crates/flowstart-serve/src/server/content.rs"]
#[allow(dead_code, reason = "the server uses all of it")]
mod content;
#[path = "../../crates/flowstart-serve/src/http3/frames.rs"]
#[allow(dead_code, reason = "the server uses all of it")]
mod frames;
#[path = "../../crates/flowstart-serve/src/http3/head.rs"]
mod head;

use std::path::{Component, Path};

use super::text;
use content::{Absent, Content, LARGEST, below};
use frames::Frames;
use head::{Section, is_malformed};

/// The path of a request.
pub fn request_path(data: &[u8]) -> bool {
    // Paths that are no text do not reach the server; HTTP refuses them.
    let Some(text) = text(data) else { return false };
    let root = Path::new("/srv/www");
    let named = match below(root, text) {
        Ok(file) => {
            let inside = file.strip_prefix(root).expect("a file is below its root");
            for part in inside.components() {
                let Component::Normal(name) = part else { panic!("{}", file.display()) };
                assert!(name == ".well-known" || !name.as_encoded_bytes().starts_with(b"."), "{}", file.display());
            }
            true
        }
        Err(Absent::NotFound) => false,
        Err(error) => {
            assert_eq!(error, Absent::BadPath("the path is not UTF-8".into()));
            false
        }
    };
    // Without files there is only what is made on the spot.
    let content = Content::new(None).expect("no folder can be wrong");
    match content.open(text) {
        Ok(object) => assert!(object.size <= LARGEST && text.starts_with("/generate/")),
        Err(Absent::BadPath(cause)) => assert!(cause.starts_with("/generate/"), "{cause}"),
        Err(Absent::NotFound) => assert!(!text.starts_with("/generate/")),
        Err(Absent::Unreadable(cause)) => panic!("{cause}"),
    }
    named
}

/// A request's stream, which is tried as a response's, too, behind the size of the pieces in which it comes: however it
/// is cut, the same is refused.
pub fn request_stream(data: &[u8]) -> bool {
    let Some((&piece, stream)) = data.split_first() else { return false };
    let in_pieces =
        |mut frames: Frames| stream.chunks(usize::from(piece).max(1)).try_for_each(|piece| frames.pass(piece));
    let whole = Frames::of_request().pass(stream);
    assert_eq!(in_pieces(Frames::of_request()), whole);
    assert_eq!(in_pieces(Frames::of_response()), Frames::of_response().pass(stream));
    // A field section behind the size of its first part: what is malformed stays so, whatever follows.
    let (first, _) = stream.split_at(usize::from(piece).min(stream.len()));
    for section in [Section::Request, Section::Response, Section::Trailers] {
        assert!(!is_malformed(section, first) || is_malformed(section, stream));
    }
    whole.is_ok()
}
