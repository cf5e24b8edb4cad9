//! Transfer sizes: `70KB`, or a distribution such as `pareto:mean=100KB,shape=1.2`.
//!
//! | Key of `pareto` | Meaning | Default |
//! |---|---|---|
//! | `smallest` | smallest size | 4KB |
//! | `mean` | mean size, in place of `smallest`, which follows from it | |
//! | `largest` | largest size | 10MB |
//! | `shape` | shape of the distribution | 1.2 |

use flowstart_core::rng::Substream;
use flowstart_core::spec::names;
use flowstart_core::units::Bytes;
use flowstart_sim::traffic::arrivals::Sizes;
use serde::Serialize;

use super::{InputError, Spec, Written};

/// Largest transfer.
pub(super) const LARGEST: Bytes = Bytes::new(1_000_000_000_000);

/// The size of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransferSize {
    /// A fixed size.
    Fixed(Bytes),
    /// Each flow draws its own size.
    Pareto(Sizes),
}

impl TransferSize {
    /// Reads a size.
    pub fn parse(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        let distribution = text.split(':').next().filter(|name| names::is_same(name.trim(), "pareto"));
        let value = if distribution.is_some() {
            let mut spec = Spec::parse(field, text)?;
            let sizes = distributed(&mut spec)?;
            if let Some(key) = spec.unasked() {
                let allowed = "smallest or mean, largest, shape";
                return Err(spec.refused(format_args!("`{key}` is not known here; allowed are {allowed}")));
            }
            Self::Pareto(sizes)
        } else {
            let several: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
            if text.contains(',') && several.iter().all(|part| part.parse::<Bytes>().is_ok()) {
                let problem = format!("a comma separates keys, a space values; expected is {}", several.join(" "));
                return Err(InputError::new(field, text, problem));
            }
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
        }
    }

    /// The size of the next flow.
    pub fn draw(&self, rng: &mut Substream) -> Bytes {
        match self {
            Self::Fixed(size) => *size,
            Self::Pareto(sizes) => sizes.draw(rng),
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
        }
    }
}

/// Reads the keys of a bounded Pareto distribution. Defaults: 4 KB to 10 MB with shape 1.2, as in web traffic
/// (Crovella, Bestavros 1997). With `mean`, the smallest size follows from it.
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

/// The distribution whose smallest size gives this mean, which grows with the smallest size.
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
    use crate::spec::workload::Workload;

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
        // The mean of many draws converges because the tail ends at 10 MB.
        let drawn = Workload::Transfer(TransferSize::Pareto(sizes)).draw(200_000, 1);
        let mean = drawn.iter().map(|size| size.get() as f64).sum::<f64>() / 200_000.0;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn one_size_is_every_flows_size() {
        assert_eq!(size("70KB"), TransferSize::Fixed(Bytes::new(70_000)));
        let draw = |text: &str, count: u32, seed: u64| Workload::Transfer(size(text)).draw(count, seed);
        assert_eq!(draw("70KB", 2, 1), [Bytes::new(70_000); 2]);
        assert_eq!(draw("pareto", 3, 7), draw("pareto:smallest=4KB,shape=1.2", 5, 7)[..3]);
    }

    #[test]
    fn wrong_sizes_say_what_is_allowed() {
        let error = |text: &str| TransferSize::parse("--size", text).unwrap_err().to_string();
        assert!(error("0B").contains("1B to 1000GB"));
        assert!(error("70KB,2MB").contains("expected is 70KB 2MB"));
        assert!(error("large").contains("pareto:mean="));
        assert!(error("pareto:mean=1MB,smallest=1KB").contains("one of them"));
        assert!(error("pareto:mean=20MB").contains("no distribution between 1 byte and 10MB"));
        assert!(error("pareto:mean=1MB,shape=0").contains("0.1 to 10"));
        assert!(error("pareto:median=1MB").contains("smallest or mean"));
        assert!(error("pareto:smallest=5MB,largest=4MB").contains("smallest < largest"));
    }
}
