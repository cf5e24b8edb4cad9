//! Transfer sizes: `70KB`, or a distribution such as `pareto:mean=100KB,shape=1.2`.
//!
//! | Key of `pareto` | Meaning | Default |
//! |---|---|---|
//! | `smallest` | smallest size | 4KB |
//! | `mean` | mean size, in place of `smallest`, which follows | |
//! | `largest` | largest size | 10MB |
//! | `shape` | shape of the distribution | 1.2 |

use flowstart_core::rng::Substream;
use flowstart_core::units::Bytes;
use flowstart_sim::traffic::arrivals::Sizes;
use serde::Serialize;

use super::application::Application;
use super::web::Web;
use super::{InputError, Spec, Written};

/// Largest transfer.
pub(super) const LARGEST: Bytes = Bytes::new(1_000_000_000_000);

/// How large a transfer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransferSize {
    /// Always the same.
    Fixed(Bytes),
    /// Each flow draws its own.
    Pareto(Sizes),
    /// An application that is no single transfer says it.
    Application(Application),
    /// Objects of web sessions, each over a connection of its own.
    Web(Web),
}

impl TransferSize {
    /// Reads a size.
    pub fn parse(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        let distribution = text.split(':').next().filter(|name| name.trim() == "pareto");
        let value = if distribution.is_some() {
            let mut spec = Spec::parse(field, text)?;
            let sizes = distributed(&mut spec)?;
            if let Some(key) = spec.unasked() {
                let allowed = "smallest or mean, largest, shape";
                return Err(spec.refused(format_args!("`{key}` is not known here; allowed are {allowed}")));
            }
            Self::Pareto(sizes)
        } else {
            let value: Bytes = text.parse().map_err(|error| {
                InputError::new(field, text, format!("{error}; or a distribution, pareto:mean=100KB,shape=1.2"))
            })?;
            if !(1..=LARGEST.get()).contains(&value.get()) {
                return Err(InputError::new(field, text, "allowed is 1B to 1000GB"));
            }
            Self::Fixed(value)
        };
        Ok(Written { text: text.to_owned(), value })
    }

    /// The mean size, in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => size.get() as f64,
            Self::Pareto(sizes) => sizes.mean(),
            Self::Application(application) => application.total().get() as f64,
            Self::Web(web) => web.sizes.mean * web.payload.get() as f64,
        }
    }

    /// The mean size in whole bytes.
    pub fn mean_bytes(&self) -> Bytes {
        Bytes::new(libm::round(self.mean()) as u64)
    }

    /// The sizes of `count` flows of a repetition with this seed.
    pub fn draw(&self, count: u32, seed: u64) -> Vec<Bytes> {
        let mut rng = Substream::new(seed, "measured sizes", 0);
        (0..count)
            .map(|_| match self {
                Self::Fixed(size) => *size,
                Self::Pareto(sizes) => sizes.draw(&mut rng),
                Self::Application(application) => application.total(),
                Self::Web(web) => web.payload * web.sizes.draw(&mut rng),
            })
            .collect()
    }

    /// The application, where it is no single transfer.
    pub fn application(&self) -> Option<Application> {
        match self {
            Self::Fixed(_) | Self::Pareto(_) | Self::Web(_) => None,
            Self::Application(application) => Some(*application),
        }
    }

    /// The web sessions, where flows belong to some.
    pub fn web(&self) -> Option<&Web> {
        match self {
            Self::Web(web) => Some(web),
            Self::Fixed(_) | Self::Pareto(_) | Self::Application(_) => None,
        }
    }
}

impl Serialize for TransferSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(size) => serializer.serialize_u64(size.get()),
            Self::Pareto(Sizes { smallest, largest, shape }) => {
                let text = format!("pareto:smallest={smallest},largest={largest},shape={shape}");
                serializer.serialize_str(&text)
            }
            Self::Application(application) => serializer.serialize_u64(application.total().get()),
            Self::Web(web) => serializer.serialize_str(&web.to_string()),
        }
    }
}

