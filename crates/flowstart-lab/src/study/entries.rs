//! The entries of a list that users write: each is read, and no two mean the same.

use flowstart_core::spec::canonical;

use crate::spec::workload::Workload;
use crate::spec::{InputError, Written};
use crate::study::plan::Axis;

/// What stands for an axis of which nothing is written.
pub(super) fn default_of(key: &str) -> Vec<String> {
    Axis::key(key).and_then(|key| key.default).map(str::to_owned).into_iter().collect()
}

/// Workloads that are the same in other words would count twice.
pub(super) fn distinct(field: &str, sizes: Vec<Written<Workload>>) -> Result<Vec<Written<Workload>>, InputError> {
    for (place, size) in sizes.iter().enumerate() {
        if let Some(earlier) = sizes[..place].iter().find(|earlier| earlier.value == size.value) {
            return Err(InputError::new(field, &size.text, format!("given twice: `{}` is the same", earlier.text)));
        }
    }
    Ok(sizes)
}

/// Reads every entry of a list, or the default of its key. Entries must differ in more than their spelling: two
/// spellings of one value would be two cells that are the same.
pub(super) fn each<T>(
    field: &str,
    texts: &[String],
    read: impl Fn(&str) -> Result<T, InputError>,
) -> Result<Vec<T>, InputError> {
    let default = default_of(field);
    let texts = if texts.is_empty() { &default } else { texts };
    if texts.is_empty() {
        return Err(InputError::new(field, "", "at least one is needed"));
    }
    for (place, text) in texts.iter().enumerate() {
        if texts[..place].iter().any(|earlier| earlier.trim() == text.trim()) {
            return Err(InputError::new(field, text, "given twice"));
        }
    }
    let values = texts.iter().map(|text| read(text.trim())).collect::<Result<_, _>>()?;
    let meanings: Vec<String> = texts.iter().map(|text| canonical(text)).collect();
    for (place, text) in texts.iter().enumerate() {
        if let Some(earlier) = meanings[..place].iter().position(|earlier| *earlier == meanings[place]) {
            return Err(InputError::new(field, text, format!("given twice: `{}` is the same", texts[earlier].trim())));
        }
    }
    Ok(values)
}
