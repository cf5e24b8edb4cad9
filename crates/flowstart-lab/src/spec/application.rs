//! What a measured flow carries: `transfer`, `chunks:size=1MB,interval=2s,count=30`,
//! `page:objects=6,size=50KB,waves=3` or `video`. [`FORMS`] has their keys. `web:sessions=20` has a parser of its own
//! ([`super::web`]).

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::video::Video;
use flowstart_sim::transport::policy::Protocol;
use flowstart_sim::world::page::Page;
use serde::Serialize;

use super::form::{self, Form, Key};
use super::http::Http;
use super::size::LARGEST;
use super::{InputError, Spec, Written, http, video, web};

/// The default application: one transfer, whose size is a separate option.
pub const TRANSFER: &str = "transfer";

/// Most objects of a flow.
pub const MAX_OBJECTS: u32 = 10_000;
/// Time between two chunks.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(1_000_000);

/// An application whose flow is a stream of objects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objects {
    /// The chunks of a video at fixed intervals, as a DASH player with a full buffer requests them (ISO/IEC 23009-1
    /// calls them segments). A late chunk does not delay the next one.
    Chunks {
        /// Bytes of a chunk.
        size: Bytes,
        /// Time between two chunks.
        interval: Duration,
        /// Number of chunks.
        count: u32,
    },
    /// The objects of a web page over one connection, in waves ([`Pattern::Page`]).
    Page {
        /// Objects of a wave.
        objects: u32,
        /// Bytes of an object.
        size: Bytes,
        /// Number of waves.
        waves: u32,
    },
    /// The objects of a web page over a version of HTTP.
    HttpPage {
        /// Objects of a wave.
        objects: u32,
        /// Bytes of an object.
        size: Bytes,
        /// Number of waves.
        waves: u32,
        /// The version, which chooses the protocol and the number of connections.
        http: Http,
    },
    /// The chunks of a video whose player decides on their rates and pauses while its buffer is full.
    Video(Video),
}

/// The time that a user of an application notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Felt {
    /// The completion time of the flow.
    Completion,
    /// The mean completion time of the objects.
    Objects,
    /// The time until the first picture.
    Start,
}

/// What users may write.
pub const FORMS: &[Form] = &[
    Form { name: TRANSFER, summary: "one transfer, of --size", example: TRANSFER, keys: &[] },
    Form {
        name: "chunks",
        summary: "a video: chunks at fixed intervals over one connection",
        example: "chunks:size=1MB,interval=2s,count=30",
        keys: &[
            Key::new("size", "bytes", "size of a chunk", ""),
            Key::new("interval", "1ms to 1000s", "time between two chunks", ""),
            Key::new("count", "1 to 10000", "number of chunks", ""),
        ],
    },
    Form {
        name: "page",
        summary: "a web page: waves of objects over one connection, or over those of a version of HTTP",
        example: "page:objects=6,size=50KB,waves=3",
        keys: &[
            Key::new("objects", "1 to 10000", "objects of a wave", ""),
            Key::new("size", "bytes", "size of an object", ""),
            Key::new("waves", "1 to 10000", "number of waves", ""),
            http::HTTP,
            http::CONNECTIONS,
            http::SHARDS,
            http::PIPELINING,
        ],
    },
    Form {
        name: video::VIDEO,
        summary: "adaptive video: a player that decides on the rate of each chunk and plays from a buffer",
        example: "video:count=30",
        keys: video::KEYS,
    },
    Form {
        name: web::WEB,
        summary: "sessions of users who open page after page, with a connection for each object",
        example: "web:sessions=20",
        keys: web::KEYS,
    },
];

/// An example of each application.
fn examples() -> String {
    FORMS.iter().map(|form| form.example).collect::<Vec<_>>().join(", ")
}