/// Reads the keys of a bounded Pareto distribution. Defaults: 4 KB to 10 MB with shape 1.2, web traffic's (Crovella,
/// Bestavros 1997); with `mean` the smallest size follows.
pub(super) fn distributed(spec: &mut Spec<'_>) -> Result<Sizes, InputError> {
    let (smallest, mean) = (spec.read("smallest")?, spec.read("mean")?);
    let mut sizes = Sizes {
        smallest: Bytes::new(4_000),
        largest: spec.read("largest")?.unwrap_or(Bytes::new(10_000_000)),
        shape: spec.within("shape", 0.1..=10.0)?.unwrap_or(1.2),
    };
    match (smallest, mean) {
        (Some(_), Some(_)) => return Err(spec.refused("smallest follows from mean; give one of them")),
        (Some(smallest), None) => sizes.smallest = smallest,
        (None, Some(mean)) => {
            sizes = with_mean(sizes, mean).ok_or_else(|| spec.refused(no_such_mean(&sizes)))?;
        }
        (None, None) => {}
    }
    if sizes.smallest == Bytes::ZERO || sizes.smallest >= sizes.largest || sizes.largest > LARGEST {
        return Err(spec.refused("needs 0B < smallest < largest, and largest up to 1000GB"));
    }
    Ok(sizes)
}

fn no_such_mean(sizes: &Sizes) -> String {
    format!("no distribution between 1 byte and {} with shape {} has this mean", sizes.largest, sizes.shape)
}

/// The distribution with the smallest size that gives this mean: the mean grows with it.
fn with_mean(sizes: Sizes, mean: Bytes) -> Option<Sizes> {
    let (mut low, mut high) = (1, sizes.largest.get().min(LARGEST.get()).saturating_sub(1));
    let at = |smallest: u64| Sizes { smallest: Bytes::new(smallest), ..sizes };
    if low >= high || at(low).mean() > mean.get() as f64 || at(high).mean() < mean.get() as f64 {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if at(middle).mean() < mean.get() as f64 { low = middle } else { high = middle }
    }
    Some(at(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> TransferSize {
        TransferSize::parse("--size", text).unwrap().value
    }

    #[test]
    fn a_mean_is_met_to_a_byte_of_the_smallest_size() {
        let TransferSize::Pareto(sizes) = size("pareto:mean=100KB,shape=1.2,largest=10MB") else {
            panic!("a distribution")
        };
        let below = Sizes { smallest: Bytes::new(sizes.smallest.get() - 1), ..sizes };
        assert!(sizes.mean() >= 100_000.0 && below.mean() < 100_000.0, "{sizes:?}");
        // The mean of many draws; the tail is cut at 10 MB, so it converges.
        let drawn = TransferSize::Pareto(sizes).draw(200_000, 1);
        let mean = drawn.iter().map(|size| size.get() as f64).sum::<f64>() / 200_000.0;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn one_size_is_every_flows_size() {
        assert_eq!(size("70KB"), TransferSize::Fixed(Bytes::new(70_000)));
        assert_eq!(size("70KB").draw(2, 1), [Bytes::new(70_000); 2]);
        assert_eq!(size("pareto").draw(3, 7), size("pareto:smallest=4KB,shape=1.2").draw(5, 7)[..3]);
    }

    #[test]
    fn wrong_sizes_say_what_is_allowed() {
        let error = |text: &str| TransferSize::parse("--size", text).unwrap_err().to_string();
        assert!(error("0B").contains("1B to 1000GB"));
        assert!(error("large").contains("pareto:mean="));
        assert!(error("pareto:mean=1MB,smallest=1KB").contains("one of them"));
        assert!(error("pareto:mean=20MB").contains("no distribution between 1 byte and 10MB"));
        assert!(error("pareto:mean=1MB,shape=0").contains("0.1 to 10"));
        assert!(error("pareto:median=1MB").contains("smallest or mean"));
        assert!(error("pareto:smallest=5MB,largest=4MB").contains("smallest < largest"));
    }
}