impl Objects {
    /// Reads an application; `None` is a transfer.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse(field: &str, text: &str) -> Result<Written<Option<Self>>, InputError> {
        let mut spec = Spec::parse(field, text)?;
        let (sizes, counts) = (Bytes::new(1)..=LARGEST, 1..=MAX_OBJECTS);
        // The first missing key, or the application.
        let read = match spec.choose(&form::names(FORMS), format_args!("use {}", examples()))? {
            TRANSFER => None,
            "chunks" => {
                let size = spec.within("size", sizes)?.ok_or("size");
                let interval = spec.within("interval", INTERVALS)?.ok_or("interval");
                let count = spec.within("count", counts)?.ok_or("count");
                Some(size.and_then(|size| Ok(Self::Chunks { size, interval: interval?, count: count? })))
            }
            "page" => {
                let size = spec.within("size", sizes)?.ok_or("size");
                let objects = spec.within("objects", counts.clone())?.ok_or("objects");
                let waves = spec.within("waves", counts)?.ok_or("waves");
                let http = Http::read(&mut spec)?;
                Some(size.and_then(|size| {
                    let (objects, waves) = (objects?, waves?);
                    Ok(match http {
                        None => Self::Page { objects, size, waves },
                        Some(http) => Self::HttpPage { objects, size, waves, http },
                    })
                }))
            }
            video::VIDEO => Some(Ok(Self::Video(video::read(&mut spec, MAX_OBJECTS)?))),
            // Their own parser reads them (`workload.rs`).
            _ => return Err(spec.refused(format_args!("use {}", examples()))),
        };
        spec.finish()?;
        let missing = |key| spec.refused(format_args!("{key} is missing; use {}", examples()));
        let value = read.transpose().map_err(missing)?;
        if let Some(value) = value {
            let (size, objects) = (value.largest(), value.objects());
            if objects > u64::from(MAX_OBJECTS) || objects.saturating_mul(size.get()) > LARGEST.get() {
                let allowed = format!("allowed are {MAX_OBJECTS} and 1000GB in all");
                return Err(spec.refused(format_args!("{objects} objects of {size}; {allowed}")));
            }
        }
        Ok(Written { text: text.to_owned(), value })
    }

    /// Number of objects.
    pub fn objects(&self) -> u64 {
        match *self {
            Self::Chunks { count, .. } | Self::Video(Video { count, .. }) => u64::from(count),
            Self::Page { objects, waves, .. } | Self::HttpPage { objects, waves, .. } => {
                u64::from(objects) * u64::from(waves)
            }
        }
    }

    /// Bytes of all objects, for a video at its highest rate.
    pub fn total(&self) -> Bytes {
        self.largest() * self.objects()
    }

    /// Bytes of an object, of the largest if they differ.
    fn largest(&self) -> Bytes {
        match *self {
            Self::Chunks { size, .. } | Self::Page { size, .. } | Self::HttpPage { size, .. } => size,
            Self::Video(video) => video.chunk_size(video.ladder.highest()),
        }
    }

    /// The video, if it is adaptive.
    pub fn video(&self) -> Option<&Video> {
        if let Self::Video(video) = self { Some(video) } else { None }
    }

    /// The version of HTTP, if one is given.
    pub fn http(&self) -> Option<Http> {
        if let Self::HttpPage { http, .. } = *self { Some(http) } else { None }
    }

    /// The protocol that the application needs.
    pub fn protocol(&self) -> Option<Protocol> {
        self.http().map(Http::protocol)
    }

    /// The page, if it is loaded over several connections.
    pub fn page(&self) -> Option<Page> {
        match *self {
            Self::HttpPage { objects, size, waves, http: Http::One { connections, shards, pipelining } } => {
                Some(Page { objects, size, waves, connections, hosts: shards, pipelining })
            }
            _ => None,
        }
    }

    /// What the sender's application writes.
    pub fn pattern(&self) -> Pattern {
        match *self {
            Self::Chunks { size, interval, count } => Pattern::Chunks { size, interval, count },
            Self::Page { objects, size, waves } | Self::HttpPage { objects, size, waves, .. } => {
                Pattern::Page { objects, size, waves }
            }
            Self::Video(video) => Pattern::Video(Box::new(video)),
        }
    }

    /// The time that a user notices. A page is complete with its flow; the end of a video depends only on the schedule
    /// of its chunks or on its playing time.
    pub fn felt(&self) -> Felt {
        match self {
            Self::Page { .. } | Self::HttpPage { .. } => Felt::Completion,
            Self::Chunks { .. } => Felt::Objects,
            Self::Video(_) => Felt::Start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::workload::Workload;

    fn application(text: &str) -> Option<Objects> {
        Objects::parse("--application", text).unwrap().value
    }

    #[test]
    fn chunks_and_pages_are_streams_of_objects() {
        assert_eq!(application("transfer"), None);
        let video = application("chunks:size=1MB,interval=2s,count=30").unwrap();
        let (size, interval) = (Bytes::new(1_000_000), Duration::from_millis(2000));
        assert_eq!(video, Objects::Chunks { size, interval, count: 30 });
        assert_eq!((video.objects(), video.total()), (30, Bytes::new(30_000_000)));
        let page = application("page:objects=6,size=50KB,waves=3").unwrap();
        assert_eq!((page.objects(), page.total()), (18, Bytes::new(900_000)));
        assert_eq!((video.felt(), page.felt()), (Felt::Objects, Felt::Completion));
    }

    #[test]
    fn a_version_of_http_chooses_the_protocol_and_the_connections() {
        let page = |http: &str| application(&format!("page:objects=6,size=50KB,waves=3{http}")).unwrap();
        assert_eq!((page("").protocol(), page("").http()), (None, None));
        assert_eq!(page(",http=2").protocol(), Some(Protocol::Tcp));
        assert_eq!((page(",http=3").protocol(), page(",http=3").page()), (Some(Protocol::Quic), None));
        let size = Bytes::new(50_000);
        let six = Page { objects: 6, size, waves: 3, connections: 6, hosts: 1, pipelining: 1 };
        assert_eq!((page(",http=1.1").page(), page(",http=1.1").protocol()), (Some(six), Some(Protocol::Tcp)));
        let sharded = page(",http=1.1,connections=2,shards=4").page();
        assert_eq!(sharded, Some(Page { connections: 2, hosts: 4, ..six }));
        assert_eq!(page(",http=1.1,pipelining=8").page(), Some(Page { pipelining: 8, ..six }));
        assert_eq!(page(",http=3").pattern(), page("").pattern());
    }

    #[test]
    fn every_form_that_is_listed_is_read_with_its_keys_and_no_others() {
        let read = |text: &str| Workload::parse_application("--application", text, Bytes::new(1460));
        for Form { name, example, keys, .. } in FORMS {
            assert!(*name == TRANSFER || read(example).is_ok(), "{example}: {:?}", read(example));
            if keys.is_empty() {
                continue;
            }
            let error = read(&format!("{name}:nothing=1")).unwrap_err();
            assert_eq!(form::declared(*keys), form::keys_in(&error), "{name}");
        }
    }

    #[test]
    fn wrong_applications_say_what_is_allowed() {
        let error = |text: &str| Objects::parse("--application", text).unwrap_err().to_string();
        assert!(error("film").contains("`film` is not known; use transfer, chunks:size=1MB"));
        assert!(error("pages:size=1KB").contains("`pages` is not known (did you mean `page`?); use transfer"));
        assert!(error("chunks:size=1MB,count=3").contains("interval is missing"));
        assert!(error("chunks").contains("size is missing"));
        assert!(error("page:size=1KB,objects=3").contains("waves is missing"));
        assert!(error("chunks:size=0B,interval=2s,count=3").contains("1B to 1000GB"));
        assert!(error("chunks:size=1MB,interval=0s,count=3").contains("1ms to 1000s"));
        assert!(error("chunks:size=1MB,interval=2s,count=0").contains("count is 0; allowed is 1 to 10000"));
        let page = |keys: &str| error(&format!("page:objects=2,size=1KB,waves=1{keys}"));
        assert!(page(",http=1.0").contains("allowed are 1.1 and 2 and 3"), "{}", page(",http=1.0"));
        for alone in [",shards=2", ",http=2,connections=6", ",http=3,shards=2", ",http=2,pipelining=2"] {
            assert!(page(alone).contains("are for http=1.1"), "{}", page(alone));
        }
        assert!(page(",http=1.1,connections=0").contains("connections is 0; allowed is 1 to 100"));
        assert!(page(",http=1.1,shards=4000000000").contains("allowed is 1 to 100"));
        let many = page(",http=1.1,connections=100,shards=100");
        assert!(many.contains("connections times shards is 10000; allowed is up to 256"), "{many}");
        for key in [http::CONNECTIONS, http::SHARDS] {
            assert!(key.values == "1 to 100" && key.meaning.ends_with(" up to 256"), "{key:?}");
        }
        assert!(error("page:size=1KB,objects=200,waves=200").contains("40000 objects"));
        assert!(error("chunks:size=100GB,interval=2s,count=100").contains("1000GB in all"));
        assert!(error("transfer:size=1MB").contains("`size` is not known here"));
        assert!(error("page:size=1KB,objects=2,waves=2,interval=1s").contains("`interval` is not known here"));
    }
}
